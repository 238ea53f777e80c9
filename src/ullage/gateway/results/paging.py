"""Pages of a result that fit a token budget.

The longest row of whole units that fits with what stands above and below it: records as a table where that is
cheaper, else a line each. Only a unit that is too large by itself is cut, at the best place there is, and the last
line says so. The budget is exact by the scale that is given. What the last line says otherwise is the caller's
affair.

A long line is kept in parts (`layout`), each known as `Continued` but the first. Whoever looks for something in it, or
reads it as a row, wants the line. What is looked for is not known here.

How much is shown of how much, and how to get the rest, in as few words as a model needs: this is read with every
result that was cut. Nothing is counted here.

The last line says what no row does, above all that the database had more rows, so it must be seen however few rows
are. It is known by its words and by its count, which must be that of the lines above it. What is shown of the rows is
decided elsewhere.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice, pairwise
from typing import Any

from ullage.errors import BadInput
from ullage.table import (
    ABSENT,
    Absent,
    Cell,
    Continued,
    Path,
    WeighSteps,
    each_once,
    find_table,
    fit_steps,
    read_row,
    row_line,
    write_path,
)
from ullage.tokens import Steps

from .held_result import Kind, Part, boundary

__all__ = [
    "LineTooLong",
    "Manner",
    "Numbered",
    "Page",
    "Reading",
    "Sheet",
    "Words",
    "answered",
    "block_shown",
    "compact",
    "cut_short",
    "footer_rows",
    "has_more",
    "header_of",
    "left_out",
    "lines_of_parts",
    "longest_fitting",
    "named_by",
    "page_steps",
    "rejoined",
    "sheet_in",
    "whole_rows",
]

Numbered = tuple[int, str]
"""A unit with its number."""

_NUMBER = "#"
"""The column of the records' numbers."""
_PER_TOKEN = 16
"""Characters looked at for each token of the budget, at first."""
_ROUNDS = 2
"""In each of which four times as many are looked at, where all of them fitted."""
_LONGEST = _PER_TOKEN * 4**_ROUNDS
"""Characters for each token of the budget, above which a unit is too large without its being weighed."""
_SAMPLE = 20
"""Records on which it is decided whether a table is cheaper."""
_STRIDE = 1_000
"""Units taken before others are let in."""
_SHARE = 4
"""The part of a budget that what surrounds records may take."""
_SURROUNDING = 200_000
"""Characters of what surrounds records, up to which it is read for its keys."""
_MOST_KEYS = 20
_CUT = "…"
_WHITE = re.compile(r'("(?:[^"\\]++|\\.)*+(?:"|\Z))|[ \t\r\n]+', re.DOTALL)
"""A JSON string, even where its end is cut off, or space that is in none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What the last line says."""

    shown: Callable[[int, int, bool], str]
    """Given how many units are shown, the number of the next, and whether they are all; empty for nothing."""
    cut: Callable[[int], str] = lambda number: ""
    """Given the number of a unit of which only the beginning is shown, where that may be."""
    shorter: Callable[[int], Sequence[str]] = lambda number: ()
    """What to say where there is no room for that and no unit is shown, given the number of the first: from long to
    short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    text: str
    shown: int
    """Units, one that was cut included."""
    next: int
    """The number of the unit to go on with."""
    complete: bool
    """Whether nothing is left."""
    columns: int | None = None
    """Where its units are rows of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """What a page is made from."""

    kind: Kind
    header: str = ""
    """What stands above the units."""
    encode: bool = False
    """Whether records may be written as a table."""
    numbered: bool = False
    """Whether each unit shows its number."""
    limit: int | None = None
    """Units, at most."""
    whole_only: bool = False
    """Whether a unit that is too large is not even begun."""


def page_steps(units: Iterator[Numbered], manner: Manner, words: Words, weigh: WeighSteps, budget: int) -> Steps[Page]:
    return (yield from _Paging(manner, words, weigh, budget, units).page())


