"""Keeps the replies of tool calls within a token budget.

`Budgeted` passes on what fits: a small reply unchanged, JSON tables in their cheapest form, and of a large reply the
most useful head with a last line that states what was left out and how to read it. The whole reply is stored before the
shortened one is sent; if it cannot be stored, the reply is not shortened.

The definition of `read_result` is written to be short, because every request carries it.

A reply is first written in the cheapest lossless form (`recoded`). If that is still too long, blocks are kept in order
while there is room, the first text that does not fit is cut between its records or lines, and the last line names what
is left out. An image or another block that is too large is replaced by a line. Storing the rest is the caller's task.

`cut_json` shortens a JSON reply so that it stays JSON of the same shape, because programs parse it. It is first
written compactly, then loses elements from the end of its lists, and `"truncated": true` is set in it as well as in
the metadata. Long strings are shortened only if the text is too long even without any elements.
"""

import json
import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from ullage.errors import OverBudget
from ullage.options import Handling, ResultRules
from ullage.table import Found, Recoded, dump_value, find_table, find_table_in, read_pieces, recode_steps, write_path
from ullage.tokens import Count, Meter, Method, Steps, drain, patiently
from ullage.tool import Block, Call, Caller, Json, Listing, Origin, Reply, Structured, Tool, text_block

from ..merge.tool_view import Entry, MergedSource, MergedWrapper, View
from ..reply_metadata import ACCOUNT, META, Reference, Unwritten, character_limit, inner_meta, shown, size_data, weighed
from ..slim.schema_walk import is_small
from ..tool_source import definition_hash, failed, revision_of
from .held_result import (
    LONGEST,
    Content,
    Held,
    Part,
    Scale,
    contents,
    is_recodable,
    is_repeated,
    is_worth_recoding,
    joined,
    text_of,
)
from .paging import (
    Manner,
    Numbered,
    Page,
    Reading,
    Sheet,
    block_shown,
    cut_short,
    header_of,
    left_out,
    longest_fitting,
    named_by,
    page_steps,
    sheet_in,
    whole_rows,
)
from .result_store import NotStored, Vault

if TYPE_CHECKING:
    from .shape_memory import ShapeMemory

__all__ = ["BUDGET", "READ", "Budgeted", "cut", "cut_json", "recoded"]


def recoded(reply: Reply, scale: Scale) -> Steps[Reply | None]:
    """Return the reply with its JSON in the cheapest form; None if it already has that form."""
    if not reply.content:
        # Structured content alone becomes text, which every client shows.
        if reply.structured is None or not is_small(reply.structured.value, values=20_000, letters=LONGEST):
            return None
        form = yield from recode_steps(reply.structured.value, scale.weigh)
        return None if form is None else _rewritten(reply, [text_block(form.text)], find_table(form.value))
    together = joined(reply.content)
    texts = [text_of(block) for block in reply.content] if together is None else [together]
    forms = list[Recoded | None]()
    for text in texts:
        forms.append((yield from recode_steps(text, scale.weigh)) if text and is_worth_recoding(text) else None)
    if not any(forms) or not (yield from is_repeated(reply)):
        return None
    only = forms[0] if len(forms) == 1 else None
    blocks = [
        block if form is None else _with_text(block, form.text)
        for block, form in zip(reply.content, forms, strict=False)
    ]
    return _rewritten(reply, blocks, None if only is None else find_table(only.value))


def _rewritten(reply: Reply, blocks: Sequence[Block], found: Found | None) -> Reply:
    """Return the reply with other blocks, without structured content, and with the metadata of the table it
    contained."""
    inner = inner_meta(reply)
    changed = replace(reply, content=tuple(blocks), structured=None)
    if found is None or "data" in inner:
        return changed
    data = size_data(found.row_count, found.column_count)
    return replace(changed, meta={**reply.meta, META: {**inner, "data": data}})


def _with_text(block: Block, text: str) -> Block:
    resource = block.get("resource")
    if block.get("type") == "resource" and isinstance(resource, dict):
        return {**block, "resource": {**resource, "text": text}}
    return {**block, "text": text}


