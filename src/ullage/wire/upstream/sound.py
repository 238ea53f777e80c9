r"""Reading of the lines that a server writes.

JSON may hold what no client can be sent: half a character (`\ud800`), or nesting so deep that writing it fails. The
first is replaced as every decoder does; the second costs the request it answers, and never the connection or another
server's. Pure.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from ullage.table import decode_pieces, read_pieces
from ullage.tool import Json

from ..halves import whole

__all__ = ["DEEPEST", "LONG", "TooDeep", "read_line", "read_long_line"]

LONG = 200_000
"""Bytes of a line above which it is read in pieces, by `read_long_line` in a worker thread."""

DEEPEST = 200
"""Levels of a message; the SDK writes 255, and the deepest of a hundred recorded catalogues has 27."""
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")')
_ENDS = 400
"""Bytes at either end of a line in which its `id` is looked for."""


class TooDeep(Exception):
    """Carries the `id` of the message, where one was found."""

    def __init__(self, number: object) -> None:
        super().__init__("nested too deeply")
        self.number = number


def read_line(line: bytes) -> Any:  # noqa: ANN401 - whatever JSON there is
    """The value of a line; raises ValueError for what is no JSON, `TooDeep` for what nobody could write again."""
    text = line.decode("utf-8", "replace").lstrip("\ufeff")
    try:
        value = json.loads(whole(text))
    except RecursionError:
        raise TooDeep(_number(line)) from None
    if line.count(b"[") + line.count(b"{") > DEEPEST and _is_deep(value):
        raise TooDeep(_number(line))
    return value


def read_long_line(line: bytes) -> Any:  # noqa: ANN401 - whatever JSON there is
    """The same as `read_line`, slower and without a long call of the parser, which would hold up every thread."""
    try:
        return read_pieces(decode_pieces(line).lstrip("\ufeff"), DEEPEST)
    except RecursionError:
        raise TooDeep(_number(line)) from None


def _is_deep(value: Json) -> bool:
    """Level by level: a text that holds brackets is no level, and may be most of the line."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        level = [inner for outer in level for inner in _within(outer) if isinstance(inner, dict | list)]
        depth += 1
    return depth > DEEPEST


def _within(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _number(line: bytes) -> object:
    found = _ID.search(line[:_ENDS]) or _ID.search(line[-_ENDS:])
    return None if found is None else json.loads(found[1])
