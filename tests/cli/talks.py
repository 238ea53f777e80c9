"""Sessions to be weighed: long enough to be worth a look, and made of words that weigh something."""

import json
from pathlib import Path

from clients.files import Object, written

MODEL = "gpt-4o"
HEADER: Object = {"type": "session", "id": "s1", "cwd": "/w", "modelId": MODEL, "timestamp": "2026-11-15T10:00:00Z"}


def words(number: int, of: str = "quince") -> str:
    return " ".join(f"{of}-{each}" for each in range(number))


def asked(text: str, minute: int = 0) -> Object:
    return _line({"role": "user", "content": [{"type": "text", "text": text}]}, minute)


def answered(minute: int, *, prompt: int | None = None, cached: int = 0, call: str | None = None, **about) -> Object:
    """With a call of `read`, or with words."""
    block: Object = {"type": "text", "text": f"Done at {minute}."}
    if call is not None:
        block = {"type": "toolCall", "id": f"c{minute}", "name": "read", "arguments": {"path": call}}
    usage = {} if prompt is None else {"usage": {"input": prompt - cached, "output": 5, "cacheRead": cached}}
    return _line({"role": "assistant", "model": MODEL, "content": [block], **usage, **about}, minute)


def result(minute: int, text: str) -> Object:
    said = {
        "role": "toolResult",
        "toolCallId": f"c{minute}",
        "toolName": "read",
        "content": [{"type": "text", "text": text}],
    }
    return _line(said, minute)


def compaction(before: int) -> Object:
    return {"type": "compaction", "summary": "All was read.", "firstKeptEntryIndex": 10_000, "tokensBefore": before}


def _line(message: Object, minute: int) -> Object:
    at = f"2026-11-15T{10 + minute // 60:02}:{minute % 60:02}:00Z"
    return {"type": "message", "timestamp": at, "message": message}


def turns(count: int, *, start: int = 1, size: int = 300, reported: bool = True) -> list[Object]:
    """As many calls of `read`, each with its result; what is reported grows with them."""
    lines: list[Object] = []
    for minute in range(start, start + count):
        grown = 3_000 + (minute - start) * size * 4
        lines.append(answered(minute, prompt=grown if reported else None, call=f"notes/{minute}.txt"))
        lines.append(result(minute, words(size)))
    return lines


def session(path: Path, *records: Object) -> Path:
    """A session of pi."""
    return written(path, HEADER, *records)


def chat(pairs: int, size: int = 300) -> list[Object]:
    """OpenAI's messages."""
    messages: list[Object] = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Read all of it."},
    ]
    for number in range(pairs):
        function = {"name": "read", "arguments": json.dumps({"path": f"notes/{number}.txt"})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": words(size)})
    return messages
