"""Recodes JSON as typed csv where that costs fewer tokens.

A list of similar objects becomes typed csv. A document with such lists in it becomes compact JSON, with each list moved
below it under its path and its number of rows:

    {"total":2}
    items[2]:
    id,name
    1,Ada
    2,Grace

`decode` restores the value exactly. The shortest form by the weighing function is used, or none where the text itself
is the shortest. Nothing is cut to a budget here.

`find_table` finds the rows of a reply: a list of similar objects, a list of equally long lists, or an object of which
one such list is the main content. `find_table_in` reads text as JSON, as a Markdown table, or as comma-separated lines
under plain names; in doubt, text is not a table. Neither changes or weighs anything.

`fit` finds how many rows fit a token budget: the longest head of the rows that, with header and footer, weighs no more.
It is weighed as one whole text with the function passed in, in steps where the text may be long, so it is exact for any
tokenizer. Tokens are almost proportional to characters, so a first guess is close and a few weighings are enough. Rows
are taken from their source only as far as needed. A row is never cut; the caller chooses the footer's text.
"""

import csv
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain
from typing import cast

from ullage.tokens import Steps, drain
from ullage.tool import Json

from .table_text import ABSENT, Path, row_line, write_path, written_steps

__all__ = [
    "Continued",
    "Fitted",
    "Footer",
    "Found",
    "Recoded",
    "Weigh",
    "WeighSteps",
    "each_once",
    "find_table",
    "find_table_in",
    "fit",
    "fit_steps",
    "in_steps",
    "recode_steps",
]

Weigh = Callable[[str], int]
"""Returns the tokens of a text. For a model whose counts have a band, its upper end."""
WeighSteps = Callable[[str], Steps[int]]
"""Returns the tokens of a text as `Weigh` does, in steps, so that other tasks can run in between."""


def in_steps(weigh: Weigh) -> WeighSteps:
    """Wrap a `Weigh` as a `WeighSteps`."""

    def steps(text: str) -> Steps[int]:
        yield
        return weigh(text)

    return steps


Footer = Callable[[int, bool], str]
"""Returns the last line, given how many rows are shown and whether these are all; empty for none."""

_CHARACTERS = 4
"""Characters a token, as a first guess."""
_PULLED = 65_536
"""Characters of rows taken from the source between two yields."""
_SURELY = 2
"""A text whose head weighs this many times the budget exceeds it: no text weighs less than half of its head."""
_HEAD = 16
"""Characters a token of that head, so that the rest of a very long row is not weighed."""


class Continued(str):
    """A line that continues the one before it, without a line break between the two."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A text within the budget."""

    text: str
    tokens: int
    """Tokens of the text, never more than the budget."""
    rows: int
    """Rows that are shown."""
    complete: bool
    """Whether these are all the rows."""


def fit(header: str, lines: Iterable[str], footer: Footer, weigh: Weigh, budget: int) -> Fitted:
    """Return the text with as many rows as fit the budget.

    Where header and footer alone are too much, the text is the footer, or as many of its words as fit.

    Args:
        header: The text before the rows.
        lines: The rows, one line each; taken only as far as needed.
        footer: Makes the last line.
        weigh: Counts the tokens of a text.
        budget: The most tokens that the text may have.
    """
    return drain(fit_steps(header, lines, footer, in_steps(weigh), budget))


def fit_steps(header: str, lines: Iterable[str], footer: Footer, weigh: WeighSteps, budget: int) -> Steps[Fitted]:
    """Fit rows as `fit` does, in steps."""
    fitting = _Fitting(header=header, source=iter(lines), footer=footer, scale=weigh, budget=budget)
    if (yield from fitting.pull()) <= budget:
        return fitting.fitted(len(fitting.lines))
    if (yield from fitting.weigh(0)) > budget:
        return (yield from _least(footer(0, False), weigh, budget))
    return fitting.fitted((yield from fitting.search()))


