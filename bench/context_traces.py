"""Which recorded sessions are there, and how does each read in every format?

A session is read from `DATA` (a folder of .json and .jsonl in any of the shapes below, the README of the recordings
names them) into neutral messages, and written from there in each format. Nothing is copied.

Recordings are no requests: an answer that was broken off, a call that nobody ran, two messages of the user's in a row.
`mended` leaves out or joins what no provider would take or what does not alternate, and nothing else.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Any

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    read_request,
    write_messages,
)

DEFAULT_DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "traces"
FORMATS = (Format.OPENAI_CHAT, Format.OPENAI_RESPONSES, Format.ANTHROPIC, Format.GEMINI)
MODELS: Mapping[Format, str] = {
    Format.OPENAI_CHAT: "gpt-4o",
    Format.OPENAI_RESPONSES: "gpt-5",
    Format.ANTHROPIC: "claude-sonnet-4-5",
    Format.GEMINI: "gemini-2.5-flash",
}
"""Whom a history of each format is weighed for."""
Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    family: str
    """The file or folder it is from."""
    name: str
    system: str
    messages: tuple[Message, ...]

    @property
    def steps(self) -> list[int]:
        """Before which messages a model was called."""
        return [place for place, message in enumerate(self.messages) if message.role == "assistant" and place]

    def chunks(self, format: Format) -> list[list[object]]:  # noqa: A002
        """The messages as a client of the format holds them, by what came between two calls of the model."""
        whole, chunks = iter(write_messages(self.messages, format)), list[list[object]]()
        for start, end in pairwise((0, *self.steps, len(self.messages))):
            size = len(write_messages(self.messages[start:end], format))
            chunks.append(list(islice(whole, size)))
        assert next(whole, None) is None
        return chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A step of a trace at which a window is full."""

    trace: Trace
    step: int
    """The place of the answer that the model was called for; what stands before it was its history."""
    window: int

    @property
    def history(self) -> tuple[Message, ...]:
        return self.trace.messages[: self.step]


def data_folder() -> Path:
    return Path(os.environ.get("DATA") or DEFAULT_DATA)


def read_traces(folder: Path) -> list[Trace]:
    """Of consecutive requests of one session only the last is read: it holds the others."""
    found = [trace for path in sorted(folder.rglob("*.json*")) for trace in _read_file(path, folder)]
    return [trace for trace in found if len(trace.messages) > 1 and not any(_holds(other, trace) for other in found)]


def _holds(other: Trace, trace: Trace) -> bool:
    size = len(trace.messages)
    return len(other.messages) > size and other.messages[:size] == trace.messages


def _read_file(path: Path, folder: Path) -> Iterator[Trace]:
    family = path.relative_to(folder).parts[0].partition(".")[0]
    for number, (system, messages) in enumerate(_sessions(path)):
        yield Trace(family=family, name=f"{path.stem}/{number}", system=system, messages=tuple(mended(messages)))


def _sessions(path: Path) -> Iterator[tuple[str, list[Message]]]:
    """A file holds one session, a list of them, or one a line; `pi` writes a session with a message a line."""
    text = path.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines() if line.strip()] if path.suffix == ".jsonl" else []
    told = [line["message"] for line in lines if isinstance(line, dict) and line.get("type") == "message"]
    if told:
        yield "", [message for one in told for message in read_pi(one)]
        return
    value = lines or json.loads(text)
    for one in value if isinstance(value, list) and value and _listed(value[0]) else [value]:
        yield from _session(one)


def _listed(value: Any) -> list[Raw] | None:  # noqa: ANN401
    """The messages of one session, where this is one and no message."""
    found = value.get("messages", value.get("traj")) if isinstance(value, dict) else value
    return found if isinstance(found, list) and all(isinstance(one, dict) for one in found) else None


def _session(value: Any) -> Iterator[tuple[str, list[Message]]]:  # noqa: ANN401
    listed = _listed(value)
    if not listed or "compaction" in str(listed[0].get("metadata")):
        return
    if "lc" in listed[0]:
        yield "", [message for one in listed for message in _read_langchain(one["kwargs"])]
        return
    form = Format.ANTHROPIC if isinstance(value, dict) and "system_prompt" in value else Format.OPENAI_CHAT
    read = read_request({"messages": [_plain(one) for one in listed]}, form).messages
    system = "\n".join(_text(message) for message in read if message.role == "system")
    yield system, [message for message in read if message.role != "system"]


