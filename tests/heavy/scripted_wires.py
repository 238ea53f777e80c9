"""How do four model interfaces show tools, remember calls, and answer?

Anthropic Messages, OpenAI Responses and Chat Completions, Gemini: each what the scripted model needs to tell where
a conversation stands, and to say one thing whole or as a stream. What is said, `scripted_model` decides.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Object = dict[str, Any]
Frames = Iterator[tuple[str | None, Object]]
"""A stream's events, each with its name where the wire has names."""


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
