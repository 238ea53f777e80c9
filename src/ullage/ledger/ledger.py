"""Recording of entries in the background, reading them, and deleting old ones.

`record` puts an entry into a bounded queue and returns; a thread writes the queued entries in batches. If the database
is too slow or fails, the oldest entries are dropped and counted, and a warning is logged; a call never fails or waits
because of the ledger. A process that is killed loses the entries of the last `pause` seconds. Model calls cost money,
so their callers wait for `flush` before they answer.

`read_entries` and `totals` read the rows themselves; `report` reads the sums that are kept with them.

`prune` deletes entries older than `keep_days` and merges their sums by the hour into sums by the day, so totals do not
change. Model calls are kept for two years: their keys prevent a log that is read again from being counted twice. The
sums of a deleted call are kept, and calls from before that day are no longer accepted.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from typing import Literal, Protocol

import anyio.to_thread

from ullage.errors import StoreFailed
from ullage.store import Connection, Database, seconds, upsert

from .audit import AuditEvent, log_audit, write_audit
from .rows import (
    CALLS,
    CALLS_PRUNED,
    ENTRIES,
    ENTRIES_PRUNED,
    HOUR,
    KINDS,
    MEASURES,
    SUMS,
    Entry,
    Kind,
    entry_of,
    mark_of,
    write_entries,
)

__all__ = [
    "KEEP_DAYS",
    "Latency",
    "Recorder",
    "Recording",
    "SpendOnly",
    "Total",
    "Unrecorded",
    "latencies",
    "ledger_revision",
    "prune",
    "read_entries",
    "totals",
]

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
    older = "SELECT 1 FROM ullage_model_calls WHERE time < :edge LIMIT 1"
    if database.read(lambda connection: connection.scalar(older, {"edge": calls_edge})) is not None:
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


_log = logging.getLogger(__name__)

_BATCH = 500
_LONGEST_PAUSE = 30.0
_FIRST_PRUNE, _PRUNE_EVERY = 60.0, 6 * 3600.0
"""Seconds before the first pruning of old entries, so that it does not slow down a starting process."""


class Recorder(Protocol):
    """Interface of everything that records entries."""

    def record(self, entry: Entry) -> None:
        """Write the entry, now or later. Never waits and never fails."""
        ...

    def audit(self, event: AuditEvent) -> None:
        """Log the event, and write it, now or later. Never waits and never fails."""
        ...

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything recorded so far is written or lost; return False if that takes longer than `timeout`
        seconds."""
        ...


class Unrecorded:
    """A recorder that discards everything, for use without a ledger."""

    def record(self, entry: Entry) -> None:
        pass

    def audit(self, event: AuditEvent) -> None:
        log_audit(event)

    def flush(self, timeout: float = 5.0) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class SpendOnly:
    """A recorder of model calls only. Searches and calls made by the command line's own verbs save no client
    anything."""

    inner: Recorder

    def record(self, entry: Entry) -> None:
        if entry.kind == "model":
            self.inner.record(entry)

    def audit(self, event: AuditEvent) -> None:
        self.inner.audit(event)

    def flush(self, timeout: float = 5.0) -> bool:
        return self.inner.flush(timeout)


