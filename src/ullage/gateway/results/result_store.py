"""Stores whole results by handle, in the database or in memory.

`Vault` keeps whole results and gives each a handle that cannot be guessed and belongs to the principal it was made
for; to everybody else it does not exist. Where the database fails, a result is kept in memory, for this process alone.
How results are cut into pieces, `held` knows, and where those lie, `shelf`. What a result is read for is not known
here.

In the database, which outlives the process, or in memory where there is none: both bounded in size and age, the oldest
let go first. Everything here blocks and is to be run in a thread. Whose a result is, and who may read it, is the
vault's affair.
"""

import json
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Protocol, TypeVar

import anyio.to_thread

from ullage.errors import StoreFailed, UnknownHandle
from ullage.store import Connection, Database, in_list, seconds
from ullage.table import Continued
from ullage.tokens import drain

from .held_result import Held, Packed, Part, Shape, lines_of, pack, packed_size, read_shapes, unpack, write_shapes

__all__ = ["AGE", "SIZE", "Header", "MemoryShelf", "NotKept", "Opened", "Shelf", "StoredShelf", "TooLarge", "Vault"]

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


_log = logging.getLogger(__name__)

SIZE = 200_000_000
"""Bytes of all results together, as they are packed."""
AGE = 86_400.0
"""Seconds after which a result is let go."""
_IN_MEMORY = 64_000_000
_DIGITS = 18
"""Of a handle: three are one token, so that 60 bits cost six."""

Result = TypeVar("Result")


class NotKept(Exception):
    """There is no place for the result, so that it must not be cut."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A held result, to be read in a thread."""

    handle: str
    header: Header
    shelf: Shelf

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return self.header.shapes

    @property
    def units(self) -> int:
        return self.shapes[-1].end if self.shapes else 0

    def read(self, shape: Shape, first: int) -> Iterator[tuple[int, str]]:
        """The units of a part from one on, each with its number, as far as they are wanted."""
        if not shape.pieces or first >= shape.end:
            return
        start, goes_on = self.shelf.position(self.handle, shape.pieces, first), False
        for position in range(start, shape.pieces.stop):
            piece = self._piece(position)
            text, units = unpack(piece)
            units[0] = Continued(units[0]) if goes_on else units[0]
            # Between two lines, and between two records, there is at least one character.
            goes_on = bool(units[-1]) and text.endswith(units[-1])
            for number, unit in enumerate(units, piece.first):
                if number >= first:
                    yield number, unit

    def text(self, shape: Shape) -> str:
        """All of a part."""
        everything = range(shape.start, shape.start + shape.head + shape.body + shape.tail)
        return "".join(unpack(self._piece(position))[0] for position in everything)

    def around(self, shape: Shape) -> tuple[str, str]:
        """What stands before and behind the units of a part."""
        before = range(shape.start, shape.pieces.start)
        behind = range(shape.pieces.stop, shape.pieces.stop + shape.tail)
        head, tail = ("".join(unpack(self._piece(one))[0] for one in positions) for positions in (before, behind))
        return head, tail

    def _piece(self, position: int) -> Packed:
        piece = self.shelf.piece(self.handle, position)
        if piece is None:
            raise unknown(self.handle)
        return piece


class Vault:
    """Keeps results within bounds. Safe to use from several threads."""

    def __init__(
        self,
        database: Database | None = None,
        *,
        size: int = SIZE,
        age: float = AGE,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Without a database in memory, and there in no more than 64 MB."""
        memory = MemoryShelf(min(size, _IN_MEMORY))
        self._shelves: tuple[Shelf, ...] = (memory,) if database is None else (StoredShelf(database, size), memory)
        self._age = age
        self._now = now

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Runs what blocks off the event loop."""
        return await anyio.to_thread.run_sync(work)

    def keep(self, held: Held) -> str:
        """The handle under which it is safely kept from now on; raises `NotKept`."""
        now = seconds(self._now())
        shapes, pieces = pack(held.parts)
        header = Header(principal=held.principal, server=held.server, tool=held.tool, created=now, shapes=shapes)
        handle = "r" + "".join(secrets.choice("0123456789") for _ in range(_DIGITS))
        for shelf in self._shelves:
            try:
                shelf.put(handle, header, pieces, oldest=now - self._age)
            except StoreFailed as error:
                _log.warning("a result is kept in memory alone: %s (%s)", error.message, error.suggestion)
            except TooLarge:
                continue
            else:
                return handle
        raise NotKept

    def keep_text(self, text: str, *, principal: str, server: str, tool: str) -> str | None:
        """The handle of a text that is kept for other use than reading on; None where there is no place for it."""
        part = Part(text=text, layout=drain(lines_of(text)))
        try:
            return self.keep(Held(principal=principal, server=server, tool=tool, parts=(part,)))
        except NotKept:
            return None

    def open(self, handle: str, principal: str) -> Opened:
        """Raises `UnknownHandle` for none, another's, or one that was let go: they cannot be told apart."""
        oldest, failure = seconds(self._now()) - self._age, None
        for shelf in self._shelves:
            try:
                header = shelf.header(handle)
            except StoreFailed as error:
                failure = error
                continue
            if header is not None and header.created >= oldest and header.principal == principal:
                return Opened(handle, header, shelf)
        raise failure or unknown(handle)


def unknown(handle: str) -> UnknownHandle:
    return UnknownHandle(
        f"no result is held under `{handle[:40]}`",
        suggestion="Results are held for a limited time: call the tool again, and read under the handle it then gives.",
    )
