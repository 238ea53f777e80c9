"""What is in the ledger?

Entries in the order they were written, and sums by kind. How they are shown is the affair of whoever asks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from ullage.store import Connection, Database, seconds

from .entry import Entry, Kind
from .rows import entry_of

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
    conditions, values = _within(since, until)
    if kind is not None:
        conditions, values = [*conditions, "kind = :kind"], values | {"kind": kind}
    if session is not None:
        conditions, values = [*conditions, "session = :session"], values | {"session": session}
    where = " AND ".join([*conditions, "id > :after"])
    query, after = f"SELECT * FROM ullage_entries WHERE {where} ORDER BY id LIMIT {_PAGE}", 0
    while page := database.read(partial(_fetch, query=query, values=values | {"after": after})):
        after = page[-1][0]
        yield from (entry for _, entry in page)


def _fetch(connection: Connection, query: str, values: dict[str, object]) -> list[tuple[int, Entry]]:
    return [(row["id"], entry_of(row)) for row in connection.execute(query, values).mappings()]


def _within(since: datetime | None, until: datetime | None) -> tuple[list[str], dict[str, object]]:
    """Conditions on the time of an entry, and their values."""
    times = {"since": since, "until": until}
    conditions = {"since": "time >= :since", "until": "time < :until"}
    given: dict[str, object] = {name: seconds(time) for name, time in times.items() if time is not None}
    return [conditions[name] for name in given], given


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
    conditions, values = _within(since, until)
    query = (
        "SELECT kind, count(*), sum(tokens), sum(saved_tokens), sum(CASE WHEN is_error THEN 1 ELSE 0 END), "
        f"sum(milliseconds) FROM ullage_entries WHERE {' AND '.join(conditions) or '1 = 1'} GROUP BY kind"
    )
    rows = database.read(lambda connection: connection.execute(query, values).all())
    return {kind: _total(*figures) for kind, *figures in rows}


def _total(entries: int, tokens: int, saved: int | None, errors: int, milliseconds: float | None) -> Total:
    """PostgreSQL sums integers to decimals."""
    return Total(
        entries=entries,
        tokens=int(tokens),
        saved_tokens=None if saved is None else int(saved),
        errors=int(errors),
        milliseconds=milliseconds,
    )
