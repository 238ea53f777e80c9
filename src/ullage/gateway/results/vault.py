"""Where does the rest of a result wait, and for whom?

`Vault` keeps whole results and gives each a handle that cannot be guessed and belongs to the principal it was made
for; to everybody else it does not exist. Where the database fails, a result is kept in memory, for this process alone.
How results are cut into pieces, `held` knows, and where those lie, `shelf`. What a result is read for is not known
here.
"""

import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import anyio.to_thread

from ullage.errors import StoreFailed, UnknownHandle
from ullage.store import Database, seconds
from ullage.table import Continued
from ullage.tokens import drain

from .held import Held, Packed, Part, Shape, pack, unpack
from .layout import lines_of
from .shelf import Header, MemoryShelf, Shelf, StoredShelf, TooLarge

__all__ = ["AGE", "SIZE", "NotKept", "Opened", "Vault"]

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
