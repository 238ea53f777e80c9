"""Which values does a JSON path mean?

`$.items[3].name`, `items[*].id`, `..key`, `[-1]`, `[10:20]`, `['odd key']`: the part of JSONPath that picks by place.
Filters are left to SQL. The `$` may be left out, and a key that is not a plain word may be a JSON string, as `table`
writes it. Where the values come from is not known here.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ullage.errors import InvalidArguments
from ullage.tool import Json

__all__ = ["Below", "Every", "Step", "is_definite", "read_steps", "select"]


@dataclass(frozen=True, slots=True)
class Every:
    """All members of an object or array, or those elements within a slice."""

    start: int | None = None
    stop: int | None = None
    stride: int | None = None

    @property
    def part(self) -> slice:
        return slice(self.start, self.stop, self.stride)


@dataclass(frozen=True, slots=True)
class Below:
    """The value itself and all that is in it, at any depth."""


Step = str | int | Every | Below
"""A key, a place in an array (from its end where negative), several, or all depths."""

_DOTS = re.compile(r"\.\.?")
_NAME = re.compile(r"[^.\[\]\"'*]+")
_PLACE = re.compile(r"\[\s*(-?[0-9]{1,15})\s*\]")
_SLICE = re.compile(r"\[\s*(-?[0-9]{0,15})\s*:\s*(-?[0-9]{0,15})\s*(?::\s*([1-9][0-9]{0,15})?\s*)?\]")
_KEY = re.compile(r"\[\s*(?='|\")")
_END = re.compile(r"\s*\]")
_APOSTROPHES = re.compile(r"'((?:[^'\\]|\\.)*)'")
_MOST = 64
"""Steps of one path."""
_MOST_BELOW = 2
"""Of those that go to all depths: each more would multiply what is met again and again."""
_read_value = json.JSONDecoder().raw_decode


def is_definite(steps: Sequence[Step]) -> bool:
    """Whether at most one value is meant."""
    return all(isinstance(step, str | int) for step in steps)


def select(value: Json, steps: Sequence[Step]) -> Iterator[Json]:
    """Every value that is meant, in the order of the document."""
    if not steps:
        yield value
        return
    for inner in _step(value, steps[0]):
        yield from select(inner, steps[1:])


def _step(value: Json, step: Step) -> Iterator[Json]:
    match step:
        case str() if isinstance(value, dict) and step in value:
            yield value[step]
        case int() if isinstance(value, list) and -len(value) <= step < len(value):
            yield value[step]
        case Every() if isinstance(value, list):
            yield from value[step.part]
        case Every(start=None, stop=None, stride=None) if isinstance(value, dict):
            yield from value.values()
        case Below():
            yield from _all_in(value)
        case _:
            return


def _all_in(value: Json) -> Iterator[Json]:
    todo = [value]
    while todo:
        inner = todo.pop()
        yield inner
        if isinstance(inner, dict | list):
            todo.extend(reversed(list(inner.values() if isinstance(inner, dict) else inner)))


def read_steps(path: str) -> tuple[Step, ...]:
    """Raises `InvalidArguments` for what cannot be read."""
    text = path.strip().removeprefix("$")
    steps, at = list[Step](), 0
    while at < len(text) and len(steps) <= _MOST:
        found, at = _next_steps(text, at, is_first=not steps)
        steps += found
    if len(steps) > _MOST or steps.count(Below()) > _MOST_BELOW:
        _fail(path)
    return tuple(steps)


def _next_steps(text: str, at: int, *, is_first: bool) -> tuple[list[Step], int]:
    dots = _DOTS.match(text, at)
    below: list[Step] = [Below()] if dots and dots[0] == ".." else []
    at = dots.end() if dots else at
    if text[at : at + 1] == "[":
        step, at = _bracket(text, at)
    elif dots or is_first:
        step, at = _name(text, at)
    else:
        _fail(text)
    return [*below, step], at


def _name(text: str, at: int) -> tuple[Step, int]:
    if text[at : at + 1] == "*":
        return Every(), at + 1
    if text[at : at + 1] in ("'", '"'):
        return _quoted(text, at)
    name = _NAME.match(text, at) or _fail(text)
    return name[0], name.end()


def _bracket(text: str, at: int) -> tuple[Step, int]:
    if text.startswith("[*]", at):
        return Every(), at + 3
    if place := _PLACE.match(text, at):
        return int(place[1]), place.end()
    if part := _SLICE.match(text, at):
        return Every(*(int(said) if said else None for said in part.groups())), part.end()
    key = _KEY.match(text, at) or _fail(text)
    name, at = _quoted(text, key.end())
    end = _END.match(text, at) or _fail(text)
    return name, end.end()


def _quoted(text: str, at: int) -> tuple[str, int]:
    if found := _APOSTROPHES.match(text, at):
        return found[1].replace("\\'", "'"), found.end()
    try:
        name, end = _read_value(text, at)
    except ValueError:
        _fail(text)
    return str(name), end


def _fail(path: str) -> NoReturn:
    raise InvalidArguments(
        f"`{path[:100]}` is no path",
        suggestion="Write it as in `items[3].name`, `items[*].id` or `..key`; for conditions use `sql` or `grep`.",
        options=("items[3].name", "items[*].id", "items[10:20]", "..key"),
    )
