"""How does a history and its file stay one?

What is added is appended, what is let go is replaced, and what other processes wrote is taken in; where the file has
lost messages, what is left is handed on as a provider takes it. Every call blocks as long as the disk does. What is let
go, and when, is not decided here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from ullage.errors import UnreadableRequest
from ullage.messages import Format, Message, detect_messages, from_json, plain, read_message
from ullage.tool import Json

from .entry import Entry, Kind
from .lost import Amended, amended, is_broken
from .session import Draft, Record, Session, SessionChanged, listed
from .shed import Shed

__all__ = ["Coming", "Keeping", "News"]

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """A message that is not weighed yet."""

    native: object
    pinned: bool = False
    kind: Kind = "message"
    record: str | None = None


@dataclass(frozen=True, slots=True)
class Mends:
    """What is sent otherwise than the file has it, by the ids of records."""

    retold: Mapping[str, object]
    before: Mapping[str, tuple[object, ...]]
    """What stands in for what was lost before it."""
    lost: tuple[int, ...]
    """The numbers of all messages that the file has lost."""

    def among(self, records: Sequence[Record]) -> tuple[frozenset[str], frozenset[str]]:
        ids = frozenset(record.id for record in records)
        return ids & self.retold.keys(), ids & self.before.keys()


_NO_MENDS = Mends({}, {}, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a file holds that its context has not seen."""

    afresh: bool
    """Whether it is all of the history, for somebody else has let go of some."""
    messages: tuple[Coming, ...]
    retold: frozenset[str] = frozenset()
    """Of which the file's message is not what is sent, or was not: what is held of them is not to be gone by."""
    mends: Mends = _NO_MENDS


