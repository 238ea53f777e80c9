"""How is a result that we already hold asked by SQL?

As a table named `result` in a database without a file, by a worker under the same locks as any other.
"""

from collections.abc import Iterable, Sequence

import anyio

from ullage.errors import QueryFailed
from ullage.table import Row

from ..engine import Answer, Limits
from .loading import batches, unique_names
from .process import framed
from .workers import MEMORY, Workers

__all__ = ["TableWorker"]

_MOST_COLUMNS = 2_000


class TableWorker:
    def __init__(self, *, limits: Limits | None = None, memory: int = MEMORY) -> None:
        self._limits = limits or Limits()
        self._workers = Workers({"kind": "table"}, name="result", limits=self._limits, memory=memory)

    async def ask_table(
        self, columns: Sequence[str], rows: Sequence[Row], sql: str, *, seconds: float, limit: int
    ) -> Answer:
        """One statement about the table `result`, whose rows have as many cells as there are columns. At most `limit`
        rows come back."""
        names = unique_names(columns)
        _refuse_unless_table(names)
        message = {"do": "ask", "sql": sql, "rows": limit, "cell": self._limits.cell, "bytes": self._limits.bytes}

        def frames(left: float) -> Iterable[bytes]:
            deadline = anyio.current_time() + left
            yield framed({"do": "begin", "columns": names})
            for batch in batches(rows):
                yield framed({"do": "load", "rows": batch})
            yield framed({**message, "seconds": max(0.0, deadline - anyio.current_time())})

        return (await self._workers.ask(frames, seconds)).answer()

    async def close(self) -> None:
        await self._workers.close()


def _refuse_unless_table(names: tuple[str, ...]) -> None:
    if not names:
        raise QueryFailed("the result has no columns to ask about", suggestion="read it as text instead")
    if len(names) > _MOST_COLUMNS:
        raise QueryFailed(
            f"the result has {len(names)} columns, and a table {_MOST_COLUMNS} at most",
            suggestion="pick the columns you need by a path first",
        )
