"""Matches a query with tool names in any spelling.

A query that gives a tool's name must find the tool, however it is spelt and whatever else scores well: `createIssue`,
`create-issue`, `github.create_issue`, `mcp__github__create_issue`, or the beginning of it. `Names` matches names only,
and never changes once made; no look-up goes through all names.

`Spellings` stores a spelling as a 64-bit hash: twelve bytes with the document's position, where the text itself takes a
hundred and more. A query matches the hash of one of a million spellings by chance once in ten million million queries.

`places_before` and `moved` map the positions of unchanged documents between an old and a new index, so that work on
them is not repeated.

`Lines` stores all lines as one array of bytes, and finds a text in all of them at once: first its first letters as one
number, then letter by letter where these were found. Frequent texts take hardly longer than absent ones.
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
    """Lines of bytes without line breaks, searchable together."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._text = np.frombuffer(_END.join((*lines, b"")), dtype=np.uint8)
        sizes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + len(_END)
        self._starts = np.cumsum(sizes) - sizes

    def find(self, text: bytes) -> tuple[_Places, _Places]:
        """Return the line of each occurrence of a text, and the position in the line. The text has at least two
        bytes."""
        size = 4 if len(text) >= 4 else 2
        at = self._beginning_with(text[:size])
        for distance in range(size, len(text)):
            if not len(at):
                break
            # The index never exceeds the end: the last line's end is not a letter of the text, so that candidate is
            # dropped there.
            at = at[self._text[at + distance] == text[distance]]
        lines = np.searchsorted(self._starts, at, side="right") - 1
        return lines, at - self._starts[lines]

    def _beginning_with(self, letters: bytes) -> _Places:
        """Return the positions of two or four letters, compared as numbers of that many bytes, at any offset."""
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
    """Return for each document its earlier position, -1 where it is new or differs."""
    known = {document.id: place for place, document in enumerate(before)}
    found = np.full(len(documents), -1, dtype=np.int32)
    for place, document in enumerate(documents):
        old = known.get(document.id)
        if old is not None and before[old] == document:
            found[place] = old
    return found


def moved(places: Places, before: int) -> Places:
    """Return for each of the earlier documents its present position, -1 where it is gone."""
    found = np.full(before, -1, dtype=np.int32)
    kept = np.flatnonzero(places >= 0)
    found[places[kept]] = kept
    return found


@dataclass(frozen=True, slots=True)
class Spellings:
    """Spellings of documents, as sorted hashes."""

    marks: NDArray[np.uint64]
    """The hashes, sorted; those of equal spellings by position."""
    places: Places
    """Position of the document with that spelling."""

    @classmethod
    def of(cls, spelt: Iterable[tuple[str, int]]) -> "Spellings":
        """Make the spellings from pairs of a spelling and the document's position."""
        known = [(_mark(spelling), place) for spelling, place in spelt]
        marks = np.array([mark for mark, _ in known], dtype=np.uint64)
        return _sorted(marks, np.array([place for _, place in known], dtype=np.int32))

    def holders(self, spelling: str) -> Places:
        """Return the positions of the documents with this spelling, in order."""
        mark = np.uint64(_mark(spelling))
        return self.places[np.searchsorted(self.marks, mark) : np.searchsorted(self.marks, mark, side="right")]

    def taken_over(self, now: Places, more: "Spellings") -> "Spellings":
        """Return the spellings with the documents' new positions, without those that are gone (-1), and with more."""
        places = now[self.places]
        stayed = places >= 0
        return _sorted(np.concatenate([self.marks[stayed], more.marks]), np.concatenate([places[stayed], more.places]))


def _sorted(marks: NDArray[np.uint64], places: Places) -> Spellings:
    order = np.lexsort((places, marks))
    return Spellings(marks[order], places[order])


def _mark(spelling: str) -> int:
    # Servers can send names that cannot be encoded, such as with half of a surrogate pair.
    return int.from_bytes(blake2b(spelling.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


_LONGEST = 100
"""Longest query, in letters, that can be part of a name."""
_LONG_NAME = 128
"""Letters of a name that are matched in part, which is MCP's limit: otherwise a very long name would match many queries
and rank before the right tools. In full, a name of any length matches."""
_LEAST_INSIDE = 4
"""Least letters of a query that can match inside a word."""
_OWNED = re.compile(r"['\u2019]s\b", re.IGNORECASE)
"""A possessive ending: `user's` does not mean `users`."""
_PROPER = re.compile(r"\W*([A-Z][A-Za-z0-9]*)(?:['\u2019]s)?\W*")
_NAME = b"\0"
"""Separator before the name's words; occurs in no word."""

Levels = NDArray[np.int8]
"""How the query names each document: a `Named` by position."""


class Names:
    """Names of documents by position, in every spelling."""

    def __init__(self, documents: Sequence[Document], before: "Names | None" = None) -> None:
        """Build the names; those of unchanged documents are taken from `before`."""
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
        """Number of letters of a document's line that belong to the server's name."""
        self._lines = Lines([text.replace(_NAME, b"") for text in self.texts])
        self._together = Lines([text.partition(_NAME)[2].replace(b" ", b"") for text in self.texts])

    def named(self, query: str) -> Levels:
        """Return how the query names each document."""
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
        """Yield positions whose name is longer than the query and contains it; the server's words may come first."""
        if words:
            # Positions where these words are in the name, or across server and name, but not in the server alone.
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
        """Yield positions whose name is in the query as one compound word. A word that is only capitalised, such as
        `GitHub`, may be any name, and matches only the tool spelt exactly so."""
        for word in query[: _LONGEST * _LONGEST].split():
            if len(word) <= _LONGEST and len(made_of := parts(_OWNED.sub("", word))) > 1:
                proper = _PROPER.fullmatch(word)
                yield self.spellings.holders(_quoted(proper[1])) if proper else self._longest_ending(made_of)

    def _longest_ending(self, words: list[str]) -> NDArray[np.int32]:
        """Return the positions named by the word, or by its remainder after prefixes, of at least two words."""
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
    """Return the spellings of a document: each name without separators, alone and after its server's; and as written,
    in quotes."""
    server, names = "".join(_parts(document.server)), (document.name, *document.aliases)
    together = {"".join(_parts(name)) for name in names} - {""}
    return together | {server + name for name in together} | {_quoted(name) for name in names}


def _quoted(name: str) -> str:
    """Mark a name as written. Spellings without separators have letters and digits only."""
    return f"`{name}`"