@dataclass(slots=True, kw_only=True)
class _Cutting:
    handle: str
    scale: Scale
    encode: bool
    left: int
    """Tokens left of the budget."""
    total: int
    """Number of units in the whole reply."""
    blocks: list[Block] = field(default_factory=list[Block])
    unit: int = 0
    """The first unit that is left out."""
    page: Page | None = None
    """The page of the text that was cut; its last line names everything left out."""
    table: tuple[int, int] | None = None
    """Rows and columns shown, if the text is a table."""

    def run(self, contents: Sequence[Content], named: Content | None) -> Steps[None]:
        last = Reading(handle=self.handle, kind="records", total=self.total)
        reserve = yield from self.scale.weigh(last.first().shown(self.total, self.total, False))
        for content in contents:
            room = self.left - reserve
            weight = (yield from self.scale.within(content.blocks, room)) if content.blocks else None
            if weight is not None:
                self._let_through(content.blocks, weight, len(content.part.layout))
                continue
            sheet = (yield from sheet_in(content.part)) if len(contents) == 1 else None
            if sheet is not None:
                return (yield from self._cut_sheet(content, sheet))
            if content.part.layout.kind != "block":
                return (yield from self._cut(content, is_named=content is named))
            block = content.blocks[0]
            # Includes the line that is below it when it is read.
            whole = *content.blocks, text_block(block_shown(self.unit, self.total))
            weight = (yield from self.scale.within(whole, 10**9)) or 0
            what = block.get("mimeType") or block.get("type")
            line = left_out(self.handle, str(what), weight, self.unit)
            tokens = yield from self.scale.weigh(line)
            if tokens > room:
                last_line = Reading(handle=self.handle, kind="block", total=self.total).first()
                shown = last_line.shown(0, self.unit, False), *cut_short(self.handle)
                text = yield from longest_fitting(shown, self.scale.weigh, self.left)
                self.blocks += [text_block(text)] if text else []
                return None
            self._let_through([text_block(line)], tokens, 1)
        return None

    def _cut_sheet(self, content: Content, sheet: Sheet) -> Steps[None]:
        """Cut between whole rows; between lines if not even one row fits."""
        reading = Reading(
            handle=self.handle,
            kind="lines",
            rows=sheet.rows,
            footer=sheet.footer,
            has_paths=content.part.layout.is_json,
        )
        manner, rows = (
            Manner(kind="lines", header=sheet.heading, whole_only=True),
            whole_rows(_numbered(content.part, 0)),
        )
        page = yield from page_steps(rows, manner, reading.first(), self.scale.weigh, self.left)
        if not page.shown:
            yield from self._cut(content, is_named=False, footer=sheet.footer)
        else:
            self.page = page
            self._let_through([text_block(page.text)], self.left, self.total if page.complete else page.next)
        self.table = page.shown, sheet.columns

    def _cut(self, content: Content, *, is_named: bool, footer: str = "") -> Steps[None]:
        first, layout = self.unit, content.part.layout
        end = first + len(layout)
        reading = Reading(
            handle=self.handle,
            kind=layout.kind,
            total=self.total,
            named=named_by(layout.path, first) if is_named and layout.kind == "records" else None,
            rest=end if end < self.total else None,
            has_paths=layout.is_json,
            footer=footer,
        )
        around = content.part.text[: layout.body[0]], content.part.text[layout.body[1] :]
        header = header_of(content.part.label, write_path(layout.path), around, len(layout), self.left)
        manner = Manner(
            kind=layout.kind,
            encode=self.encode,
            header=header,
            whole_only=bool(self.blocks),
        )
        units = _numbered(content.part, first)
        self.page = yield from page_steps(units, manner, reading.first(), self.scale.weigh, self.left)
        if self.blocks:
            self.table = None
        else:
            part, page = content.part, self.page
            if page.columns is not None:
                self.table = page.shown, page.columns
            elif part.layout.kind != "lines" or page.shown == 0:
                self.table = None
            else:
                # A row that is shown only in part is not counted.
                ends = part.layout.span(page.shown - 1)[1]
                whole = ends if part.text[ends : ends + 1] in ("", "\n") else part.text.rfind("\n", 0, ends)
                found = find_table_in(part.text[: max(0, whole)])
                self.table = None if found is None else (found.row_count, found.column_count)
        self._let_through([text_block(self.page.text)] if self.page.text else [], self.left, self.page.next - first)

    def _let_through(self, blocks: Sequence[Block], weight: int, units: int) -> None:
        self.blocks += blocks
        self.left -= weight
        self.unit += units


