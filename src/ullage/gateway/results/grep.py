r"""Which lines or records match?

Patterns are regular expressions without look-around and back-references, matched in time that grows with the line and
never explodes: by the engine beneath pydantic, because Python's own can take for ever and cannot be interrupted. What
is no such expression is looked for as plain text.

A line is looked at whole, though it is kept in parts, and also with the characters that `\u00e9` and its like stand
for.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated

from ullage.errors import InvalidArguments

from .paging import Numbered, compact
from .rejoined import lines_of_parts

__all__ = ["Pattern", "as_shown", "matcher", "matching"]

Pattern = Callable[[str], bool]
_LONGEST = 1_000
"""Characters of a pattern."""
_MARKS = frozenset('":,')
_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\/)+")


def matcher(pattern: str) -> tuple[Pattern, bool]:
    """Says of a text whether it matches, and whether the pattern was read as an expression."""
    if not pattern or len(pattern) > _LONGEST:
        raise InvalidArguments(
            f"`grep` must have 1 to {_LONGEST} characters, not {len(pattern)}", suggestion="Look for less."
        )
    search = _expression(pattern)
    return (lambda line: pattern in line, False) if search is None else (search, True)


def _expression(pattern: str) -> Pattern | None:
    # Here, because most processes never search, and those that count must not load it.
    from pydantic import Field, TypeAdapter

    try:
        test = TypeAdapter(Annotated[str, Field(pattern=pattern)]).validator.isinstance_python
    except Exception:  # noqa: BLE001 - pydantic passes on an error of its core that it does not export
        return None
    return lambda line: test(line) or (not line.isascii() and test(line.encode("utf-8", "replace").decode()))


def matching(units: Iterable[Numbered], matches: Pattern) -> Iterator[Numbered]:
    """The units that match, of a line in parts those parts that do, or across which the match lies."""
    last = -1
    for parts in lines_of_parts(units):
        for number, unit in _matching_parts(parts, matches):
            if number > last:
                yield number, unit
                last = number


def _matching_parts(parts: Sequence[Numbered], matches: Pattern) -> Sequence[Numbered]:
    if not _is_in(parts, matches):
        return ()
    alone = [one for one in parts if _is_in([one], matches)]
    return alone or _across(parts, matches)


def _across(parts: Sequence[Numbered], matches: Pattern) -> Sequence[Numbered]:
    """The fewest parts that match together, as far as what ends or begins further out still matches."""
    low, high = 1, len(parts)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_in(parts[:middle], matches) else (middle + 1, high)
    start = 0
    while start < high and _is_in(parts[start + 1 : high], matches):
        start += 1
    return parts[start:high]


def _is_in(parts: Sequence[Numbered], matches: Pattern) -> bool:
    return any(map(matches, _spellings("".join(unit for _, unit in parts))))


def _spellings(text: str) -> Iterator[str]:
    yield text
    if "\\u" in text or "\\/" in text:
        yield _ESCAPED.sub(lambda match: str(json.loads(f'"{match[0]}"')), text)


def as_shown(pattern: str, matches: Pattern) -> Pattern:
    """Matches JSON that has space between its marks as if it had none, too: so it is shown. That is not worth the
    trouble for a pattern without such marks, unless a record goes over several lines."""
    is_marked = not _MARKS.isdisjoint(pattern)
    return lambda text: matches(text) or ((is_marked or "\n" in text) and matches(compact(text)))
