"""Matches a query with tool names in any spelling.

Whoever knows the name must get the tool, however they spell it and whatever else scores well: `createIssue`,
`create-issue`, `github.create_issue`, `mcp__github__create_issue`, or the beginning of it. Knows names only; what
else a query is near to, the index knows. Never changes once made; no look-up walks through all names.

A spelling is known by 64 bits made of it: twelve bytes with the document's place, where the text itself takes a hundred
and more. That a query has the bits of one of a million spellings by chance happens once in ten million million queries.
Which spellings a name has, `names` knows.

What was made of a document that stayed as it was need not be made again. Knows places, not what was made.

All lines are one array of bytes, and a text is looked for in all of them at once: its first letters as one number, then
letter by letter where these were found. What is found often takes hardly longer than what is found never.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from .document import Document, Named
from .text_terms import parts

__all__ = ["Levels", "Lines", "Names", "Places", "Spellings", "moved", "places_before"]

_END = b"\n"
_Places = NDArray[np.int64]


class Lines:
    """Lines of bytes that have no line end in them."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._text = np.frombuffer(_END.join((*lines, b"")), dtype=np.uint8)
        sizes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + len(_END)
        self._starts = np.cumsum(sizes) - sizes

    def find(self, text: bytes) -> tuple[_Places, _Places]:
        """The line of each place where the text stands, and where in the line. The text is of two bytes at least."""
        size = 4 if len(text) >= 4 else 2
        at = self._beginning_with(text[:size])
        for distance in range(size, len(text)):
            if not len(at):
                break
            # Never beyond the end: the last line's end is no letter of the text, and whoever has reached it is gone.
            at = at[self._text[at + distance] == text[distance]]
        lines = np.searchsorted(self._starts, at, side="right") - 1
        return lines, at - self._starts[lines]

    def _beginning_with(self, letters: bytes) -> _Places:
        """Where these two or four letters stand: as numbers of so many bytes, beginning at any byte."""
        size = len(letters)
        number = np.frombuffer(letters, dtype=f"u{size}")[0]
        found = list[_Places]()
        for first in range(size):
            rest = self._text[first:]
            numbers = rest[: len(rest) // size * size].view(f"u{size}")
            found.append(np.flatnonzero(numbers == number) * size + first)
        return np.sort(np.concatenate(found))


Places = NDArray[np.int32]


def places_before(documents: Sequence[Document], before: Sequence[Document]) -> Places:
    """Of each document its place among those of before, -1 where it is new or differs."""
    known = {document.id: place for place, document in enumerate(before)}
    found = np.full(len(documents), -1, dtype=np.int32)
    for place, document in enumerate(documents):
        old = known.get(document.id)
        if old is not None and before[old] == document:
            found[place] = old
    return found


def moved(places: Places, before: int) -> Places:
    """The same the other way round: of each of the documents of before its place now, -1 where it is gone."""
    found = np.full(before, -1, dtype=np.int32)
    kept = np.flatnonzero(places >= 0)
    found[places[kept]] = kept
    return found


@dataclass(frozen=True, slots=True)
class Spellings:
    marks: NDArray[np.uint64]
    """Sorted; those of equal spellings by place."""
    places: Places
    """Of the document that is spelt so."""

    @classmethod
    def of(cls, spelt: Iterable[tuple[str, int]]) -> "Spellings":
        """Of each spelling of each document, with the document's place."""
        known = [(_mark(spelling), place) for spelling, place in spelt]
        marks = np.array([mark for mark, _ in known], dtype=np.uint64)
        return _sorted(marks, np.array([place for _, place in known], dtype=np.int32))

    def holders(self, spelling: str) -> Places:
        """The places of the documents that are spelt so, in order."""
        mark = np.uint64(_mark(spelling))
        return self.places[np.searchsorted(self.marks, mark) : np.searchsorted(self.marks, mark, side="right")]

    def taken_over(self, now: Places, more: "Spellings") -> "Spellings":
        """With the places that documents have now, less those that are gone (-1), and with more."""
        places = now[self.places]
        stayed = places >= 0
        return _sorted(np.concatenate([self.marks[stayed], more.marks]), np.concatenate([places[stayed], more.places]))


def _sorted(marks: NDArray[np.uint64], places: Places) -> Spellings:
    order = np.lexsort((places, marks))
    return Spellings(marks[order], places[order])


def _mark(spelling: str) -> int:
    # A name may hold what no encoding has, such as half of a pair of surrogates: servers send what they like.
    return int.from_bytes(blake2b(spelling.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


_LONGEST = 100
"""Letters of a query that can still be part of a name."""
_LONG_NAME = 128
"""Letters of a name that are looked at, which is as long as MCP wants one: who put more into a name, to be found by all
of it, would come before every tool that only fits. As it stands, a name of any length is known."""
_LEAST_INSIDE = 4
"""Letters that a query must have to be found in the midst of a word."""
_OWNED = re.compile(r"['\u2019]s\b", re.IGNORECASE)
"""Whoever writes `user's` does not mean `users`."""
_PROPER = re.compile(r"\W*([A-Z][A-Za-z0-9]*)(?:['\u2019]s)?\W*")
_NAME = b"\0"
"""Stands before the name's words, and in no word."""

Levels = NDArray[np.int8]
"""How the query names each document: a `Named` a place."""


class Names:
    """Names of documents by place, in every spelling."""

    def __init__(self, documents: Sequence[Document], before: "Names | None" = None) -> None:
        """What was made of documents that stayed as they were is taken over."""
        self.documents = documents
        places = places_before(documents, () if before is None else before.documents)
        self.texts: list[bytes] = [
            (_spaced(_parts(document.server)) + _NAME + _spaced(_parts(document.name)))
            if before is None or old < 0
            else before.texts[old]
            for document, old in zip(documents, places.tolist(), strict=True)
        ]
        new = np.flatnonzero(places < 0).tolist()
        self.spellings = Spellings.of((spelling, place) for place in new for spelling in _spellings(documents[place]))
        if before is not None:
            self.spellings = before.spellings.taken_over(moved(places, len(before.documents)), self.spellings)
        self._servers = np.array([text.index(_NAME) for text in self.texts], dtype=np.int64)
        """How many letters of a document's line are the server's."""
        self._lines = Lines([text.replace(_NAME, b"") for text in self.texts])
        self._together = Lines([text.partition(_NAME)[2].replace(b" ", b"") for text in self.texts])

    def named(self, query: str) -> Levels:
        """How the query names each document."""
        levels = np.zeros(len(self.documents), dtype=np.int8)
        words = parts(query) if len(query) <= _LONGEST else []
        for places in self._in_part(query, words):
            levels[places] = Named.IN_PART
        for places in self._among_others(query):
            levels[places] = Named.AMONG_OTHERS
        if words:
            levels[self.spellings.holders("".join(words))] = Named.WHOLLY
        levels[self.spellings.holders(_quoted(query.strip()))] = Named.EXACTLY
        return levels

    def _in_part(self, query: str, words: list[str]) -> Iterator[NDArray[np.int64]]:
        """Places whose name goes on where the query ends, or begins before it; the server's words may lead."""
        if words:
            # Places where these words stand in the name, or in server and name and not in the server
            # alone.
            spaced = _spaced(words)
            places, starts = self._lines.find(spaced)
            servers = self._servers[places]
            in_server, in_name = starts + len(spaced) <= servers, starts >= servers
            across = places[~in_server & ~in_name]
            from_a_word_on = np.concatenate([places[in_name], np.setdiff1d(across, places[in_server])])
            yield from_a_word_on
            together = "".join(words)
            if len(together) >= _LEAST_INSIDE and not any(map(str.isspace, query.strip())):
                yield self._together.find(together.encode())[0]

    def _among_others(self, query: str) -> Iterator[NDArray[np.int32]]:
        """Places whose name stands in the query as one word that is made of several. One with a capital letter first,
        such as `GitHub`, may be anybody's name: it means the tool that is written so."""
        for word in query[: _LONGEST * _LONGEST].split():
            if len(word) <= _LONGEST and len(made_of := parts(_OWNED.sub("", word))) > 1:
                proper = _PROPER.fullmatch(word)
                yield self.spellings.holders(_quoted(proper[1])) if proper else self._longest_ending(made_of)

    def _longest_ending(self, words: list[str]) -> NDArray[np.int32]:
        """The places named by the word, or by what remains of it behind prefixes, in two words at the least."""
        for start in range(len(words) - 1):
            places = self.spellings.holders("".join(words[start:]))
            if len(places):
                return places
        return np.zeros(0, dtype=np.int32)


def _parts(name: str) -> list[str]:
    return parts(name[:_LONG_NAME])


def _spaced(words: Sequence[str]) -> bytes:
    return "".join(f" {word}" for word in words).encode()


def _spellings(document: Document) -> set[str]:
    """Each name run together, alone and behind its server's; and as it stands, between quotes."""
    server, names = "".join(_parts(document.server)), (document.name, *document.aliases)
    together = {"".join(_parts(name)) for name in names} - {""}
    return together | {server + name for name in together} | {_quoted(name) for name in names}


def _quoted(name: str) -> str:
    """Marks a name as it stands; one that is run together has letters and digits only."""
    return f"`{name}`"
