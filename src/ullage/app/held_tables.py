"""How is SQL run on a result that is held?

As on any database: judged first, then asked of a worker process under its own locks, within its time. The parser and
the worker are loaded and started when they are first needed.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from ullage.sql.embedded import TableWorker
    from ullage.table import Row

__all__ = ["HeldTables"]

_ROWS = 10_000
"""Of an answer at most; its tokens are bounded elsewhere."""
_FREED_AT_ONCE = 500


class HeldTables:
    """What `read_result` asks SQL of."""

    def __init__(self) -> None:
        self._worker: TableWorker | None = None

    async def ask(
        self, columns: Sequence[str], rows: "Iterable[Row]", sql: str, seconds: float
    ) -> "tuple[Sequence[str], Sequence[Row], bool]":
        statement = await anyio.to_thread.run_sync(_judged, sql)
        # The seconds are the statement's: reading what we hold ourselves is not its fault.
        held = await anyio.to_thread.run_sync(list["Row"], rows)
        try:
            if self._worker is None:
                self._worker = await anyio.to_thread.run_sync(_worker)
            answer = await self._worker.ask_table(columns, held, statement, seconds=seconds, limit=_ROWS)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_free, held)
        return answer.columns, answer.rows, answer.more

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()


def _free(rows: "list[Row]") -> None:
    """Empty a list a few rows at a time: the memory of a million at once is given back with everybody waiting."""
    while rows:
        del rows[-_FREED_AT_ONCE:]


def _worker() -> "TableWorker":
    from ullage.sql.embedded import TableWorker

    return TableWorker()


def _judged(sql: str) -> str:
    # The parser takes a while to load, and most results are never asked in SQL.
    from ullage.sql.guard import judge

    return judge(sql, "sqlite").sql
