"""Which characters of a value would nobody see?

Control characters, marks that turn the direction of text, characters without width and the tags that can spell hidden
words: a person does not see them, a model reads them. They go, and are counted. Line breaks of every kind become `\n`,
which stays, with the tab; whoever writes the line escapes both.

Kept, because people write them: a joiner between two emoji or two letters of a script that joins (Arabic, Persian, the
scripts of India), and the first variation selector behind a character. Flags made of tags lose these and become a plain
black flag.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ullage.tool import Json

from .cell import Cell, Row

__all__ = ["Cleaned", "clean", "clean_row"]

_JOINED = "\u0600-\u109f\u1780-\u18af\u1b00-\u1bff\ua840-\ua9df\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
"""Scripts that join their letters, and emoji."""
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINERS = "\u200c\u200d"
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff"
_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_NO_WIDTH = (
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
)
_TAGS = "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
_UNSEEN = re.compile(
    rf"[{_CONTROL}{_DIRECTION}{_NO_WIDTH}{_TAGS}]"
    rf"|(?<![{_JOINED}])[{_JOINERS}]|[{_JOINERS}](?![{_JOINED}])"
    rf"|(?<=[{_SELECTORS}])[{_SELECTORS}]"
)
_LINE_BREAK = re.compile("\r\n|[\r\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Cleaned:
    text: str
    removed: int
    """Characters; a line break written otherwise is none."""


def clean(text: str) -> Cleaned:
    if text.isascii() and text.isprintable():
        return Cleaned(text, 0)
    cleaned, removed = _UNSEEN.subn("", _LINE_BREAK.sub("\n", text))
    return Cleaned(cleaned, removed)


def clean_row(row: Sequence[Cell]) -> tuple[Row, int]:
    """A row with every text in it cleaned, in lists and objects too, and how many characters that took."""
    counted = [_clean_cell(cell) for cell in row]
    return tuple(cell for cell, _ in counted), sum(removed for _, removed in counted)


def _clean_cell(cell: Cell) -> tuple[Cell, int]:
    if isinstance(cell, str):
        cleaned = clean(cell)
        return cleaned.text, cleaned.removed
    if isinstance(cell, list | dict):
        return _clean_json(cell)
    return cell, 0


def _clean_json(value: Json) -> tuple[Json, int]:
    if isinstance(value, str):
        cleaned = clean(value)
        return cleaned.text, cleaned.removed
    if isinstance(value, list):
        elements = [_clean_json(element) for element in value]
        return [element for element, _ in elements], sum(removed for _, removed in elements)
    if isinstance(value, dict):
        members = [(clean(key), _clean_json(member)) for key, member in value.items()]
        removed = sum(key.removed + inner for key, (_, inner) in members)
        return {key.text: member for key, (member, _) in members}, removed
    return value, 0