@dataclass(frozen=True, slots=True)
class _Form:
    header: str
    lines: Sequence[str]
    columns: int | None = None


@dataclass(slots=True)
class _Paging:
    manner: Manner
    words: Words
    weigh: WeighSteps
    budget: int
    units: Iterator[Numbered]
    taken: list[Numbered] = field(default_factory=list[Numbered])
    behind: Numbered | None = None
    """The unit behind those taken, where there is one."""

    def page(self) -> Steps[Page]:
        self.behind = next(self.units, None)
        characters = _PER_TOKEN * self.budget
        page = yield from self._of(characters)
        for _ in range(_ROUNDS):
            if self.behind is None or page.shown < len(self.taken) or len(self.taken) == self.manner.limit:
                break
            characters *= 4
            page = yield from self._of(characters)
        return page

    def _of(self, characters: int) -> Steps[Page]:
        yield from self._take(characters)
        return (yield from self._fitted())

    def _take(self, characters: int) -> Steps[None]:
        size = sum(len(unit) for _, unit in self.taken)
        while self.behind is not None and size <= characters and len(self.taken) != self.manner.limit:
            if self.taken and self._is_too_long(self.behind[1]):
                return
            self.taken.append(self.behind)
            size += len(self.behind[1])
            self.behind = next(self.units, None)
            if len(self.taken) % _STRIDE == 0:
                yield

    def _is_too_long(self, unit: str) -> bool:
        return len(unit) > _LONGEST * self.budget

    def _fitted(self) -> Steps[Page]:
        if self.taken and self._is_too_long(self.taken[0][1]):
            return (yield from self._beginning(*self.taken[0]))
        form = yield from self._form()

        def footer(rows: int, is_all: bool) -> str:  # noqa: FBT001 - as `fit_steps` calls it
            return self.words.shown(rows, self._next(rows), is_all and self.behind is None)

        header = "\n".join(filter(None, (self.manner.header, form.header)))
        fitted = yield from fit_steps(header, form.lines, footer, self.weigh, self.budget)
        if fitted.rows == 0 and self.taken and not self.manner.whole_only:
            return (yield from self._beginning(*self.taken[0]))
        if not fitted.rows and not fitted.complete and not fitted.text.endswith(footer(0, False)):
            return (yield from self._none(self._next(0)))
        return Page(
            text=fitted.text,
            shown=fitted.rows,
            next=self._next(fitted.rows),
            complete=fitted.complete and self.behind is None,
            columns=form.columns,
        )

    def _next(self, rows: int) -> int:
        if rows:
            return self.taken[rows - 1][0] + 1
        return self.taken[0][0] if self.taken else 0

    def _form(self) -> Steps[_Form]:
        table = _table(self.taken, self.manner) if self.manner.kind == "records" else None
        yield
        lines = [_line(number, unit, self.manner) for number, unit in self.taken]
        # The first stands on a line of its own, wherever it began.
        plain = _Form("", [*map(str, lines[:1]), *lines[1:]], None if table is None else table.columns)
        yield
        if table is None or not self.manner.encode:
            return plain
        tried = "\n".join([table.header, *table.lines[:_SAMPLE]])
        cheaper = (yield from self.weigh(tried)) < (yield from self.weigh("\n".join(plain.lines[:_SAMPLE])))
        return table if cheaper else plain

    def _beginning(self, number: int, unit: str) -> Steps[Page]:
        """As much of one unit as fits."""
        if self.manner.whole_only:
            return (yield from self._none(number))
        text, note = _line(number, unit[: _LONGEST * self.budget], self.manner), self.words.cut(number)
        low, high = 0, min(len(text), _PER_TOKEN * self.budget) + 1
        while high - low > 1:
            middle = (low + high) // 2
            weight = yield from self.weigh(f"{text[:middle]}{_CUT}\n{note}")
            low, high = (middle, high) if weight <= self.budget else (low, middle)
        for end in (boundary(text, 0, low, is_json=self.manner.kind == "records"), low):
            shown = f"{text[:end]}{_CUT}\n{note}"
            if end and (yield from self.weigh(shown)) <= self.budget:
                return Page(text=shown, shown=1, next=number + 1, complete=False)
        return (yield from self._none(number))

    def _none(self, number: int) -> Steps[Page]:
        """The last line alone."""
        forms = self.words.shown(0, number, False), *self.words.shorter(number)
        text = yield from longest_fitting(forms, self.weigh, self.budget)
        return Page(text=text, shown=0, next=number, complete=False)