@dataclass(slots=True, kw_only=True)
class _Fitting:
    header: str
    source: Iterator[str]
    footer: Footer
    scale: WeighSteps
    budget: int
    lines: list[str] = field(default_factory=list[str])
    """Rows taken from the source so far."""
    lengths: list[int] = field(default_factory=lambda: [0])
    """Characters of the first n lines together, by n, including line breaks."""
    exhausted: bool = False
    weights: dict[tuple[int, bool], int] = field(default_factory=dict[tuple[int, bool], int])
    """Tokens of the whole text, by the number of rows in it and whether these are all."""

    def pull(self) -> Steps[int]:
        """Take rows until they exceed the budget or are all, and return their weight."""
        wanted = _CHARACTERS * self.budget
        while True:
            yield from self._take(wanted)
            weight = yield from self.weigh(len(self.lines))
            if weight > self.budget or self.exhausted:
                return weight
            wanted = 2 * self.lengths[-1]

    def _take(self, wanted: int) -> Steps[None]:
        paused = self.lengths[-1]
        while self.lengths[-1] <= wanted:
            line = next(self.source, None)
            if line is None:
                self.exhausted = True
                return
            self.lines.append(line)
            self.lengths.append(self.lengths[-1] + len(line) + 1)
            if self.lengths[-1] - paused > _PULLED:
                paused = self.lengths[-1]
                yield

    def search(self) -> Steps[int]:
        """Return the number of rows that fit, given that the empty text fits and all rows taken do not."""
        low, high, tries = 0, len(self.lines), 0
        while high - low > 1:
            tries += 1
            guess = (low + high) // 2
            if tries % 3:
                # As if every character between the two bounds weighed the same.
                light, heavy = self.weights[low, False], self.weights[high, self._is_all(high)]
                span = self.lengths[high] - self.lengths[low]
                length = self.lengths[low] + span * (self.budget - light) // (heavy - light)
                guess = min(max(bisect_right(self.lengths, length) - 1, low + 1), high - 1)
            if (yield from self.weigh(guess)) <= self.budget:
                low = guess
            else:
                high = guess
        return low

    def weigh(self, rows: int) -> Steps[int]:
        key = (rows, self._is_all(rows))
        if key not in self.weights:
            # A text that is far too long is weighed by its head.
            text = self.text(rows)
            head = text[: max(_PULLED, _HEAD * self.budget)]
            weight = yield from self.scale(head)
            if len(head) < len(text):
                is_far_too_long = weight > _SURELY * self.budget
                weight = weight * len(text) // len(head) if is_far_too_long else (yield from self.scale(text))
            self.weights[key] = weight
        return self.weights[key]

    def _is_all(self, rows: int) -> bool:
        return self.exhausted and rows == len(self.lines)

    def text(self, rows: int) -> str:
        footer = self.footer(rows, self._is_all(rows))
        lines = [*_if_any(self.header), *self.lines[:rows], *_if_any(footer)]
        is_begun = (number > 0 and not isinstance(line, Continued) for number, line in enumerate(lines))
        return "".join(f"\n{line}" if begun else line for begun, line in zip(is_begun, lines, strict=True))

    def fitted(self, rows: int) -> Fitted:
        is_all = self._is_all(rows)
        return Fitted(text=self.text(rows), tokens=self.weights[rows, is_all], rows=rows, complete=is_all)


def _if_any(line: str) -> list[str]:
    return [line] if line else []


def _least(footer: str, weigh: WeighSteps, budget: int) -> Steps[Fitted]:
    """Return the footer, or as many of its words as fit."""
    words = footer.split(" ")
    for number in range(len(words), 0, -1):
        text = " ".join(words[:number])
        tokens = yield from weigh(text)
        if tokens <= budget:
            return Fitted(text=text, tokens=tokens, rows=0, complete=False)
    return Fitted(text="", tokens=0, rows=0, complete=False)


