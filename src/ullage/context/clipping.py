"""How is a long text made short, and a foul one fit to be read?

A text loses its middle, for the beginning says what it is and the end what came of it; how much is gone stands in the
gap. What no reader can read (control characters, halves of characters, colours of a terminal) is taken out.
"""

import re
from collections.abc import Callable

__all__ = ["beginning", "clipped", "ending", "fitted", "line_of", "readable"]

_GAP = 48
"""Characters that the words in a gap have at most."""
_LEAST = 400
"""Characters under which a gap has no words, for they would be much of it."""
_WIDE = 8
"""Characters that a token has at most, where tokens are many."""
_STEP = 0.95
_WORD = 40
"""Characters that are given up at most so that a text is not cut in the middle of a word."""
_STUMP = re.compile(rf"\s\S{{1,{_WORD}}}\Z")
_STUMP_BEFORE = re.compile(rf"\S{{1,{_WORD}}}\s")
_BREAKS = re.compile("\r\n?|[\u2028\u2029\x85]")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FOUL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]+")


def readable(text: str) -> str:
    """The text with one kind of line break and nothing that cannot be shown or sent."""
    return _FOUL.sub("\ufffd", _COLOURS.sub("", _BREAKS.sub("\n", text)))


def clipped(text: str, most: int) -> str:
    """At most so many characters of a text."""
    if len(text) <= most:
        return text
    if most <= 0:
        return ""
    kept = most - (_GAP if most >= _LEAST else 1)
    head, tail = beginning(text, kept - kept // 2), ending(text, kept // 2)
    lost = len(text) - len(head) - len(tail)
    return f"{head} [… {lost:,} characters left out …] {tail}" if most >= _LEAST else f"{head}…{tail}"


def beginning(text: str, most: int) -> str:
    """At most so many characters of the beginning of a text, up to the end of a word where one ends near."""
    head = text[:most]
    if len(text) <= most or text[most].isspace() or not (stump := _STUMP.search(head, max(0, most - _WORD - 1))):
        return head
    return head[: stump.start()]


def ending(text: str, most: int) -> str:
    """At most so many characters of the end of a text, from the beginning of a word where one begins near."""
    start = max(0, len(text) - most)
    near = _STUMP_BEFORE.match(text, start) if start and not text[start - 1].isspace() else None
    return text[near.end() if near else start :]


def fitted(text: str, room: int, count: Callable[[str], int]) -> str:
    """As much of a text as has at most so many tokens, fit to be read; however long it is, little of it is counted."""
    shown = readable(clipped(text, room * _WIDE))
    while (size := count(shown)) > room:
        shown = readable(clipped(text, int(_STEP * len(shown) * room / size)))
    return shown


def line_of(text: str, most: int) -> str:
    """The same in one line of so many characters."""
    return clipped(" ".join(readable(clipped(text, 4 * most)).split()), most)
