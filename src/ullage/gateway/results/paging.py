"""Pages of a result that fit a token budget.

A page is the longest run of whole units that fits together with its header and its last line; records are a table where
that is cheaper, else one line each. Only a unit that is too large by itself is cut, at the best place, and the last
line says so. The page never exceeds the budget by the given scale. Callers supply the other wording of the last line.

A long line is stored in parts (`held_result`), each but the first as `Continued`. Searching a line, or reading it as a
row, needs the whole line again: `rejoined` and `lines_of_parts` provide it.

The last line states how much is shown of how much, and how to get the rest, in as few words as a model needs, because
it is read with every shortened result.

A table written by Ullage ends in a line that states facts about all rows, above all that the database had more of
them, so it must stay visible however few rows are shown. It is recognised by its wording and by its count, which
must equal the number of lines above it.
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
"""Column with the numbers of the records."""
_PER_TOKEN = 16
"""Characters read for each token of the budget in the first round."""
_ROUNDS = 2
"""Further rounds, if everything fitted; each reads four times as many characters."""
_LONGEST = _PER_TOKEN * 4**_ROUNDS
"""Characters for each token of the budget above which a unit is too large without being counted."""
_SAMPLE = 20
"""Records compared to decide whether a table is cheaper."""
_STRIDE = 1_000
"""Units taken in one step."""
_SHARE = 4
"""The text around records may take at most one part in this many of the budget."""
_SURROUNDING = 200_000
"""Most characters of the text around records that are parsed for its keys."""
_MOST_KEYS = 20
_CUT = "…"
_WHITE = re.compile(r'("(?:[^"\\]++|\\.)*+(?:"|\Z))|[ \t\r\n]+', re.DOTALL)
"""Matches a JSON string, even without its end, or white space outside strings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The wording of a page's last line."""

    shown: Callable[[int, int, bool], str]
    """Takes the number of units shown, the number of the next, and whether all are shown; returns "" for no line."""
    cut: Callable[[int], str] = lambda number: ""
    """Takes the number of a unit that is shown only in part, where that is allowed."""
    shorter: Callable[[int], Sequence[str]] = lambda number: ()
    """Takes the number of the first unit; returns shorter lines, longest first, for a page without room for any
    unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a result."""

    text: str
    shown: int
    """Number of units shown, including one that was cut."""
    next: int
    """Number of the unit to continue with."""
    complete: bool
    """Whether no units are left."""
    columns: int | None = None
    """Number of columns, if the units are rows of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a page is formatted."""

    kind: Kind
    header: str = ""
    """Text above the units."""
    encode: bool = False
    """Whether records may be written as a table."""
    numbered: bool = False
    """Whether each unit shows its number."""
    limit: int | None = None
    """Most units on the page; None for no limit."""
    whole_only: bool = False
    """Whether a unit that is too large is left out instead of cut."""


def page_steps(units: Iterator[Numbered], manner: Manner, words: Words, weigh: WeighSteps, budget: int) -> Steps[Page]:
    """Build a page of units within the budget, in steps."""
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
    """The unit after those taken, if there is one."""

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

    def _next(self, rows: int) -> int:
        if rows:
            return self.taken[rows - 1][0] + 1
        return self.taken[0][0] if self.taken else 0

    def _form(self) -> Steps[_Form]:
        if self.manner.kind == "records":
            try:
                # Digit by digit, since a float would round.
                records: list[Any] = [
                    json.loads(unit, parse_float=Decimal, object_pairs_hook=each_once) for _, unit in self.taken
                ]
                found = find_table(records)
                if found is None or not isinstance(records[0], dict):
                    table = None
                else:
                    lines = [
                        _row(
                            *([number] if self.manner.numbered else []),
                            *(record.get(key, ABSENT) for key in found.columns),
                        )
                        for (number, _), record in zip(self.taken, records, strict=True)
                    ]
                    table = _Form(
                        _row(*([_NUMBER] if self.manner.numbered else []), *found.columns), lines, found.column_count
                    )
            except (ValueError, RecursionError):
                table = None
        else:
            table = None
        yield
        lines = [_line(number, unit, self.manner) for number, unit in self.taken]
        # The first is on a line of its own, wherever it started.
        plain = _Form("", [*map(str, lines[:1]), *lines[1:]], None if table is None else table.columns)
        yield
        if table is None or not self.manner.encode:
            return plain
        tried = "\n".join([table.header, *table.lines[:_SAMPLE]])
        cheaper = (yield from self.weigh(tried)) < (yield from self.weigh("\n".join(plain.lines[:_SAMPLE])))
        return table if cheaper else plain

    def _beginning(self, number: int, unit: str) -> Steps[Page]:
        """Return a page with as much of one unit as fits."""
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
        """Return a page with the last line alone."""
        forms = self.words.shown(0, number, False), *self.words.shorter(number)
        text = yield from longest_fitting(forms, self.weigh, self.budget)
        return Page(text=text, shown=0, next=number, complete=False)


def longest_fitting(forms: Iterable[str], weigh: WeighSteps, budget: int) -> Steps[str]:
    """Return the first form that fits; else nothing, since half a line misleads."""
    for form in forms:
        if (yield from weigh(form)) <= budget:
            return form
    return ""


