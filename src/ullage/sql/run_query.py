"""Runs a query: guard, masking, engine and deadline.

`QueryRunner.ask` judges, masks and runs a statement before one deadline. `suggest_names` adds the nearest existing
names to an error about a table or column that does not exist; each database words this error differently.

`explain_statement` returns the statement that plans a query without running it, and `plan_text` shortens the plan.
Neither uses `ANALYZE`, which runs the query.

`AnswerCache` caches a few answers for some seconds, within limits of entries and size; the least recently used is
dropped first.

`StructureCache` reads a database's structure on first use and again when it is outdated. Concurrent callers wait for a
single read.
"""

import json
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import anyio

from ullage.errors import DeadlinePassed, QueryFailed, Refused, UllageError, UnknownName
from ullage.options import DatabaseSettings
from ullage.table import clean, encode
from ullage.tool import Asked

from .database import (
    RAISED,
    Answer,
    Dialect,
    Engine,
    Probe,
    Question,
    Stability,
    Structure,
    with_column_grants,
    without_data,
    without_numbers,
)
from .describe import full_name, spell

if TYPE_CHECKING:
    from .column_masking import MaskPlan, MaskPolicy
    from .guard import Statement

__all__ = [
    "AnswerCache",
    "QueryResult",
    "QueryRunner",
    "StructureCache",
    "explain_statement",
    "is_about_a_name",
    "plan_text",
    "suggest_names",
]

_PREFIXES: Final[dict[Dialect, str]] = {
    "sqlite": "EXPLAIN QUERY PLAN",
    "duckdb": "EXPLAIN (FORMAT json)",
    "postgres": "EXPLAIN",
    "mysql": "EXPLAIN",
}
_LONGEST = 200
"""Maximum characters of one condition in a plan."""


def explain_statement(dialect: Dialect, sql: str) -> str:
    """Return the statement that shows the plan of a query.

    The query is on a line of its own, so that a comment before it hides nothing.
    """
    prefix = _PREFIXES.get(dialect)
    if prefix is None:
        raise Refused(
            "this database makes a plan only by writing it somewhere",
            suggestion="ask for the table's indexes with table instead",
        )
    return f"{prefix}\n{sql}"


def plan_text(dialect: Dialect, answer: Answer) -> str:
    """Return a plan as short text."""
    if dialect == "sqlite":
        # Its rows are id, parent id, an unused value, and text.
        depths: dict[object, int] = {0: -1}
        lines: list[str] = []
        for number, parent, _, words in answer.rows:
            depths[number] = depth = depths.get(parent, -1) + 1
            lines.append(f"{'  ' * depth}{clean(str(words)).text}")
        return "\n".join(lines)
    if dialect == "duckdb":
        # The last column is a tree of operators as JSON.
        lines: list[str] = []
        for row in answer.rows:
            try:
                tree: Any = json.loads(str(row[-1]))
            except ValueError:
                lines.append(clean(str(row[-1])).text)
            else:
                _append_operators(cast("list[Any]", tree if isinstance(tree, list) else [tree]), 0, lines)
        return "\n".join(lines)
    if len(answer.columns) == 1:
        return "\n".join(clean(str(row[0])).text for row in answer.rows)
    full = [index for index in range(len(answer.columns)) if any(row[index] is not None for row in answer.rows)]
    return encode([answer.columns[index] for index in full], [[row[index] for index in full] for row in answer.rows])


def _append_operators(nodes: Sequence[Any], depth: int, lines: list[str]) -> None:
    for node in nodes:
        if isinstance(node, Mapping):
            operator = cast("Mapping[str, Any]", node)
            name = " ".join(str(operator.get("name", "")).split())
            info, extra = operator.get("extra_info"), ""
            if isinstance(info, Mapping):
                shown: list[str] = []
                for key, value in cast("Mapping[str, Any]", info).items():
                    if value not in ("", []):
                        text = ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value)
                        flat = " ".join(clean(text).text.split())
                        shown.append(f"{key}={flat if len(flat) <= _LONGEST else f'{flat[:_LONGEST]}…'}")
                extra = " " + "; ".join(shown)
            lines.append(f"{'  ' * depth}{clean(name).text}{extra}")
            _append_operators(operator.get("children") or [], depth + 1, lines)


