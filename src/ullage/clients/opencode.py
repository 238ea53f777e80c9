"""Reads sessions of opencode.

Sessions come from `opencode export`, from the database `opencode.db`, or, before version 1.2, from a folder with one
file for each session, message and part. Messages with parts are in no provider's format, so they are converted to
neutral ones; a call and its result are one part in the file. Nothing is written.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import cast

from ullage.errors import UnreadableFile
from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    table_at,
    tables_at,
    text_at,
    tokens_at,
)
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from .conversation import Conversation, Document, Draft, moment, summary_message

__all__ = ["is_database", "read", "read_database", "read_session", "read_stored", "recognises"]

_CLEARED = "[Old tool result content cleared]"
_INTERRUPTED = "[Tool execution was interrupted]"


def recognises(document: Document) -> bool:
    whole = document.whole
    if not isinstance(whole, dict) or "messages" not in whole:
        return False
    return "info" in whole and all("info" in one and "parts" in one for one in tables_at(whole, "messages"))


def read(document: Document) -> Conversation:
    whole = document.first
    return read_session(table_at(whole, "info"), tables_at(whole, "messages"))


def read_session(about: JsonObject, messages: Sequence[JsonObject]) -> Conversation:
    """Read a session. `messages` are pairs of `info` and `parts`, in order."""
    reader = _Reader()
    for message in messages:
        reader.take(table_at(message, "info"), tables_at(message, "parts"))
    model = table_at(about, "model")
    return reader.draft.complete(
        Conversation(
            program="opencode",
            format=Format.ULLAGE,
            id=text_at(about, "id"),
            title=text_at(about, "title"),
            model=text_at(model, "id") or reader.model,
        )
    )


class _Reader:
    def __init__(self) -> None:
        self.draft = Draft()
        self.model: str | None = None
        self._places: dict[str, int] = {}
        """The first turn of a message, by the message's id."""
        self._compacting: Mapping[str, JsonObject] = {}
        """The part that requests a summary, by the id of its message."""

    def take(self, info: JsonObject, parts: Sequence[JsonObject]) -> None:
        at = moment(table_at(info, "time").get("created"))
        self._places[text_at(info, "id") or ""] = len(self.draft.turns)
        if info.get("role") == "user":
            self._add_user_message(info, parts, at)
        elif info.get("summary") is True:
            # A failed summary drops nothing.
            if info.get("error") is not None or not info.get("finish"):
                return
            mark = self._compacting.get(text_at(info, "parentID") or "", {})
            tail = self._places.get(text_at(mark, "tail_start_id") or "")
            text = "\n".join(text_at(part, "text") or "" for part in parts if part.get("type") == "text")
            usage = _usage(table_at(info, "tokens"))
            self.draft.add_compaction(
                [summary_message(text)],
                kept=() if tail is None else range(tail, len(self.draft.turns)),
                before=None if usage is None else usage.input,
                at=at,
            )
        else:
            self.model = text_at(info, "modelID") or self.model
            # Older versions store several answers in one message.
            steps: list[list[JsonObject]] = [[]]
            for part in parts:
                if part.get("type") == "step-start" and steps[-1]:
                    steps.append([])
                steps[-1].append(part)
            for step in steps:
                self._step(info, step, at)

    def _add_user_message(self, info: JsonObject, parts: Sequence[JsonObject], at: datetime | None) -> None:
        mark = next((part for part in parts if part.get("type") == "compaction"), None)
        if mark is not None:
            self._compacting = {text_at(info, "id") or "": mark}
            return
        user_parts: list[Part] = []
        for part in parts:
            kind, text = part.get("type"), text_at(part, "text")
            if kind == "text" and text and part.get("ignored") is not True:
                user_parts.append(Text(text))
            # The text of plain files is included as a separate part.
            elif kind == "file" and _is_image(part):
                user_parts.append(_image(part))
        said = tuple(user_parts)
        if said:
            self.draft.add(Message(role="user", parts=said), at)

    def _step(self, info: JsonObject, parts: Sequence[JsonObject], at: datetime | None) -> None:
        """Add one answer of the model, then the results of its calls."""
        answer_parts: list[Part] = []
        for part in parts:
            match part.get("type"):
                case "text" if part.get("text"):
                    answer_parts.append(Text(text_at(part, "text") or ""))
                case "reasoning":
                    metadata = table_at(part, "metadata")
                    signature = text_at(table_at(metadata, "anthropic"), "signature") or text_at(
                        table_at(metadata, "openai"), "reasoningEncryptedContent"
                    )
                    answer_parts.append(Thinking(text=text_at(part, "text") or "", signature=signature))
                case "tool":
                    arguments = json.dumps(
                        table_at(part, "state").get("input") or {}, ensure_ascii=False, separators=(",", ":")
                    )
                    answer_parts.append(
                        ToolCall(id=text_at(part, "callID"), name=text_at(part, "tool") or "", arguments=arguments)
                    )
                case _:
                    pass
        said = tuple(answer_parts)
        if not said:
            return
        place = self.draft.add(Message(role="assistant", parts=said), at)
        for part in parts:
            if part.get("type") == "tool":
                state = table_at(part, "state")
                is_error = state.get("status") != "completed"
                text = text_at(state, "error") or _INTERRUPTED if is_error else text_at(state, "output") or ""
                is_cleared = bool(table_at(state, "time").get("compacted"))
                media = () if is_cleared else (one for one in tables_at(state, "attachments") if _is_image(one))
                self.draft.add(
                    Message(
                        role="tool",
                        parts=(
                            ToolResult(
                                parts=(Text(_CLEARED if is_cleared else text), *map(_image, media)),
                                call_id=text_at(part, "callID"),
                                name=text_at(part, "tool"),
                                is_error=is_error,
                            ),
                        ),
                    ),
                    at,
                )
        finish = next((part for part in parts if part.get("type") == "step-finish"), info)
        self.draft.add_answer(place, _usage(table_at(finish, "tokens")), text_at(info, "modelID"), at)


