"""The engine for SQLite and DuckDB files.

Each question by a worker process, under its engine's own locks and the system's limits. Two files of the same
engine share nothing. What a statement may say is judged before it comes here, and not relied on.

As a table named `result` in a database without a file, by a worker under the same locks as any other.

Names are made ones that a table can have, values ones that SQLite can hold. Nothing is sent or kept here.
"""

import importlib.util
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, cast

import anyio

from ullage.errors import QueryFailed
from ullage.table import Cell, Row, written
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
from .worker_pool import MEMORY, Frames, Workers, framed

__all__ = ["EmbeddedEngine", "TableWorker", "batches", "read_structure", "storable", "unique_names"]

Found = Mapping[str, Any]
"""Made by our own catalogue queries, so its keys are known."""


def read_structure(value: Json, *, name: str) -> Structure:
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
"""Characters that are sent at once: each batch is made in the event loop, in a few milliseconds."""
_LARGEST = 2**63
_LONGEST_NAME = 200


def unique_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Each name once, whatever its case: the second `id` is `id_2`. A column without a name is called by its place."""
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
    """A decimal becomes a number, so that it can be summed and compared; a list or an object its JSON."""
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() and abs(cell) < _LARGEST else float(cell)
    if isinstance(cell, (list, dict)):
        try:
            return json.dumps(cell, ensure_ascii=False)
        except TypeError:  # a decimal stands in it
            return written(cell)
    if isinstance(cell, int) and abs(cell) >= _LARGEST:
        return str(cell)
    return cell


def batches(rows: Iterable[Row]) -> Iterator[list[list[int | float | str | None]]]:
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
    def __init__(
        self, path: Path, *, dialect: Literal["sqlite", "duckdb"], limits: Limits | None = None, memory: int = MEMORY
    ) -> None:
        """Nothing is opened or started until the first question; a missing file is never made."""
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
        """Of the workers at rest."""
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
        """A file has no roles, and whoever may write to it, this process opens it for reading only."""
        return Probe(role=None)

    async def close(self) -> None:
        await self._workers.close()


def _packages(dialect: str) -> str | None:
    """Where the driver lies that this process would load: a worker looks at no path that an environment or a user's
    own folder adds."""
    found = importlib.util.find_spec("duckdb") if dialect == "duckdb" else None
    return None if found is None or found.origin is None else str(Path(found.origin).parent.parent)


def _frames(message: Mapping[str, object]) -> Frames:
    return lambda seconds: (framed({**message, "seconds": seconds}),)


_MOST_COLUMNS = 2_000


class TableWorker:
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
        """One statement about the table `result`, whose rows have as many cells as there are columns.

        Args:
            limit: Rows that come back at most.
            beside: Further tables, columns and rows by name.
        """
        tables = {None: (columns, rows), **(beside or {})}
        named = {name: (unique_names(heading), held) for name, (heading, held) in tables.items()}
        for names, _ in named.values():
            _refuse_unless_table(names)
        message = {"do": "ask", "sql": sql, "rows": limit, "cell": self._limits.cell, "bytes": self._limits.bytes}

        def frames(left: float) -> Iterable[bytes]:
            deadline = anyio.current_time() + left
            for table, (names, held) in named.items():
                yield framed({"do": "begin", "columns": names, "table": table})
                for batch in batches(held):
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