def cut(reply: Reply, contents: Sequence[Content], handle: str, scale: Scale, handling: Handling) -> Steps[Reply]:
    """Return what fits of a reply whose contents are stored under the handle."""
    total = sum(len(content.part.layout) for content in contents)
    work = _Cutting(handle=handle, scale=scale, encode=handling.encode, left=handling.budget or 0, total=total)
    named = next((content for content in contents if content.part.layout.is_json), None)
    yield from work.run(contents, named)
    shown = replace(reply, content=tuple(work.blocks), structured=None)
    return _described(shown, handle, work, is_cut=work.unit < total)


def _described(reply: Reply, handle: str, work: _Cutting, *, is_cut: bool) -> Reply:
    inner = dict(inner_meta(reply))
    data, page = inner.get("data"), work.page
    if isinstance(data, dict):
        rows = data.get("rowCount")
        most = work.table[0] if work.table else max(0, page.shown - 1) if page else None
        shown = {} if most is None or not isinstance(rows, int) else {"rowCount": min(rows, most)}
        inner["data"] = {**data, **shown, "truncated": is_cut or data.get("truncated") is True}
    elif work.table:
        inner["data"] = size_data(*work.table, truncated=is_cut)
    return replace(reply, meta={**reply.meta, META: {**inner, "handle": handle}})


def _numbered(part: Part, first: int) -> Iterator[Numbered]:
    for unit in range(len(part.layout)):
        yield first + unit, part.layout.unit(part.text, unit)


_COUNTS = {"data": "rowCount"}
"""For a list's key, the key of its element count."""
_TRUNCATED = "truncated"
_LEAST: Mapping[str, Json] = {_TRUNCATED: True}


def cut_json(reply: Reply, handle: str, scale: Scale, budget: int) -> Steps[Reply]:
    """Return the longest version of a JSON reply within the budget.

    Args:
        reply: Its text is a JSON object; `json_lists` names the lists to shorten.
        handle: The handle that the whole reply is stored under.
        scale: Counts tokens.
        budget: In tokens.

    Raises:
        ValueError: The reply's text is not a JSON object, although its source declared it.
    """
    value: dict[str, Json] = json.loads(str(reply.content[0]["text"]), parse_float=Decimal)
    whole = dump_value(value)
    if (yield from scale.weigh(whole)) <= budget:
        return _json_cut_rewritten(reply, whole)
    short, shown = _shortened(value, reply.json_lists or (), lambda text: drain(scale.weigh(text)), budget)
    changed = _json_cut_rewritten(reply, dump_value(dict(short)))
    inner = dict(inner_meta(reply))
    data = inner.get("data")
    if isinstance(data, dict):
        inner["data"] = {**data, **({} if shown is None else {"rowCount": shown}), "truncated": True}
    else:
        inner["data"] = {"truncated": True}
    return replace(changed, meta={**reply.meta, META: {**inner, "handle": handle}})


def _json_cut_rewritten(reply: Reply, text: str) -> Reply:
    return replace(reply, content=(text_block(text),), structured=None)


def _shortened(
    value: dict[str, Json], lists: tuple[str, ...], weigh: Callable[[str], int], budget: int
) -> tuple[Mapping[str, Json], int | None]:
    """Return the value with as many elements as fit, and the number of rows then in `data`."""
    short: dict[str, Json] = {**value, _TRUNCATED: True}
    for key in lists:
        elements = short.get(key)
        if not isinstance(elements, list):
            continue
        make = partial(_with_first, short, key, elements)
        fitting = bisect_right(range(len(elements) + 1), budget, key=lambda count: weigh(dump_value(make(count))))
        short = _with_first(short, key, elements, max(0, fitting - 1))
        if fitting:
            return short, _rows(short)
    for longest in (200, 20, 0):
        cut: dict[str, Json] = {key: one[:longest] if isinstance(one, str) else one for key, one in short.items()}
        if weigh(dump_value(cut)) <= budget:
            return cut, _rows(cut)
    return _LEAST, 0


