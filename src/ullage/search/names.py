"""Does this query say a tool's name?

Whoever knows the name must get the tool, however they spell it and whatever else scores well: `createIssue`,
`create-issue`, `github.create_issue`, `mcp__github__create_issue`, or the beginning of it. Knows names only; what
else a query is near to, the index knows.
"""

from .document import Document
from .hit import Named
from .words import parts

__all__ = ["Names"]

_LONGEST = 100
"""Letters of a query that can still be part of a name."""
_LEAST_INSIDE = 4
"""Letters that a query must have to be found in the midst of a word."""


class Names:
    """Names of documents by slot, in every spelling."""

    def __init__(self) -> None:
        self._spellings: dict[str, dict[int, None]] = {}
        """The slots of each name: run together, alone and behind its server's; and as it stands, between quotes."""
        self._words: dict[int, tuple[str, str, str]] = {}
        """The words of server and name, of the server, and of the name, with a space before every word."""

    def add(self, slot: int, document: Document) -> None:
        server, name = _spaced(parts(document.server)), _spaced(parts(document.name))
        self._words[slot] = server + name, server, name
        for spelling in _spellings(document):
            self._spellings.setdefault(spelling, {})[slot] = None

    def remove(self, slot: int, document: Document) -> None:
        del self._words[slot]
        for spelling in _spellings(document):
            slots = self._spellings[spelling]
            del slots[slot]
            if not slots:
                del self._spellings[spelling]

    def named(self, query: str) -> dict[int, Named]:
        """The slots that the query names, and how."""
        found = dict.fromkeys(self._among_others(query), Named.AMONG_OTHERS)
        if len(query) <= _LONGEST:
            words = parts(query)
            found = dict.fromkeys(self._in_part(query, words), Named.IN_PART) | found
            found |= dict.fromkeys(self._spellings.get("".join(words), ()), Named.WHOLLY)
        return found | dict.fromkeys(self._spellings.get(_quoted(query.strip()), ()), Named.EXACTLY)

    def _in_part(self, query: str, words: list[str]) -> list[int]:
        """Slots whose name goes on where the query ends, or begins before it; the server's words may lead."""
        if not words:
            return []
        spaced, together = _spaced(words), "".join(words)
        inside = len(together) >= _LEAST_INSIDE and not any(map(str.isspace, query.strip()))
        found = [
            slot
            for slot, (both, server, name) in self._words.items()
            if spaced in both and (spaced in name or spaced not in server)
        ]
        if inside:
            found += [slot for slot, (_, _, name) in self._words.items() if together in name.replace(" ", "")]
        return found

    def _among_others(self, query: str) -> list[int]:
        """Slots whose name stands in the query as one word that is made of several."""
        return [
            slot
            for word in query[: _LONGEST * _LONGEST].split()
            if len(word) <= _LONGEST and len(made_of := parts(word)) > 1
            for slot in self._longest_ending(made_of)
        ]

    def _longest_ending(self, words: list[str]) -> dict[int, None]:
        """The slots named by the word, or by what remains of it behind prefixes, in two words at the least."""
        for start in range(len(words) - 1):
            slots = self._spellings.get("".join(words[start:]))
            if slots:
                return slots
        return {}


def _spaced(words: list[str]) -> str:
    return "".join(f" {word}" for word in words)


def _spellings(document: Document) -> set[str]:
    server, names = "".join(parts(document.server)), (document.name, *document.aliases)
    together = {"".join(parts(name)) for name in names} - {""}
    return together | {server + name for name in together} | {_quoted(name) for name in names}


def _quoted(name: str) -> str:
    """Marks a name as it stands; one that is run together has letters and digits only."""
    return f"`{name}`"
