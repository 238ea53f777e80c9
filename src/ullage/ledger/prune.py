"""Pruning of the ledger by age.

Entries older than `keep_days` are deleted, and their sums by the hour are merged into sums by the day, so totals do not
change. Model calls are kept for two years: their keys prevent a log that is read again from being counted twice. The
sums of a deleted call are kept, and calls from before that day are no longer accepted.
"""

from datetime import datetime, timedelta, tzinfo
from functools import partial

from ullage.store import Connection, Database, upsert

from .rows import CALLS_PRUNED, ENTRIES_PRUNED, HOUR, MEASURES, SUMS, mark_of

__all__ = ["KEEP_DAYS", "prune"]

KEEP_DAYS = 90.0
"""Default number of days for which entries are kept."""

_CALLS_KEPT = timedelta(days=730)
_AT_ONCE = 5_000
"""Maximum rows deleted in one transaction, because other writers wait for it."""
_DAILY = "daily_until"
_PUT_MARK = upsert("ullage_ledger_marks", ("name", "value"), key="name", update={"value": "excluded.value"})


def prune(database: Database, *, keep_days: float, now: datetime, zone: tzinfo | None = None) -> int:
    """Delete old entries and merge their sums into days.

    Args:
        database: The store.
        keep_days: Days that entries are kept.
        now: The time, with its zone.
        zone: The time zone of the daily totals; None for this machine's.

    Returns:
        How many rows were deleted.
    """
    edge = _midnight(now - timedelta(days=keep_days), zone).timestamp()
    calls_edge = _midnight(now - max(_CALLS_KEPT, timedelta(days=keep_days)), zone).timestamp()
    deleted = 0
    while found := database.write(partial(_delete, table="ullage_entries", edge=edge)):
        deleted += found
    if deleted:
        database.write(partial(_mark, name=ENTRIES_PRUNED, value=edge))
    if database.read(partial(_has_older, edge=calls_edge)):
        database.write(partial(_mark, name=CALLS_PRUNED, value=calls_edge))
        while found := database.write(partial(_delete, table="ullage_model_calls", edge=calls_edge)):
            deleted += found
    while found := database.write(partial(_delete, table="ullage_audit", edge=calls_edge)):
        deleted += found
    for start, end in _days(database, edge, zone):
        database.write(partial(_merge_day, start=start, end=end))
    return deleted


def _midnight(moment: datetime, zone: tzinfo | None) -> datetime:
    return moment.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)


def _delete(connection: Connection, *, table: str, edge: float) -> int:
    ids = f"SELECT id FROM {table} WHERE time < :edge ORDER BY time LIMIT {_AT_ONCE}"
    return connection.execute(f"DELETE FROM {table} WHERE id IN ({ids})", {"edge": edge}).rowcount


def _has_older(connection: Connection, *, edge: float) -> bool:
    query = "SELECT 1 FROM ullage_model_calls WHERE time < :edge LIMIT 1"
    return connection.scalar(query, {"edge": edge}) is not None


def _mark(connection: Connection, *, name: str, value: float) -> None:
    connection.execute(_PUT_MARK, {"name": name, "value": value})


def _days(database: Database, edge: float, zone: tzinfo | None) -> list[tuple[int, int]]:
    """Return days up to the edge whose sums are still by the hour, as pairs of hours."""
    first = database.read(lambda connection: connection.scalar("SELECT MIN(hour) FROM ullage_hours"))
    if first is None:
        return []
    done = database.read(partial(mark_of, name=_DAILY)) or 0
    begin = datetime.fromtimestamp(max(first * HOUR, done)).astimezone(zone)
    at, found = _midnight(begin, zone), list[tuple[int, int]]()
    while at.timestamp() < edge:
        # A day on which summer time begins or ends has 23 or 25 hours.
        following = _midnight(at + timedelta(hours=36), zone)
        found.append((-int(-at.timestamp() // HOUR), -int(-following.timestamp() // HOUR)))
        at = following
    return found


def _merge_day(connection: Connection, *, start: int, end: int) -> None:
    for table in ("ullage_hours", "ullage_session_hours"):
        others = tuple(name for name in SUMS[table] if name != "hour")
        sums = ", ".join(f"SUM({name}) AS {name}" for name in MEASURES)
        span: dict[str, object] = {"start": start, "end": end}
        rows = connection.execute(
            f"SELECT {', '.join(others)}, {sums} FROM {table} WHERE hour >= :start AND hour < :end "
            f"GROUP BY {', '.join(others)}",
            span,
        ).mappings()
        connection.execute(f"DELETE FROM {table} WHERE hour >= :start AND hour < :end", span)
        columns = ("hour", *others, *MEASURES)
        if rows:
            connection.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{one}' for one in columns)})",
                [{"hour": start, **row} for row in rows],
            )
    _mark(connection, name=_DAILY, value=end * HOUR)
