"""Shortening of a JSON reply so that it stays JSON of the same shape.

Programs parse these replies, so none of them may end in a line of ours or in the middle of a value. What is too long is
first written compactly, then loses elements from the end of its lists, and says `"truncated": true` as well as in the
metadata. Long strings are shortened only where the text without any element is still too long.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial

from ullage.table import written
from ullage.tokens import Steps, drain
from ullage.tool import Json, Reply, text_block

from ..metered import META, inner_meta
from .scale import Scale

__all__ = ["cut_json"]

_COUNTS = {"data": "rowCount"}
"""The member that counts the elements of a list."""
_TRUNCATED = "truncated"
_LEAST: Mapping[str, Json] = {_TRUNCATED: True}


def cut_json(reply: Reply, handle: str, scale: Scale, budget: int) -> Steps[Reply]:
    """The longest edition of a reply within the budget, in tokens; the whole is kept under the handle.

    Raises:
        ValueError: The reply's text is no JSON object, which its source promised.
    """
    value: dict[str, Json] = json.loads(_text(reply), parse_float=Decimal)
    whole = written(value)
    if (yield from scale.weigh(whole)) <= budget:
        return _rewritten(reply, whole)
    short, shown = _shortened(value, reply.json_lists or (), lambda text: drain(scale.weigh(text)), budget)
    changed = _rewritten(reply, written(dict(short)))
    inner = dict(inner_meta(reply))
    data = inner.get("data")
    if isinstance(data, dict):
        inner["data"] = {**data, **({} if shown is None else {"rowCount": shown}), "truncated": True}
    else:
        inner["data"] = {"truncated": True}
    return replace(changed, meta={**reply.meta, META: {**inner, "handle": handle}})


def _text(reply: Reply) -> str:
    return str(reply.content[0]["text"])


def _rewritten(reply: Reply, text: str) -> Reply:
    return replace(reply, content=(text_block(text),), structured=None)


def _shortened(
    value: dict[str, Json], lists: tuple[str, ...], weigh: Callable[[str], int], budget: int
) -> tuple[Mapping[str, Json], int | None]:
    """The value with as many elements as fit, and how many rows its `data` has then."""
    short: dict[str, Json] = {**value, _TRUNCATED: True}
    for key in lists:
        elements = short.get(key)
        if not isinstance(elements, list):
            continue
        weights = partial(_weight_with, short, key, elements, weigh)
        fitting = bisect_right(range(len(elements) + 1), budget, key=weights)
        short = _with_first(short, key, elements, max(0, fitting - 1))
        if fitting:
            return short, _rows(short)
    for longest in (200, 20, 0):
        cut: dict[str, Json] = {key: one[:longest] if isinstance(one, str) else one for key, one in short.items()}
        if weigh(written(cut)) <= budget:
            return cut, _rows(cut)
    return _LEAST, 0


def _with_first(value: dict[str, Json], key: str, elements: list[Json], count: int) -> dict[str, Json]:
    counter = _COUNTS.get(key)
    counted: dict[str, Json] = {counter: count} if counter is not None and counter in value else {}
    return {**value, **counted, key: elements[:count]}


def _weight_with(
    value: dict[str, Json], key: str, elements: list[Json], weigh: Callable[[str], int], count: int
) -> int:
    return weigh(written(_with_first(value, key, elements, count)))


def _rows(value: Mapping[str, Json]) -> int | None:
    data = value.get("data")
    return len(data) if isinstance(data, list) else None
