"""How much of a result can be shown within a budget, and in what form?

The longest row of whole units that fits with what stands above and below it: records as a table where that is cheaper,
else a line each. Only a unit that is too large by itself is cut, at the best place there is, and the last line says so.
The budget is exact by the scale that is given. What the last line says otherwise is the caller's affair.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ullage.table import ABSENT, Absent, Cell, WeighSteps, each_once, find_table, fit_steps, row_line, write_path
from ullage.tokens import Steps

from .layout import Kind, boundary

__all__ = ["Manner", "Numbered", "Page", "Words", "compact", "header_of", "longest_fitting", "page_steps"]

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
