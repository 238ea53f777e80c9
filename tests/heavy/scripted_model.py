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
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from scripted_wires import Chat, Object, Turn, Wire, wire_of

SEARCH = "ToolSearch"
"""Claude Code's own search, with which a deferred tool is loaded first."""
BRIDGE = "tool_call"
"""Qwen Code's own tool, with which a deferred one is called."""
GIVEN_UP = 124
"""The exit code where the program ran out of time, as `timeout` has it."""


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
    bridge = next((one for one in shown if one.name == BRIDGE), None)
    if bridge is not None and step["tool"] in json.dumps(body):
        name = f"mcp__{step['server']}__{step['tool']}"
        return Turn(call=bridge, arguments={"name": name, "arguments": step["arguments"]}, number=len(called))
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
    arguments.log.write_text("", encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return run(arguments.program, arguments.seconds)
        finally:
            server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
