"""Reads sessions of pi: JSONL below `~/.pi/agent/sessions`.

Its messages are in no provider's format and are converted to neutral ones. Since version 2 its lines are a tree, and a
compaction names the first message that was kept.
"""

import json
from collections.abc import Iterator, Sequence

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    table_at,
    tables_at,
    text_at,
    tokens_at,
)
from ullage.models import Usage
from ullage.tool import JsonObject

from .conversation import Conversation, Document, Draft, moment, shown_command, summary_message

__all__ = ["read", "recognises"]

_FAILED = frozenset({"aborted", "error"})


def recognises(document: Document) -> bool:
    first = document.first
    return first.get("type") == "session" and "cwd" in first and "format" not in first


def read(document: Document) -> Conversation:
    lines = document.objects
    header, path = lines[0], _find_path(lines)
    draft = Draft()
    draft.unread["lines that are not JSON"] = document.broken
    draft.unread["lines of other branches"] = len(lines) - 1 - len(path)
    places: dict[int, int] = {}
    answered = {text_at(table_at(line, "message"), "toolCallId") for line in lines}
    model = text_at(header, "modelId")
    for number, line in path:
        if line.get("type") == "compaction":
            first = tokens_at(line, "firstKeptEntryIndex")
            named = text_at(line, "firstKeptEntryId")
            if named is not None:
                first = next((number for number, one in enumerate(lines) if one.get("id") == named), None)
            first_kept = [] if first is None else [place for number, place in places.items() if number >= first]
            summary = summary_message(text_at(line, "summary") or "")
            draft.add_compaction(
                [summary], kept=first_kept, before=tokens_at(line, "tokensBefore"), at=moment(line.get("timestamp"))
            )
        if line.get("type") == "model_change":
            model = text_at(line, "modelId")
        message = _message(line, answered)
        if message is not None:
            places[number] = draft.add(message, moment(line.get("timestamp")))
            _record_answer(draft, places[number], line)
    return draft.complete(Conversation(program="pi", format=Format.ULLAGE, id=text_at(header, "id"), model=model))


def _find_path(lines: Sequence[JsonObject]) -> list[tuple[int, JsonObject]]:
    """Return the lines that lead to the last one, with their numbers; all of them if lines do not name their
    parents."""
    numbers = {text_at(line, "id"): number for number, line in enumerate(lines) if number and text_at(line, "id")}
    if not numbers:
        return [(number, line) for number, line in enumerate(lines) if number]
    path: list[tuple[int, JsonObject]] = []
    number, seen = len(lines) - 1, set[int]()
    while number > 0 and number not in seen:
        seen.add(number)
        path.append((number, lines[number]))
        parent = text_at(lines[number], "parentId")
        if parent is None:
            break
        number = numbers.get(parent, number - 1)
    return path[::-1]


def _record_answer(draft: Draft, place: int, line: JsonObject) -> None:
    message = table_at(line, "message")
    if message.get("role") == "assistant":
        said, usage = table_at(message, "usage"), None
        if said:
            read, write = tokens_at(said, "cacheRead") or 0, tokens_at(said, "cacheWrite") or 0
            usage = Usage(
                input=(tokens_at(said, "input") or 0) + read + write,
                output=tokens_at(said, "output"),
                cache_read=read,
                cache_write=write,
            )
        draft.add_answer(place, usage, text_at(message, "model"), moment(line.get("timestamp")))


def _message(line: JsonObject, answered: set[str | None]) -> Message | None:
    """Return the part of a line that the model was shown; None if there is none."""
    match line.get("type"):
        case "message":
            message = table_at(line, "message")
            match message.get("role"):
                case "assistant":
                    # An aborted call has no result and was not sent again.
                    kept = [part for part in _parts(message) if not isinstance(part, ToolCall) or part.id in answered]
                    is_said = any(not isinstance(part, Thinking) for part in kept)
                    if text_at(message, "stopReason") in _FAILED and not is_said:
                        return None
                    return Message(role="assistant", parts=tuple(kept)) if kept else None
                case "toolResult":
                    result = ToolResult(
                        parts=tuple(_parts(message)),
                        call_id=text_at(message, "toolCallId"),
                        name=text_at(message, "toolName"),
                        is_error=message.get("isError") is True,
                    )
                    return Message(role="tool", parts=(result,))
                case "bashExecution":
                    return None if message.get("excludeFromContext") is True else _user([Text(shown_command(message))])
                case "branchSummary" | "compactionSummary":
                    return summary_message(text_at(message, "summary") or "")
                case _:
                    return _user(_parts(message))
        case "custom_message":
            return _user(_parts(line))
        case "branch_summary":
            return summary_message(text_at(line, "summary") or "")
        case _:
            return None


def _user(parts: Sequence[Part]) -> Message | None:
    return Message(role="user", parts=tuple(parts)) if parts else None


def _parts(message: JsonObject) -> list[Part]:
    content = message.get("content")
    if isinstance(content, str):
        return [Text(content)] if content else []
    return list(_blocks(tables_at(message, "content")))


def _blocks(blocks: Sequence[JsonObject]) -> Iterator[Part]:
    for block in blocks:
        match block.get("type"):
            case "text":
                yield Text(text_at(block, "text") or "")
            case "thinking":
                yield Thinking(text=text_at(block, "thinking") or "", signature=text_at(block, "thinkingSignature"))
            case "image":
                yield Media(kind="image", media_type=text_at(block, "mimeType"), data=text_at(block, "data"))
            case "toolCall":
                yield ToolCall(
                    id=text_at(block, "id"),
                    name=text_at(block, "name") or "",
                    arguments=json.dumps(block.get("arguments"), ensure_ascii=False, separators=(",", ":")),
                )
            case _:
                yield Unknown(dict(block))