def _with_first(value: dict[str, Json], key: str, elements: list[Json], count: int) -> dict[str, Json]:
    counter = _COUNTS.get(key)
    counted: dict[str, Json] = {counter: count} if counter is not None and counter in value else {}
    return {**value, **counted, key: elements[:count]}


def _rows(value: Mapping[str, Json]) -> int | None:
    data = value.get("data")
    return len(data) if isinstance(data, list) else None


_LOADED: dict[str, Json] = {"_meta": {"anthropic/alwaysLoad": True}}
"""Makes Claude Code load the tool at once instead of deferring it, like `find_tool` and `call_tool`. No client shows
this to its model."""

READ = Tool(
    name="read_result",
    description=(
        "Read more of a cut result: from offset, by grep (regex), JSON path, or SQL on table `result` and other "
        "handles; sql=schema."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "handle": {"type": "string"},
            "offset": {"type": "integer"},
            "limit": {"type": "integer"},
            "grep": {"type": "string"},
            "path": {"type": "string"},
            "sql": {"type": "string"},
            "max_tokens": {"type": "integer"},
        },
        "required": ["handle"],
    },
    annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    extra=_LOADED,
)

_log = logging.getLogger(__name__)

BUDGET = "dev.ullage/budget"
"""Key in a call's `meta`: the most tokens that its caller wants back."""
_OWN_BUDGET = "max_tokens"
"""Name of the argument for the budget in Ullage's own tools."""
_LONG = 50_000
"""Bytes above which a reply is handled in a worker thread."""
_DEEPEST = 500
"""Maximum nesting of such a text."""
_LONGEST_COUNTED = 400_000
"""Most characters of a shortened reply that are counted for the ledger; a longer one is estimated."""
_VALUES = 2_000
"""Most values of structured content that are handled on the event loop."""
_BAND = 16
_ERROR = 8_000
"""Most bytes of one of Ullage's own errors that is passed on whole, whatever the budget."""