@dataclass(slots=True, kw_only=True)
class StructureCache:
    """The cached structure of a database."""

    engine: Engine
    seconds: float
    """Lifetime of the cached structure."""
    clock: Callable[[], float]
    _read: tuple[float, Structure] | None = None
    _reading: anyio.Lock = field(default_factory=anyio.Lock)

    async def structure(self, but: Structure | None = None) -> tuple[Structure, bool]:
        """Return the structure, and whether it came from the cache.

        Args:
            but: a structure that lacks something; the cache is bypassed if it is the one cached.
        """
        async with self._reading:
            if self._read is not None and self.clock() < self._read[0] and self._read[1] is not but:
                return self._read[1], True
            structure = await self.engine.structure()
            self._read = self.clock() + self.seconds, structure
            return structure, False


_NAME = r"[\"'`\[]?(?P<name>[\w$.\"`\[\] ]+?)[\"'`\]]?"
_TABLE = re.compile(
    rf"no such table: (?P<sqlite>[\w$. ]+)|relation {_NAME} does not exist|Table with name (?P<duckdb>[\w$.]+) does not"
    r"|Table '(?P<mysql>[^']+)' doesn't exist|Invalid object name '(?P<tsql>[^']+)'",
    re.IGNORECASE,
)
_COLUMN = re.compile(
    rf"no such column: (?P<sqlite>[\w$. ]+)|column {_NAME} does not exist|column \"(?P<duckdb>[^\"]+)\" not found"
    r"|Table \"[^\"]+\" does not have a column named \"(?P<duckdb2>[^\"]+)\""
    r"|Unknown column '(?P<mysql>[^']+)'|Invalid column name '(?P<tsql>[^']+)'",
    re.IGNORECASE,
)
_RAISED = re.compile(rf"{RAISED}|\AInvalidInputException: (?:Invalid Input Error: )?")
"""Precedes the text of an error that a function raised, which may be anything."""
_PLACE = "(at character "
"""Part of an error of PostgreSQL that is about the text of the statement."""
_AFTER_COLON = re.compile(r"\A((?:[0-9A-Z]{5}: )?[^:]+: ).*", re.DOTALL)
_SHOWN = 30
"""Columns listed if no name is similar."""


def is_about_a_name(error: QueryFailed) -> bool:
    """Return whether an error is about a table or column that does not exist."""
    return any(pattern.search(error.message) for pattern in (_TABLE, _COLUMN))


def suggest_names(error: QueryFailed, structure: Structure, tables: Collection[str]) -> QueryFailed:
    """Return the error with the nearest names; `tables` are the tables of the query."""
    table, column = _extract_name(_TABLE, error.message), _extract_name(_COLUMN, error.message)
    if table is not None:
        near = spell(table, map(full_name, structure.tables))
        return _replace_hints(error, near, "use a table that exists, or list them with schema")
    if column is not None:
        return _replace_hints(
            error, _similar_columns(structure, tables, column), "use a column that exists; table lists them all"
        )
    return error


def _extract_name(pattern: re.Pattern[str], message: str) -> str | None:
    found = pattern.search(message)
    return None if found is None else _last_part(found)


def _last_part(found: re.Match[str]) -> str:
    """Return the name in a match, without the names of its schema and database."""
    name = next(group for group in found.groups() if group is not None)
    return name.replace('"', "").replace("`", "").rpartition(".")[2].strip()


def _similar_columns(structure: Structure, tables: Collection[str], wanted: str) -> tuple[str, ...]:
    """Return similar columns of the query's tables, else of all tables; with the table if several have that column."""
    named = {name.lower().rpartition(".")[2] for name in tables}
    meant = [table for table in structure.tables if table.name.lower() in named] or list(structure.tables)
    near = spell(wanted, {column.name for table in meant for column in table.columns})
    if near:
        return tuple(
            name
            for column in near
            for name in [
                f"{table.name}.{column}" for table in meant if any(one.name == column for one in table.columns)
            ]
        )
    return tuple(column.name for table in meant for column in table.columns)[:_SHOWN]


def _replace_hints(error: QueryFailed, options: tuple[str, ...], suggestion: str) -> QueryFailed:
    return QueryFailed(error.message, suggestion=suggestion, options=options or error.options)


Value = TypeVar("Value")

_ENTRIES = 100
_SIZE = 8_000_000


