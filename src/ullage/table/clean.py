"""Cleaning of table cells: invisible characters are removed and counted, line breaks become `\\n`.

Which characters are invisible, and which of them belong to ordinary writing, is decided in `ullage.invisible`. The tab
and `\\n` stay; the writer of a line escapes both.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ullage.invisible import remove_invisible_counted
from ullage.tool import Json

from .cell import Cell, Row

__all__ = ["Cleaned", "clean", "clean_row"]

_LINE_BREAK = re.compile("\r\n|[\r\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Cleaned:
    text: str
    removed: int
    """Characters; a line break written otherwise is none."""


def clean(text: str) -> Cleaned:
    if text.isascii() and text.isprintable():
        return Cleaned(text, 0)
    return Cleaned(*remove_invisible_counted(_LINE_BREAK.sub("\n", text)))


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
