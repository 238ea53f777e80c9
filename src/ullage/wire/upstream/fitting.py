"""Which optional parts of a definition or a block could no client read?

A client that reads lists through types refuses the whole list for one hint that is not a boolean. Parts that the
protocol knows and that are not what it says are left out here, by name; what it does not know passes. The parts that a
thing cannot do without are its reader's affair. Pure.
"""

import math
from collections.abc import Callable, Mapping
from typing import cast

from ullage.tool import Json

__all__ = ["BLOCK", "PROMPT", "RESOURCE", "TOOL", "Fit", "fitted", "passed_on"]

_OWN = "dev.ullage/"
"""Begins the keys of `_meta` under which Ullage itself speaks."""

Fit = Callable[[Json], Json]
"""What can be kept of a part: the part itself, less of it, or None for nothing."""


def passed_on(meta: Mapping[str, Json]) -> dict[str, Json]:
    """A `_meta` without what only Ullage may say."""
    return {key: value for key, value in meta.items() if not key.startswith(_OWN)}


def fitted(raw: dict[str, Json], fits: Mapping[str, Fit]) -> tuple[dict[str, Json], list[str]]:
    """The mapping without the parts that cannot be meant, and their names; the very same where all can."""
    kept = {key: None if value is None else fits[key](value) for key, value in raw.items() if key in fits}
    changed = [key for key, value in kept.items() if value is None or value is not raw[key]]
    if not changed:
        return raw, []
    whole = {key: kept.get(key, value) for key, value in raw.items() if key not in kept or kept[key] is not None}
    # A null says nothing, and keys of ours are nothing to tell people of.
    return whole, [key for key in changed if raw[key] is not None and (key != "_meta" or kept[key] is None)]


def _text(value: Json) -> Json:
    return value if isinstance(value, str) else None


def _flag(value: Json) -> Json:
    return value if isinstance(value, bool) else None


def _object(value: Json) -> Json:
    return value if isinstance(value, dict) else None


def _whole_number(value: Json) -> Json:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if is_number and cast("float", value) == int(cast("float", value)) else None


def _priority(value: Json) -> Json:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 <= cast("float", value) <= 1 else None


def _meta(value: Json) -> Json:
    if not isinstance(value, dict):
        return None
    return passed_on(value) if any(key.startswith(_OWN) for key in value) else value


def _among(*words: str) -> Fit:
    return lambda value: value if value in words else None


def _list_of(*words: str) -> Fit:
    """A list of texts, of these where any are named."""

    def fit(value: Json) -> Json:
        items = value if isinstance(value, list) else [None]
        return value if all(isinstance(one, str) and (not words or one in words) for one in items) else None

    return fit


def _with(fits: Mapping[str, Fit]) -> Fit:
    return lambda value: fitted(value, fits)[0] if isinstance(value, dict) else None


def _each_with(name: str, fits: Mapping[str, Fit]) -> Fit:
    """A list of objects that have a text of that name; others are left out of it."""

    def fit(value: Json) -> Json:
        if not isinstance(value, list):
            return None
        kept = [fitted(one, fits)[0] for one in value if isinstance(one, dict) and isinstance(one.get(name), str)]
        return value if kept == value else cast("Json", kept)

    return fit


_ICONS = _each_with("src", {"mimeType": _text, "sizes": _list_of(), "theme": _among("light", "dark")})
_HINTS = _with(
    {
        "title": _text,
        "readOnlyHint": _flag,
        "destructiveHint": _flag,
        "idempotentHint": _flag,
        "openWorldHint": _flag,
    }
)
_NOTES = _with({"audience": _list_of("user", "assistant"), "priority": _priority, "lastModified": _text})
_ANY: dict[str, Fit] = {"title": _text, "description": _text, "icons": _ICONS, "_meta": _meta}

TOOL: Mapping[str, Fit] = {
    **_ANY,
    "annotations": _HINTS,
    "outputSchema": _object,
    "execution": _with({"taskSupport": _among("forbidden", "optional", "required")}),
}
RESOURCE: Mapping[str, Fit] = {**_ANY, "annotations": _NOTES, "mimeType": _text, "size": _whole_number}
"""Also of a template, and of a link to a resource."""
PROMPT: Mapping[str, Fit] = {
    **_ANY,
    "arguments": _each_with("name", {"title": _text, "description": _text, "required": _flag}),
}
BLOCK: Mapping[str, Fit] = {"annotations": _NOTES, "_meta": _meta}
