"""Stores whole results by handle, in the database or in memory.

`Vault` gives every stored result a handle that cannot be guessed and that only the result's principal can open.
`DatabaseResultStore` outlives the process; `MemoryResultStore` is used where there is no database or it fails. Both are
bounded in size and age, and drop the oldest results first. The stores block: run them in a thread.
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

__all__ = [
    "AGE",
    "SIZE",
    "DatabaseResultStore",
    "Header",
    "MemoryResultStore",
    "NotStored",
    "OpenResult",
    "ResultStore",
    "TooLarge",
    "Vault",
]

_log = logging.getLogger(__name__)

SIZE = 200_000_000
"""Default limit of the packed bytes of all results."""
AGE = 86_400.0
"""Default age in seconds at which a result is dropped."""
_IN_MEMORY = 64_000_000
"""Most packed bytes in memory."""
_HANDLE_DIGITS = 18
"""Digits of a handle. Three digits are one token, so that 60 bits cost six tokens."""

_ADD_RESULT = (
    "INSERT INTO ullage_results (handle, principal, server, tool, created, size, shape) "
    "VALUES (:handle, :principal, :server, :tool, :created, :size, :shape)"
)
_ADD_PIECE = (
    "INSERT INTO ullage_result_pieces (handle, position, first, units, data) "
    "VALUES (:handle, :position, :first, :units, :data)"
)
_AT_ONCE = 100
"""Pieces written, or results deleted, by one statement."""

Result = TypeVar("Result")


class TooLarge(Exception):
    """A result is larger than the store's capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A stored result without its pieces."""

    principal: str
    server: str
    tool: str
    created: float
    """Seconds since 1970."""
    shapes: tuple[Shape, ...]


class ResultStore(Protocol):
    """Interface of a store of results in compressed pieces."""

    def put(self, handle: str, header: Header, pieces: Sequence[Packed], *, oldest: float) -> None:
        """Store a result. Drops results made before `oldest`, and then the oldest ones until there is room.

        Raises:
            TooLarge: The result is larger than the capacity.
        """
        ...

    def header(self, handle: str) -> Header | None: ...

    def piece(self, handle: str, position: int) -> Packed | None: ...

    def position(self, handle: str, within: range, unit: int) -> int:
        """Return the position, within a range of pieces, of the piece that contains a unit."""
        ...


@dataclass(slots=True)
class MemoryResultStore:
    """Results in the memory of this process. Thread-safe."""

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
            while self._held:
                first, its_pieces = next(iter(self._held.values()))
                if first.created >= oldest and self._size + size <= self.capacity:
                    break
                self._held.popitem(last=False)
                self._size -= packed_size(its_pieces)
            self._held[handle] = header, tuple(pieces)
            self._size += size

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
class DatabaseResultStore:
    """Results in the database of the user's store."""

    database: Database
    capacity: int = 200_000_000
    """Bytes of all packed pieces."""

    def put(self, handle: str, header: Header, pieces: Sequence[Packed], *, oldest: float) -> None:
        size = packed_size(pieces)
        if size > self.capacity:
            raise TooLarge
        row = {
            "handle": handle,
            # As JSON, so that unusual characters cannot make two names equal.
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
            for start in range(0, len(pieces), _AT_ONCE):
                rows = [
                    {
                        "handle": handle,
                        "position": start + place,
                        "first": one.first,
                        "units": one.units,
                        "data": one.data,
                    }
                    for place, one in enumerate(pieces[start : start + _AT_ONCE])
                ]
                connection.execute(_ADD_PIECE, rows)

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
    """Delete results made before `oldest`, then the oldest ones until the rest takes at most `room` bytes."""
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


class NotStored(Exception):
    """The result could not be stored, so it must not be truncated."""


@dataclass(frozen=True, slots=True)
class OpenResult:
    """A stored result, opened for reading. Reading blocks: run it in a thread."""

    handle: str
    header: Header
    shelf: ResultStore

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The descriptions of the result's parts."""
        return self.header.shapes

    @property
    def units(self) -> int:
        return self.shapes[-1].end if self.shapes else 0

    def read(self, shape: Shape, first: int) -> Iterator[tuple[int, str]]:
        """The units of a part from number `first` on, each with its number. Pieces are loaded as needed."""
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
        """The whole text of a part."""
        everything = range(shape.start, shape.start + shape.head + shape.body + shape.tail)
        return "".join(unpack(self._piece(position))[0] for position in everything)

    def around(self, shape: Shape) -> tuple[str, str]:
        """The text before and after the units of a part."""
        before = range(shape.start, shape.pieces.start)
        behind = range(shape.pieces.stop, shape.pieces.stop + shape.tail)
        head, tail = ("".join(unpack(self._piece(one))[0] for one in positions) for positions in (before, behind))
        return head, tail

    def _piece(self, position: int) -> Packed:
        piece = self.shelf.piece(self.handle, position)
        if piece is None:
            raise unknown_handle(self.handle)
        return piece


class Vault:
    """Stores results under handles, within limits of size and age. Thread-safe."""

    def __init__(
        self,
        database: Database | None = None,
        *,
        size: int = SIZE,
        age: float = AGE,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """
        Args:
            database: Where results are stored; in memory, within 64 MB, where there is none.
            size: Most packed bytes of all results.
            age: Seconds after which a result is dropped.
            now: The clock.
        """
        memory = MemoryResultStore(min(size, _IN_MEMORY))
        self._stores: tuple[ResultStore, ...] = (
            (memory,) if database is None else (DatabaseResultStore(database, size), memory)
        )
        self._age = age
        self._now = now

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Run blocking work in a thread."""
        return await anyio.to_thread.run_sync(work)

    def keep(self, held: Held) -> str:
        """Store a result and return its handle.

        Raises:
            NotStored: Neither the database nor memory can hold it.
        """
        now = seconds(self._now())
        shapes, pieces = pack(held.parts)
        header = Header(principal=held.principal, server=held.server, tool=held.tool, created=now, shapes=shapes)
        handle = "r" + "".join(secrets.choice("0123456789") for _ in range(_HANDLE_DIGITS))
        for shelf in self._stores:
            try:
                shelf.put(handle, header, pieces, oldest=now - self._age)
            except StoreFailed as error:
                _log.warning("a result is kept in memory alone: %s (%s)", error.message, error.suggestion)
            except TooLarge:
                continue
            else:
                return handle
        raise NotStored

    def keep_text(self, text: str, *, principal: str, server: str, tool: str) -> str | None:
        """Store a plain text and return its handle; None where it cannot be stored."""
        part = Part(text=text, layout=drain(lines_of(text)))
        try:
            return self.keep(Held(principal=principal, server=server, tool=tool, parts=(part,)))
        except NotStored:
            return None

    def open(self, handle: str, principal: str) -> OpenResult:
        """Open a stored result.

        Raises:
            UnknownHandle: No result of this principal has that handle: it never existed, has expired, or belongs to
                another principal.
            StoreFailed: The database failed and the result is not in memory.
        """
        oldest, failure = seconds(self._now()) - self._age, None
        for shelf in self._stores:
            try:
                header = shelf.header(handle)
            except StoreFailed as error:
                failure = error
                continue
            if header is not None and header.created >= oldest and header.principal == principal:
                return OpenResult(handle, header, shelf)
        raise failure or unknown_handle(handle)


def unknown_handle(handle: str) -> UnknownHandle:
    return UnknownHandle(
        f"no result is held under `{handle[:40]}`",
        suggestion="Results are held for a limited time: call the tool again, and read under the handle it then gives.",
    )
