r"""Can what a server wrote be handed on?

JSON may hold what no client can be sent: half a character (`\ud800`), or nesting so deep that writing it fails. The
first is replaced as every decoder does; the second costs the request it answers, and never the connection or another
server's. Pure.
"""

import json
import re
from typing import Any

from ..halves import whole

__all__ = ["DEEPEST", "TooDeep", "read_line"]

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
    if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(text) > DEEPEST:
        raise TooDeep(_number(line))
    return json.loads(whole(text))


def _depth(text: str) -> int:
    deepest = depth = 0
    for mark in re.sub(r'"(?:[^"\\]|\\.)*"|[^\[\]{}"]+', "", text):
        depth += 1 if mark in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _number(line: bytes) -> object:
    found = _ID.search(line[:_ENDS]) or _ID.search(line[-_ENDS:])
    return None if found is None else json.loads(found[1])
