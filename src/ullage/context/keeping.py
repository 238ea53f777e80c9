"""How does a history and its file stay one?

What is added is appended, what is let go is replaced, and what other processes wrote is taken in. Every call blocks as
long as the disk does. What is let go, and when, is not decided here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ullage.messages import Format, from_json, plain
from ullage.tool import Json

from .entry import Entry, Kind
from .session import Draft, Record, Session, SessionChanged
from .shed import Shed

__all__ = ["Coming", "Keeping", "News"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """A message that is not weighed yet."""

    native: object
    pinned: bool = False
    kind: Kind = "message"
    record: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a file holds that its context has not seen."""

    afresh: bool
    """Whether it is all of the history, for somebody else has let go of some."""
    messages: tuple[Coming, ...]


class Keeping:
    def __init__(self, session: Session) -> None:
        self._session = session

    def append(self, natives: Sequence[object], *, pinned: bool, durable: bool) -> tuple[Coming, ...]:
        records = self._session.append([plain(native) for native in natives], pinned=pinned, durable=durable)
        return tuple(
            Coming(native=native, pinned=pinned, record=record.id)
            for native, record in zip(natives, records, strict=True)
        )

    def news(self, known: Sequence[str | None]) -> News:
        """What came since, given the ids that are known, in order."""
        records = self._session.refresh()
        afresh = [record.id for record in records[: len(known)]] != list(known)
        return News(afresh=afresh, messages=tuple(map(self._coming, records if afresh else records[len(known) :])))

    def replace(
        self, before: Sequence[Entry], after: Sequence[Entry], sheds: Sequence[Shed]
    ) -> tuple[tuple[Entry, ...], int]:
        """What is left, under the ids it has now, and the generation. Raises `SessionChanged` where the file is no
        longer what `before` was, `StoreFailed` where it cannot be written; nothing is lost by either."""
        snapshot = self._session.records[: len(before)]
        if [record.id for record in snapshot] != [entry.record for entry in before]:
            raise SessionChanged(f"somebody else has let go of messages in `{self._session.path}` meanwhile")
        same = {id(entry): record for entry, record in zip(before, snapshot, strict=True)}
        values = [same.get(id(entry)) or _draft(entry) for entry in after]
        made = self._session.replace(0, len(before), values, snapshot=snapshot, meta=_meta(sheds))
        records = self._session.records
        return tuple(_under(entry, record) for entry, record in zip(after, records, strict=False)), made.number

    def _coming(self, record: Record) -> Coming:
        neutral = self._session.format is Format.ULLAGE
        native = from_json(dict(record.message)) if neutral else record.message
        return Coming(native=native, pinned=record.pinned, kind=record.kind, record=record.id)


def _draft(entry: Entry) -> Draft:
    return Draft(message=plain(entry.native), kind=entry.kind, pinned=entry.pinned, of=entry.record)


def _under(entry: Entry, record: Record) -> Entry:
    return entry if entry.record == record.id else replace(entry, record=record.id)


def _meta(sheds: Sequence[Shed]) -> dict[str, Json]:
    return {"tiers": [shed.tier for shed in sheds], "shed": sum(shed.tokens for shed in sheds)}
