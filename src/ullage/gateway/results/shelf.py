"""Where do held results lie?

In the database, which outlives the process, or in memory where there is none: both bounded in size and age, the oldest
let go first. Everything here blocks and is to be run in a thread. Whose a result is, and who may read it, is the
vault's affair.
"""

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from ullage.store import Connection, Database, in_list

from .held import Packed, Shape, packed_size, read_shapes, write_shapes

__all__ = ["Header", "MemoryShelf", "Shelf", "StoredShelf", "TooLarge"]

_ADD_RESULT = (
    "INSERT INTO ullage_results (handle, principal, server, tool, created, size, shape) "
    "VALUES (:handle, :principal, :server, :tool, :created, :size, :shape)"
)
_ADD_PIECE = (
    "INSERT INTO ullage_result_pieces (handle, position, first, units, data) "
    "VALUES (:handle, :position, :first, :units, :data)"
)
_AT_ONCE = 100
"""Pieces written, or results let go, by one statement."""


class TooLarge(Exception):
    """One result is more than all may be together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A held result without its pieces."""

    principal: str
    server: str
    tool: str
    created: float
    """Seconds since 1970."""
    shapes: tuple[Shape, ...]


class Shelf(Protocol):
    def put(self, handle: str, header: Header, pieces: Sequence[Packed], *, oldest: float) -> None:
        """Keeps a result and lets go of those made before `oldest`, and of as many more as there is no room for."""
        ...

    def header(self, handle: str) -> Header | None: ...

    def piece(self, handle: str, position: int) -> Packed | None: ...

    def position(self, handle: str, within: range, unit: int) -> int:
        """Of the piece, among those within, that holds the unit."""
        ...


@dataclass(slots=True)
class MemoryShelf:
    capacity: int = 64_000_000
    """Bytes of all packed pieces."""
    _held: OrderedDict[str, tuple[Header, Sequence[Packed]]] = field(
        default_factory=OrderedDict[str, tuple[Header, Sequence[Packed]]]
    )
    _size: int = 0
    _lock: Lock = field(default_factory=Lock)

    def put(self, handle: str, header: Header, pieces: Sequence[Packed], *, oldest: float) -> None:
        size = packed_size(pieces)
        if size > self.capacity:
            raise TooLarge
        with self._lock:
            while self._held and self._must_go(next(iter(self._held.values())), size, oldest):
                _, (_, gone) = self._held.popitem(last=False)
                self._size -= packed_size(gone)
            self._held[handle] = header, tuple(pieces)
            self._size += size

    def _must_go(self, first: tuple[Header, Sequence[Packed]], size: int, oldest: float) -> bool:
        return first[0].created < oldest or self._size + size > self.capacity

    def header(self, handle: str) -> Header | None:
        held = self._held.get(handle)
        return None if held is None else held[0]

    def piece(self, handle: str, position: int) -> Packed | None:
        held = self._held.get(handle)
        return None if held is None else held[1][position]

    def position(self, handle: str, within: range, unit: int) -> int:
        held = self._held.get(handle)
        pieces = () if held is None else held[1]
        return max((at for at in within if at < len(pieces) and pieces[at].first <= unit), default=within.start)


@dataclass(frozen=True, slots=True)
class StoredShelf:
    database: Database
    capacity: int = 200_000_000
    """Bytes of all packed pieces."""

    def put(self, handle: str, header: Header, pieces: Sequence[Packed], *, oldest: float) -> None:
        size = packed_size(pieces)
        if size > self.capacity:
            raise TooLarge
        row = {
            "handle": handle,
            # As JSON, so that no two names become one.
            "principal": json.dumps(header.principal),
            "server": json.dumps(header.server),
            "tool": json.dumps(header.tool),
            "created": header.created,
            "size": size,
            "shape": write_shapes(header.shapes),
        }

        def work(connection: Connection) -> None:
            _make_room(connection, self.capacity - size, oldest)
            connection.execute(_ADD_RESULT, row)
            _write(connection, handle, pieces)

        self.database.write(work)

    def header(self, handle: str) -> Header | None:
        query = "SELECT principal, server, tool, created, shape FROM ullage_results WHERE handle = :handle"
        row = self.database.read(lambda connection: connection.execute(query, {"handle": handle}).first())
        if row is None:
            return None
        return Header(
            principal=json.loads(row["principal"]),
            server=json.loads(row["server"]),
            tool=json.loads(row["tool"]),
            created=row["created"],
            shapes=read_shapes(row["shape"]),
        )

    def piece(self, handle: str, position: int) -> Packed | None:
        query = "SELECT first, units, data FROM ullage_result_pieces WHERE handle = :handle AND position = :position"
        values = {"handle": handle, "position": position}
        row = self.database.read(lambda connection: connection.execute(query, values).first())
        return None if row is None else Packed(row["first"], row["units"], bytes(row["data"]))

    def position(self, handle: str, within: range, unit: int) -> int:
        query = (
            "SELECT max(position) FROM ullage_result_pieces "
            "WHERE handle = :handle AND position >= :start AND position < :stop AND first <= :unit"
        )
        values = {"handle": handle, "start": within.start, "stop": within.stop, "unit": unit}
        found = self.database.read(lambda connection: connection.scalar(query, values))
        return within.start if found is None else found


def _make_room(connection: Connection, room: int, oldest: float) -> None:
    connection.execute("DELETE FROM ullage_results WHERE created < :oldest", {"oldest": oldest})
    held = int(connection.scalar("SELECT sum(size) FROM ullage_results") or 0)
    by_age = "SELECT handle, size FROM ullage_results ORDER BY created, handle LIMIT :some"
    while held > room:
        doomed = list[str]()
        for handle, size in connection.execute(by_age, {"some": _AT_ONCE}):
            if held > room:
                doomed.append(handle)
                held -= size
        listed, values = in_list("handle", doomed)
        connection.execute(f"DELETE FROM ullage_results WHERE handle IN {listed}", values)


def _write(connection: Connection, handle: str, pieces: Sequence[Packed]) -> None:
    for start in range(0, len(pieces), _AT_ONCE):
        rows = [
            {"handle": handle, "position": start + place, "first": one.first, "units": one.units, "data": one.data}
            for place, one in enumerate(pieces[start : start + _AT_ONCE])
        ]
        connection.execute(_ADD_PIECE, rows)
