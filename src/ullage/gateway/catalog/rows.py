"""How do servers and their tools stand in the database?

Each function does one thing within a transaction that it is given. What to do, and what when it fails, is the
catalogue's affair.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from ullage.errors import StoreFailed
from ullage.options import Server
from ullage.store import Connection, in_list, moment, seconds, storable, upsert

from ..definition import definition, tool_of
from ..introduction import Introduction
from .stored import StoredTool

__all__ = [
    "ServerRow",
    "claim_server",
    "delete_forgotten",
    "delete_server",
    "find_latest_server",
    "find_server",
    "load_tools",
    "save_server",
    "save_tools",
    "thin_out",
]

_TEXTS = ("id", "server_id", "position", "name", "definition", "definition_hash", "token_count", "embedding")
_COLUMNS = (*_TEXTS, "created", "updated")
_CLAIM = upsert("ullage_servers", ("id", "name", "key", "created", "updated", "seen"), key='name, "key"')
_ADD_TOOL = (
    f"INSERT INTO ullage_tools ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{column}' for column in _COLUMNS)})"
)
_CHANGE_TOOL = f"UPDATE ullage_tools SET {', '.join(f'{column} = :{column}' for column in _COLUMNS)} WHERE id = :row"

_INTRODUCTION = frozenset(field.name for field in fields(Introduction))

_AT_ONCE = 500
"""Rows deleted by one statement: databases limit its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    id: UUID
    introduction: Introduction | None
    seen: datetime
    """When it was last known to list these tools."""


def find_server(connection: Connection, server: Server, *, for_update: bool = False) -> ServerRow | None:
    query = 'SELECT id, introduction, seen FROM ullage_servers WHERE name = :name AND "key" = :key'
    # A transaction that writes to SQLite is alone.
    lock = " FOR UPDATE" if for_update and connection.kind == "postgresql" else ""
    row = connection.execute(query + lock, {"name": storable(server.name), "key": server.key}).first()
    return None if row is None else _server_row(row)


def find_latest_server(connection: Connection, name: str) -> ServerRow | None:
    """The one of that name that was listed last, however it was configured."""
    query = "SELECT id, introduction, seen FROM ullage_servers WHERE name = :name ORDER BY seen DESC LIMIT 1"
    row = connection.execute(query, {"name": storable(name)}).first()
    return None if row is None else _server_row(row)


def _server_row(row: Mapping[str, Any]) -> ServerRow:
    return ServerRow(id=UUID(row["id"]), introduction=_introduction(row["introduction"]), seen=moment(row["seen"]))


def _introduction(said: str | None) -> Introduction | None:
    try:
        return None if said is None else Introduction(**_known(json.loads(said)))
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreFailed("the introduction of a server in the database cannot be read") from error


def _known(said: dict[str, Any]) -> dict[str, Any]:
    """What this version knows of what a newer one may have written."""
    return {key: value for key, value in said.items() if key in _INTRODUCTION}


def claim_server(connection: Connection, server: Server, *, new_id: UUID, now: datetime) -> tuple[ServerRow, bool]:
    """The server's row, made where there is none, and whether it was; nobody else changes it in this transaction."""
    time = seconds(now)
    row = {"id": str(new_id), "name": storable(server.name), "key": server.key}
    connection.execute(_CLAIM, row | {"created": time, "updated": time, "seen": time})
    found = find_server(connection, server, for_update=True)
    if found is None:
        raise StoreFailed(f"the row of `{server.name}` vanished while it was being written")
    return found, found.id == new_id


def save_server(
    connection: Connection, row: ServerRow, introduction: Introduction | None, *, changed: bool, now: datetime
) -> None:
    said = None if introduction is None else json.dumps(asdict(introduction))
    updated = ", updated = :seen" if changed or introduction != row.introduction else ""
    connection.execute(
        f"UPDATE ullage_servers SET introduction = :introduction, seen = :seen{updated} WHERE id = :id",
        {"introduction": said, "seen": seconds(now), "id": str(row.id)},
    )


def thin_out(connection: Connection, name: str, *, most: int) -> None:
    """Keeps the servers of that name that were seen last. One comes with every change of its environment, and some
    environments hold a token that is new each hour."""
    doomed = connection.execute(
        "SELECT id FROM ullage_servers WHERE name = :name ORDER BY seen DESC LIMIT :some OFFSET :most",
        {"name": storable(name), "some": _AT_ONCE, "most": most},
    ).all()
    if doomed:
        listed, values = in_list("id", [row[0] for row in doomed])
        connection.execute(f"DELETE FROM ullage_servers WHERE id IN {listed}", values)


def delete_server(connection: Connection, server: Server) -> None:
    """Its tools go with it."""
    connection.execute(
        'DELETE FROM ullage_servers WHERE name = :name AND "key" = :key',
        {"name": storable(server.name), "key": server.key},
    )


def delete_forgotten(connection: Connection, *, unseen_since: datetime) -> None:
    connection.execute("DELETE FROM ullage_servers WHERE seen < :since", {"since": seconds(unseen_since)})


def load_tools(connection: Connection, server_id: UUID) -> tuple[StoredTool, ...]:
    query = f"SELECT {', '.join(_COLUMNS)} FROM ullage_tools WHERE server_id = :server ORDER BY position"
    return tuple(_tool(row, server_id) for row in connection.execute(query, {"server": str(server_id)}).mappings())


def _tool(row: Mapping[Any, Any], server_id: UUID) -> StoredTool:
    try:
        said = json.loads(row["definition"])
        return StoredTool(
            id=UUID(row["id"]),
            server_id=server_id,
            tool=tool_of(said),
            definition_hash=row["definition_hash"],
            token_count=row["token_count"],
            embedding=row["embedding"],
            created=moment(row["created"]),
            updated=moment(row["updated"]),
        )
    except (ValueError, KeyError, AttributeError) as error:
        raise StoreFailed(f"the definition of `{row['name']}` in the database cannot be read") from error


def save_tools(connection: Connection, old: Sequence[StoredTool], new: Sequence[StoredTool]) -> None:
    """Makes the rows of `old` those of `new`, writing only what differs."""
    before = {stored.id: (position, stored.definition_hash) for position, stored in enumerate(old)}
    staying = {stored.id for stored in new}
    gone = [{"row": str(one)} for one in before if one not in staying]
    added = [_row(at, stored) for at, stored in enumerate(new) if stored.id not in before]
    changed = [
        _row(at, stored) | {"row": str(stored.id)}
        for at, stored in enumerate(new)
        if stored.id in before and before[stored.id] != (at, stored.definition_hash)
    ]
    if gone:
        connection.execute("DELETE FROM ullage_tools WHERE id = :row", gone)
    if added:
        connection.execute(_ADD_TOOL, added)
    if changed:
        connection.execute(_CHANGE_TOOL, changed)


def _row(position: int, stored: StoredTool) -> dict[str, object]:
    return {
        "id": str(stored.id),
        "server_id": str(stored.server_id),
        "position": position,
        "name": storable(stored.tool.name),
        "definition": json.dumps(definition(stored.tool), separators=(",", ":")),
        "definition_hash": stored.definition_hash,
        "token_count": stored.token_count,
        "embedding": stored.embedding,
        "created": seconds(stored.created),
        "updated": seconds(stored.updated),
    }
