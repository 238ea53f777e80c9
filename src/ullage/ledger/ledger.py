"""Entries of the ledger: recording and reading them.

Figures and names, never a prompt, an argument or a result. How an entry reaches the database is `record`'s affair.

Entries in the order they were written, and sums by kind. How they are shown is the affair of whoever asks.

`record` puts an entry into a bounded queue and returns; a thread writes what has gathered, in batches. Where the
database cannot keep up or fails, the oldest entries are let go, counted, and said to be lost. Reading is `read`'s
affair.
"""

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Literal, Protocol

import anyio.to_thread

from ullage.errors import StoreFailed
from ullage.store import Connection, Database, moment, seconds, storable
from ullage.tokens import Method

__all__ = [
    "ADD_ENTRY",
    "Entry",
    "Kind",
    "Recorder",
    "Recording",
    "Scalar",
    "Total",
    "Unrecorded",
    "entry_of",
    "read_entries",
    "row_of",
    "totals",
]

Kind = Literal["definitions", "search", "result", "history", "model"]
Scalar = str | int | float | bool | None

_LONGEST = 200
"""Characters of a text in `detail`: enough for a name or a reason, not for a result."""
_MOST = 20
"""Texts and numbers in `detail`."""
_BEYOND = 2**63
"""The first number that no column holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    time: datetime
    """With its zone."""
    kind: Kind
    """Which door it passed: definitions carried, a search reply, a tool's result, history carried, a model call."""
    principal: str
    session: str
    session_inferred: bool = False
    client: str | None = None
    server: str | None = None
    tool: str | None = None
    model: str | None = None
    """The one counted for, or called."""
    tokens: int
    """What passed."""
    method: Method = Method.EXACT
    """How `tokens` was found."""
    baseline_tokens: int | None = None
    """What would have passed without Ullage; None where nobody can say."""
    saved_tokens: int | None = None
    """May be negative; None where the baseline is unknown."""
    milliseconds: float | None = None
    is_error: bool = False
    cached: bool = False
    """Whether a cache answered."""
    detail: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    """A few figures or short names more; long texts are cut."""

    def __post_init__(self) -> None:
        if self.time.tzinfo is None:
            raise ValueError("an entry's time must know its zone")
        if not (0 <= self.tokens < _BEYOND and 0 <= (self.baseline_tokens or 0) < _BEYOND):
            raise ValueError(f"no numbers of tokens: {self.tokens}, {self.baseline_tokens}")
        if abs(self.saved_tokens or 0) >= _BEYOND:
            raise ValueError(f"no number of tokens: {self.saved_tokens}")

    def small_detail(self) -> dict[str, Scalar]:
        """`detail` as it is kept."""
        few = list(self.detail.items())[:_MOST]
        return {key[:_LONGEST]: value[:_LONGEST] if isinstance(value, str) else value for key, value in few}


_TEXTS = ("kind", "principal", "session", "client", "server", "tool", "model")
_FIGURES = ("tokens", "baseline_tokens", "saved_tokens", "milliseconds")

_FLAGS = ("session_inferred", "is_error", "cached")
_COLUMNS = ("time", "method", "detail", *_TEXTS, *_FIGURES, *_FLAGS)
ADD_ENTRY = (
    f"INSERT INTO ullage_entries ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{column}' for column in _COLUMNS)})"
)


def row_of(entry: Entry) -> dict[str, object]:
    texts = {name: getattr(entry, name) for name in _TEXTS}
    return {
        "time": seconds(entry.time),
        "method": entry.method.value,
        "detail": json.dumps(entry.small_detail()),
        **{name: text if text is None else storable(text) for name, text in texts.items()},
        **{name: getattr(entry, name) for name in (*_FIGURES, *_FLAGS)},
    }


def entry_of(row: Mapping[Any, Any]) -> Entry:
    return Entry(
        time=moment(row["time"]),
        method=Method(row["method"]),
        detail=json.loads(row["detail"]),
        session_inferred=bool(row["session_inferred"]),
        is_error=bool(row["is_error"]),
        cached=bool(row["cached"]),
        **{name: row[name] for name in (*_TEXTS, *_FIGURES)},
    )


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


_log = logging.getLogger(__name__)

_BATCH = 500
_LONGEST_PAUSE = 30.0


class Recorder(Protocol):
    def record(self, entry: Entry) -> None:
        """Writes it down, now or soon. Never waits and never fails."""
        ...


class Unrecorded:
    """Where nobody wants a ledger."""

    def record(self, entry: Entry) -> None:
        pass


class Recording:
    """Writes to the database. Safe from any thread; any number of processes may write to one database."""

    def __init__(self, database: Database, *, capacity: int = 10_000, pause: float = 0.5) -> None:
        """`capacity` is how many entries may wait; `pause` how many seconds they gather."""
        self._database = database
        self._capacity = capacity
        self._pause = pause
        self._queue: deque[Entry] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_hurried = False
        self._is_closing = False
        self._failures = 0
        self._settled = 0
        self._recorded = 0
        self._reason: str | None = None
        self._said = 0
        self.lost = 0
        """Entries that were never written."""
        self.problem: str | None = None
        """Why the last batch could not be written; None where it could."""

    def record(self, entry: Entry) -> None:
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
                self._start()

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until all that was recorded so far is written or lost; False where that takes longer."""
        with self._changed:
            wanted, self._is_hurried = self._recorded, True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._settled >= wanted, timeout)

    def stop(self, timeout: float = 5.0) -> None:
        """Writes what waits, within `timeout` seconds, and no more after that; calling twice is harmless."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)
        with self._changed:
            self._lose_queue("the database did not take them in time")
        self._say()

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self.stop)

    def _start(self) -> None:
        # A daemon: a process that ends without closing its ledger must not hang on it.
        self._thread = threading.Thread(target=self._run, name="ullage-ledger", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while batch := self._next_batch():
            self._save(batch)
            self._say()

    def _say(self) -> None:
        """Of losses, from where a log that takes its time holds nobody up: at the first, and at the end."""
        if self.lost > self._said and (self._is_closing or not self._said):
            self._said = self.lost
            _log.warning("the ledger lacks %d entries: %s", self.lost, self._reason)

    def _next_batch(self) -> list[Entry]:
        """What has gathered; nothing when it is time to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closing)
            self._wait(self._pause, lambda: self._is_hurried or len(self._queue) >= _BATCH)
            batch = [self._queue.popleft() for _ in range(min(_BATCH, len(self._queue)))]
            self._is_hurried = self._is_hurried and bool(self._queue)
            return batch

    def _wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        self._changed.wait_for(lambda: self._is_closing or until(), seconds)

    def _save(self, batch: Sequence[Entry]) -> None:
        try:
            rows = [row_of(entry) for entry in batch]
            self._database.write(lambda connection: connection.execute(ADD_ENTRY, rows))
        except StoreFailed as error:
            self._put_back(batch, error.message)
        except Exception as error:  # noqa: BLE001 - an entry that cannot be written must not end the writing of others
            with self._changed:
                self._lose(len(batch), f"they cannot be written ({type(error).__name__})")
        else:
            with self._changed:
                self._failures, self.problem = 0, None
                self._settle(len(batch))

    def _put_back(self, batch: Sequence[Entry], reason: str) -> None:
        with self._changed:
            self.problem = reason
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
