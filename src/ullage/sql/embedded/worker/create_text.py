"""What does a CREATE statement say that a catalogue does not?

SQLite keeps a table's checks, a trigger's occasion and a view's query only as text. This reads words, not grammar: the
engine has accepted the text long before.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["checks", "computations", "occasion", "query_of"]

_WORDS = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|\s+                                    # passed over
      |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|'(?:[^']|'')*')
      |(?P<word>[\w$]+)
      |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)


class _Word(NamedTuple):
    text: str
    """In upper case, or as it is where it is quoted."""
    start: int
    end: int


def _words(text: str) -> Iterator[_Word]:
    for found in _WORDS.finditer(text):
        if found.lastgroup is not None:
            shown = found.group()
            yield _Word(shown if found.lastgroup == "quoted" else shown.upper(), found.start(), found.end())


def checks(text: str) -> list[str]:
    """`CHECK (…)` as they stand in a CREATE TABLE."""
    words = list(_words(text))
    openings = (at for at, word in enumerate(words[:-1]) if word.text == "CHECK" and words[at + 1].text == "(")
    return [text[words[at].start : _closing(words, at + 1)] for at in openings]


def computations(text: str) -> dict[str, str]:
    """The expressions of generated columns in a CREATE TABLE, by the columns' names in lower case."""
    words = list(_words(text))
    found: dict[str, str] = {}
    depth, begins = 0, False
    column: str | None = None
    for at, word in enumerate(words):
        if begins and depth == 1:
            column, begins = word.text, False
        if depth == 1 and word.text == "AS" and column is not None and at + 1 < len(words):
            name = column[1:-1] if column[:1] in "\"`['" else column
            found[name.lower()] = text[words[at + 1].start : _closing(words, at + 1)]
        depth += (word.text == "(") - (word.text == ")")
        begins = begins or (depth == 1 and word.text in ("(", ","))
    return found


def _closing(words: list[_Word], opening: int) -> int:
    depth = 0
    for word in words[opening:]:
        depth += (word.text == "(") - (word.text == ")")
        if depth == 0:
            return word.end
    return words[-1].end


def occasion(text: str) -> tuple[str, str | None]:
    """A trigger's timing and event; BEFORE is what SQLite takes where nothing is said."""
    words = [word.text for word in _words(text)]
    head = words[: words.index("ON")] if "ON" in words else words
    event = next((word for word in head if word in ("INSERT", "UPDATE", "DELETE")), None)
    if "INSTEAD" in head:
        return "INSTEAD OF", event
    return ("AFTER" if "AFTER" in head else "BEFORE"), event


def query_of(text: str) -> str:
    """What follows the AS of a CREATE VIEW."""
    depth = 0
    for word in _words(text):
        depth += (word.text == "(") - (word.text == ")")
        if word.text == "AS" and depth == 0:
            return text[word.end :].strip().rstrip(";").rstrip()
    return text
