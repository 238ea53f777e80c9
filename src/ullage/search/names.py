"""Does this query say a tool's name?

Whoever knows the name must get the tool, however they spell it and whatever else scores well: `createIssue`,
`create-issue`, `github.create_issue`, `mcp__github__create_issue`, or the beginning of it. Knows names only; what
else a query is near to, the index knows. Never changes once made; no look-up walks through all names.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from .document import Document
from .hit import Named
from .lines import Lines
from .spellings import Spellings
from .stayed import moved, places_before
from .words import parts

__all__ = ["Levels", "Names"]

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
            _text(document) if before is None or old < 0 else before.texts[old]
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
            yield self._from_a_word_on(_spaced(words))
            together = "".join(words)
            if len(together) >= _LEAST_INSIDE and not any(map(str.isspace, query.strip())):
                yield self._together.find(together.encode())[0]

    def _from_a_word_on(self, spaced: bytes) -> NDArray[np.int64]:
        """Places where these words stand in the name, or in server and name and not in the server alone."""
        places, starts = self._lines.find(spaced)
        servers = self._servers[places]
        in_server, in_name = starts + len(spaced) <= servers, starts >= servers
        across = places[~in_server & ~in_name]
        return np.concatenate([places[in_name], np.setdiff1d(across, places[in_server])])

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


def _text(document: Document) -> bytes:
    """The words of server and name, with a space before every word and a mark between the two."""
    return _spaced(_parts(document.server)) + _NAME + _spaced(_parts(document.name))


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