class Keeping:
    def __init__(self, session: Session, format: Format | None = None) -> None:  # noqa: A002
        self._session = session
        self._format = format or session.format
        self._looked: tuple[tuple[Record, ...], Mends] = ((), _NO_MENDS)
        """At which records, and what is sent otherwise of them."""
        self._taken = _NO_MENDS
        """With which the history is what it is."""
        self._read: dict[str, Message] = {}
        """Messages that were looked at for what was lost, by their records' ids."""
        self._made: dict[int, object] = {}
        """What stands in for messages that were lost, by its `id`; the file has none of it."""

    @property
    def warning(self) -> str | None:
        """What was lost, as long as something is sent otherwise for it."""
        if not (self._taken.retold or self._taken.before):
            return None
        return (
            f"{listed('message', self._taken.lost)} of `{self._session.path}` can no longer be read: a result without "
            "its call is sent as text, and a call without its result with words that say so"
        )

    def append(self, natives: Sequence[object], *, pinned: bool, durable: bool) -> tuple[Coming, ...]:
        records = self._session.append([plain(native) for native in natives], pinned=pinned, durable=durable)
        return tuple(
            Coming(native=native, pinned=pinned, record=record.id)
            for native, record in zip(natives, records, strict=True)
        )

    def news(self, known: Sequence[str]) -> News:
        """What came since, given the ids that are known, in order."""
        records, before = self._session.refresh(), self._taken
        old, mends = records[: len(known)], self._look(records)
        is_same = mends is before or mends.among(old) == before.among(old)
        afresh = [record.id for record in old] != list(known) or not is_same
        new = records if afresh else records[len(known) :]
        return News(
            afresh=afresh,
            messages=tuple(coming for record in new for coming in self._comings(record, mends)),
            retold=frozenset({*before.retold, *mends.retold}),
            mends=mends,
        )

    def take(self, news: News) -> None:
        """To be told when news have become part of the history."""
        self._taken = news.mends

    def replace(
        self, before: Sequence[Entry], after: Sequence[Entry], sheds: Sequence[Shed]
    ) -> tuple[tuple[Entry, ...], int]:
        """What is left, under the ids it has now, and the generation. Raises `SessionChanged` where the file is no
        longer what `before` was, `StoreFailed` where it cannot be written; nothing is lost by either."""
        there = [entry for entry in before if not self._is_made(entry)]
        snapshot = self._session.records[: len(there)]
        if [record.id for record in snapshot] != [entry.record for entry in there]:
            raise SessionChanged(f"somebody else has let go of messages in `{self._session.path}` meanwhile")
        same = {id(entry): record for entry, record in zip(there, snapshot, strict=True)}
        values = [same.get(id(entry)) or _draft(entry) for entry in after]
        made = self._session.replace(0, len(there), values, snapshot=snapshot, meta=_meta(sheds))
        records = self._session.records
        self._taken = self._look(records)
        return tuple(_under(entry, record) for entry, record in zip(after, records, strict=False)), made.number

    def _comings(self, record: Record, mends: Mends) -> Iterator[Coming]:
        for native in mends.before.get(record.id, ()):
            yield Coming(native=native)
        native = mends.retold.get(record.id) or self._native(record)
        yield Coming(native=native, pinned=record.pinned, kind=record.kind, record=record.id)

    def _native(self, record: Record) -> object:
        neutral = self._session.format is Format.ULLAGE
        return from_json(dict(record.message)) if neutral else record.message

    def _is_made(self, entry: Entry) -> bool:
        return entry.record is None and id(entry.native) in self._made

    def _look(self, records: tuple[Record, ...]) -> Mends:
        """Looks for what the file has lost, where the numbers of its messages have gaps. What was let go leaves some
        too, so most often there is nothing."""
        seen, mends = self._looked
        if records is not seen:
            mends = self._mended(records) if any(_gaps(records)) else _NO_MENDS
            self._made |= {id(one): one for natives in mends.before.values() for one in natives}
            self._looked = records, mends
        return mends

    def _mended(self, records: tuple[Record, ...]) -> Mends:
        try:
            messages = self._messages(records)
        except UnreadableRequest:
            # It will be said when it is weighed.
            return _NO_MENDS
        holes = dict(_gaps(records))
        lost = self._session.lost() if is_broken(messages, max(holes)) else ()
        gaps = frozenset(place for place, gone in holes.items() if any(one in gone for one in lost))
        if not gaps:
            return _NO_MENDS
        found = amended(messages, [record.message for record in records], self._written(records), gaps)
        return self._kept(found, records, lost)

    def _kept(self, found: Amended, records: Sequence[Record], lost: tuple[int, ...]) -> Mends:
        """What was made before for the same message stays the same object."""
        _, known = self._looked
        retold = {records[place].id: native for place, native in found.retold.items()}
        before = {records[place].id: tuple(natives) for place, natives in found.before.items()}
        return Mends(
            {name: _same(native, known.retold.get(name)) for name, native in retold.items()},
            {name: _same(natives, known.before.get(name)) for name, natives in before.items()},
            lost,
        )

    def _messages(self, records: Sequence[Record]) -> list[Message]:
        written, known = self._written(records), self._read
        read = {one.id: known.get(one.id) or read_message(one.message, written) for one in records}
        self._read = read
        return [read[record.id] for record in records]

    def _written(self, records: Sequence[Record]) -> Format:
        self._format = self._format or detect_messages([one.message for one in records], model=self._session.model)
        return self._format


def _gaps(records: Sequence[Record]) -> Iterator[tuple[int, range]]:
    """The places before which numbers are missing, and which."""
    numbers = [0, *(record.seq for record in records)]
    for place, (before, number) in enumerate(pairwise(numbers)):
        if number > before + 1:
            yield place, range(before + 1, number)


def _same(made: Made, known: Made | None) -> Made:
    return known if known is not None and known == made else made


def _draft(entry: Entry) -> Draft:
    return Draft(message=plain(entry.native), kind=entry.kind, pinned=entry.pinned, of=entry.record)


def _under(entry: Entry, record: Record) -> Entry:
    return entry if entry.record == record.id else replace(entry, record=record.id)


def _meta(sheds: Sequence[Shed]) -> dict[str, Json]:
    return {"tiers": [shed.tier for shed in sheds], "shed": sum(shed.tokens for shed in sheds)}