_FILLED = 0.4
"""Share of all cells that must be filled for objects to count as similar."""
_DEPTH = 3
"""Depth, in keys, to which lists are searched for."""
_DOMINANT = 0.5
"""Share of all visible cells that the table must have to count as the main content."""
_SHORT = 200_000
"""The longest text, in characters, that is tried as Markdown or comma-separated lines."""
_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\Z")
_BAR = re.compile(r"(?<!\\)\|")
_NAMES = re.compile(r"[^\W\d][\w .-]{0,60}(?:,[^\W\d][\w .-]{0,60})+\Z")
_NAMING = ("columns", "columnNames", "column_names", "headers", "fields")
"""Keys whose value names the columns of lists beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A table found in a reply."""

    path: Path
    """Path of the rows; empty where they are the whole value."""
    columns: tuple[str, ...]
    """Column names, in order of first appearance; empty for lists without names."""
    rows: list[Json]
    """The rows as found, objects or lists; empty where the source was not JSON."""
    row_count: int
    column_count: int

    @property
    def cells(self) -> int:
        return self.row_count * self.column_count


def find_table(value: Json) -> Found | None:
    """Return the table that is the main content of a value; None where there is none."""
    if isinstance(value, list):
        return _of_list(value, ())
    if not isinstance(value, dict):
        return None
    best, seen = None, 0
    for one in _within(value, ()):
        seen += one if isinstance(one, int) else one.cells
        if not isinstance(one, int) and (best is None or one.cells > best.cells):
            best = one
    return best if best is not None and best.cells >= _DOMINANT * seen else None


def find_table_in(text: str) -> Found | None:
    """Return the table that is the main content of a text. The whole text is read; use `scan` for many megabytes."""
    begins = text.lstrip()[:1] if text[:1].isspace() else text[:1]
    if begins in ("[", "{"):
        try:
            return find_table(json.loads(text))
        except (ValueError, RecursionError):
            return None
    if len(text) > _SHORT or "\n" not in text:
        return None
    lines = text.strip().split("\n")
    if len(lines) < 3:
        return None
    if "|" in text:
        # A Markdown table, if it is the whole text.
        if not _RULE.match(lines[1].strip()):
            return None
        return _of_text(
            [[cell.strip() for cell in _BAR.split(line.strip().strip("|"))] for line in (lines[0], *lines[2:])]
        )
    # Comma-separated lines, if the first has plain names and each has as many values.
    if not _NAMES.match(lines[0].rstrip("\r")):
        return None
    try:
        return _of_text(list(csv.reader(lines, strict=True)))
    except csv.Error:
        return None


def _of_list(value: list[Json], path: Path) -> Found | None:
    if value and all(isinstance(row, dict) and row for row in value):
        records = cast("list[dict[str, Json]]", value)
        columns = tuple(dict.fromkeys(chain.from_iterable(records)))
        if sum(map(len, records)) < _FILLED * len(records) * len(columns):
            return None
        return Found(path=path, columns=columns, rows=value, row_count=len(value), column_count=len(columns))
    if len(value) < 2 or not all(isinstance(row, list) for row in value):
        return None
    lists = cast("list[list[Json]]", value)
    width = len(lists[0])
    # Lists of one element each are a list of values, not a table.
    if width < 2 or any(len(row) != width for row in lists):
        return None
    return Found(path=path, columns=(), rows=value, row_count=len(value), column_count=width)


def _within(value: dict[str, Json], path: Path) -> Iterator[Found | int]:
    """Yield every table, and the number of values in everything else."""
    for key, member in value.items():
        inner = (*path, key)
        if isinstance(member, list):
            found = _of_list(member, inner)
            yield len(member) if found is None else _name_columns(found, value)
        elif isinstance(member, dict) and len(inner) < _DEPTH:
            yield from _within(member, inner)
        else:
            yield len(member) if isinstance(member, dict) else 1


def _name_columns(found: Found, beside: dict[str, Json]) -> Found:
    """Name the columns of lists by a list of names beside them."""
    if found.columns:
        return found
    for key in _NAMING:
        names = beside.get(key)
        if isinstance(names, list) and len(names) == found.column_count and all(isinstance(n, str) for n in names):
            return replace(found, columns=tuple(cast("list[str]", names)))
    return found


def _of_text(rows: list[list[str]]) -> Found | None:
    width = len(rows[0])
    if width < 2 or any(len(row) != width for row in rows):
        return None
    return Found(path=(), columns=tuple(rows[0]), rows=[], row_count=len(rows) - 1, column_count=width)


