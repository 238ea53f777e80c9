"""Reads sessions of Gemini CLI.

JSONL, or one JSON value in older versions, below `~/.gemini/tmp`. A message written again under the same id replaces
the first; `$set` replaces all messages, when a session is resumed or compressed; `$rewindTo` removes messages. Results
are stored with their calls, and in most versions also as messages of their own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from ullage.messages import Format, read_usage, table_at, tables_at, text_at
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from .conversation import Conversation, Document, Draft, moment

__all__ = ["read", "recognises"]

_SAID = frozenset({"user", "gemini"})


def recognises(document: Document) -> bool:
    first = document.first
    return "sessionId" in first and "projectHash" in first


def read(document: Document) -> Conversation:
    histories = _split_at_compressions(document.objects)
    draft = Draft()
    draft.unread["lines that are not JSON"] = document.broken
    for number, history in enumerate(histories):
        contents = list(_contents(history))
        if number:
            place = len(draft.turns)
            draft.add_compaction([one.native for one in contents], at=contents[0].at if contents else None)
        else:
            place = 0
            for one in contents:
                draft.add(one.native, one.at)
        # Calls in an earlier history that this one begins with were already added.
        known = {call.at for call in draft.calls}
        for offset, one in enumerate(contents):
            if one.role == "model" and not (one.at in known and number):
                draft.add_answer(place + offset, one.usage, one.model, one.at)
    return draft.complete(
        Conversation(program="gemini-cli", format=Format.GEMINI, id=text_at(document.first, "sessionId"))
    )


def _split_at_compressions(records: Iterable[JsonObject]) -> list[list[JsonObject]]:
    """Return the messages up to each compression, and those at the end."""
    histories: list[list[JsonObject]] = [[]]
    for record in records:
        replaced = tables_at(table_at(record, "$set"), "messages") or tables_at(record, "messages")
        if replaced:
            # A compression replaces the dropped messages with others. A single dropped message without a replacement
            # was a command to the program.
            old = histories[-1]
            before, after = ({text_at(one, "id") for one in each} for each in (old, replaced))
            is_compression = len(before - after) > 1 and bool(after - before)
            if is_compression:
                histories.append([])
            histories[-1] = list(replaced)
        elif "$rewindTo" in record:
            messages = histories[-1]
            identity = record["$rewindTo"]
            place = next((index for index, one in enumerate(messages) if one.get("id") == identity), len(messages))
            histories[-1] = list(messages[:place])
        elif text_at(record, "type") in _SAID:
            _put_message(histories[-1], record)
    return histories


def _put_message(messages: list[JsonObject], record: JsonObject) -> None:
    for index, one in enumerate(messages):
        if (one.get("id"), one.get("type")) == (record.get("id"), record.get("type")):
            messages[index] = record
            return
    messages.append(record)


@dataclass(slots=True)
class _Content:
    role: str
    parts: list[Json]
    at: datetime | None
    model: str | None = None
    usage: Usage | None = None

    @property
    def native(self) -> dict[str, Json]:
        return {"role": self.role, "parts": self.parts}


def _contents(messages: Iterable[JsonObject]) -> Iterator[_Content]:
    """Yield contents in the form sent to the provider: turns alternate, and each result occurs once."""
    last: _Content | None = None
    answered: set[str] = set()
    for one in _split_messages(messages):
        one.parts = [part for part in one.parts if _is_new(part, answered)]
        if not one.parts:
            continue
        if last is not None and last.role == one.role == "user":
            last.parts += one.parts
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last


def _split_messages(messages: Iterable[JsonObject]) -> Iterator[_Content]:
    for message in messages:
        at = moment(message.get("timestamp"))
        parts = _parts(message.get("content"))
        if message.get("type") == "user":
            yield _Content("user", parts, at)
        if message.get("type") == "gemini":
            called = {text_at(table_at(part, "functionCall"), "id") for part in parts if isinstance(part, dict)}
            calls = tables_at(message, "toolCalls")
            for call in calls:
                if text_at(call, "id") not in called:
                    named = {"id": call.get("id"), "name": call.get("name"), "args": call.get("args")}
                    parts.append({"functionCall": named})
            said, usage = table_at(message, "tokens"), None
            if said:
                figures = {
                    "promptTokenCount": said.get("input"),
                    "candidatesTokenCount": said.get("output"),
                    "thoughtsTokenCount": said.get("thoughts"),
                    "cachedContentTokenCount": said.get("cached"),
                }
                usage = read_usage(figures, Format.GEMINI)
            yield _Content("model", parts, at, text_at(message, "model"), usage)
            yield _Content("user", [part for call in calls for part in _parts(call.get("result"))], at)


def _parts(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"text": content}] if content else []
    listed = content if isinstance(content, list) else [content] if content else []
    return [part if isinstance(part, dict) else {"text": str(part)} for part in listed]


def _is_new(part: Json, answered: set[str]) -> bool:
    """Return whether the part is anything but a repeated result of the same call."""
    identity = text_at(table_at(part, "functionResponse"), "id") if isinstance(part, dict) else None
    if identity is None:
        return True
    is_new = identity not in answered
    answered.add(identity)
    return is_new
