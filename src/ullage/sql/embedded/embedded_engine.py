"""The engine for SQLite and DuckDB files.

`EmbeddedEngine` runs each statement in a worker process, under the engine's own locks and the system's limits. Two
files of the same engine share nothing. The guard judges statements beforehand, but the worker does not rely on it.

`TableWorker` runs a statement on rows as the table `result`, in a database without a file, in a worker under the same
locks. `unique_names` and `storable` convert column names and values to what SQLite can store.
"""

import importlib.util
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, cast

import anyio

from ullage.errors import QueryFailed
from ullage.table import Cell, Row, dump_value
from ullage.tool import Json

from ..database import (
    Answer,
    Column,
    Dialect,
    ForeignKey,
    Index,
    Limits,
    Probe,
    Question,
    Routine,
    Stability,
    Structure,
    Table,
    Trigger,
    in_order,
)
from .worker_pool import MEMORY, Frames, Workers, frame_message

__all__ = ["EmbeddedEngine", "TableWorker", "batches", "read_structure", "storable", "unique_names"]

Found = Mapping[str, Any]
"""Returned by Ullage's own catalogue queries, so its keys are known."""


def read_structure(value: Json, *, name: str) -> Structure:
    """Return the structure that a worker read."""
    found = cast("Found", value)
    routines = tuple(Routine(**routine) for routine in found.get("routines", ()))
    return Structure(tables=in_order(map(_table, found["tables"])), routines=routines, name=name)


def _table(found: Found) -> Table:
    return Table(
        name=found["name"],
        schema=found.get("schema"),
        kind=found["kind"],
        columns=tuple(_column(column) for column in found["columns"]),
        primary_key=tuple(found["primary_key"]),
        foreign_keys=tuple(_foreign_key(key) for key in found["foreign_keys"]),
        indexes=tuple(_index(index) for index in found["indexes"]),
        checks=tuple(found["checks"]),
        triggers=tuple(Trigger(**trigger) for trigger in found["triggers"]),
        rows=found.get("rows"),
        definition=found.get("definition"),
        comment=found.get("comment"),
        module=found.get("module"),
    )


def _column(found: Found) -> Column:
    return Column(
        name=found["name"],
        type=found["type"],
        nullable=found["nullable"],
        default=found["default"],
        generated=found["generated"],
        computed=bool(found.get("computed")),
        expression=found.get("expression"),
        comment=found.get("comment"),
    )


def _foreign_key(found: Found) -> ForeignKey:
    return ForeignKey(
        columns=tuple(found["columns"]),
        table=found["table"],
        to=tuple(found["to"]),
        name=found.get("name"),
        on_update=found.get("on_update"),
        on_delete=found.get("on_delete"),
    )


def _index(found: Found) -> Index:
    return Index(name=found["name"], columns=tuple(found["columns"]), unique=found["unique"])


_BATCH = 16_000
"""Characters sent at once; a batch is encoded in the event loop, in a few milliseconds."""
_LARGEST = 2**63
_LONGEST_NAME = 200


