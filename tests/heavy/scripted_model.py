"""How does a model behave that always does the same?

`python scripted_model.py --port N --log FILE --script JSON -- PROGRAM …` is a model's HTTP interface on loopback for as
long as that program runs: Anthropic Messages, OpenAI Responses and Chat Completions, Gemini. The script is a list of
calls (`{"tool": …, "arguments": …}`) and texts (`{"text": …}`), gone through one a turn; where in it a conversation
stands is read from the conversation, so nothing is remembered and a program may ask twice. A request without the tool
that is due (a title, a summary) is answered in words. Every request's body is logged as a line of JSON, headers never.

In a network namespace of its own it puts loopback up first. It uses the standard library alone.
"""

import argparse
import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

Object = dict[str, Any]
Frames = Iterator[tuple[str | None, Object]]
"""A stream's events, each with its name where the wire has names."""
SEARCH = "ToolSearch"
"""Claude Code's own search, with which a deferred tool is loaded first."""
GIVEN_UP = 124
"""The exit code where the program ran out of time, as `timeout` has it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A tool as the program shows it."""

    name: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model says next: words, or a call."""

    text: str = ""
    call: Shown | None = None
    arguments: Mapping[str, Any] | None = None
    number: int = 0

    @property
    def identity(self) -> str:
        return f"call_{self.number}"

    @property
    def written(self) -> str:
        return json.dumps(self.arguments or {})


class Wire(Protocol):
    def shown(self, body: Object) -> list[Shown]: ...

    def called(self, body: Object) -> list[str]:
        """The names of all calls made so far."""
        ...

    def whole(self, turn: Turn, body: Object) -> Object: ...

    def stream(self, turn: Turn, body: Object) -> Frames: ...


class Messages:
    """Anthropic's."""

    def shown(self, body: Object) -> list[Shown]:
        return [Shown(tool["name"]) for tool in body.get("tools", [])]

    def called(self, body: Object) -> list[str]:
        blocks = (block for message in body["messages"] for block in message["content"])
        return [block["name"] for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]

    def whole(self, turn: Turn, body: Object) -> Object:
        block: Object = {"type": "text", "text": turn.text}
        if turn.call is not None:
            block = {"type": "tool_use", "id": turn.identity, "name": turn.call.name, "input": turn.arguments}
        return self._message(body) | {"content": [block], "stop_reason": self._reason(turn)}

    def stream(self, turn: Turn, body: Object) -> Frames:
        block = self.whole(turn, body)["content"][0]
        empty = {**block, "text": ""} if turn.call is None else {**block, "input": {}}
        delta = {"type": "text_delta", "text": turn.text}
        if turn.call is not None:
            delta = {"type": "input_json_delta", "partial_json": turn.written}
        events: list[Object] = [
            {"type": "message_start", "message": self._message(body)},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": self._reason(turn)}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        return ((event["type"], event) for event in events)

    def _message(self, body: Object) -> Object:
        about = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model")}
        return {**about, "content": [], "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}

    def _reason(self, turn: Turn) -> str:
        return "end_turn" if turn.call is None else "tool_use"


class Responses:
    """OpenAI's newer one."""

    def shown(self, body: Object) -> list[Shown]:
        return [shown for tool in body.get("tools", []) for shown in self._unfolded(tool)]

    def called(self, body: Object) -> list[str]:
        return [
            item["name"] for item in body["input"] if isinstance(item, dict) and item.get("type") == "function_call"
        ]

    def whole(self, turn: Turn, body: Object) -> Object:
        item: Object = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        item["content"] = [{"type": "output_text", "text": turn.text, "annotations": []}]
        if turn.call is not None:
            item = {"type": "function_call", "id": f"fc_{turn.number}", "call_id": turn.identity, "status": "completed"}
            item |= {"name": turn.call.name, "arguments": turn.written}
            item |= {"namespace": turn.call.namespace} if turn.call.namespace else {}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        about = {"id": f"resp_{turn.number}", "object": "response", "status": "completed", "model": body.get("model")}
        return {**about, "output": [item], "usage": usage}

    def stream(self, turn: Turn, body: Object) -> Frames:
        whole = self.whole(turn, body)
        begun = {**whole, "status": "in_progress", "output": []}
        events: list[Object] = [
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": whole["output"][0]},
            {"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]},
            {"type": "response.completed", "response": whole},
        ]
        return ((event["type"], event) for event in events)

    def _unfolded(self, tool: Object) -> Iterator[Shown]:
        if tool.get("type") == "namespace":
            yield from (Shown(inner["name"], tool["name"]) for inner in tool["tools"])
        elif "name" in tool:
            yield Shown(tool["name"])


class Chat:
    """OpenAI's older one, which everybody speaks."""

    def shown(self, body: Object) -> list[Shown]:
        return [Shown(tool["function"]["name"]) for tool in body.get("tools", [])]

    def called(self, body: Object) -> list[str]:
        calls = (call for message in body["messages"] for call in message.get("tool_calls") or [])
        return [call["function"]["name"] for call in calls]

    def whole(self, turn: Turn, body: Object) -> Object:
        message = {"role": "assistant", **self._said(turn)}
        return self._about(body, "chat.completion") | {
            "choices": [{"index": 0, "message": message, "finish_reason": self._reason(turn)}]
        }

    def stream(self, turn: Turn, body: Object) -> Frames:
        about = self._about(body, "chat.completion.chunk")
        said = {"role": "assistant", **self._said(turn)}
        yield None, about | {"choices": [{"index": 0, "delta": said, "finish_reason": None}]}
        yield None, about | {"choices": [{"index": 0, "delta": {}, "finish_reason": self._reason(turn)}]}

    def _said(self, turn: Turn) -> Object:
        if turn.call is None:
            return {"content": turn.text}
        function = {"name": turn.call.name, "arguments": turn.written}
        return {"tool_calls": [{"index": 0, "id": turn.identity, "type": "function", "function": function}]}

    def _about(self, body: Object, kind: str) -> Object:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {"id": "chat_1", "object": kind, "created": 1, "model": body.get("model"), "usage": usage}

    def _reason(self, turn: Turn) -> str:
        return "stop" if turn.call is None else "tool_calls"


class Contents:
    """Gemini's."""

    def shown(self, body: Object) -> list[Shown]:
        declared = (one for tool in body.get("tools", []) for one in tool.get("functionDeclarations", []))
        return [Shown(one["name"]) for one in declared]

    def called(self, body: Object) -> list[str]:
        parts = (part for content in body["contents"] for part in content["parts"])
        return [part["functionCall"]["name"] for part in parts if "functionCall" in part]

    def whole(self, turn: Turn, body: Object) -> Object:
        part: Object = {"text": turn.text}
        if turn.call is not None:
            part = {"functionCall": {"name": turn.call.name, "args": turn.arguments}}
        candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": body.get("model", "scripted")}

    def stream(self, turn: Turn, body: Object) -> Frames:
        yield None, self.whole(turn, body)


def wire_of(path: str) -> Wire | None:
    if path.endswith("/messages"):
        return Messages()
    if path.endswith("/responses"):
        return Responses()
    if path.endswith("/chat/completions"):
        return Chat()
    return Contents() if path.endswith((":generateContent", ":streamGenerateContent")) else None


def turn_of(wire: Wire, body: Object, script: Sequence[Object]) -> Turn:
    called = wire.called(body)
    done = [name for name in called if name != SEARCH]
    step = script[min(len(done), len(script) - 1)]
    if "text" in step:
        return Turn(text=step["text"])
    shown = wire.shown(body)
    due = next((one for one in shown if one.name.endswith(step["tool"])), None)
    if due is not None:
        return Turn(call=due, arguments=step["arguments"], number=len(called))
    loads = next((one for one in shown if one.name == SEARCH), None)
    if loads is not None and len(called) < 2 * len(script):
        wanted = {"query": f"select:mcp__{step['server']}__{step['tool']}", "max_results": 5}
        return Turn(call=loads, arguments=wanted, number=len(called))
    return Turn(text="It is done.")


class Handler(BaseHTTPRequestHandler):
    script: Sequence[Object] = ()
    log: Path
    writing = threading.Lock()

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        with self.writing, self.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps({"path": path, "body": body}) + "\n")
        wire = wire_of(path)
        if wire is None:
            return self._send("application/json", json.dumps({"input_tokens": 1, "totalTokens": 1}))
        turn = turn_of(wire, body, self.script)
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            ending = "data: [DONE]\n\n" if isinstance(wire, Chat) else ""
            return self._send("text/event-stream", "".join(map(framed, wire.stream(turn, body))) + ending)
        return self._send("application/json", json.dumps(wire.whole(turn, body)))

    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"data": [], "models": []}))

    def _send(self, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """What was asked is in the log."""


def framed(frame: tuple[str | None, Object]) -> str:
    name, data = frame
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"


def put_loopback_up() -> None:
    """Where it is up already this changes nothing; where it may not be, the program will say what it cannot reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket, contextlib.suppress(OSError):
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))


def run(program: Sequence[str], seconds: float) -> int:
    """In a group of its own, which is ended with it."""
    with subprocess.Popen(program, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return GIVEN_UP
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--script", type=json.loads, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    put_loopback_up()
    Handler.script, Handler.log = arguments.script, arguments.log
    arguments.log.touch()
    with ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return run(arguments.program, arguments.seconds)
        finally:
            server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
