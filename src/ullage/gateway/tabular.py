"""How many rows and columns has this reply?

Looked for in its structured content, else in its one text. Most replies are small and looked at at once; a long JSON
text is read in steps, and what else is large in a worker thread. What a table is, `table` knows.
"""

import anyio.to_thread

from ullage.table import find_table, find_table_in, scan
from ullage.tokens import patiently
from ullage.tool import Json, Reply

from .slim.subschemas import is_small

__all__ = ["size_data", "table_data"]

_AT_ONCE = 64_000
"""Characters of text that are read in one go."""
_VALUES, _LETTERS = 2_000, 200_000
"""Of structured content that is looked at at once."""

_Size = tuple[int, int]
"""Rows and columns."""


async def table_data(reply: Reply) -> dict[str, Json] | None:
    """What the metadata says of a table; None for what is none."""
    size = None if reply.is_error else await _size(reply)
    return None if size is None else size_data(*size)


def size_data(rows: int, columns: int, *, truncated: bool = False) -> dict[str, Json]:
    """The rows and columns that are shown, and whether there are more, as the metadata says it."""
    return {"rowCount": rows, "columnCount": columns, "truncated": truncated}


async def _size(reply: Reply) -> _Size | None:
    if reply.structured is not None:
        return await _size_of_value(reply.structured.value)
    text = _only_text(reply)
    return None if text is None else await _size_of_text(text)


def _only_text(reply: Reply) -> str | None:
    if len(reply.content) != 1 or reply.content[0].get("type") != "text":
        return None
    text = reply.content[0].get("text")
    return text if isinstance(text, str) else None


async def _size_of_value(value: Json) -> _Size | None:
    if is_small(value, values=_VALUES, letters=_LETTERS):
        found = find_table(value)
    else:
        found = await anyio.to_thread.run_sync(find_table, value)
    return None if found is None else (found.row_count, found.column_count)


async def _size_of_text(text: str) -> _Size | None:
    if len(text) > _AT_ONCE and text.lstrip()[:1] in ("[", "{"):
        return await _size_of_long(text)
    found = find_table_in(text) if len(text) <= _AT_ONCE else await anyio.to_thread.run_sync(find_table_in, text)
    return None if found is None else (found.row_count, found.column_count)


async def _size_of_long(text: str) -> _Size | None:
    """By its longest list of objects, where that is most of the text."""
    longest = await patiently(scan(text))
    if longest is None or not longest.columns or not longest.is_most_of(text):
        return None
    return longest.count, len(longest.columns)
