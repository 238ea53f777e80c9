"""What is in the ledger?

Entries in the order they were written, and sums by kind. How they are shown is the affair of whoever asks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

from ullage.store import Database, seconds

from .entry import Entry, Kind
from .rows import ENTRIES, entry_of

__all__ = ["Total", "read_entries", "totals"]

_PAGE = 1000


def read_entries(
    database: Database,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    kind: Kind | None = None,
    session: str | None = None,
) -> Iterator[Entry]:
    """Entries from `since` up to before `until`, page by page: no transaction stays open while one is looked at."""
    query = select(ENTRIES).where(*_within(since, until)).order_by(ENTRIES.c.id).limit(_PAGE)
    if kind is not None:
        query = query.where(ENTRIES.c.kind == kind)
    if session is not None:
        query = query.where(ENTRIES.c.session == session)
    after = 0
    while page := database.read(partial(_fetch, query=query.where(ENTRIES.c.id > after))):
        after = page[-1][0]
        yield from (entry for _, entry in page)


def _fetch(connection: Connection, query: Select[Any]) -> list[tuple[int, Entry]]:
    return [(row["id"], entry_of(row)) for row in connection.execute(query).mappings()]


def _within(since: datetime | None, until: datetime | None) -> list[ColumnElement[bool]]:
    first = [] if since is None else [ENTRIES.c.time >= seconds(since)]
    return first if until is None else [*first, ENTRIES.c.time < seconds(until)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    entries: int
    tokens: int
    saved_tokens: int | None
    """Over the entries that know what they saved; None where none does."""
    errors: int
    milliseconds: float | None


def totals(database: Database, *, since: datetime | None = None, until: datetime | None = None) -> dict[str, Total]:
    """Sums by kind, for the kinds that have entries."""
    query = select(ENTRIES.c.kind, *_SUMS).where(*_within(since, until)).group_by(ENTRIES.c.kind)
    rows = database.read(lambda connection: connection.execute(query).all())
    return {kind: _total(*figures) for kind, *figures in rows}


_SUMS = (
    func.count(),
    func.sum(ENTRIES.c.tokens),
    func.sum(ENTRIES.c.saved_tokens),
    func.sum(case((ENTRIES.c.is_error, 1), else_=0)),
    func.sum(ENTRIES.c.milliseconds),
)


def _total(entries: int, tokens: int, saved: int | None, errors: int, milliseconds: float | None) -> Total:
    """PostgreSQL sums integers to decimals."""
    return Total(
        entries=entries,
        tokens=int(tokens),
        saved_tokens=None if saved is None else int(saved),
        errors=int(errors),
        milliseconds=milliseconds,
    )