def header_of(label: str, path: str, around: tuple[str, str], count: int, budget: int) -> str:
    """Return the text above the first record: the rest of the document if it is short, else how to get it, and the
    records' path."""
    lines = [label] if label else []
    if path:
        lines += [_rest("".join(around), budget // _SHARE * 3), f"{path}[{count}]:"]
    return "\n".join(lines)


def _rest(around: str, room: int) -> str:
    """Return a short rest unchanged, or as many of its keys as fit."""
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
    """Remove white space between the tokens of JSON; values stay as written."""
    return _WHITE.sub(r"\1", text) if "\n" in text or ": " in text or ", " in text else text


def _row(*cells: Cell | Absent) -> str:
    return row_line(cells, typed=True)


_LONGEST_ROW = 4_000_000
"""Most characters of one row. Joining, reading and freeing more would delay other calls at each step."""
_MOST = 250
"""Most parts of a line that are taken together."""
_AGAIN = 8
"""Parts that are taken again with the next ones, so that a match across the border is found."""


class LineTooLong(ValueError):
    """A line has more characters than a row may have."""


def rejoined(units: Iterable[Numbered]) -> Iterator[Numbered]:
    """Yield each line joined, with the number of its last unit.

    Raises:
        LineTooLong: A line has more characters than a row may have.
    """
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
    """Yield the parts of each line; those of a very long line in overlapping groups."""
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
    """Facts about the result being read, for the last line."""

    handle: str
    kind: Kind
    total: int | None = None
    """Number of units in all; None if not counted."""
    named: Callable[[int], str] | None = None
    """Returns the path of a unit, if it has one."""
    has_paths: bool = True
    """Whether JSON paths apply to it."""
    rest: int | None = None
    """Number of the unit to continue with after these; None if there is none."""
    rows: int | None = None
    """Number of all rows, if the units are whole rows of a table written by Ullage."""
    footer: str = ""
    """That table's own last line, shown above the page's last line."""

    def first(self) -> Words:
        """Return the wording for a reply that was shortened."""

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
        """Return the wording for a page that starts at a requested unit."""

        def shown(rows: int, following: int, is_all: bool) -> str:  # noqa: FBT001
            if is_all and self.rest is None and begun == 0 and rows > 0:
                return "" if rows == 1 else f"[all {rows} {_noun(self.kind)}]"
            if not rows and not is_all:
                return f"[{_noun(self.kind, 1)} {following}{self._among} does not fit: give a larger max_tokens]"
            where = f"{_noun(self.kind)} {begun}–{following - 1}" if rows else f"no {_noun(self.kind)} from {begun} on"
            return f"[{where}{self._among}; {self._more(following, is_all)}]"

        return Words(shown=shown, cut=self._cut, shorter=_larger)

    def found(self, note: str = "") -> Words:
        """Return the wording for the results of a search."""

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
        if self.named is None:
            whole = f"offset={number} and a larger max_tokens"
        else:
            path = self.named(number)
            quote = "'" if '"' in path else '"'
            whole = f"path={quote}{path}{quote}"
        more = f'read_result(handle="{self.handle}", offset={number + 1}) for more'
        return f"[{_noun(self.kind, 1)} {number}{self._among} is cut here: {more}, {whole} for all of it]"


def answered(begun: int, total: int, *, more: bool, beyond: str) -> Words:
    """Return the wording for an answer to SQL.

    Args:
        begun: Number of the first row shown.
        total: Number of rows in the answer.
        more: Whether the query had further rows.
        beyond: The table's own note that it is not complete, if any.
    """
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
    """Return lines that state that there is more, for a page without room to say how much."""
    return f'[cut: read_result(handle="{handle}")]', f"[cut: read_result {handle}]"


def _larger(number: int) -> tuple[str]:
    return (f"[{number}: give a larger max_tokens]",)


def named_by(path: Path, first: int) -> Callable[[int], str]:
    """Return a function from a record's number to its path, for records at `path` whose first has number `first`."""
    return lambda number: write_path((*path, number - first))


def block_shown(unit: int, total: int) -> str:
    """Return the line below a block that is shown unchanged."""
    onward = "no more" if unit + 1 >= total else f"offset={unit + 1} for more"
    return f"[block {unit} of {total}; {onward}]"


def left_out(handle: str, what: str, tokens: int, unit: int) -> str:
    """Return the line that replaces a block that is too large."""
    return f'[{what} of {tokens} tokens: read_result(handle="{handle}", offset={unit}, max_tokens={tokens})]'


def _noun(kind: Kind, count: int = 2) -> str:
    word = {"records": "record", "lines": "line", "block": "block"}[kind]
    return word if count == 1 else f"{word}s"


_FOOTER = re.compile(r"-- (\d{1,15})( of more)? rows(?=;|\Z)")
"""Matches the last line of a table. A single complete row has none: it is written as `column=value`."""
_SHEET_STRIDE = 500
"""Lines read in one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table that Ullage wrote as text, found in a part."""

    heading: str
    columns: int
    rows: int
    footer: str


def footer_rows(line: str) -> int | None:
    """Return the number of rows that a table's last line states; None for another line."""
    match = _FOOTER.match(line)
    return None if match is None else int(match[1])


def has_more(footer: str) -> bool:
    """Return whether the last line states that the database had more rows."""
    match = _FOOTER.match(footer)
    return match is not None and match[2] is not None


def sheet_in(part: Part) -> Steps[Sheet | None]:
    """Return the table in a part; None if there is none, or if it has no rows."""
    footer = part.text[part.text.rfind("\n") + 1 :]
    count = footer_rows(footer) if part.layout.kind == "lines" and not part.label else None
    lines = part.text.split("\n") if count else []
    if not count or len(lines) != count + 2:
        return None
    columns = yield from _width(lines[:-1])
    return None if columns is None else Sheet(heading=lines[0], columns=columns, rows=count, footer=footer)


def _width(lines: Iterable[str]) -> Steps[int | None]:
    """Return the number of cells of every line; None if they differ or are not rows."""
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
    """Yield each row joined, with the number of its last unit."""
    return (line for line, _ in islice(pairwise(rejoined(units)), 1, None))
