"""Opens the store, and reads and writes it safely from many processes.

The store is one SQLite file or one PostgreSQL database, migrated to the current schema when it is opened. Reading and
writing are plain blocking functions that get a connection in a transaction; `aside` runs them from the event loop. The
packages that use the store define what its tables mean.
"""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from ullage.errors import StoreFailed

from .connections import CONNECTIONS, Address, Connection, Engine, failing_as_store, open_engine
from .migrations import MIGRATIONS, Migration, migrate, version_of

__all__ = ["Database"]

Result = TypeVar("Result")


class Database:
    """An open database. Safe to use from several threads."""

    def __init__(self, engine: Engine, address: Address, *, known: int, patience: float) -> None:
        self._engine = engine
        self._address = address
        self._known = known
        self._patience = patience
        self._turn = threading.Lock()
        self._limiter: anyio.CapacityLimiter | None = None
        """Created on first use: it loads asyncio, which most commands do without."""
        self.problem: str | None = None
        """Why nothing can be written, for display; None if writing is possible."""

    @classmethod
    def open(
        cls, where: str | Path, *, patience: float = 10.0, migrations: Sequence[Migration] = MIGRATIONS
    ) -> "Database":
        """Open a file, created if there is none, or a `postgresql://` URL.

        Args:
            where: The path or the URL.
            patience: Seconds after which waiting for a lock fails.
            migrations: The steps that bring the schema up to date.

        Raises:
            StoreFailed: The store cannot be used at all.
        """
        address = Address.of(where)
        with failing_as_store(address):
            engine = open_engine(address, patience=patience)
        database = cls(engine, address, known=len(migrations), patience=patience)
        try:
            database._bring_up(migrations)
        except BaseException:
            database.close()
            raise
        return database

    def __repr__(self) -> str:
        return f"Database({self.place!r})"

    @property
    def place(self) -> str:
        """The location of the store, for display; contains no secret."""
        return self._address.shown

    @property
    def read_only(self) -> bool:
        return self.problem is not None

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` in a transaction that sees a single moment of the database."""
        with failing_as_store(self._address), self._engine.begin(writing=False) as connection:
            return work(connection)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` in a transaction that is committed as a whole or not at all. Keep it short: other writers wait."""
        self._refuse_if_read_only()
        with failing_as_store(self._address), self._alone(), self._engine.begin(writing=True) as connection:
            # A newer Ullage may have changed the schema while this one was running.
            self._notice(version_of(connection))
            self._refuse_if_read_only()
            return work(connection)

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Run blocking work that reads or writes in one of a few threads, off the event loop."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(CONNECTIONS)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)

    def close(self) -> None:
        """Close every connection. Calling it twice is harmless."""
        self._engine.close()

    def _bring_up(self, migrations: Sequence[Migration]) -> None:
        version = self.read(version_of)
        if version < self._known:
            with failing_as_store(self._address), self._engine.begin(writing=True) as connection:
                version = migrate(connection, migrations)
        self._notice(version)

    def _notice(self, version: int) -> None:
        if version > self._known:
            self.problem = (
                f"`{self.place}` was changed by a newer Ullage (schema {version}, this one knows {self._known}): "
                "it is only read until this process is restarted with that version"
            )

    def _refuse_if_read_only(self) -> None:
        if self.problem is not None:
            raise StoreFailed(self.problem, suggestion="Restart this process; if that does not help, upgrade Ullage.")

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Allow one writing thread per process: SQLite lets processes wait by polling, which threads need not do."""
        if not self._turn.acquire(timeout=self._patience):
            raise StoreFailed(f"`{self.place}` is being written by another thread for more than {self._patience:g} s")
        try:
            yield
        finally:
            self._turn.release()