def _plain(message: Raw) -> dict[str, Any]:
    """A message without what its program notes beside it; a file that was shown is its text."""
    content = message.get("content")
    blocks = [_shown(block) for block in content] if isinstance(content, list) else content
    known = ("role", "tool_calls", "tool_call_id", "name")
    return {key: message[key] for key in known if key in message} | {"content": blocks}


def _shown(block: Raw) -> Raw:
    if block.get("type") == "file" and isinstance(block.get("content"), str):
        return {"type": "text", "text": f"{block['path']}\n{block['content']}"}
    return {key: value for key, value in block.items() if block.get("type") != "tool_result" or key != "name"}


def read_pi(message: Raw) -> Iterator[Message]:
    if message["role"] == "bashExecution":
        yield Message(role="user", parts=(Text(f"I ran `{message['command']}`:\n{message['output']}"),))
        return
    if message.get("stopReason") in ("aborted", "error"):
        return
    parts = tuple(map(_read_pi_part, message["content"]))
    if message["role"] == "toolResult":
        result = ToolResult(
            parts=parts, call_id=message["toolCallId"], name=message["toolName"], is_error=message["isError"]
        )
        yield Message(role="tool", parts=(result,))
    else:
        yield Message(role=message["role"], parts=parts)


def _read_pi_part(part: Raw) -> Part:
    if part["type"] == "thinking":
        return Thinking(text=part["thinking"], signature=part["thinkingSignature"], sealed_as="signature")
    if part["type"] == "toolCall":
        return ToolCall(name=part["name"], arguments=json.dumps(part["arguments"]), id=part["id"])
    if part["type"] == "image":
        return Media(kind="image", media_type=part["mimeType"], data=part["data"])
    return Text(part["text"])


def _read_langchain(message: Raw) -> Iterator[Message]:
    content = message["content"]
    texts = [content] if isinstance(content, str) else [one["text"] for one in content if one["type"] == "text"]
    parts = tuple(Text(text) for text in texts)
    if message["type"] == "tool":
        yield Message(role="tool", parts=(ToolResult(parts=parts, call_id=message["tool_call_id"]),))
        return
    calls = message.get("tool_calls", ())
    called = (ToolCall(name=one["name"], arguments=json.dumps(one["args"]), id=one["id"]) for one in calls)
    if message["type"] != "system":
        yield Message(role="assistant" if message["type"] == "ai" else "user", parts=(*parts, *called))


def mended(messages: Iterable[Message]) -> Iterator[Message]:
    """Empty texts, calls that were not run and results of nothing are left out; neighbours of one role become one."""
    whole = [replace(message, parts=tuple(filter(_is_something, message.parts))) for message in messages]
    for _, group in groupby(_paired(whole), key=lambda message: message.role):
        told = list(group)
        if told[0].role == "tool":
            yield from told
        else:
            yield replace(told[0], parts=tuple(part for message in told for part in message.parts))


def _is_something(part: Part) -> bool:
    return not isinstance(part, Text) or bool(part.text.strip())


def _paired(messages: Sequence[Message]) -> Iterator[Message]:
    """A result belongs to the turn directly before it, for recordings give an id again to another call; there it gets
    the name of its tool."""
    runs = [tuple(told) for _, told in groupby(messages, key=lambda message: message.role)]
    for before, run, after in zip(((), *runs), runs, (*runs[1:], ()), strict=False):
        answered, called = _answered(after), _called(before)
        for message in run:
            parts = tuple(part for one in message.parts for part in _standing(one, answered, called))
            if parts:
                yield replace(message, parts=parts)


def _standing(part: Part, answered: set[str | None], called: Mapping[str | None, str]) -> Iterator[Part]:
    if isinstance(part, ToolResult):
        if part.call_id in called:
            yield replace(part, name=called[part.call_id])
    elif not isinstance(part, ToolCall) or part.id in answered:
        yield part


def _called(messages: Sequence[Message]) -> dict[str | None, str]:
    return {part.id: part.name for message in messages for part in message.parts if isinstance(part, ToolCall)}


def _answered(messages: Sequence[Message]) -> set[str | None]:
    return {part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult)}


def _text(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))
