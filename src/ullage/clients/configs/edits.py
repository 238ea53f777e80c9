"""Changes to a configuration file, as values, and their effect on the parsed document.

`Put` and `Remove` name a place by its keys. `apply_edits` carries them out on the parsed document; `jsonc` and
`toml_text` carry out the same edits on the text and compare the two results, so that an edited file always says exactly
what it should, or is not written at all.
"""

import copy
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["Edit", "EditRefused", "KeyPath", "Put", "Remove", "apply_edits", "fingerprint", "value_at"]

KeyPath = tuple[str, ...]
"""Keys from the top of a document to a value: `("mcpServers", "github")`."""


class EditRefused(ValueError):
    """A file cannot be changed without a risk for what it says; it stays as it is."""


@dataclass(frozen=True, slots=True)
class Put:
    """Sets a value. Missing tables above it are made; an existing value is replaced where it stands."""

    path: KeyPath
    value: object


@dataclass(frozen=True, slots=True)
class Remove:
    """Removes a key with its value. One that is not there is no fault."""

    path: KeyPath


Edit = Put | Remove


def apply_edits(document: object, edits: Iterable[Edit]) -> dict[str, Any]:
    """The document after these edits, as a copy.

    Raises:
        EditRefused: a key on the way to a value holds something else than a table.
    """
    if not isinstance(document, dict):
        raise EditRefused("the file does not hold a table of settings")
    whole = copy.deepcopy(cast("dict[str, Any]", document))
    for edit in edits:
        table = whole
        for key in edit.path[:-1]:
            if key not in table:
                if isinstance(edit, Remove):
                    break
                table[key] = {}
            if not isinstance(table[key], dict):
                raise EditRefused(f"`{'.'.join(edit.path[:-1])}` is not a table")
            table = cast("dict[str, Any]", table[key])
        else:
            if isinstance(edit, Put):
                table[edit.path[-1]] = copy.deepcopy(edit.value)
            else:
                table.pop(edit.path[-1], None)
    return whole


def value_at(document: object, path: KeyPath) -> object:
    """The value at a place; None where there is none."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = cast("dict[str, object]", document).get(key)
    return document


def fingerprint(document: object, *, is_ordered: bool) -> str:
    """A text that is equal for documents that say the same; with `is_ordered` in the same order."""
    return json.dumps(document, sort_keys=not is_ordered, default=lambda value: f"{type(value).__name__} {value}")
