"""How does a model read the rest of a result?

The tool `read_result`: pages of a held result, of what matches in it, of what a JSON path picks, or of what SQL makes
of it where it is a table. Each answer is held to the budget of the result itself, exactly, and ends with how to go on.
Only the principal for whom a result was held can read it. SQL is run by whoever is given for that.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ullage.errors import InvalidArguments, UnknownTool
from ullage.options import ResultRules
from ullage.table import Row, row_line
from ullage.tokens import Meter, Steps, drain
from ullage.tool import Call, Caller, Json, Listing, Origin, Reply, text_block

from ..metered import META
from ..reference import Reference, character_limit
from ..tabular import size_data
from .arguments import Wanted, read_arguments
from .budgeted import BUDGET
from .document import Document, at_offset, at_path, records_of
from .grep import as_shown, matcher, matching
from .paging import Manner, Page, longest_fitting, page_steps
from .query import Lines, TableQuery, records_in
from .scale import Scale
from .sheet import has_more
from .tools import READ
from .vault import Opened, Vault
from .wording import Reading, answered, block_shown, left_out

__all__ = ["ResultReader"]

_NO_LIMIT = 10**7
"""Tokens, where the user has set none."""
_SECONDS = 10.0
"""That SQL may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultReader:
    """Offers `read_result`."""

    vault: Vault
    rules: Callable[[], ResultRules]
    """Asked each time: the settings may change."""
    meter: Meter
    reference: Callable[[Caller], Reference]
    query: TableQuery | None = None
    """None where nobody can run SQL."""

    async def tools(self) -> Listing:
        return Listing((READ,), revision="1")

    async def call(self, call: Call) -> Reply:
        if call.tool != READ.name:
            raise UnknownTool(f"no tool is called `{call.tool}`", options=(READ.name,))
        wanted = read_arguments(call.arguments)
        opened = await self.vault.aside(partial(self.vault.open, wanted.handle, call.caller.principal))
        reading = self._reading(call, wanted, opened)
        if wanted.sql is not None:
            return await self._ask(reading, wanted.sql)
        return await self.vault.aside(lambda: drain(_read(reading)))

    def _reading(self, call: Call, wanted: Wanted, opened: Opened) -> "_Reading":
        said = call.meta.get(BUDGET)
        asked = wanted.max_tokens or (said if isinstance(said, int) and said > 0 else None)
        limit = character_limit(call.caller)
        handling = self.rules().handling(Origin(opened.header.server, opened.header.tool), asked).limited(limit)
        budget = handling.budget or _NO_LIMIT
        return _Reading(
            wanted=wanted,
            opened=opened,
            budget=budget,
            encode=handling.encode,
            scale=Scale(self.meter, self.reference(call.caller).counted_as, budget / limit if limit else 0.0),
        )

    async def _ask(self, reading: "_Reading", sql: str) -> Reply:
        if self.query is None:
            raise InvalidArguments("SQL cannot be asked here", suggestion="Use `offset`, `grep` or `path`.")
        records = await self.vault.aside(lambda: records_in(drain(reading.document())))
        answered = await self.query.ask(records.columns, records, sql, _SECONDS)
        beyond = records.footer if isinstance(records, Lines) and has_more(records.footer) else ""
        return await self.vault.aside(lambda: drain(_answer(reading, *answered, beyond)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """One call."""

    wanted: Wanted
    opened: Opened
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
        return (yield from _block(reading, document))
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


def _block(reading: _Reading, document: Document) -> Steps[Reply]:
    """One block as it was, where it fits."""
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


def _answer(
    reading: _Reading,
    columns: Sequence[str],
    rows: Sequence[Row],
    more: bool,  # noqa: FBT001 - as it was answered
    beyond: str,
) -> Steps[Reply]:
    """`beyond` is what the table that was asked says of rows that are not in it, if it does."""
    wanted = reading.wanted
    manner = Manner(kind="lines", header=row_line(columns), limit=wanted.limit, whole_only=True)
    units = ((number, row_line(rows[number])) for number in range(wanted.offset, len(rows)))
    words = answered(wanted.offset, len(rows), more=more, beyond=beyond)
    page = yield from page_steps(units, manner, words, reading.scale.weigh, reading.budget)
    return _reply(reading, replace(page, columns=len(columns), complete=page.complete and not more))
