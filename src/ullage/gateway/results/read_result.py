"""The tool `read_result`: pages of a stored result, matches in it, values at a JSON path, or the answer to SQL if it is
a table.

Each answer fits the same budget as the result did, exactly, and ends with how to continue. Only the principal that a
result was stored for can read it. SQL is run by the given `TableQuery`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ullage.errors import InvalidArguments, UnknownTool
from ullage.options import ResultRules
from ullage.table import Row, row_line
from ullage.tokens import Meter, Steps, drain
from ullage.tool import Call, Caller, Json, JsonObject, Listing, Origin, Reply, ToolSource, text_block

from ..reply_metadata import ACCOUNT, META, Reference, character_limit, size_data
from .held_result import Scale
from .paging import Manner, Page, Reading, answered, block_shown, has_more, left_out, longest_fitting, page_steps
from .result_query import (
    Document,
    Lines,
    Records,
    TableQuery,
    as_shown,
    at_offset,
    at_path,
    matcher,
    matching,
    records_in,
    records_of,
    schema_rows,
    tables_beside,
)
from .result_store import OpenResult, Vault
from .truncate_result import BUDGET, READ

__all__ = ["ResultReader", "Wanted", "read_arguments"]

_NUMBERS = ("offset", "limit", "max_tokens")
_TEXTS = ("grep", "path", "sql")
_NAMES = ("handle", *_TEXTS, *_NUMBERS)
_LEAST = 50
"""Least tokens for a line and the note on how to continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The parsed arguments of `read_result`."""

    handle: str
    offset: int = 0
    limit: int | None = None
    grep: str | None = None
    path: str | None = None
    sql: str | None = None
    max_tokens: int | None = None


def read_arguments(arguments: JsonObject) -> Wanted:
    """Parse the arguments.

    Raises:
        InvalidArguments: An argument does not fit.
    """
    unknown = next((key for key in arguments if key not in _NAMES), None)
    if unknown is not None:
        raise _misfit(f"read_result has no argument `{unknown[:100]}`", "It takes `handle` and one of the others.")
    handle = arguments.get("handle")
    if not isinstance(handle, str) or not handle.strip():
        raise _misfit("`handle` must be a string", "Give the handle from the last line of a result that was cut.")
    numbers = {name: _number(name, arguments.get(name)) for name in _NUMBERS}
    texts: dict[str, str | None] = {}
    for name in _TEXTS:
        value = arguments.get(name)
        if value is not None and not isinstance(value, str):
            raise _misfit(f"`{name}` must be a string", "Leave out what you do not need.")
        texts[name] = value or None
    if texts["sql"] and texts["grep"]:
        raise _misfit("`sql` and `grep` do not go together", "Put the condition into the SQL.")
    if numbers["max_tokens"] is not None and numbers["max_tokens"] < _LEAST:
        raise _misfit(f"`max_tokens` must be at least {_LEAST}", "Leave it out for the usual budget.")
    return Wanted(
        handle=handle.strip().strip("`\"'"),
        offset=numbers["offset"] or 0,
        limit=numbers["limit"] or None,
        max_tokens=numbers["max_tokens"],
        **texts,
    )


def _number(name: str, value: Json) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or value == "":
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**15:
        raise _misfit(f"`{name}` must be a whole number, 0 or more", f'Give it as in {{"{name}": 100}}.')
    return value


def _misfit(message: str, suggestion: str) -> InvalidArguments:
    return InvalidArguments(message, suggestion=suggestion, options=_NAMES)


_NO_LIMIT = 10**7
"""Tokens where the user has set no budget."""
_SECONDS = 10.0
"""Most seconds that a statement may take."""
_SCHEMA = "schema"
"""Given instead of SQL: lists the columns."""
_SCHEMA_COLUMNS = ("column", "type", "rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultReader(ToolSource):
    """The source that offers `read_result`."""

    vault: Vault
    rules: Callable[[], ResultRules]
    """Called for each request, because the settings may change."""
    meter: Meter
    reference: Callable[[Caller], Reference]
    query: TableQuery | None = None
    """None if SQL cannot be run."""

    async def tools(self) -> Listing:
        return Listing((READ,), revision="1")

    async def call(self, call: Call) -> Reply:
        """Answer one call of `read_result`.

        Raises:
            InvalidArguments: The arguments do not fit, or the path, pattern or statement cannot be used.
            UnknownHandle: The handle does not exist, expired, or belongs to another principal.
        """
        if call.tool != READ.name:
            raise UnknownTool(f"no tool is called `{call.tool}`", options=(READ.name,))
        wanted = read_arguments(call.arguments)
        opened = await self.vault.aside(partial(self.vault.open, wanted.handle, call.caller.principal))
        said = call.meta.get(BUDGET)
        asked = wanted.max_tokens or (said if isinstance(said, int) and said > 0 else None)
        limit = character_limit(call.caller)
        handling = self.rules().handling(Origin(opened.header.server, opened.header.tool), asked).limited(limit)
        budget = handling.budget or _NO_LIMIT
        reading = _Reading(
            wanted=wanted,
            opened=opened,
            budget=budget,
            encode=handling.encode,
            scale=Scale(self.meter, self.reference(call.caller).counted_as, budget / limit if limit else 0.0),
        )
        if wanted.sql is not None:
            sql = wanted.sql
            if self.query is None:
                raise InvalidArguments("SQL cannot be asked here", suggestion="Use `offset`, `grep` or `path`.")
            records = await self.vault.aside(lambda: records_in(drain(reading.document())))
            if sql.strip().rstrip(";").lower() == _SCHEMA:
                rows = await self.vault.aside(lambda: list(schema_rows(records)))
                reply = await self.vault.aside(lambda: drain(_answer(reading, _SCHEMA_COLUMNS, rows, False, "")))
            else:
                beside = await self._beside(call.caller.principal, await self.query.tables(sql), sql)
                tables = {name: (table.columns, table) for name, table in beside.items()}
                answered = await self.query.ask(records.columns, records, sql, _SECONDS, beside=tables)
                cut = (
                    one.footer for one in (records, *beside.values()) if isinstance(one, Lines) and has_more(one.footer)
                )
                beyond = next(cut, "")
                reply = await self.vault.aside(lambda: drain(_answer(reading, *answered, beyond)))
        else:
            reply = await self.vault.aside(lambda: drain(_read(reading)))
        account: dict[str, Json] = {"server": opened.header.server, "tool": opened.header.tool}
        return replace(reply, meta={**reply.meta, ACCOUNT: account})

    async def _beside(self, principal: str, names: frozenset[str], sql: str) -> dict[str, Records | Lines]:
        """Return the other stored results that a statement names, as tables.

        Raises:
            UnknownHandle: A handle does not exist or belongs to another principal.
        """

        def read(handle: str, path: str | None) -> Records | Lines:
            opened = self.vault.open(handle, principal)
            return records_in(drain(at_path(opened, path)) if path else records_of(opened))

        wanted = tables_beside(names, sql)
        return {name: await self.vault.aside(partial(read, *each)) for name, each in wanted.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """The state of one call."""

    wanted: Wanted
    opened: OpenResult
    budget: int
    encode: bool
    scale: Scale

    def document(self) -> Steps[Document]:
        if self.wanted.path is not None:
            return (yield from at_path(self.opened, self.wanted.path))
        return records_of(self.opened) if self.wanted.sql is not None else at_offset(self.opened, self.wanted.offset)


def _read(reading: _Reading) -> Steps[Reply]:
    wanted, document = reading.wanted, (yield from reading.document())
    if document.kind == "block" and wanted.grep is None:
        unit, text = next(document.units(max(reading.wanted.offset, document.first)))
        block = json.loads(text)
        line = block_shown(unit, document.total)
        blocks = block, text_block(line)
        if (yield from reading.scale.within(blocks, reading.budget)) is not None:
            return Reply(content=blocks, meta={META: {"handle": reading.wanted.handle}})
        weight = (yield from reading.scale.within(blocks, _NO_LIMIT)) or _NO_LIMIT
        note = left_out(reading.wanted.handle, str(block.get("mimeType") or block.get("type")), weight, unit)
        shown = yield from longest_fitting((f"{note}\n{line}", note, line), reading.scale.weigh, reading.budget)
        return Reply.text(shown, meta={META: {"handle": reading.wanted.handle}})
    begun = max(wanted.offset, document.first)
    said = Reading(
        handle=wanted.handle, kind=document.kind, total=document.total, named=document.named, rest=document.rest
    )
    if wanted.grep is None:
        units, words = document.units(begun), said.further(begun)
    else:
        matches, is_expression = matcher(wanted.grep)
        if document.kind == "records":
            matches = as_shown(wanted.grep, matches)
        units, words = matching(document.units(begun), matches), said.found("" if is_expression else _AS_TEXT)
    manner = Manner(
        kind=document.kind,
        header=document.header(begun, reading.budget) if wanted.grep is None else "",
        encode=reading.encode,
        numbered=wanted.grep is not None,
        limit=wanted.limit,
    )
    page = yield from page_steps(units, manner, words, reading.scale.weigh, reading.budget)
    return _reply(reading, page)


_AS_TEXT = " (grep taken as plain text)"


def _reply(reading: _Reading, page: Page) -> Reply:
    meta: dict[str, Json] = {"handle": reading.wanted.handle}
    if page.columns is not None:
        meta["data"] = size_data(page.shown, page.columns, truncated=not page.complete)
    return Reply.text(page.text, meta={META: meta})


def _answer(
    reading: _Reading,
    columns: Sequence[str],
    rows: Sequence[Row],
    more: bool,  # noqa: FBT001 - as it was answered
    beyond: str,
) -> Steps[Reply]:
    """Format the answer to SQL. `beyond` is the table's own note about rows that it does not contain, if any."""
    wanted = reading.wanted
    manner = Manner(kind="lines", header=row_line(columns), limit=wanted.limit, whole_only=True)
    units = ((number, row_line(rows[number])) for number in range(wanted.offset, len(rows)))
    words = answered(wanted.offset, len(rows), more=more, beyond=beyond)
    page = yield from page_steps(units, manner, words, reading.scale.weigh, reading.budget)
    return _reply(reading, replace(page, columns=len(columns), complete=page.complete and not more))