class Recording:
    """A recorder that writes to the database. Safe from any thread; any number of processes may write to one
    database."""

    def __init__(
        self, database: Database, *, capacity: int = 10_000, pause: float = 0.25, keep_days: float | None = None
    ) -> None:
        """Create the recorder.

        Args:
            database: The store.
            capacity: Maximum number of entries in the queue.
            pause: Seconds for which entries are collected before they are written.
            keep_days: Days after which entries are merged into daily totals; None to keep them all.
        """
        self._database = database
        self._keep_days = keep_days
        self._prune_at = time.monotonic() + _FIRST_PRUNE
        self._capacity = capacity
        self._pause = pause
        self._queue: deque[Entry | AuditEvent] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_hurried = False
        self._is_closing = False
        self._failures = 0
        self._writing = 0
        """Entries of the batch that is being written."""
        self._settled = 0
        self._recorded = 0
        self._reason: str | None = None
        self._said = 0
        self.lost = 0
        """Number of entries that were never written."""
        self.problem: str | None = None
        """Why the last batch could not be written; None if it was."""

    def record(self, entry: Entry) -> None:
        self._put(entry)

    def audit(self, event: AuditEvent) -> None:
        log_audit(event)
        self._put(event)

    def _put(self, entry: Entry | AuditEvent) -> None:
        with self._changed:
            self._recorded += 1
            self._queue.append(entry)
            if len(self._queue) > self._capacity:
                self._queue.popleft()
                self._lose(1, "they come faster than they can be written")
            if self._is_closing:
                self._lose_queue("the ledger is closed")
            elif len(self._queue) in {1, _BATCH}:
                self._changed.notify_all()
            if self._thread is None and not self._is_closing:
                # A daemon thread, so that a process that ends without closing its ledger does not hang.
                self._thread = threading.Thread(target=self._run, name="ullage-ledger", daemon=True)
                self._thread.start()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything recorded so far is written or lost; return False if that takes longer than `timeout`
        seconds."""
        with self._changed:
            wanted, self._is_hurried = self._recorded, True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._settled >= wanted, timeout)

    def stop(self, timeout: float = 5.0) -> None:
        """Write the queued entries for at most `timeout` seconds, then stop. Calling it twice is harmless."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)
        late = "the database did not take them in time"
        with self._changed:
            self._lose_queue(late)
            # The thread may still wait for a locked database; it is not waited for, and ends with the process.
            writing, self._writing = self._writing, 0
            if writing:
                self._lose(writing, late)
        self._say()

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self.stop)

    def _run(self) -> None:
        while batch := self._next_batch():
            self._save(batch)
            self._say()
            if self._keep_days is not None and time.monotonic() >= self._prune_at and not self._is_closing:
                self._prune_at = time.monotonic() + _PRUNE_EVERY
                try:
                    prune(self._database, keep_days=self._keep_days, now=datetime.now(UTC))
                except StoreFailed as error:
                    _log.warning("the ledger was not pruned: %s", error.message)

    def _say(self) -> None:
        """Log lost entries, at the first loss and at the end. Called without the lock, so that a slow log does not
        block callers."""
        if self.lost > self._said and (self._is_closing or not self._said):
            self._said = self.lost
            _log.warning("the ledger lacks %d entries: %s", self.lost, self._reason)

    def _next_batch(self) -> list[Entry | AuditEvent]:
        """Return the next batch; an empty one when the recorder is closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closing)
            self._wait(self._pause, lambda: self._is_hurried or len(self._queue) >= _BATCH)
            batch = [self._queue.popleft() for _ in range(min(_BATCH, len(self._queue)))]
            self._writing = len(batch)
            self._is_hurried = self._is_hurried and bool(self._queue)
            return batch

    def _wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        self._changed.wait_for(lambda: self._is_closing or until(), seconds)

    def _save(self, batch: Sequence[Entry | AuditEvent]) -> None:
        def write(connection: Connection) -> None:
            write_entries(connection, [one for one in batch if isinstance(one, Entry)])
            write_audit(connection, [one for one in batch if isinstance(one, AuditEvent)])

        try:
            self._database.write(write)
        except StoreFailed as error:
            self._put_back(batch, error.message)
        except Exception as error:  # noqa: BLE001 - an entry that cannot be written must not end the writing of others
            with self._changed:
                if self._writing:
                    self._lose(len(batch), f"they cannot be written ({type(error).__name__})")
                self._writing = 0
        else:
            with self._changed:
                self._failures, self.problem = 0, None
                if self._writing:
                    self._settle(len(batch))
                self._writing = 0

    def _put_back(self, batch: Sequence[Entry | AuditEvent], reason: str) -> None:
        with self._changed:
            self.problem = reason
            if not self._writing:  # given up by `stop` meanwhile
                return
            self._writing = 0
            self._queue.extendleft(reversed(batch))
            if self._is_closing:
                self._lose_queue(reason)
                return
            while len(self._queue) > self._capacity:
                self._queue.popleft()
                self._lose(1, reason)
            self._failures += 1
            self._wait(min(2.0**self._failures, _LONGEST_PAUSE) * self._pause)

    def _lose_queue(self, reason: str) -> None:
        if self._queue:
            self._lose(len(self._queue), reason)
            self._queue.clear()

    def _lose(self, entries: int, reason: str) -> None:
        self.lost += entries
        self._reason = self._reason or reason
        self._settle(entries)

    def _settle(self, entries: int) -> None:
        self._settled += entries
        self._changed.notify_all()


_PAGE = 1000


def read_entries(
    database: Database,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    kind: Kind | None = None,
    session: str | None = None,
) -> Iterator[Entry]:
    """Read entries from `since` up to, but not including, `until`, page by page: no transaction stays open between
    pages.

    Model calls come after all other entries, ordered by time; the others come in the order in which they were written.
    """
    conditions, values = _within(since, until)
    if session is not None:
        conditions, values = [*conditions, "s.session = :session"], values | {"session": session}
    if kind != "model":
        of_kind = [] if kind is None else ["u.kind = :kind"]
        where = " AND ".join([*conditions, *of_kind, "c.id > :after"])
        if kind is not None:
            values = values | {"kind": KINDS.index(kind)}
        query, after = f"{ENTRIES} WHERE {where} ORDER BY c.id LIMIT {_PAGE}", 0
        while page := database.read(partial(_fetch, query=query, values=values | {"after": after})):
            after = page[-1]["id"]
            yield from (entry_of(row, is_call=False) for row in page)
    if kind in (None, "model"):
        where = " AND ".join([*conditions, "(c.time > :at OR (c.time = :at AND c.id > :after))"])
        query = f"{CALLS} WHERE {where} ORDER BY c.time, c.id LIMIT {_PAGE}"
        place: dict[str, object] = {"at": float("-1e300"), "after": 0}
        while page := database.read(partial(_fetch, query=query, values=values | place)):
            place = {"at": page[-1]["time"], "after": page[-1]["id"]}
            yield from (entry_of(row, is_call=True) for row in page)


def _fetch(connection: Connection, query: str, values: dict[str, object]) -> list[dict[str, object]]:
    return connection.execute(query, values).mappings()


def _within(since: datetime | None, until: datetime | None) -> tuple[list[str], dict[str, object]]:
    """Return conditions on the time of an entry, and their values."""
    times = {"since": since, "until": until}
    conditions = {"since": "c.time >= :since", "until": "c.time < :until"}
    given: dict[str, object] = {name: seconds(time) for name, time in times.items() if time is not None}
    return [conditions[name] for name in given], given


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The sums of the entries of one kind."""

    entries: int
    tokens: int
    saved_tokens: int | None
    """Sum over the entries whose saving is known; None if there are none."""
    errors: int
    milliseconds: float | None


