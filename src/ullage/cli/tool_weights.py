"""Counts the tokens of a server's visible tools.

All verbs count with these functions, so that their figures agree. Nothing is printed here.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from ullage.app.build_gateway import tokens_of, weigh
from ullage.gateway import Entry, Rules, View
from ullage.sql import ORIGINAL_NAMES

__all__ = ["entries_of", "find_unmatched_patterns", "kept_back", "tokens_of", "weigh", "without_ullage"]

_RULES = ("allow", "ask", "deny", "read_only", "writing", "pinned", "hidden", "only")


def entries_of(view: View, server: str) -> list[Entry]:
    return [entry for entry in view.entries if entry.server == server]


def without_ullage(view: View) -> int:
    """Return the tokens of definitions that a request would carry without Ullage."""
    return sum(tokens_of(entry) for entry in view.entries if not entry.member.own)


def kept_back(view: View, server: str) -> str:
    """Return how many tools of a server cannot be found, and why."""
    hidden = [entry for entry in view.hidden if not _is_second_name(entry)]
    parts = {
        "denied": view.withheld,
        "hidden": hidden,
        "only as tasks": view.uncallable,
        "withheld, changed": view.changed,
    }
    counts = {word: sum(entry.server == server for entry in entries) for word, entries in parts.items()}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _is_second_name(entry: Entry) -> bool:
    """Return whether the entry is an older name of a database's tool; leaving such names out of a list withholds
    nothing."""
    return entry.member.own and entry.original in ORIGINAL_NAMES


def find_unmatched_patterns(rules: Rules, tools: Iterable[str]) -> list[str]:
    """Return sentences about the patterns that match no tool of a server: a name may be misspelled or obsolete."""
    names = tuple(tools)
    return [
        f"`{key}` has `{pattern}`, and no tool is called so"
        for key in _RULES
        for pattern in getattr(rules, key) or ()
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
