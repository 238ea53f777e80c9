"""How is a ledger of identifiers written, and read again?

A line for each name or kind that words share, its best first; words are parted by spaces, and what has spaces itself
stands between backticks. Every word stands there as it was written.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .kinds import Kind, kind_of

__all__ = ["Item", "read_identifiers", "write"]

_LABELS = {
    Kind.LINK: "links",
    Kind.MAIL: "addresses",
    Kind.PATH: "files",
    Kind.FILE: "files",
    Kind.DATE: "numbers",
    Kind.NUMBER: "numbers",
    Kind.HASH: "ids",
    Kind.CODED: "ids",
    Kind.PHRASE: "values",
}
_OTHER = "names"
_KINDS = frozenset({*_LABELS.values(), _OTHER})
_ITEM = re.compile(r"`([^`]+)`|(\S+)")


@dataclass(frozen=True, slots=True)
class Item:
    word: str
    name: str | None = None
    """Under which it stood in a call or a result."""
    rank: float = 1.0
    """Where it stands in its line: from 0 for the first to 1."""


def write(items: Sequence[Item]) -> str:
    """The items, best first, as lines; the line with the best of all comes first."""
    lines: dict[str, list[str]] = {}
    for item in items:
        lines.setdefault(_label(item), []).append(_quoted(item.word))
    return "\n".join(f"{label}: {' '.join(found)}" for label, found in lines.items())


def read_identifiers(text: str) -> tuple[Item, ...]:
    """The items of a ledger; a line that is none of a ledger's is passed over."""
    return tuple(item for line in text.splitlines() for item in _read_line(line))


def _read_line(line: str) -> Iterator[Item]:
    label, colon, rest = line.partition(": ")
    found = _ITEM.findall(rest) if colon else []
    for place, (quoted, plain) in enumerate(found):
        yield Item(quoted or plain, None if label in _KINDS else label, place / len(found))


def _label(item: Item) -> str:
    return item.name or _LABELS.get(kind_of(item.word), _OTHER)


def _quoted(word: str) -> str:
    return f"`{word}`" if " " in word else word