def longest_fitting(forms: Iterable[str], weigh: WeighSteps, budget: int) -> Steps[str]:
    """The first of them that fits; else nothing, since half a line misleads."""
    for form in forms:
        if (yield from weigh(form)) <= budget:
            return form
    return ""


def header_of(label: str, path: str, around: tuple[str, str], count: int, budget: int) -> str:
    """What stands above the first record: the rest of the document where that is short, else how to get it, and where
    the records are."""
    lines = [label] if label else []
    if path:
        lines += [_rest("".join(around), budget // _SHARE * 3), f"{path}[{count}]:"]
    return "\n".join(lines)


def _rest(around: str, room: int) -> str:
    """Short, as it is; else its keys, as many as there is room for."""
    rest = compact(around) if len(around) <= _SURROUNDING else around
    if len(rest) <= room:
        return rest
    outer: dict[str, Any] = json.loads(rest) if len(rest) <= _SURROUNDING else {}
    named, size = list[str](), 0
    for name in [write_path((key,)) for key, value in outer.items() if value != []][:_MOST_KEYS]:
        size += len(name) + 2
        named += [name] if size <= room else []
    return f"[more beside these, by path{': ' if named else ''}{', '.join(named)}]"


def _line(number: int, unit: str, manner: Manner) -> str:
    text = compact(unit) if manner.kind == "records" else unit
    return f"{number}: {text}" if manner.numbered else text


def compact(text: str) -> str:
    """JSON without the space between its marks; every value stays as it is written."""
    return _WHITE.sub(r"\1", text) if "\n" in text or ": " in text or ", " in text else text


def _table(taken: Sequence[Numbered], manner: Manner) -> _Form | None:
    """None where they are no rows, or would not all be shown by being written as such."""
    try:
        return _rows(taken, manner)
    except (ValueError, RecursionError):
        return None


def _rows(taken: Sequence[Numbered], manner: Manner) -> _Form | None:
    # Digit by digit, since a float would round.
    records: list[Any] = [json.loads(unit, parse_float=Decimal, object_pairs_hook=each_once) for _, unit in taken]
    found = find_table(records)
    if found is None or not isinstance(records[0], dict):
        return None
    lines = [
        _row(*([number] if manner.numbered else []), *(record.get(key, ABSENT) for key in found.columns))
        for (number, _), record in zip(taken, records, strict=True)
    ]
    return _Form(_row(*([_NUMBER] if manner.numbered else []), *found.columns), lines, found.column_count)


def _row(*cells: Cell | Absent) -> str:
    return row_line(cells, typed=True)


_LONGEST_ROW = 4_000_000
"""Characters of one row. Joining, reading and freeing more would each hold up others."""
_MOST = 250
"""Parts of a line that are taken together."""
_AGAIN = 8
"""Of those, that are taken with the next ones too, so that what lies across is found."""


class LineTooLong(ValueError):
    """A line has more characters than a row may have."""


def rejoined(units: Iterable[Numbered]) -> Iterator[Numbered]:
    """Each line whole, under the number of its last unit; raises `LineTooLong` for one that cannot be a row."""
    parts, last, length = list[str](), 0, 0
    for number, unit in units:
        if parts and not isinstance(unit, Continued):
            yield last, "".join(parts)
            parts, length = [], 0
        parts.append(unit)
        last = number
        length += len(unit)
        if length > _LONGEST_ROW:
            raise LineTooLong
    if parts:
        yield last, "".join(parts)


def lines_of_parts(units: Iterable[Numbered]) -> Iterator[Sequence[Numbered]]:
    """The parts of each line; those of a very long one by and by, the last of them again with the next."""
    parts = list[Numbered]()
    for one in units:
        if parts and not isinstance(one[1], Continued):
            yield parts
            parts = []
        elif len(parts) == _MOST:
            yield parts
            parts = parts[-_AGAIN:]
        parts.append(one)
    if parts:
        yield parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is being read, as far as the last line speaks of it."""

    handle: str
    kind: Kind
    total: int | None = None
    """Units in all; None where nobody has counted them."""
    named: Callable[[int], str] | None = None
    """The path of a unit, where it has one."""
    has_paths: bool = True
    """Whether it is JSON."""
    rest: int | None = None
    """The unit to go on with behind these; None where there is none."""
    rows: int | None = None
    """In all, where the units are whole rows of one of our tables."""
    footer: str = ""
    """What that table says of itself, to stand above the last line."""

    def first(self) -> Words:
        """On the reply that was cut."""

        def shown(rows: int, following: int, is_all: bool) -> str:  # noqa: FBT001 - one of three plain facts
            onward = self.rest if is_all else following
            return self.footer if onward is None else self._above + self._shown(rows, onward)

        def shorter(number: int) -> tuple[str, ...]:
            return self._shown(0, number), *cut_short(self.handle)

        return Words(shown=shown, cut=lambda number: self._above + self._cut(number), shorter=shorter)

    def _shown(self, rows: int, onward: int) -> str:
        has_sql = self.kind == "records" or bool(self.footer)
        ways = ", ".join(["grep", *["path"][: self.has_paths], *["sql"][:has_sql]])
        how = f'read_result(handle="{self.handle}", offset={onward}) for more; {ways} to search'
        what = f"{onward}{self._among} {_noun(self.kind)}" if self.rows is None else f"{rows} of {self.rows} rows"
        return f"[{what} shown: {how}]"

    @property
    def _above(self) -> str:
        return f"{self.footer}\n" if self.footer else ""

    def further(self, begun: int) -> Words:
        """On a page that was asked for from a unit on."""

        def shown(rows: int, following: int, is_all: bool) -> str:  # noqa: FBT001
            if is_all and self.rest is None and begun == 0 and rows > 0:
                return "" if rows == 1 else f"[all {rows} {_noun(self.kind)}]"
            if not rows and not is_all:
                return f"[{_noun(self.kind, 1)} {following}{self._among} does not fit: give a larger max_tokens]"
            where = f"{_noun(self.kind)} {begun}–{following - 1}" if rows else f"no {_noun(self.kind)} from {begun} on"
            return f"[{where}{self._among}; {self._more(following, is_all)}]"

        return Words(shown=shown, cut=self._cut, shorter=_larger)

    def found(self, note: str = "") -> Words:
        """On what was searched for."""

        def shown(rows: int, following: int, is_all: bool) -> str:  # noqa: FBT001
            return f"[{rows} {_noun(self.kind, rows)} found{note}; {self._more(following, is_all)}]"

        return Words(shown=shown, cut=self._cut, shorter=_larger)

    def _more(self, following: int, is_all: bool) -> str:  # noqa: FBT001
        onward = self.rest if is_all else following
        return "no more" if onward is None else f"offset={onward} for more"

    @property
    def _among(self) -> str:
        return "" if self.total is None else f" of {self.total}"

    def _cut(self, number: int) -> str:
        whole = f"offset={number} and a larger max_tokens" if self.named is None else _path(self.named(number))
        more = f'read_result(handle="{self.handle}", offset={number + 1}) for more'
        return f"[{_noun(self.kind, 1)} {number}{self._among} is cut here: {more}, {whole} for all of it]"


def answered(begun: int, total: int, *, more: bool, beyond: str) -> Words:
    """On an answer to SQL that has so many rows, shown from one on; `more` where there were further ones, `beyond`
    where the table that was asked says that it does not hold all."""
    known = f"; asked of {beyond.removeprefix('-- ')}" if beyond else ""

    def shown(rows: int, following: int, is_all: bool) -> str:  # noqa: FBT001
        if not rows and not is_all:
            return f"[row {begun} of {total} does not fit: use substr() or fewer columns, or a larger max_tokens]"
        if not is_all:
            return f"[rows {begun}–{following - 1} of {total}; same sql with offset={following} for more{known}]"
        further = "; there are more: use LIMIT and OFFSET" if more else ""
        return f"[{rows} row{'' if rows == 1 else 's'}{further}{known}]"

    return Words(shown=shown, shorter=_larger)


def cut_short(handle: str) -> tuple[str, str]:
    """That there is more, where there is no room to say how much."""
    return f'[cut: read_result(handle="{handle}")]', f"[cut: read_result {handle}]"


def _larger(number: int) -> tuple[str]:
    return (f"[{number}: give a larger max_tokens]",)


def named_by(path: Path, first: int) -> Callable[[int], str]:
    """The path of a record, by its number, where the records stand at a path and the first has that number."""
    return lambda number: write_path((*path, number - first))


def block_shown(unit: int, total: int) -> str:
    """Below a block that is shown as it is."""
    onward = "no more" if unit + 1 >= total else f"offset={unit + 1} for more"
    return f"[block {unit} of {total}; {onward}]"


def left_out(handle: str, what: str, tokens: int, unit: int) -> str:
    """In place of a block that is too large."""
    return f'[{what} of {tokens} tokens: read_result(handle="{handle}", offset={unit}, max_tokens={tokens})]'


def _noun(kind: Kind, count: int = 2) -> str:
    word = {"records": "record", "lines": "line", "block": "block"}[kind]
    return word if count == 1 else f"{word}s"


def _path(path: str) -> str:
    quote = "'" if '"' in path else '"'
    return f"path={quote}{path}{quote}"


_FOOTER = re.compile(r"-- (\d{1,15})( of more)? rows(?=;|\Z)")
"""Not of a single row that is all: that one is written as `column=value`."""
_SHEET_STRIDE = 500
"""Lines read before others are let in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    heading: str
    columns: int
    rows: int
    footer: str


def footer_rows(line: str) -> int | None:
    """How many rows such a last line counts; None where it is none."""
    match = _FOOTER.match(line)
    return None if match is None else int(match[1])


def has_more(footer: str) -> bool:
    """Whether it says that the database had more rows."""
    match = _FOOTER.match(footer)
    return match is not None and match[2] is not None


def sheet_in(part: Part) -> Steps[Sheet | None]:
    """None where it is not such a table, or one without rows."""
    footer = part.text[part.text.rfind("\n") + 1 :]
    count = footer_rows(footer) if part.layout.kind == "lines" and not part.label else None
    lines = part.text.split("\n") if count else []
    if not count or len(lines) != count + 2:
        return None
    columns = yield from _width(lines[:-1])
    return None if columns is None else Sheet(heading=lines[0], columns=columns, rows=count, footer=footer)


def _width(lines: Iterable[str]) -> Steps[int | None]:
    """Of every line; None where they differ, or are no rows."""
    widths = set[int]()
    for number, line in enumerate(lines):
        try:
            widths.add(len(read_row(line)))
        except BadInput:
            return None
        if number % _SHEET_STRIDE == 0:
            yield
    return widths.pop() if len(widths) == 1 else None


def whole_rows(units: Iterable[Numbered]) -> Iterator[Numbered]:
    """Each row in one, under the number of its last unit; neither the heading nor the last line."""
    return (line for line, _ in islice(pairwise(rejoined(units)), 1, None))
