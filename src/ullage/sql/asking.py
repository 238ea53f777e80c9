"""How does a statement get to a database, and its rows back?

Judged, masked, asked, and all of it before one deadline. An error about a name that does not exist comes back with the
names that do. What a statement may say, what an engine does and how rows are written, others know.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import anyio

from ullage.errors import DeadlinePassed, QueryFailed, Refused, UllageError, UnknownName
from ullage.options import DatabaseSettings
from ullage.table import Row
from ullage.tool import Asked

from .engine import Answer, Dialect, Engine, Probe, Question, Stability
from .explaining import explain_statement
from .known import Known
from .nearest import is_about_a_name, with_nearest
from .recent import Recent
from .role import with_column_grants
from .structure import Structure
from .wording import without_data

if TYPE_CHECKING:
    from .guard import Statement
    from .masking import MaskPlan, MaskPolicy

__all__ = ["Asking", "Given"]

Result = TypeVar("Result")

_A_VALUE = 50
"""Bytes that a value takes beside its text."""


@dataclass(frozen=True, slots=True)
class Given:
    """What came back, and whether it came from memory."""

    answer: Answer
    cached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    settings: DatabaseSettings
    engine: Engine
    known: Known
    answers: Recent[Answer]
    _policies: "list[tuple[Structure, MaskPolicy]]" = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    """The policy of the structure that was read last."""

    @classmethod
    def of(cls, settings: DatabaseSettings, engine: Engine, clock: Callable[[], float] = time.monotonic) -> "Asking":
        known = Known(engine=engine, seconds=settings.schema_cache, clock=clock)
        return cls(settings=settings, engine=engine, known=known, answers=Recent(settings.cache, clock=clock))

    async def ask(self, sql: str, rows: int, request: Asked) -> Given:
        """The first `rows` rows; raises `Refused`, or what an engine raises."""
        until = self._until(request)
        statement = await self._judged(sql, until)
        key = (request.caller.principal, statement.sql, rows)
        kept = self.answers.get(key)
        if kept is not None:
            return Given(kept, cached=True)
        masks = await self._masks(statement, until)
        answer = await self._answered(statement.runs or statement.sql, rows, statement, until)
        if statement.kind == "show" and self.engine.dialect == "mysql":
            answer = replace(answer, rows=_without_host(answer))
        if masks is not None:
            answer = replace(answer, rows=masks.apply(answer.columns, answer.rows))
        self.answers.put(key, answer, _size(answer))
        return Given(answer, cached=False)

    async def structure(self, request: Asked) -> tuple[Structure, bool]:
        """What is in the database, and whether that came from memory."""
        return await _within(self._until(request), self.known.structure)

    async def plan(self, sql: str, request: Asked) -> Answer:
        """How the database would go about it; nothing is run."""
        until = self._until(request)
        statement = await self._judged(sql, until)
        if statement.kind not in ("select", "explain"):
            raise Refused(f"there is no plan for a statement of kind `{statement.kind}`", suggestion="give a SELECT")
        await self._masks(statement, until)
        text = statement.runs or statement.sql
        asked = text if statement.kind == "explain" else explain_statement(self.engine.dialect, text)
        return await self._answered(asked, self.settings.limits.rows, statement, until)

    def _until(self, request: Asked) -> float:
        ours = anyio.current_time() + self.settings.limits.seconds
        return ours if request.deadline is None else min(ours, request.deadline)

    async def _judged(self, sql: str, until: float) -> "Statement":
        functions = await _within(until, self.engine.functions)
        return await anyio.to_thread.run_sync(_judge, sql, self.engine.dialect, functions, self.settings.functions)

    async def _masks(self, statement: "Statement", until: float) -> "MaskPlan | None":
        """None where nothing is masked; raises where a masked column would be used for anything but to be shown."""
        if not self.settings.masked:
            return None
        structure, is_old = await _within(until, self.known.structure)
        functions = await _within(until, self.engine.functions)
        try:
            return await anyio.to_thread.run_sync(lambda: self._policy(structure, functions).plan(statement.sql))
        except UnknownName:
            if not is_old:
                raise
        # It may have been made since the structure was read.
        new, _ = await _within(until, lambda: self.known.structure(but=structure))
        return await anyio.to_thread.run_sync(lambda: self._policy(new, functions).plan(statement.sql))

    async def role_sql(self, request: Asked) -> tuple[Probe, str]:
        """What the role may do, and the SQL for one that can only read, without the masked columns."""
        probe = await self.engine.probe()
        if not probe.setup_sql or not self.settings.masked:
            return probe, probe.setup_sql
        structure, _ = await self.structure(request)
        policy = self._policy(structure, await self.engine.functions())
        every = structure.catalogue or structure.tables
        readable = [
            (
                table,
                tuple(
                    column.name
                    for column, found in zip(table.columns, policy.tables.of(table), strict=True)
                    if not found.masks
                ),
            )
            for table in every
        ]
        return probe, with_column_grants(probe.setup_sql, self.engine.dialect, structure, readable)

    def _policy(self, structure: Structure, functions: Mapping[str, Stability]) -> "MaskPolicy":
        from .masking import MaskPolicy

        if not self._policies or self._policies[0][0] is not structure:
            allowed = frozenset(name.lower() for name in self.settings.functions)
            policy = MaskPolicy.of(
                self.engine.dialect, structure, self.settings.masked, functions=functions, allowed=allowed
            )
            self._policies[:] = [(structure, policy)]
        return self._policies[0][1]

    async def _answered(self, sql: str, rows: int, statement: "Statement", until: float) -> Answer:
        try:
            return await self.engine.ask(Question(sql=sql, rows=rows, seconds=_left(until)))
        except QueryFailed as error:
            raise self._without_values(await self._mended(error, statement, until), sql) from None

    def _without_values(self, error: QueryFailed, sql: str) -> QueryFailed:
        """Engines quote the value that cannot be converted, which may be a masked one. What a server says comes
        without values in any case."""
        if not self.settings.masked or self.engine.dialect not in ("sqlite", "duckdb"):
            return error
        said = without_data(without_data(error.message, sql, "'"), sql, '"')
        return QueryFailed(said, suggestion=error.suggestion, options=error.options)

    async def _mended(self, error: QueryFailed, statement: "Statement", until: float) -> QueryFailed:
        """The names come too late where reading them takes too long, or fails in its turn."""
        if not is_about_a_name(error):
            return error
        try:
            structure, _ = await _within(until, self.known.structure)
        except UllageError:
            return error
        return with_nearest(error, structure, statement.tables)


def _judge(sql: str, dialect: Dialect, functions: Mapping[str, Stability], allowed: tuple[str, ...]) -> "Statement":
    # Whoever only lists tools need not wait until the parser is loaded.
    from .guard import judge

    return judge(sql, dialect, functions=functions, allowed=frozenset(name.lower() for name in allowed))


def _without_host(answer: Answer) -> tuple[Row, ...]:
    """The rows of a SHOW of MySQL, without values that tell of the host and without what other sessions run."""
    from .guard import is_hidden_variable

    names = tuple(column.lower() for column in answer.columns)
    if names == ("variable_name", "value"):
        return tuple((name, "***" if is_hidden_variable(str(name)) else value) for name, value in answer.rows)
    if "info" in names and "command" in names:
        at = names.index("info")
        return tuple((*row[:at], None if row[at] is None else "***", *row[at + 1 :]) for row in answer.rows)
    return answer.rows


async def _within(until: float, read: Callable[[], Awaitable[Result]]) -> Result:
    with anyio.move_on_after(_left(until)):
        return await read()
    raise _late()


def _left(until: float) -> float:
    left = until - anyio.current_time()
    if left <= 0:
        raise _late()
    return left


def _late() -> DeadlinePassed:
    return DeadlinePassed("the time for this call was over before the database answered", suggestion="ask for less")


def _size(answer: Answer) -> int:
    return sum(len(str(cell)) + _A_VALUE for row in answer.rows for cell in row)