def unique_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return case-insensitively unique names: the second `id` becomes `id_2`, a missing name is replaced by its
    position."""
    taken: set[str] = set()
    names: list[str] = []
    for place, column in enumerate(columns, 1):
        wanted = column.replace("\0", "")[:_LONGEST_NAME].strip() or f"column_{place}"
        names.append(_free(wanted, taken))
        taken.add(names[-1].casefold())
    return tuple(names)


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name.casefold() in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def storable(cell: Cell) -> int | float | str | None:
    """Return a value that SQLite can store: a decimal as a number, for sums and comparisons; a list or object as
    JSON."""
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() and abs(cell) < _LARGEST else float(cell)
    if isinstance(cell, (list, dict)):
        try:
            return json.dumps(cell, ensure_ascii=False)
        except TypeError:  # a decimal stands in it
            return dump_value(cell)
    if isinstance(cell, int) and abs(cell) >= _LARGEST:
        return str(cell)
    return cell


def batches(rows: Iterable[Row]) -> Iterator[list[list[int | float | str | None]]]:
    """Yield rows as lists of storable values, in batches of a bounded size."""
    batch: list[list[int | float | str | None]] = []
    size = 0
    for row in rows:
        batch.append([storable(cell) for cell in row])
        size += sum(len(cell) if isinstance(cell, str) else 8 for cell in batch[-1])
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class EmbeddedEngine:
    """An `Engine` for one SQLite or DuckDB file."""

    def __init__(
        self, path: Path, *, dialect: Literal["sqlite", "duckdb"], limits: Limits | None = None, memory: int = MEMORY
    ) -> None:
        """Configure the engine; no file is opened and no worker started before the first statement.

        A missing file is never created.
        """
        self._dialect: Dialect = dialect
        self._limits = limits or Limits()
        self._name = path.name
        self._functions: Mapping[str, Stability] | None = None
        whole = path.absolute()
        hello = {"kind": dialect, "path": str(whole), "uri": whole.as_uri(), "packages": _packages(dialect)}
        self._workers = Workers(hello, name=path.name, limits=self._limits, memory=memory)

    def __repr__(self) -> str:
        return f"EmbeddedEngine({self._name!r})"

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Process ids of the idle workers."""
        return self._workers.process_ids

    async def ask(self, question: Question) -> Answer:
        limits = self._limits
        message = {
            "do": "ask",
            "sql": question.sql,
            "rows": min(question.rows, limits.rows),
            "cell": limits.cell,
            "bytes": limits.bytes,
        }
        received = await self._workers.ask(_frames(message), min(question.seconds, limits.seconds))
        return received.answer()

    async def structure(self) -> Structure:
        received = await self._workers.ask(_frames({"do": "structure"}), self._limits.seconds)
        return read_structure(received.value, name=self._name)

    async def functions(self) -> Mapping[str, Stability]:
        if self._functions is None:
            received = await self._workers.ask(_frames({"do": "functions"}), self._limits.seconds)
            self._functions = cast("dict[str, Stability]", received.value)
        return self._functions

    async def probe(self) -> Probe:
        """Return no role: files have none, and this process opens them read-only, whoever may write to them."""
        return Probe(role=None)

    async def close(self) -> None:
        await self._workers.close()


def _packages(dialect: str) -> str | None:
    """Return the directory of the driver, so that a worker needs no path from the environment or the user's
    site-packages."""
    found = importlib.util.find_spec("duckdb") if dialect == "duckdb" else None
    return None if found is None or found.origin is None else str(Path(found.origin).parent.parent)


def _frames(message: Mapping[str, object]) -> Frames:
    return lambda seconds: (frame_message({**message, "seconds": seconds}),)


_MOST_COLUMNS = 2_000


class TableWorker:
    """Runs statements on rows that are passed with each call."""

    def __init__(self, *, limits: Limits | None = None, memory: int = MEMORY) -> None:
        self._limits = limits or Limits()
        self._workers = Workers({"kind": "table"}, name="result", limits=self._limits, memory=memory)

    async def ask_table(  # noqa: PLR0913
        self,
        columns: Sequence[str],
        rows: Sequence[Row],
        sql: str,
        *,
        seconds: float,
        limit: int,
        beside: Mapping[str, tuple[Sequence[str], Sequence[Row]]] | None = None,
    ) -> Answer:
        """Run one statement on the table `result`.

        Args:
            columns: the column names of `result`.
            rows: its rows, each with as many cells as there are columns.
            sql: the statement.
            seconds: time limit.
            limit: maximum rows of the answer.
            beside: columns and rows of further tables, by name.
        """
        tables = {None: (columns, rows), **(beside or {})}
        named = {name: (unique_names(heading), held) for name, (heading, held) in tables.items()}
        for names, _ in named.values():
            _refuse_unless_table(names)
        message = {"do": "ask", "sql": sql, "rows": limit, "cell": self._limits.cell, "bytes": self._limits.bytes}

        def frames(left: float) -> Iterable[bytes]:
            deadline = anyio.current_time() + left
            for table, (names, held) in named.items():
                yield frame_message({"do": "begin", "columns": names, "table": table})
                for batch in batches(held):
                    yield frame_message({"do": "load", "rows": batch})
            yield frame_message({**message, "seconds": max(0.0, deadline - anyio.current_time())})

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
