"""Differences between the definition that was accepted and the one that is offered now.

Two forms. `changed_parts` is for a model: it says which parts changed and by how much, and never repeats a word of the
new definition, because whoever changed it may have written it for the model to read. `difference_lines` is for a
person: every value that differs, old and new, with nothing left out. Neither escapes for a terminal; the CLI does.
"""

import difflib
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal

from ullage.errors import ToolChanged
from ullage.tool import Json, JsonObject

__all__ = ["DefinitionChange", "Kind", "changed_parts", "difference_lines", "tool_changed", "trust_command"]

Kind = Literal["tool", "prompt", "instructions"]

_MOST_PARTS = 6
"""Parts that are named to a model."""
_LONGEST_NAME = 60
"""Letters of a name in a sentence."""
_SHOWN_HASH = 12
_CONTEXT = 2
"""Unchanged lines around a changed one of a long text."""
_MOST_COMPARED = 2_000
"""Lines beyond which old and new are shown one after the other: comparing them takes the square of their number."""


class _Missing:
    """In place of a value that one of two definitions does not have."""


_MISSING = _Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """A definition that differs from the accepted one, and is withheld for that."""

    server: str
    kind: Kind
    name: str
    """As the server calls it; empty for its instructions."""
    accepted: JsonObject | None
    """None where the record of it cannot be read."""
    accepted_hash: str
    offered: JsonObject
    offered_hash: str
    since: datetime
    changes: int = 1
    """Different definitions offered since the first one."""
    record_id: str = ""
    """Of the row in the store."""


def changed_parts(change: DefinitionChange) -> list[str]:
    """What changed, in the words of the accepted definition only: new names and new text are counted, not quoted."""
    if change.accepted is None:
        return ["the record of the accepted definition cannot be read"]
    try:
        parts = list(_summary(change.accepted, change.offered, ""))
    except RecursionError:
        return ["it is nested too deep to be compared part by part"]
    rest = len(parts) - _MOST_PARTS
    return [*parts[:_MOST_PARTS], f"{rest} more"] if rest > 0 else parts


def _summary(old: Mapping[str, Json], new: Mapping[str, Json], place: str) -> Iterator[str]:
    for key, before in old.items():
        where = f"{place}.{_short(key)}" if place else _short(key)
        if key not in new:
            yield f"`{where}` removed"
            continue
        after = new[key]
        if _same(before, after):
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _summary(before, after, where)
        elif isinstance(before, str) and isinstance(after, str):
            yield f"`{where}` changed ({len(before):,} to {len(after):,} characters)"
        elif isinstance(before, list) and isinstance(after, list) and len(before) != len(after):
            yield f"`{where}` changed ({len(before):,} to {len(after):,} entries)"
        else:
            yield f"`{where}` changed"
    added = sum(key not in old for key in new)
    if added:
        what = "key" if added == 1 else "keys"
        yield f"{added} {what} added" + (f" to `{place}`" if place else "")


def _short(name: str) -> str:
    """A name of the accepted definition on one line."""
    shown = "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in name[:_LONGEST_NAME])
    return shown if len(name) <= _LONGEST_NAME else f"{shown}…"


def trust_command(server: str, tool: str | None = None) -> str:
    """The command that shows a change and accepts it, quoted for a shell."""
    words = [server] if not tool else [server, tool]
    separator = "-- " if any(word.startswith("-") for word in words) else ""
    return f"ullage trust {separator}{' '.join(shlex.quote(word) for word in words)}"


def tool_changed(listed: str, change: DefinitionChange) -> ToolChanged:
    """The error for whoever calls a withheld tool or asks for a withheld prompt."""
    hashes = f"{change.accepted_hash[:_SHOWN_HASH] or 'unreadable'} to {change.offered_hash[:_SHOWN_HASH]}"
    command = trust_command(_short(change.server), _short(change.name))
    return ToolChanged(
        f"`{_short(listed)}` is withheld: its definition is not the one the user accepted "
        f"({'; '.join(changed_parts(change))}; {hashes})",
        suggestion=f"Do without it, and tell the user that `{command}` shows the difference and accepts it.",
    )


def difference_lines(change: DefinitionChange) -> list[str]:
    """Every value that differs, as `- old` and `+ new` lines under the place where it is."""
    if change.accepted is None:
        text = json.dumps(dict(change.offered), indent=2, ensure_ascii=False)
        return ["the record of the accepted definition cannot be read; offered is:", *text.splitlines()]
    return list(_difference(dict(change.accepted), dict(change.offered), ""))


def _difference(old: Json | _Missing, new: Json | _Missing, place: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            where = f"{place}.{key}" if place else key
            if key in old and key in new and _same(old[key], new[key]):
                continue
            yield from _difference(old.get(key, _MISSING), new.get(key, _MISSING), where)
        return
    yield f"{place or 'definition'}:"
    before, after = _written(old), _written(new)
    if len(before) + len(after) > _MOST_COMPARED:
        yield from (f"  {mark}{line}" for mark, lines in (("-", before), ("+", after)) for line in lines)
        return
    # Only the two lines of the head are skipped by their place: a line of the text may begin with `--` or `++` as well.
    compared = islice(difflib.unified_diff(before, after, n=_CONTEXT, lineterm=""), 2, None)
    yield from (f"  {line}" for line in compared if not line.startswith("@@"))


def _written(value: Json | _Missing) -> list[str]:
    if isinstance(value, _Missing):
        return []
    if isinstance(value, str):
        return value.split("\n")
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines()


def _same(before: Json, after: Json) -> bool:
    """As JSON: to Python, 1 and true are equal."""
    return before == after and json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)