def totals(database: Database, *, since: datetime | None = None, until: datetime | None = None) -> dict[str, Total]:
    """Return the sums by kind, recounted from the rows, for the kinds that have entries."""
    conditions, values = _within(since, until)
    where = " AND ".join(conditions) or "1 = 1"
    errors = "sum(CASE WHEN c.flags % 2 = 1 THEN 1 ELSE 0 END)"
    entries = (
        f"SELECT u.kind, count(*), sum(c.tokens), sum(c.saved), {errors}, sum(c.milliseconds) "
        f"FROM ullage_entries c JOIN ullage_subjects u ON u.id = c.subject WHERE {where} GROUP BY u.kind"
    )
    calls = (
        f"SELECT {KINDS.index('model')}, count(*), sum(coalesce(c.input, 0) + coalesce(c.output, 0)), NULL, {errors}, "
        f"sum(c.milliseconds) FROM ullage_model_calls c WHERE {where}"
    )
    rows = database.read(
        lambda connection: [*connection.execute(entries, values).all(), *connection.execute(calls, values).all()]
    )
    return {
        # PostgreSQL sums integers to decimals.
        KINDS[kind]: Total(
            entries=count,
            tokens=int(tokens),
            saved_tokens=None if saved is None else int(saved),
            errors=int(errors),
            milliseconds=milliseconds,
        )
        for kind, count, tokens, saved, errors, milliseconds in rows
        if count
    }


_COMPARED = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long the model calls of a model, or the results of a server or tool, took."""

    timed: int
    """Number of calls that were compared."""
    median: float
    """Milliseconds."""
    p95: float
    """The time that 95 % of the calls did not exceed, in milliseconds."""


def latencies(
    database: Database,
    *,
    by: Literal["model", "server", "tool"],
    since: datetime | None = None,
    until: datetime | None = None,
    principal: str | None = None,
) -> dict[str, Latency]:
    """Return the latencies by name, from the rows: of model calls by model, of tool results by server or tool.

    The latest 50,000 rows with a known time are compared; calls that were read from logs have none. `principal` limits
    them to one principal's rows.
    """
    conditions, values = _within(since, until)
    table = "ullage_model_calls" if by == "model" else "ullage_entries"
    conditions = [*conditions, "c.milliseconds IS NOT NULL", f"u.{by} IS NOT NULL", "u.kind = :kind"]
    values["kind"] = KINDS.index("model" if by == "model" else "result")
    if principal is not None:
        conditions, values["principal"] = [*conditions, "p.principal = :principal"], principal
    query = (
        "SELECT name, MAX(n), MIN(CASE WHEN 2 * place >= n THEN ms END), MIN(CASE WHEN 20 * place >= 19 * n THEN ms "
        "END) FROM (SELECT name, ms, COUNT(*) OVER (PARTITION BY name) AS n, "
        "ROW_NUMBER() OVER (PARTITION BY name ORDER BY ms) AS place FROM "
        f"(SELECT u.{by} AS name, c.milliseconds AS ms FROM {table} c "
        "JOIN ullage_sessions s ON s.id = c.session JOIN ullage_parties p ON p.id = s.party "
        f"JOIN ullage_subjects u ON u.id = c.subject WHERE {' AND '.join(conditions)} "
        f"ORDER BY c.time DESC LIMIT {_COMPARED}) latest) t GROUP BY name"
    )
    rows = database.read(lambda connection: connection.execute(query, values).all())
    return {name: Latency(timed=int(timed), median=float(median), p95=float(p95)) for name, timed, median, p95 in rows}


_RECENT_HOURS = 35 * 24


def ledger_revision(database: Database, *, principal: str, now: datetime) -> tuple[int, ...]:
    """Return numbers that change whenever rows of this principal from the last 35 days are added or replaced."""
    query = (
        "SELECT SUM(h.entries), SUM(h.tokens), SUM(h.saved), SUM(h.picodollars) FROM ullage_hours h "
        "JOIN ullage_parties p ON p.id = h.party WHERE p.principal = :principal AND h.hour >= :since"
    )
    values = {"principal": principal, "since": int(seconds(now) // HOUR) - _RECENT_HOURS}
    row = database.read(lambda connection: connection.execute(query, values).one())
    return tuple(int(one or 0) for one in row)
