"""The records of a very long JSON text.

One pass over the text, a record at a time, so that neither memory nor anyone's patience is strained: the longest list
is found, its records are counted, their keys noted, and where they stand is remembered for some of them, so that any
can be read again at once. A text that is no JSON has no records. What a record means is others' affair.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from ullage.tokens import Steps
from ullage.tool import Json

from .json_pieces import value_at
from .path import Path

__all__ = ["Record", "Scanned", "scan"]

_STRIDE = 65_536
"""Characters read before others are let in."""
_DEPTH = 3
"""Keys deep that a list is looked for."""
_DOMINANT = 0.5
"""Of the text, that a list must be to be what the text is about."""
_MARKS = 65_536
"""Places remembered at the most; of longer lists, every second, fourth, … record's."""
_COLUMNS = 1_000
"""Keys noted at the most; records with more have nothing in common."""
_space = re.compile(r"[ \t\n\r]*").match


class Record(NamedTuple):
    value: Json
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The longest list of a text. It holds no text itself: give the same again."""

    path: Path
    start: int
    """Of its bracket."""
    end: int
    """Behind its other bracket."""
    count: int
    columns: tuple[str, ...]
    """Keys of its records, in the order in which they first appear; empty where these are not all objects."""
    marks: tuple[int, ...] = field(repr=False)
    """Where every so many records begin."""
    spacing: int
    """Records from one mark to the next."""

    def records(self, text: str, first: int = 0) -> Iterator[Record]:
        """From a record on, counted from 0."""
        if first >= self.count:
            return
        skipped = first % self.spacing
        for number, record in enumerate(_records(text, self.marks[first // self.spacing])):
            if number >= skipped:
                yield record

    def is_most_of(self, text: str) -> bool:
        return self.end - self.start >= _DOMINANT * len(text)

    def rest(self, text: str) -> str:
        """The text with the list empty."""
        return f"{text[: self.start]}[]{text[self.end :]}"


def scan(text: str) -> Steps[Scanned | None]:
    """None where the text is no JSON, or has no list."""
    walk = _Walk(text)
    try:
        end = yield from walk.value(_skip(text, 0), ())
    except (ValueError, IndexError, RecursionError):
        return None
    return walk.best if _skip(text, end) == len(text) else None


@dataclass(slots=True)
class _Walk:
    """Goes through a text once and remembers the longest list."""

    text: str
    best: Scanned | None = None
    paused: int = 0
    """Where others were last let in."""

    def value(self, at: int, path: Path) -> Steps[int]:
        """Where the value ends."""
        begins = self.text[at]
        if begins == "[":
            return (yield from self._list(at, path))
        if begins == "{" and len(path) < _DEPTH:
            return (yield from self._object(at, path))
        _, end = value_at(self.text, at)
        return end

    def _object(self, at: int, path: Path) -> Steps[int]:
        text, at = self.text, _skip(self.text, at + 1)
        while text[at] != "}":
            key, at = value_at(text, at)
            at = _skip(text, at)
            if not isinstance(key, str) or text[at] != ":":
                raise ValueError("no member")
            at = yield from self.value(_skip(text, at + 1), (*path, key))
            at = _next(text, at, "}")
        return at + 1

    def _list(self, at: int, path: Path) -> Steps[int]:
        notes, start = _Notes(), at
        end = at = _skip(self.text, at + 1)
        for record in _records(self.text, at):
            notes.add(record)
            end = record.end
            if end - self.paused > _STRIDE:
                self.paused = end
                yield
        end = _skip(self.text, end) + 1
        if self.best is None or end - start > self.best.end - self.best.start:
            self.best = notes.scanned(path, start, end)
        return end


@dataclass(slots=True)
class _Notes:
    """What is remembered of a list while it is read."""

    count: int = 0
    columns: dict[str, None] | None = field(default_factory=dict[str, None])
    """None once a record was no object, or there were too many keys."""
    marks: list[int] = field(default_factory=list[int])
    spacing: int = 1

    def add(self, record: Record) -> None:
        if not self.count % self.spacing:
            self.marks.append(record.start)
            if len(self.marks) > _MARKS:
                del self.marks[1::2]
                self.spacing *= 2
        self.count += 1
        if self.columns is not None:
            self._note_keys(self.columns, record.value)

    def _note_keys(self, columns: dict[str, None], value: Json) -> None:
        if not isinstance(value, dict):
            self.columns = None
        elif not value.keys() <= columns.keys():
            columns.update(dict.fromkeys(value))
            self.columns = columns if len(columns) <= _COLUMNS else None

    def scanned(self, path: Path, start: int, end: int) -> Scanned:
        return Scanned(
            path=path,
            start=start,
            end=end,
            count=self.count,
            columns=tuple(self.columns or ()),
            marks=tuple(self.marks),
            spacing=self.spacing,
        )


def _records(text: str, at: int) -> Iterator[Record]:
    """From where one begins to the end of their list."""
    while text[at] != "]":
        value, end = value_at(text, at)
        yield Record(value, at, end)
        at = _next(text, end, "]")


def _next(text: str, at: int, closing: str) -> int:
    """Where the next one begins, or the closing bracket stands."""
    at = _skip(text, at)
    if text[at] == ",":
        at = _skip(text, at + 1)
        if text[at] == closing:
            raise ValueError("a comma with nothing behind it")
    elif text[at] != closing:
        raise ValueError("no comma")
    return at


def _skip(text: str, at: int) -> int:
    """Behind any space."""
    return at if text[at : at + 1] > " " else cast("re.Match[str]", _space(text, at)).end()
