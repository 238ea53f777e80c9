"""How does a model ask a database?

`query`, `schema`, `table` and `explain` as a source of tools, and the schema as resources; there is no tool that
writes. It hands a question to `asking`, an answer to `shape` and the rest to `telling`, and knows neither SQL nor
tokens.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from ullage.errors import UnknownTool
from ullage.options import DatabaseSettings
from ullage.table import Weigh
from ullage.tool import Call, Caller, Contents, Json, JsonObject, Listing, Read, Reply, Tool

from .arguments import QueryAsked, read_original_query, read_query, read_sql
from .asking import Asking
from .describe import find_table, full
from .engine import Answer, Engine
from .explaining import plan_text
from .opening import lock_sentences
from .resources import resource_of, table_of, template_of
from .role import role_sentences
from .shape import Shaped, shape
from .telling import Telling, Told, held
from .tools import tools_of

__all__ = ["SqlSource"]

_META = "dev.ullage/meta"
_SMALL = 200
"""Values of an answer that is written at once; a larger one is written beside the event loop."""

Answers = Callable[[Tool, Call], Awaitable[Reply]]


@dataclass(slots=True, kw_only=True)
class SqlSource:
    """One database as tools and resources."""

    settings: DatabaseSettings
    engine: Engine
    weigh: Callable[[Caller], Weigh]
    """What a text weighs for a caller, at the upper edge of what it may be. Safe between threads."""
    clock: Callable[[], float] = time.monotonic
    _asking: Asking = field(init=False)
    _telling: Telling = field(init=False)
    _tools: dict[str, Tool] = field(init=False)

    def __post_init__(self) -> None:
        settings, engine = self.settings, self.engine
        self._asking = Asking.of(settings, engine, self.clock)
        self._telling = Telling(asking=self._asking, weigh=self.weigh)
        self._tools = {tool.name: tool for tool in tools_of(engine.dialect, settings.description)}

    async def tools(self) -> Listing:
        return Listing(tuple(self._tools.values()), revision=f"1 {self.engine.dialect} {self.settings.description}")

    async def call(self, call: Call) -> Reply:
        answers: dict[str, Answers] = {
            "query": self._query,
            "schema": _telling(self._telling.schema),
            "table": _telling(self._telling.table),
            "explain": self._explain,
            "secureDatabaseQuery": self._query,
            "getSchemaStructure": _telling(self._telling.original_schema),
            "getTableDetails": _telling(self._telling.original_table),
            "listTriggers": _telling(self._telling.original_triggers),
        }
        tool = self._tools.get(call.tool)
        if tool is None:
            raise UnknownTool(f"no tool is called `{call.tool}`", options=tuple(self._tools))
        return await answers[tool.name](tool, call)

    async def resources(self) -> tuple[JsonObject, ...]:
        return (resource_of(self.settings.name),)

    async def templates(self) -> tuple[JsonObject, ...]:
        return (template_of(self.settings.name),)

    async def read(self, read: Read) -> Contents:
        name = table_of(self.settings.name, read.uri)
        structure, _ = await self._asking.structure(read)
        if name is None:
            text = await self._telling.described(structure, "lines", read)
        else:
            text = held(full(find_table(structure, name)), self.weigh(read.caller), self._telling.budget)
        return Contents(contents=({"uri": read.uri, "mimeType": "text/plain", "text": text},))

    async def warnings(self) -> tuple[str, ...]:
        """What the user should know of its locks and its role, in sentences; raises what an engine raises."""
        return *lock_sentences(self.settings), *role_sentences(self.settings.name, await self.engine.probe())

    async def close(self) -> None:
        await self.engine.close()

    async def _query(self, tool: Tool, call: Call) -> Reply:
        limit, budget = self.settings.limits.rows, self.settings.max_tokens
        read = read_query if tool.name == "query" else read_original_query
        asked = read(tool, call.arguments, limit=limit, budget=budget)
        given = await self._asking.ask(asked.sql, asked.rows, call)
        shaped = await self._shaped(given.answer, asked, call)
        data: dict[str, Json] = {
            "rowCount": shaped.rows,
            "columnCount": len(given.answer.columns),
            "truncated": shaped.truncated,
            "maxRowsLimit": limit,
        }
        meta: JsonObject = {_META: {**_performance(cached=given.cached), "data": data}}
        return Reply.text(shaped.text, meta=meta, json_lists=None if asked.format == "csv" else ("data",))

    async def _shaped(self, answer: Answer, asked: QueryAsked, call: Call) -> Shaped:
        weigh = self.weigh(call.caller)
        if len(answer.rows) * len(answer.columns) <= _SMALL:
            return shape(answer, asked, weigh)
        return await anyio.to_thread.run_sync(shape, answer, asked, weigh)

    async def _explain(self, tool: Tool, call: Call) -> Reply:
        answer = await self._asking.plan(read_sql(tool, call.arguments), call)
        plan = plan_text(self.engine.dialect, answer)
        return Reply.text(held(plan, self.weigh(call.caller), self._telling.budget))


def _telling(tell: Callable[[Tool, Call], Awaitable[Told]]) -> Answers:
    async def reply(tool: Tool, call: Call) -> Reply:
        told = await tell(tool, call)
        return Reply.text(told.text, meta={_META: _performance(cached=told.cached)}, json_lists=told.json_lists)

    return reply


def _performance(*, cached: bool) -> dict[str, Json]:
    return {"performance": {"cachedResult": cached}}