@dataclass(slots=True, kw_only=True)
class Budgeted(MergedWrapper):
    """Wraps merged sources; keeps every result within a budget."""

    inner: MergedSource
    rules: Callable[[], ResultRules]
    """Called for each request, because the settings may change."""
    vault: Vault
    meter: Meter
    reference: Callable[[Caller], Reference]
    whole: Callable[[], tuple[str, ...]] = tuple[str, ...]
    """Returns the tools, by listed names or patterns, whose results this client gets as their source sent them."""
    shapes: Callable[[], "ShapeMemory | None"] = lambda: None
    """Returns what learns from replies what tools return; None where nothing is to be learnt."""
    _seen: tuple[View, ResultRules, tuple[str, ...], View] | None = field(default=None, repr=False)
    """The last inner view, its rules, the client's whole tools, and the view derived from them."""

    async def tools(self) -> Listing:
        tools = (await self.view()).listing.tools
        return Listing(tools, revision_of(map(definition_hash, tools)))

    async def view(self, wait: float = 0.0) -> View:
        """Return the view, with an `outputSchema` only for tools whose results are never shortened: a shortened
        result would not satisfy it."""
        view, rules, whole = await self.inner.view(wait), self.rules(), self.whole()
        seen = self._seen
        if seen is None or seen[0] is not view or seen[1] is not rules or seen[2] != whole:
            entries = tuple(_promised(entry, rules, whole) for entry in view.entries)
            changed = [entry.listed for entry, before in zip(entries, view.entries, strict=True) if entry is not before]
            if not changed:
                promised = view
            else:
                promised = replace(view, entries=entries, revision=revision_of([view.revision, json.dumps(changed)]))
            seen = self._seen = view, rules, whole, promised
        return seen[3]

    async def call_entry(self, entry: Entry, call: Call) -> Reply:
        """Run a call and shorten its result to the budget, storing the whole."""
        if whole := self.whole():
            has_budget = BUDGET in call.meta or _OWN_BUDGET in call.arguments
            call = (
                call
                if has_budget or not _matches(entry.listed, whole)
                else replace(call, meta={**call.meta, BUDGET: 0})
            )
        reply = await self.inner.call_entry(entry, call)
        origin = reply.origin or Origin(entry.server, entry.original)
        is_own = any(member.own and member.name == origin.server for member in self.inner.members)
        if not is_own and reply.needs is None and (shapes := self.shapes()) is not None:
            shapes.observe(call.caller.principal, reply, self._definition)
        if reply.needs is not None or (is_own and (origin.tool == READ.name or _is_short_error(reply))):
            return reply
        limit = character_limit(call.caller)
        handling = self.rules().handling(origin, _asked(call, is_own=is_own)).limited(limit)
        if reply.json_lists is not None:
            handling = replace(handling, encode=False)
        if handling.is_for_program and is_own:
            reply = await _with_structure(reply)
        size = _size(reply)
        if handling.is_whole or (size is not None and _is_small(reply, size, handling)):
            return reply
        counted_as, budget = self.reference(call.caller).counted_as, handling.budget
        scale = Scale(self.meter, counted_as, budget / limit if budget and limit else 0.0)
        work = _settled(reply, handling, scale)
        is_long = size is None or size > _LONG
        settled, fits = await (self.vault.aside(lambda: drain(work)) if is_long else patiently(work))
        if fits:
            if settled is reply:
                return reply
            return _accounted(settled, await patiently(weighed(reply, self.meter, counted_as)))
        held = _Holding(principal=call.caller.principal, origin=origin, scale=scale, handling=handling)
        if handling.is_for_program and limit is None:
            return await self.vault.aside(lambda: self._refuse(reply, held))
        return await self.vault.aside(lambda: self._cut(reply, settled, held))

    async def _definition(self, origin: Origin) -> Tool | None:
        """Return the definition of a server's tool under its own name; None if it is not listed."""
        view = await self.inner.view()
        found = (one for one in view.entries if one.original == origin.tool and one.server == origin.server)
        entry = next(found, None)
        return None if entry is None else replace(entry.tool, name=entry.original)

    def _cut(self, reply: Reply, settled: Reply, held: "_Holding") -> Reply:
        """Store a reply and return what fits of it. Runs in a thread."""

        found = drain(contents(reply))
        parts = tuple(content.part for content in found)
        origin = held.origin
        try:
            handle = self.vault.keep(
                Held(principal=held.principal, server=origin.server, tool=origin.tool, parts=parts)
            )
        except NotStored:
            _log.warning("a result of `%s` is passed on whole: there is no room to keep it", origin.tool)
            return settled
        baseline = _whole_weight(reply, [part.text for part in parts], self.meter, held.scale.model)
        if reply.json_lists is not None:
            return _accounted(drain(cut_json(reply, handle, held.scale, held.handling.budget or 0)), baseline)
        return _accounted(drain(cut(reply, found, handle, held.scale, held.handling)), baseline)

    def _refuse(self, reply: Reply, held: "_Holding") -> Reply:
        """Store a whole reply over the user's ceiling, and return an error with its handle: a program could not tell
        a part of it from the whole. Runs in a thread."""
        parts = tuple(content.part for content in drain(contents(reply)))
        origin, ceiling = held.origin, held.handling.budget
        tokens = _whole_weight(reply, [part.text for part in parts], self.meter, held.scale.model)
        how = "Ask for less, or lift `results.ceiling` in the user's ullage.toml."
        try:
            kept = Held(principal=held.principal, server=origin.server, tool=origin.tool, parts=parts)
            handle = self.vault.keep(kept)
            how = f'Read it in parts: read_result(handle="{handle}", …). {how}'
        except NotStored:
            handle = ""
        error = OverBudget(
            f"the whole result has {tokens.tokens:,} tokens, more than the {ceiling:,} that the user allows",
            suggestion=how,
            options=(handle,) if handle else (),
        )
        refused = failed(error)
        meta: dict[str, Json] = {**refused.meta, **({META: {"handle": handle}} if handle else {})}
        return _accounted(replace(refused, origin=origin, meta=meta), tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holding:
    """The principal, origin and scale that a reply is stored with."""

    principal: str
    origin: Origin
    scale: Scale
    handling: Handling


def _accounted(reply: Reply, baseline: Count) -> Reply:
    """Return the reply with its tokens before shortening, for the ledger."""
    account: dict[str, Json] = {"baseline": baseline.tokens, "method": baseline.method.value}
    return replace(reply, meta={**reply.meta, ACCOUNT: account})


def _whole_weight(reply: Reply, texts: Sequence[str], meter: Meter, model: str) -> Count:
    """Count the tokens of a reply; those of a very long one are estimated from the head of its texts."""
    length = sum(map(len, texts))
    if length <= _LONGEST_COUNTED:
        return drain(weighed(reply, meter, model))
    head = "\n".join(texts)[:_LONGEST_COUNTED]
    tokens = round(meter.count(head, model).tokens * length / len(head))
    return Count(tokens=tokens, method=Method.ESTIMATED, low=tokens * 3 // 4, high=tokens * 5 // 4)


def _is_short_error(reply: Reply) -> bool:
    """Return whether a reply is a short error, which is useless if cut. A long error quotes a database and is
    treated as any other reply."""
    return reply.is_error and (_size(reply) or _ERROR) < _ERROR


def _size(reply: Reply) -> int | None:
    """Return an upper bound of the bytes shown; None if that is not easily known."""
    if reply.structured is not None and not is_small(reply.structured.value, values=_VALUES, letters=_LONG):
        return None
    size = 0
    for part in shown(reply):
        if not isinstance(part, str):
            return None
        size += _bytes(part)
    if reply.content and reply.structured is not None:
        # Some clients show their model this alone.
        size = max(size, _bytes(drain(Unwritten(reply.structured.value).text())))
    return size


def _bytes(text: str) -> int:
    """Return an upper bound of the text's bytes."""
    return len(text) * (1 if text.isascii() else 4)


def _is_small(reply: Reply, size: int, handling: Handling) -> bool:
    """Return whether a reply certainly fits and cannot be shortened.

    No text has more tokens than bytes, but the upper edge of an estimate may exceed that.
    """
    if handling.budget is not None and 2 * size + _BAND > handling.budget:
        return False
    return not handling.encode or not is_recodable(reply)


def _settled(reply: Reply, handling: Handling, scale: Scale) -> Steps[tuple[Reply, bool]]:
    """Return the reply in the form in which it would be passed on whole, and whether it fits."""

    changed = (yield from recoded(reply, scale)) if handling.encode else None
    settled = reply if changed is None else changed
    if handling.budget is None:
        return settled, True
    fits = (yield from scale.within(settled, handling.budget)) is not None
    if fits and settled.content and settled.structured is not None:
        # Some clients show their model this alone.
        fits = (yield from scale.within(Reply(structured=settled.structured), handling.budget)) is not None
    return settled, fits


def _promised(entry: Entry, rules: ResultRules, whole: tuple[str, ...]) -> Entry:
    if entry.tool.output_schema is None or _matches(entry.listed, whole):
        return entry
    if rules.handling(Origin(entry.server, entry.original)).keeps_structure:
        return entry
    return replace(entry, tool=replace(entry.tool, output_schema=None), declared=entry.tool.output_schema)


def _asked(call: Call, *, is_own: bool) -> int | None:
    """Return the caller's own budget: beside the call, or among the arguments of Ullage's own tools."""
    said = [call.meta.get(BUDGET), *([call.arguments.get(_OWN_BUDGET)] if is_own else [])]
    return next((one for one in said if isinstance(one, int) and not isinstance(one, bool) and one >= 0), None)


def _matches(listed: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(listed, pattern) for pattern in patterns)


async def _with_structure(reply: Reply) -> Reply:
    """Return a reply of Ullage's own whose text is a JSON object with that object as structured content, as programs
    read it."""
    text = str(reply.content[0].get("text", "")) if len(reply.content) == 1 else ""
    if reply.structured is not None or reply.is_error or text[:1] != "{":
        return reply
    try:
        value: Json = (
            await anyio.to_thread.run_sync(read_pieces, text, _DEEPEST) if len(text) > _LONG else json.loads(text)
        )
    except (ValueError, RecursionError):
        return reply
    return replace(reply, structured=Structured(value)) if isinstance(value, dict) else reply
