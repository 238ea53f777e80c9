"""The SQL tools as a source, and the schema as resources.

`SqlSource` offers the tools `query`, `schema`, `table` and `explain`, none of which writes. `run_query` runs
statements, and `answer_format` writes the replies.

The resources are `sql://NAME/schema` for the whole schema and `sql://NAME/tables/TABLE` for one table.

`open_engine` connects to nothing; it creates the sample shop if it does not exist.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, unquote

import anyio

from ullage.errors import UnknownResource, UnknownTool
from ullage.options import SAMPLE, DatabaseSettings
from ullage.table import Weigh
from ullage.tool import Call, Caller, Contents, Json, JsonObject, Listing, Read, Reply, Tool, ToolSource

from .answer_format import Shaped, Telling, Told, shape, truncate_lines
from .database import Answer, Engine, file_of, role_sentences
from .describe import find_table, full
from .embedded import EmbeddedEngine
from .network import network_engine, warning
from .run_query import Asking, plan_text
from .sample_shop import make_sample
from .sql_tools import QueryAsked, read_original_query, read_query, read_sql, tools_of

__all__ = ["SqlSource", "lock_sentences", "open_engine", "resource_of", "table_of", "template_of"]


def open_engine(settings: DatabaseSettings, *, sample: Path) -> Engine:
    """Return the engine of a database; `sample` is the path of the sample shop, which is created if it is missing."""
    if settings.url == SAMPLE:
        return EmbeddedEngine(make_sample(sample), dialect="sqlite", limits=settings.limits)
    file = file_of(settings)
    if file is None:
        return network_engine(settings)
    path, dialect = file
    return EmbeddedEngine(path, dialect=dialect, limits=settings.limits)


def lock_sentences(settings: DatabaseSettings) -> tuple[str, ...]:
    """Return one sentence if not every lock is in place, none otherwise."""
    if settings.url == SAMPLE or file_of(settings) is not None:
        return ()
    said = warning(settings)
    return () if said is None else (said,)


_PLAIN = "text/plain"


def resource_of(name: str) -> JsonObject:
    """Return the resource with a database's schema."""
    return {
        "uri": _schema(name),
        "name": f"{name} schema",
        "description": f"The tables and columns of the database `{name}`",
        "mimeType": _PLAIN,
    }


def template_of(name: str) -> JsonObject:
    """Return the resource template of a database's tables."""
    return {
        "uriTemplate": f"{_tables(name)}{{table}}",
        "name": f"{name} table",
        "description": f"One table of the database `{name}` in full",
        "mimeType": _PLAIN,
    }


def table_of(name: str, uri: str) -> str | None:
    """Return the table that a URI names, None for the whole schema; raise for any other URI."""
    if uri == _schema(name):
        return None
    table = unquote(uri.removeprefix(_tables(name)))
    if not uri.startswith(_tables(name)) or not table:
        raise UnknownResource(f"nothing is at `{uri}`", options=(_schema(name), f"{_tables(name)}{{table}}"))
    return table


def _schema(name: str) -> str:
    return f"sql://{quote(name, safe='')}/schema"


def _tables(name: str) -> str:
    return f"sql://{quote(name, safe='')}/tables/"


_META = "dev.ullage/meta"
_BUDGET = "dev.ullage/budget"
_SMALL = 200
"""Values up to which an answer is formatted at once; a larger one is formatted in a thread."""

Answers = Callable[[Tool, Call], Awaitable[Reply]]