def _image(part: JsonObject) -> Media:
    head, _, data = (text_at(part, "url") or "").partition(";base64,")
    if head.startswith("data:"):
        return Media(kind="image", media_type=text_at(part, "mime"), data=data)
    return Media(kind="image", media_type=text_at(part, "mime"), url=head)


def _is_image(part: JsonObject) -> bool:
    return str(part.get("mime")).startswith("image/")


def _usage(said: JsonObject) -> Usage | None:
    if not said:
        return None
    cache = table_at(said, "cache")
    read, write = tokens_at(cache, "read") or 0, tokens_at(cache, "write") or 0
    reasoning = tokens_at(said, "reasoning") or 0
    return Usage(
        input=(tokens_at(said, "input") or 0) + read + write,
        output=(tokens_at(said, "output") or 0) + reasoning,
        cache_read=read,
        cache_write=write,
        reasoning=reasoning,
    )


_MAGIC = b"SQLite format 3\0"
_SESSIONS = "select id, title from session order by time_updated"
_MESSAGES = "select id, data from message where session_id = ? order by time_created, id"
_PARTS = "select data from part where message_id = ? order by id"


def is_database(head: bytes) -> bool:
    return head.startswith(_MAGIC)


def read_database(path: Path) -> list[Conversation]:
    """Read every session, the most recently changed last."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return [_of_rows(database, *row) for row in database.execute(_SESSIONS).fetchall()]
    except sqlite3.Error as error:
        raise UnreadableFile(
            f"`{path}` is a database, but none of opencode's: {error}", suggestion="name its opencode.db"
        ) from error


def _of_rows(database: sqlite3.Connection, identity: str, title: str) -> Conversation:
    messages: list[JsonObject] = [
        {
            "info": {**_object(data), "id": message},
            "parts": [_object(part) for (part,) in database.execute(_PARTS, (message,))],
        }
        for message, data in database.execute(_MESSAGES, (identity,)).fetchall()
    ]
    return read_session({"id": identity, "title": title}, messages)


def read_stored(path: Path, about: JsonObject) -> Conversation | None:
    """Read the session of the file `…/storage/session/PROJECT/ID.json`; return None if the file is not such a
    session."""
    identity = about.get("id")
    if not isinstance(identity, str) or path.parent.parent.name != "session":
        return None
    root = path.parents[2]
    messages: list[JsonObject] = [
        {"info": dict(info), "parts": [dict(part) for part in _files(root / "part" / str(info.get("id")))]}
        for info in _files(root / "message" / identity)
    ]
    return read_session(about, messages)


def _files(folder: Path) -> Iterator[JsonObject]:
    """Yield the objects in a folder, whose file names are in order of time."""
    return (_object(file.read_bytes()) for file in sorted(folder.glob("*.json")))


def _object(text: str | bytes) -> dict[str, Json]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}
