"""How does a statement get to a database, and its rows back?

Judged, masked, asked, and all of it before one deadline. An error about a name that does not exist comes back with the
names that do. What a statement may say, what an engine does and how rows are written, others know.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import anyio

from ullage.errors import DeadlinePassed, QueryFailed, Refused, UllageError
from ullage.options import DatabaseSettings
from ullage.tool import Asked

from .engine import Answer, Dialect, Engine, Question, Stability
from .explaining import explain_statement
from .known import Known
from .nearest import is_about_a_name, with_nearest
from .recent import Recent
from .structure import Structure

if TYPE_CHECKING:
    from .guard import Statement
    from .masking import MaskPlan

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
        answer = await self._answered(statement.sql, rows, statement, until)
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
        asked = statement.sql if statement.kind == "explain" else explain_statement(self.engine.dialect, statement.sql)
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
        structure, _ = await _within(until, self.known.structure)
        return await anyio.to_thread.run_sync(
            _plan_masks, statement.sql, self.engine.dialect, structure, self.settings.masked
        )

    async def _answered(self, sql: str, rows: int, statement: "Statement", until: float) -> Answer:
        try:
            return await self.engine.ask(Question(sql=sql, rows=rows, seconds=_left(until)))
        except QueryFailed as error:
            raise await self._mended(error, statement, until) from error

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


def _plan_masks(sql: str, dialect: Dialect, structure: Structure, masked: tuple[str, ...]) -> "MaskPlan":
    from .masking import mask_plan

    return mask_plan(sql, dialect, structure, masked)


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
