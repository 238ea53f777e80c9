"""Which of them does this spelling mean?

Whoever knows a name must reach what it names, spelt as in the list, as its server spells it, or as some client did:
`github__create_issue`, `create_issue`, `github.createIssue`, `mcp__github__create-issue`. A spelling that could mean
two means neither. Which names are listed, `names` decides.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from typing import Generic, Protocol, TypeVar

__all__ = ["Book", "Label", "key", "nearest"]

_SEPARATORS = re.compile(r"[\W_]+")
_LONGEST = 128
"""Characters of a name that can be spelt in several ways; the protocol allows no more."""
_CONSIDERED = 3_000
"""Names looked at closely for those most like another."""
_PIECE = 4
"""Letters in a row by which thousands of names are sifted."""
_SHORTLIST = 24
"""Names compared in full: comparing takes too long to do it with thousands."""
_LIKE = 0.5


class Label(Protocol):
    """Something that has a name in a list of many servers' things."""

    @property
    def listed(self) -> str: ...

    @property
    def server(self) -> str: ...

    @property
    def original(self) -> str:
        """Its name at its server."""
        ...

    @property
    def aliases(self) -> tuple[str, ...]: ...


Labelled = TypeVar("Labelled", bound=Label)


def key(name: str) -> str:
    """Letters and digits of a name, whatever joins its words and whatever their case.

    Empty for a name that has none, or is too long: such a name is known only as it is written.
    """
    return _folded(name) if len(name) <= _LONGEST else ""


def _folded(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()


class Book(Generic[Labelled]):
    """Things by every spelling. Each table is made when a name is first not found in the one before it."""

    def __init__(self, things: Iterable[Labelled]) -> None:
        self._things = tuple(things)

    def find(self, name: str, server: str | None = None) -> tuple[Labelled, ...]:
        """All that the spelling may mean: the one meant, several, or none. The surest way of reading it decides."""
        if server is not None and (known := self._by_server.get((server, name))) is not None:
            return (known,)
        for meant in self._readings(name):
            found = tuple(one for one in meant if server is None or one.server == server)
            if found:
                return found
        return ()

    def nearest(self, name: str, server: str | None = None, *, most: int = 5) -> tuple[str, ...]:
        """Listed names most like it, the likest first."""
        among = [one for one in self._things if server is None or one.server == server]
        return nearest(name, [(one.listed, one.original) for one in among], most=most)

    def _readings(self, name: str) -> Iterator[Sequence[Labelled]]:
        yield self._by_listed.get(name, ())
        yield self._by_alias.get(name, ())
        yield self._by_original.get(name, ())
        for spelling in _without_client(name):
            yield self._by_key.get(key(spelling), ())

    @cached_property
    def _by_server(self) -> Mapping[tuple[str, str], Labelled]:
        return {(one.server, one.original): one for one in self._things}

    @cached_property
    def _by_listed(self) -> Mapping[str, Sequence[Labelled]]:
        return _table((one.listed, one) for one in self._things)

    @cached_property
    def _by_alias(self) -> Mapping[str, Sequence[Labelled]]:
        return _table((alias, one) for one in self._things for alias in one.aliases)

    @cached_property
    def _by_original(self) -> Mapping[str, Sequence[Labelled]]:
        return _table((one.original, one) for one in self._things)

    @cached_property
    def _by_key(self) -> Mapping[str, Sequence[Labelled]]:
        return _table((spelling, one) for one in self._things for spelling in _keys(one) if spelling)


def _keys(one: Label) -> set[str]:
    own = [folded for name in (one.original, *one.aliases) if (folded := key(name))]
    return {key(one.listed), *own, *(key(one.server) + name for name in own)}


def _table(pairs: Iterable[tuple[str, Labelled]]) -> dict[str, list[Labelled]]:
    found: dict[str, list[Labelled]] = {}
    for spelling, one in pairs:
        found.setdefault(spelling, []).append(one)
    return found


def _without_client(name: str) -> Iterator[str]:
    """The name; then without what clients put before it: `mcp__`, or `mcp__` and what they call this server."""
    yield name
    first, *rest = name.split("__")
    if first.lower() == "mcp":
        for start in range(min(2, len(rest))):
            yield "__".join(rest[start:])


def nearest(name: str, spellings: Sequence[tuple[str, ...]], *, most: int = 5) -> tuple[str, ...]:
    """Of things with several spellings each, the first spellings of those most like the name, as far as it is read."""
    wanted = _beginning(name)
    pieces = {wanted[at : at + 3] for at in range(max(1, len(wanted) - 2))}

    def shared(folded: str) -> int:
        return sum(piece in folded for piece in pieces)

    likely = nlargest(
        _SHORTLIST, _considered(name, spellings), key=lambda these: shared(" ".join(map(_beginning, these)))
    )
    matcher = difflib.SequenceMatcher(b=wanted, autojunk=False)
    scored = ((max(_ratio(matcher, _beginning(one)) for one in these), these[0]) for these in likely)
    ranked = sorted((pair for pair in scored if pair[0] >= _LIKE), key=lambda pair: (-pair[0], pair[1]))
    return tuple(spelling for _, spelling in ranked[:most])


def _considered(name: str, spellings: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    """The spellings that are looked at closely: all of them, or of thousands those that share most letters in a row."""
    if len(spellings) <= _CONSIDERED:
        return spellings
    wanted = name[:_LONGEST].lower()
    pieces = {wanted[at : at + _PIECE] for at in range(0, max(1, len(wanted) - _PIECE + 1), _PIECE // 2)}

    def shared(these: tuple[str, ...]) -> int:
        spelling = these[-1].lower()
        return sum(piece in spelling for piece in pieces)

    return nlargest(_CONSIDERED, spellings, key=shared)


def _beginning(name: str) -> str:
    return _folded(name[:_LONGEST])


def _ratio(matcher: "difflib.SequenceMatcher[str]", other: str) -> float:
    matcher.set_seq1(other)
    return matcher.ratio() if matcher.quick_ratio() >= _LIKE else 0.0
