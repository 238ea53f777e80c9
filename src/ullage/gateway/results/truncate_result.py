"""Truncates a reply to its budget.

A reply is first written in the cheapest lossless form (`recoded`). If that is still too long, blocks are kept in order
while there is room, the first text that does not fit is cut between its records or lines, and the last line names what
is left out. An image or another block that is too large is replaced by a line. Storing the rest is the caller's task.

`cut_json` shortens a JSON reply so that it stays JSON of the same shape, because programs parse it. It is first
written compactly, then loses elements from the end of its lists, and `"truncated": true` is set in it as well as in
the metadata. Long strings are shortened only if the text is too long even without any elements.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial

from ullage.options import Handling
from ullage.table import Found, Recoded, dump_value, find_table, find_table_in, recode_steps, write_path
from ullage.tokens import Steps, drain
from ullage.tool import Block, Json, Reply, text_block

from ..reply_metadata import META, inner_meta, size_data
from ..slim.schema_walk import is_small
from .held_result import LONGEST, Content, Part, Scale, is_repeated, is_worth_recoding, joined, text_of
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

__all__ = ["cut", "cut_json", "recoded"]


def recoded(reply: Reply, scale: Scale) -> Steps[Reply | None]:
    """Return the reply with its JSON in the cheapest form; None if it already has that form."""
    if not reply.content:
        return (yield from _of_structured(reply, scale))
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


def _of_structured(reply: Reply, scale: Scale) -> Steps[Reply | None]:
    """Return structured content rewritten as text, which every client shows."""
    if reply.structured is None or not is_small(reply.structured.value, values=20_000, letters=LONGEST):
        return None
    form = yield from recode_steps(reply.structured.value, scale.weigh)
    if form is None:
        return None
    return _rewritten(reply, [text_block(form.text)], find_table(form.value))


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
            if (yield from self._whole(content, self.left - reserve)):
                continue
            sheet = (yield from sheet_in(content.part)) if len(contents) == 1 else None
            if sheet is not None:
                return (yield from self._cut_sheet(content, sheet))
            if content.part.layout.kind != "block":
                return (yield from self._cut(content, is_named=content is named))
            if not (yield from self._in_its_place(content, self.left - reserve)):
                return (yield from self._finish())
        return None

    def _whole(self, content: Content, room: int) -> Steps[bool]:
        """Keep the content unchanged if it fits, and return whether it did."""
        weight = (yield from self.scale.within(content.blocks, room)) if content.blocks else None
        if weight is None:
            return False
        self._let_through(content.blocks, weight, len(content.part.layout))
        return True

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
        manner = Manner(
            kind=layout.kind,
            encode=self.encode,
            header=_header(content.part, self.left),
            whole_only=bool(self.blocks),
        )
        units = _numbered(content.part, first)
        self.page = yield from page_steps(units, manner, reading.first(), self.scale.weigh, self.left)
        self.table = None if self.blocks else _size_of_shown(content.part, self.page)
        self._let_through([text_block(self.page.text)] if self.page.text else [], self.left, self.page.next - first)

    def _in_its_place(self, content: Content, room: int) -> Steps[bool]:
        block = content.blocks[0]
        # Includes the line that is below it when it is read.
        whole = *content.blocks, text_block(block_shown(self.unit, self.total))
        weight = (yield from self.scale.within(whole, 10**9)) or 0
        what = block.get("mimeType") or block.get("type")
        line = left_out(self.handle, str(what), weight, self.unit)
        tokens = yield from self.scale.weigh(line)
        if tokens <= room:
            self._let_through([text_block(line)], tokens, 1)
        return tokens <= room

    def _let_through(self, blocks: Sequence[Block], weight: int, units: int) -> None:
        self.blocks += blocks
        self.left -= weight
        self.unit += units

    def _finish(self) -> Steps[None]:
        """Add the last line alone."""
        line = Reading(handle=self.handle, kind="block", total=self.total).first().shown(0, self.unit, False)
        text = yield from longest_fitting((line, *cut_short(self.handle)), self.scale.weigh, self.left)
        self.blocks += [text_block(text)] if text else []


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


def _size_of_shown(part: Part, page: Page) -> tuple[int, int] | None:
    """Return rows and columns of a page, of records or of lines under a heading."""
    if page.columns is not None:
        return page.shown, page.columns
    if part.layout.kind != "lines" or page.shown == 0:
        return None
    # A row that is shown only in part is not counted.
    ends = part.layout.span(page.shown - 1)[1]
    whole = ends if part.text[ends : ends + 1] in ("", "\n") else part.text.rfind("\n", 0, ends)
    found = find_table_in(part.text[: max(0, whole)])
    return None if found is None else (found.row_count, found.column_count)


def _header(part: Part, budget: int) -> str:
    layout = part.layout
    around = part.text[: layout.body[0]], part.text[layout.body[1] :]
    return header_of(part.label, write_path(layout.path), around, len(layout), budget)


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
        weights = partial(_weight_with, short, key, elements, weigh)
        fitting = bisect_right(range(len(elements) + 1), budget, key=weights)
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


def _weight_with(
    value: dict[str, Json], key: str, elements: list[Json], weigh: Callable[[str], int], count: int
) -> int:
    return weigh(dump_value(_with_first(value, key, elements, count)))


def _rows(value: Mapping[str, Json]) -> int | None:
    data = value.get("data")
    return len(data) if isinstance(data, list) else None
