"""How is a ledger of identifiers written, and read again?

A line for each name or kind that words share, its best first; words are parted by spaces, and what has spaces itself
stands between backticks. Every word stands there as it was written.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .kinds import Kind, kind_of

__all__ = ["Item", "can_stand", "item_of", "read_identifiers", "write"]

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
_NAME = re.compile(r"[\w.-]{1,41}(?: [\w-]{1,20})?")
"""What may stand before a line; names come from anybody's JSON."""
_ITEM = re.compile(r"`([^`]+)`|(\S+)")


@dataclass(frozen=True, slots=True)
class Item:
    word: str
    label: str
    """Of its line: the name that it stood under in a call or a result, else what kind of word it is."""
    rank: float = 1.0
    """Where it stands in its line: from 0 for the first to 1."""

    @property
    def name(self) -> str | None:
        return None if self.label in _KINDS else self.label


def item_of(word: str, name: str | None) -> Item:
    return Item(word, name if name and _NAME.fullmatch(name) else _LABELS.get(kind_of(word), _OTHER))


def can_stand(word: str) -> bool:
    """Whether a word can be written so that it is read again."""
    return "`" not in word and word.isprintable()


def write(items: Iterable[Item]) -> str:
    """The items, best first, as lines; the line with the best of all comes first."""
    lines: dict[str, list[str]] = {}
    for item in items:
        lines.setdefault(item.label, []).append(f"`{item.word}`" if " " in item.word else item.word)
    return "\n".join(f"{label}: {' '.join(found)}" for label, found in lines.items())


def read_identifiers(text: str) -> tuple[Item, ...]:
    """The items of a ledger; a line that is none of a ledger's is passed over."""
    return tuple(item for line in text.split("\n") for item in _read_line(line))


def _read_line(line: str) -> Iterator[Item]:
    label, colon, rest = line.partition(": ")
    found = _ITEM.findall(rest) if colon and _NAME.fullmatch(label) else []
    for place, (quoted, plain) in enumerate(found):
        yield Item(quoted or plain, label, place / len(found))
