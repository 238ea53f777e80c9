"""Index of patterns by the literals that each of them requires, to search one text for many patterns quickly.

A hundred patterns over every sentence of a server's definitions take seconds; most of them cannot match, because none
of their words occurs. `PatternIndex` finds the few that can by looking up every three and four letters of the text. A
pattern for which no literal can be derived is always tried, so the result is the same as with a search for each.
"""

import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

# The parser of `re` has no public name. Without it every pattern would be tried on every text.
_parser: Any = importlib.import_module("re._parser")
_constants: Any = importlib.import_module("re._constants")

__all__ = ["PatternIndex", "required_literals"]

_LEAST, _GRAM = 3, 6
"""Letters of a literal by which a pattern is found: no fewer, no more."""
_MOST_ALTERNATIVES = 40


class PatternIndex:
    """Patterns in lower case, without flags; compiled when first searched."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._sources = patterns
        self._compiled: dict[int, re.Pattern[str]] = {}

    def search(self, text: str) -> Iterator[tuple[int, re.Match[str]]]:
        """The number and the first match of every pattern that occurs in a text in lower case."""
        candidates = set(self._always)
        by_size = self._by_gram
        for size, grams in by_size.items():
            for gram in {text[start : start + size] for start in range(len(text) - size + 1)} & grams.keys():
                candidates |= grams[gram]
        for number in sorted(candidates):
            pattern = self._compiled.get(number)
            if pattern is None:
                pattern = self._compiled[number] = re.compile(self._sources[number])
            match = pattern.search(text)
            if match is not None:
                yield number, match

    @cached_property
    def _literals(self) -> list[frozenset[str] | None]:
        return [required_literals(source) for source in self._sources]

    @cached_property
    def _always(self) -> frozenset[int]:
        return frozenset(number for number, literals in enumerate(self._literals) if literals is None)

    @cached_property
    def _by_gram(self) -> dict[int, dict[str, set[int]]]:
        """By length, the beginnings of literals and the patterns that they belong to."""
        by_size: dict[int, dict[str, set[int]]] = {}
        for number, literals in enumerate(self._literals):
            for literal in literals or ():
                gram = literal[:_GRAM]
                by_size.setdefault(len(gram), {}).setdefault(gram, set()).add(number)
        return by_size


def required_literals(pattern: str) -> frozenset[str] | None:
    """Literals of which one occurs in every match; None where there is no such set of at least three letters each."""
    return _required(_parser.parse(pattern))


def _required(sequence: Iterable[tuple[object, Any]]) -> frozenset[str] | None:
    """The best of the sets that the parts of a sequence require; parts that need nothing say nothing."""
    sets: list[frozenset[str]] = []
    runs = [""]
    for operation, argument in sequence:
        if operation is _constants.LITERAL:
            runs = [run + chr(argument) for run in runs]
            continue
        if operation is _constants.AT:
            continue
        branches = _branches(operation, argument)
        if branches is None:
            sets.append(frozenset(runs))
            runs = [""]
            continue
        # What stands before a choice belongs to each of its alternatives.
        heads = {_head(branch) for branch in branches}
        if len(runs) * len(heads) <= _MOST_ALTERNATIVES * 4:
            sets.append(frozenset(run + head for run in runs for head in heads))
        sets.append(frozenset(runs))
        inner = [_required(branch) for branch in branches]
        if all(inner):
            sets.append(frozenset[str]().union(*(one for one in inner if one)))
        runs = [""]
    sets.append(frozenset(runs))
    usable = [one for one in sets if min(map(len, one)) >= _LEAST]
    return max(usable, key=lambda one: (min(_GRAM, *map(len, one)), -len(one))) if usable else None


def _branches(
    operation: object,
    argument: Any,  # noqa: ANN401 - what the parser has for an operation
) -> list[list[tuple[object, Any]]] | None:
    """The alternatives of a group or of something that occurs at least once; None for what may be absent."""
    if operation is _constants.BRANCH:
        return [list(branch) for branch in argument[1]]
    if operation is _constants.SUBPATTERN:
        inner = list(argument[-1])
        if len(inner) == 1 and inner[0][0] is _constants.BRANCH:
            return [list(branch) for branch in inner[0][1][1]]
        return [inner]
    if operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT) and argument[0] >= 1:
        return [list(argument[2])]
    return None


def _head(branch: Iterable[tuple[object, Any]]) -> str:
    """The literal at the beginning of a sequence."""
    head = ""
    for operation, argument in branch:
        if operation is _constants.LITERAL:
            head += chr(argument)
        elif operation is not _constants.AT:
            break
    return head