@dataclass(slots=True, kw_only=True)
class SqlSource(ToolSource):
    """One database as tools and resources."""

    settings: DatabaseSettings
    engine: Engine
    weigh: Callable[[Caller], Weigh]
    """Returns the function that counts tokens for a caller, as an upper bound. Thread-safe."""
    clock: Callable[[], float] = time.monotonic
    is_cut_outside: bool = False
    """Whether an answer over the `max_tokens` of its call is shortened by the gateway, which keeps the whole of it for
    `read_result`."""
    _asking: Asking = field(init=False)
    _telling: Telling = field(init=False)
    _tools: dict[str, Tool] = field(init=False)

    def __post_init__(self) -> None:
        settings, engine = self.settings, self.engine
        self._asking = Asking.of(settings, engine, self.clock)
        self._telling = Telling(asking=self._asking, weigh=self.weigh)
        self._tools = {tool.name: tool for tool in tools_of(engine.dialect, settings.description)}

    async def tools(self) -> Listing:
        """Return the definitions of the tools."""
        return Listing(tuple(self._tools.values()), revision=f"1 {self.engine.dialect} {self.settings.description}")

    async def call(self, call: Call) -> Reply:
        """Answer a call of a tool."""
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
        """Return the resource with the schema."""
        return (resource_of(self.settings.name),)

    async def templates(self) -> tuple[JsonObject, ...]:
        """Return the resource template of the tables."""
        return (template_of(self.settings.name),)

    async def read(self, read: Read) -> Contents:
        """Return the content of a resource."""
        name = table_of(self.settings.name, read.uri)
        structure, _ = await self._asking.structure(read)
        if name is None:
            text = await self._telling.described(structure, "lines", read)
        else:
            text = truncate_lines(full(find_table(structure, name)), self.weigh(read.caller), self._telling.budget)
        return Contents(contents=({"uri": read.uri, "mimeType": "text/plain", "text": text},))

    async def warnings(self) -> tuple[str, ...]:
        """Return what the user should know of the locks and the role, in sentences; raises what the engine raises."""
        return *lock_sentences(self.settings), *role_sentences(self.settings.name, await self.engine.probe())

    async def close(self) -> None:
        """Close the database."""
        await self.engine.close()

    async def _query(self, tool: Tool, call: Call) -> Reply:
        limit, budget = self.settings.limits.rows, self.settings.max_tokens
        read = read_query if tool.name == "query" else read_original_query
        asked = read(tool, call.arguments, limit=limit, budget=budget)
        if self.is_cut_outside:
            asked = replace(asked, budget=budget)
        if tool.name == "query" and call.meta.get(_BUDGET) == 0 and "format" not in call.arguments:
            # The whole result is asked for, for a program, which reads JSON.
            asked = replace(asked, format="json")
        given = await self._asking.ask(asked.sql, asked.rows, call)
        shaped = await self._shape_answer(given.answer, asked, call)
        data: dict[str, Json] = {
            "rowCount": shaped.rows,
            "columnCount": len(given.answer.columns),
            "truncated": shaped.truncated,
            "maxRowsLimit": limit,
        }
        meta: JsonObject = {_META: {**_performance(cached=given.cached), "data": data}}
        return Reply.text(shaped.text, meta=meta, json_lists=None if asked.format == "csv" else ("data",))

    async def _shape_answer(self, answer: Answer, asked: QueryAsked, call: Call) -> Shaped:
        weigh = self.weigh(call.caller)
        if len(answer.rows) * len(answer.columns) <= _SMALL:
            return shape(answer, asked, weigh)
        return await anyio.to_thread.run_sync(shape, answer, asked, weigh)

    async def _explain(self, tool: Tool, call: Call) -> Reply:
        answer = await self._asking.plan(read_sql(tool, call.arguments), call)
        plan = plan_text(self.engine.dialect, answer)
        return Reply.text(truncate_lines(plan, self.weigh(call.caller), self._telling.budget))


def _telling(tell: Callable[[Tool, Call], Awaitable[Told]]) -> Answers:
    async def reply(tool: Tool, call: Call) -> Reply:
        told = await tell(tool, call)
        return Reply.text(told.text, meta={_META: _performance(cached=told.cached)}, json_lists=told.json_lists)

    return reply


def _performance(*, cached: bool) -> dict[str, Json]:
    return {"performance": {"cachedResult": cached}}
