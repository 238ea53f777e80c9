"""How is something written down without holding up whoever did it?

`record` puts an entry into a bounded queue and returns; a thread writes what has gathered, in batches. Where the
database cannot keep up or fails, the oldest entries are let go, counted, and said to be lost. Reading is `read`'s
affair.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import anyio.to_thread

from ullage.errors import StoreFailed
from ullage.store import Database

from .entry import Entry
from .rows import ADD_ENTRY, row_of

__all__ = ["Recorder", "Recording", "Unrecorded"]

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
