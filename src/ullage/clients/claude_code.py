"""Reads sessions of Claude Code: JSONL below `~/.claude/projects`.

One answer spans several lines with one id, results that belong together are several lines too, and messages that the
program itself sends to the model are stored as attachments. All are combined in the form that the provider receives.
Newer versions also record the system prompt and the tools.

The lines are a tree: each names the one before it, and going back or trying again leaves branches. The work of the
program's own agents (sidechains) is in another file, or between the lines of this one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ullage.messages import Format, read_usage, table_at, tables_at, text_at, tokens_at
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from .conversation import Conversation, Document, Draft, moment

__all__ = ["answer_of", "branch", "main_lines", "read", "recognises"]

_SAID = ("user", "assistant")


def main_lines(records: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the lines without sidechains, unless the whole file is one."""
    main = [record for record in records if record.get("isSidechain") is not True]
    return main if any(text_at(record, "type") in _SAID for record in main) else list(records)


def branch(records: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the lines that lead to the last one, in their order."""
    named = [record for record in records if text_at(record, "uuid")]
    # An unresolved link is treated as a link to the previous line.
    kept = set[str]()
    place = {str(record["uuid"]): index for index, record in enumerate(named)}
    index, seen = len(named) - 1, set[int]()
    while index >= 0 and index not in seen:
        seen.add(index)
        kept.add(str(named[index]["uuid"]))
        parent = text_at(named[index], "parentUuid") or text_at(named[index], "logicalParentUuid")
        if parent is None:
            break
        index = place.get(parent, index - 1)
    answers = {answer_of(record) for record in named if record["uuid"] in kept} - {None}
    # Results of parallel calls are separate branches of the tree, and so are the parts of one answer.
    calls = {block for record in named if answer_of(record) in answers for block in _call_ids(record)}
    return [
        record
        for record in named
        if record["uuid"] in kept or answer_of(record) in answers or calls.intersection(_result_ids(record))
    ]


def answer_of(record: JsonObject) -> tuple[str, str | None] | None:
    """Return the id of the model's answer that a line is part of; None if it is not part of one."""
    identity = text_at(table_at(record, "message"), "id")
    if record.get("type") != "assistant" or identity is None:
        return None
    return identity, text_at(record, "requestId") or text_at(record, "requestRef")


def _call_ids(record: JsonObject) -> Iterator[str]:
    blocks = tables_at(table_at(record, "message"), "content")
    return (str(block.get("id")) for block in blocks if block.get("type") == "tool_use")


def _result_ids(record: JsonObject) -> Iterator[str]:
    if record.get("type") != "user":
        return iter(())
    blocks = tables_at(table_at(record, "message"), "content")
    return (str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result")


_SYNTHETIC = "<synthetic>"
"""The model name of answers that the program created itself."""


def recognises(document: Document) -> bool:
    return any(
        record.get("type") in ("user", "assistant") and "uuid" in record and table_at(record, "message")
        for record in document.objects
    )


def read(document: Document) -> Conversation:
    records = document.objects
    main = main_lines(records)
    lines = branch(main)
    said: list[_DraftMessage] = []
    boundary: JsonObject | None = None
    for record in lines:
        if record.get("subtype") == "compact_boundary":
            boundary = record
            continue
        blocks: list[Json] = []
        kind = record.get("type")
        if kind == "attachment":
            blocks.extend(_text(one.get("content")) for one in tables_at(record, "rendered"))
        elif kind in ("user", "assistant") and record.get("isApiErrorMessage") is not True:
            content = table_at(record, "message").get("content")
            blocks.extend(content if isinstance(content, list) else [_text(content)] if content else [])
        if not blocks:
            continue
        one = _open_message(said, record, fresh=boundary is not None)
        one.blocks += blocks
        one.lines.append(str(record["uuid"]))
        if boundary is not None:
            one.boundary, boundary = boundary, None
        if record.get("type") == "assistant":
            message = table_at(record, "message")
            model = text_at(message, "model")
            if model != _SYNTHETIC:
                one.model = model
                one.usage = read_usage(table_at(message, "usage"), Format.ANTHROPIC)
    draft = _build_draft(said)
    draft.unread["lines that are not JSON"] = document.broken
    draft.unread["lines of agents of its own"] = sum(record.get("isSidechain") is True for record in records) * (
        len(main) < len(records)
    )
    draft.unread["lines of other branches"] = len([one for one in main if text_at(one, "uuid")]) - len(lines)
    shapes = [table_at(one, "shape") for one in records if one.get("type") == "api-request-shape"]
    shape: JsonObject = shapes[-1] if shapes else {}
    return draft.complete(
        Conversation(
            program="claude-code",
            format=Format.ANTHROPIC,
            id=next((text_at(one, "sessionId") for one in records if text_at(one, "sessionId")), None),
            system=shape.get("system"),
            tools=tuple(tables_at(shape, "tools")) if "tools" in shape else None,
        )
    )


@dataclass(slots=True, kw_only=True)
class _DraftMessage:
    """One message while it is assembled from lines."""

    role: str
    at: datetime | None
    blocks: list[Json] = field(default_factory=list["Json"])
    lines: list[str] = field(default_factory=list[str])
    """Ids of the lines."""
    answer: tuple[str, str | None] | None = None
    model: str | None = None
    usage: Usage | None = None
    boundary: JsonObject | None = None
    """The boundary line of the compaction after which the message follows."""


def _text(content: Json) -> Json:
    return {"type": "text", "text": content if isinstance(content, str) else str(content)}


def _open_message(said: list[_DraftMessage], record: JsonObject, *, fresh: bool) -> _DraftMessage:
    """Return the message that a line belongs to: the answer with the same id, the user's turn in progress, or a new
    one."""
    role = "assistant" if record.get("type") == "assistant" else "user"
    answer = answer_of(record)
    if not fresh:
        # Results may already follow the part of an answer that they are results of.
        begun = said[-2:] if answer is not None else [one for one in said[-1:] if not _is_whole(one)]
        found = next((one for one in reversed(begun) if (one.role, one.answer) == (role, answer)), None)
        if found is not None:
            return found
    said.append(_DraftMessage(role=role, at=moment(record.get("timestamp")), answer=answer))
    return said[-1]


def _is_whole(one: _DraftMessage) -> bool:
    """Return whether the message is a summary that is followed by preserved turns."""
    told = table_at(one.boundary or {}, "compactMetadata")
    return bool(told.keys() & {"preservedMessages", "preservedSegment"})


def _build_draft(said: Sequence[_DraftMessage]) -> Draft:
    draft = Draft()
    places: dict[str, int] = {}
    for one in said:
        # The provider requires results first.
        native = {
            "role": one.role,
            "content": sorted(
                one.blocks, key=lambda block: not (isinstance(block, dict) and block.get("type") == "tool_result")
            ),
        }
        place = len(draft.turns)
        if one.boundary is None:
            draft.add(native, one.at)
        else:
            told = table_at(one.boundary, "compactMetadata")
            # Preserved turns are named individually, or by the first and the last.
            named = table_at(told, "preservedMessages")
            listed = named.get("allUuids") or named.get("uuids")
            if isinstance(listed, list):
                kept = sorted({places[str(line)] for line in listed if str(line) in places})
            else:
                segment = table_at(told, "preservedSegment")
                ids = (str(segment.get(key)) for key in ("headUuid", "tailUuid"))
                ends = [places[line] for line in ids if line in places]
                kept = list(range(min(ends), max(ends) + 1)) if ends else []
            draft.add_compaction(
                [native],
                kept=kept,
                before=tokens_at(told, "preTokens"),
                after=tokens_at(told, "postTokens"),
                at=moment(one.boundary.get("timestamp")),
            )
        places |= dict.fromkeys(one.lines, place)
        if one.role == "assistant" and one.model is not None:
            draft.add_answer(place, one.usage, one.model, one.at)
    return draft
