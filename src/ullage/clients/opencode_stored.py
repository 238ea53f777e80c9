"""Where does opencode keep its sessions?

In a database, `opencode.db`; before version 1.2 in a folder of one file each session, message and part. What a session
holds, `opencode` reads. Nothing is written.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

from ullage.errors import UnreadableFile
from ullage.tool import Json, JsonObject

from .conversation import Conversation
from .opencode import read_session

__all__ = ["is_database", "read_database", "read_stored"]

_MAGIC = b"SQLite format 3\0"
_SESSIONS = "select id, title from session order by time_updated"
_MESSAGES = "select id, data from message where session_id = ? order by time_created, id"
_PARTS = "select data from part where message_id = ? order by id"


def is_database(head: bytes) -> bool:
    return head.startswith(_MAGIC)


def read_database(path: Path) -> list[Conversation]:
    """Every session, the one last changed at the end."""
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
    """The session whose file, `…/storage/session/PROJECT/ID.json`, this is; None where it is none."""
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
    """Their names are in the order of time."""
    return (_object(file.read_bytes()) for file in sorted(folder.glob("*.json")))


def _object(text: str | bytes) -> dict[str, Json]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}