_LONGEST = 1_000_000
"""Characters above which a text is left unchanged, because reading it would block other tasks."""
_LONG = 200_000
"""Characters above which texts are compared by samples."""
_SAMPLE = 10_000
"""Characters of each sample."""
_SAMPLES = 8
_MARGIN = 0.95
"""Share of the old weight below which a new weight found by samples must be."""
_PORTION = 50
"""Rows written between two yields."""
_TAKEN = object()
"""Placeholder for a table that was moved out."""


@dataclass(frozen=True, slots=True)
class Recoded:
    """A value written in fewer tokens."""

    text: str
    value: Json = field(repr=False)
    """The value that was written; numbers that a float would round are decimals."""


def recode_steps(given: Json, weigh: WeighSteps) -> Steps[Recoded | None]:
    """Return the shortest form of a value, in steps; None where no form weighs less.

    Args:
        given: The value. Text is read as JSON; any other value is compared with its compact JSON.
        weigh: Counts the tokens of a text, in steps.
    """
    value = _read(given) if isinstance(given, str) else given
    if not isinstance(value, list | dict):
        return None
    yield
    try:
        text = given if isinstance(given, str) else (yield from written_steps(value))
        least = yield from _weight(text, weigh)
        if len(text) > _LONG:
            least = int(_MARGIN * least)
        for form in (_with_tables, written_steps):
            shorter = yield from form(value)
            if shorter is not None and (yield from _weight(shorter, weigh)) < least:
                return Recoded(shorter, value)
    except RecursionError:
        return None
    return None


def _weight(text: str, weigh: WeighSteps) -> Steps[int]:
    """Return the weight of a text; of a long one, extrapolated from samples all over it."""
    if len(text) <= _LONG:
        return (yield from weigh(text))
    starts = range(0, len(text) - _SAMPLE, len(text) // _SAMPLES)
    tokens = 0
    for start in starts:
        tokens += yield from weigh(text[start : start + _SAMPLE])
    return tokens * len(text) // (_SAMPLE * len(starts))


def _read(text: str) -> Json:
    """Read JSON; None where the text is not JSON, or would not be restored exactly."""
    if len(text) > _LONGEST or text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return json.loads(text, parse_float=_float, object_pairs_hook=each_once)
    except (ValueError, ArithmeticError, RecursionError):
        return None


def _float(literal: str) -> float | Decimal:
    """Return a decimal where a float would lose digits, or trailing zeros that show its precision."""
    number = float(literal)
    return number if repr(number) == literal else Decimal(literal)


def each_once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Build an object from its members, as a hook for `json`.

    Raises:
        ValueError: A key is repeated, so that an object could not have them all.
    """
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key comes twice, and one of its values would be lost")
    return made


def _with_tables(value: Json) -> Steps[str | None]:
    tables: list[tuple[Path, list[dict[str, Json]]]] = []
    rest = _rest(value, (), tables)
    if not tables:
        return None
    lines = list[str]() if rest is _TAKEN else [(yield from written_steps(cast("Json", rest)))]
    for path, rows in tables:
        lines += [f"{write_path(path)}[{len(rows)}]:"] if path else []
        columns = list(dict.fromkeys(chain.from_iterable(rows)))
        lines.append(row_line(columns, typed=True))
        for start in range(0, len(rows), _PORTION):
            portion = rows[start : start + _PORTION]
            lines += [row_line([row.get(name, ABSENT) for name in columns], typed=True) for row in portion]
            yield
    return "\n".join(lines)


def _rest(value: Json, path: Path, tables: list[tuple[Path, list[dict[str, Json]]]]) -> object:
    """Return the document without its tables, which are collected in `tables`. In a list, null keeps a table's
    place."""
    if isinstance(value, dict):
        members = {key: _rest(member, (*path, key), tables) for key, member in value.items()}
        return {key: member for key, member in members.items() if member is not _TAKEN}
    if not isinstance(value, list):
        return value
    found = find_table(value) if len(value) > 1 else None
    if found is not None and found.columns:
        tables.append((path, cast("list[dict[str, Json]]", value)))
        return _TAKEN
    elements = [_rest(element, (*path, place), tables) for place, element in enumerate(value)]
    return [None if element is _TAKEN else element for element in elements]