class AnswerCache(Generic[Value]):
    """Cache of answers by key. With a lifetime of zero it keeps nothing."""

    def __init__(
        self, seconds: float, *, clock: Callable[[], float], entries: int = _ENTRIES, size: int = _SIZE
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._entries = entries
        self._size = size
        self._used = 0
        self._kept: OrderedDict[Hashable, tuple[float, int, Value]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        """Return the cached value; None if there is none or it has expired."""
        found = self._kept.get(key)
        if found is None:
            return None
        ends, _, value = found
        if self._clock() >= ends:
            self.forget(key)
            return None
        self._kept.move_to_end(key)
        return value

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Keep a value; `size` is approximate, in bytes, and a value larger than the whole cache is not kept."""
        self.forget(key)
        if self._seconds <= 0 or size > self._size:
            return
        while self._kept and (self._used + size > self._size or len(self._kept) >= self._entries):
            self.forget(next(iter(self._kept)))
        self._kept[key] = (self._clock() + self._seconds, size, value)
        self._used += size

    def forget(self, key: Hashable) -> None:
        """Drop a value."""
        found = self._kept.pop(key, None)
        if found is not None:
            self._used -= found[1]


Result = TypeVar("Result")

_A_VALUE = 50
"""Bytes of a value beyond its text."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """An answer, and whether it came from the cache."""

    answer: Answer
    cached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRunner:
    """Runs queries of one database: the guard, masking, the caches and the engine."""

    settings: DatabaseSettings
    engine: Engine
    known: StructureCache
    answers: AnswerCache[Answer]
    _policies: "list[tuple[Structure, MaskPolicy]]" = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    """The policy for the structure that was read last."""

    @classmethod
    def of(
        cls, settings: DatabaseSettings, engine: Engine, clock: Callable[[], float] = time.monotonic
    ) -> "QueryRunner":
        """Return an instance with empty caches, configured by the settings."""
        known = StructureCache(engine=engine, seconds=settings.schema_cache, clock=clock)
        return cls(settings=settings, engine=engine, known=known, answers=AnswerCache(settings.cache, clock=clock))

    async def ask(self, sql: str, rows: int, request: Asked) -> QueryResult:
        """Return the first `rows` rows of a query.

        Raises:
            Refused: the statement does not only read, or uses a masked column.
            QueryFailed: the database refuses the statement.
            DeadlinePassed: the deadline of the call or the settings passed.
            SourceFailed: the database cannot be reached.
        """
        until = self._deadline_of(request)
        statement = await self._judge_statement(sql, until)
        key = (request.caller.principal, statement.sql, rows)
        kept = self.answers.get(key)
        if kept is not None:
            return QueryResult(kept, cached=True)
        masks = await self._plan_masks(statement, until)
        answer = await self._ask_engine(statement.runs or statement.sql, rows, statement, until)
        if statement.kind == "show" and self.engine.dialect == "mysql":
            # A SHOW of MySQL may describe the host and contain other sessions' statements.
            from .guard import is_hidden_variable

            names = tuple(column.lower() for column in answer.columns)
            shown = answer.rows
            if names == ("variable_name", "value"):
                shown = tuple((name, "***" if is_hidden_variable(str(name)) else value) for name, value in shown)
            elif "info" in names and "command" in names:
                at = names.index("info")
                shown = tuple((*row[:at], None if row[at] is None else "***", *row[at + 1 :]) for row in shown)
            answer = replace(answer, rows=shown)
        if masks is not None:
            answer = replace(answer, rows=masks.apply(answer.columns, answer.rows))
        self.answers.put(key, answer, _size(answer))
        return QueryResult(answer, cached=False)

    async def structure(self, request: Asked) -> tuple[Structure, bool]:
        """Return the structure of the database, and whether it came from the cache."""
        return await _await_until(self._deadline_of(request), self.known.structure)

    async def plan(self, sql: str, request: Asked) -> Answer:
        """Return the plan of a query, without running it."""
        until = self._deadline_of(request)
        statement = await self._judge_statement(sql, until)
        if statement.kind not in ("select", "explain"):
            raise Refused(f"there is no plan for a statement of kind `{statement.kind}`", suggestion="give a SELECT")
        await self._plan_masks(statement, until)
        text = statement.runs or statement.sql
        asked = text if statement.kind == "explain" else explain_statement(self.engine.dialect, text)
        return await self._ask_engine(asked, self.settings.limits.rows, statement, until)

    def _deadline_of(self, request: Asked) -> float:
        ours = anyio.current_time() + self.settings.limits.seconds
        return ours if request.deadline is None else min(ours, request.deadline)

    async def _judge_statement(self, sql: str, until: float) -> "Statement":
        functions = await _await_until(until, self.engine.functions)
        return await anyio.to_thread.run_sync(_judge, sql, self.engine.dialect, functions, self.settings.functions)

    async def _plan_masks(self, statement: "Statement", until: float) -> "MaskPlan | None":
        """Return what to mask, None if nothing; raise `Refused` if a masked column is used other than selected."""
        if not self.settings.masked:
            return None
        structure, is_old = await _await_until(until, self.known.structure)
        functions = await _await_until(until, self.engine.functions)
        try:
            return await anyio.to_thread.run_sync(lambda: self._policy(structure, functions).plan(statement.sql))
        except UnknownName:
            if not is_old:
                raise
        # It may have been created after the structure was read.
        new, _ = await _await_until(until, lambda: self.known.structure(but=structure))
        return await anyio.to_thread.run_sync(lambda: self._policy(new, functions).plan(statement.sql))

    async def role_sql(self, request: Asked) -> tuple[Probe, str]:
        """Return what the role may do, and the SQL for a role that can only read, without the masked columns."""
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
        from .column_masking import MaskPolicy

        if not self._policies or self._policies[0][0] is not structure:
            allowed = frozenset(name.lower() for name in self.settings.functions)
            policy = MaskPolicy.of(
                self.engine.dialect, structure, self.settings.masked, functions=functions, allowed=allowed
            )
            self._policies[:] = [(structure, policy)]
        return self._policies[0][1]

    async def _ask_engine(self, sql: str, rows: int, statement: "Statement", until: float) -> Answer:
        try:
            return await self.engine.ask(Question(sql=sql, rows=rows, seconds=_seconds_left(until)))
        except QueryFailed as error:
            structure = None
            if is_about_a_name(error):
                # Without existing names if reading them fails or takes too long.
                with suppress(UllageError):
                    structure, _ = await _await_until(until, self.known.structure)
            known = error if structure is None else suggest_names(error, structure, statement.tables)
            raise self._remove_values(known, statement, sql) from None

    def _remove_values(self, error: QueryFailed, statement: "Statement", sql: str) -> QueryFailed:
        """Remove values from an error: engines show what they cannot convert, which may be masked.

        Servers' errors come without quoted values. Only where a view or a computed column may have computed with masked
        values do other parts of an error contain them.
        """
        if not self.settings.masked:
            return error
        said, suggestion = error.message, error.suggestion
        named = _TABLE.search(said) or _COLUMN.search(said)
        # A function that takes the name of a table or column reports a value as if it were a name.
        is_of_statement = named is not None and _last_part(named).casefold() in sql.casefold()
        if self.engine.dialect in ("sqlite", "duckdb"):
            # DuckDB shows similar names on the lines after the first.
            said = said.split("\n", 1)[0] if is_of_statement else said
            said = without_data(without_data(said, sql, "'"), sql, '"')
        if not self._may_compute(statement):
            return QueryFailed(said, suggestion=suggestion, options=error.options)
        raised = _RAISED.search(said)
        if raised is not None:
            return QueryFailed(f"{said[: raised.end()]}…")
        if is_of_statement:
            return QueryFailed(said, suggestion=suggestion, options=error.options)
        if named is not None:
            start, end = next(span for span in named.regs[1:] if span != (-1, -1))
            return QueryFailed(f"{error.message[:start]}…{error.message[end:]}".split("\n", 1)[0])
        # DuckDB shows a text that it cannot read on a line of its own.
        said = said.split("\n", 1)[0]
        if self.engine.dialect != "sqlite":
            said = without_numbers(said, sql)
        if self.engine.dialect == "postgres" and _PLACE not in said:
            # `operator does not exist: …` shows without quotes what was cast to the name of one.
            said = _AFTER_COLON.sub(r"\1…", said)
        return QueryFailed(said, suggestion=suggestion, options=error.options)

    def _may_compute(self, statement: "Statement") -> bool:
        """Return whether a statement reads a view or a table with a computed column, or one that is not known."""
        if not self._policies:
            return True
        tables = self._policies[0][1].tables
        for name in statement.tables:
            *schema, last = name.split(".")
            table = tables.find(last, schema[-1] if schema else "")
            if table is None or table.kind == "view" or any(column.computed for column in table.columns):
                return True
        return False


def _judge(sql: str, dialect: Dialect, functions: Mapping[str, Stability], allowed: tuple[str, ...]) -> "Statement":
    # Imported here so that listing the tools does not load the parser.
    from .guard import judge

    return judge(sql, dialect, functions=functions, allowed=frozenset(name.lower() for name in allowed))


async def _await_until(until: float, read: Callable[[], Awaitable[Result]]) -> Result:
    with anyio.move_on_after(_seconds_left(until)):
        return await read()
    raise _deadline_error()


def _seconds_left(until: float) -> float:
    left = until - anyio.current_time()
    if left <= 0:
        raise _deadline_error()
    return left


def _deadline_error() -> DeadlinePassed:
    return DeadlinePassed("the time for this call was over before the database answered", suggestion="ask for less")


def _size(answer: Answer) -> int:
    return sum(len(str(cell)) + _A_VALUE for row in answer.rows for cell in row)
