"""Rules of other programs about single tools, as rules of one server.

Programs name a tool in their settings by its server and itself: `mcp__github__delete_repo` (Claude Code, Qwen Code),
`mcp_github_delete_repo` (Gemini CLI), `github_delete_repo` (opencode), `github:delete_repo` (Cursor). A star is any
text and may reach across the border between the two. What cannot be assigned with certainty holds back more.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .entries import ServerEntry, ToolRules

__all__ = ["FileRules", "apply_rules", "fold_name", "tools_named_by"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRules:
    """What one file says about servers and tools that may be configured elsewhere."""

    deny: tuple[str, ...] = ()
    """Rules as the file has them."""
    ask: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    off: frozenset[str] = frozenset()
    """Servers that are switched off, folded."""
    on: frozenset[str] | None = None
    """The only servers that are not; None where there is no such list."""
    declined: frozenset[str] = frozenset()
    """Servers of project files that the user declined, folded."""


def fold_name(name: str) -> str:
    """A server's name with `_` for everything but letters and digits: programs spell it with fewer characters."""
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def tools_named_by(rules: Iterable[str], prefixes: Sequence[str], wholes: Sequence[str]) -> tuple[str, ...]:
    """The patterns of a server's own tools that these rules name.

    Args:
        rules: as the file has them; arguments in parentheses are left out, which can only name more.
        prefixes: what stands before the tool's name, such as `mcp__github__`.
        wholes: what names the server with all its tools, such as `mcp__github`.
    """
    found = dict[str, None]()
    for rule in rules:
        name = rule.partition("(")[0].strip()
        if any("" in _rests(name, whole) for whole in wholes):
            found["*"] = None
        for prefix in prefixes:
            found.update(dict.fromkeys(rest for rest in _rests(name, prefix) if rest))
    return tuple(found)


def _rests(pattern: str, text: str) -> list[str]:
    """What is left of a pattern after its beginning has matched a text, for every way in which it can match."""
    places = _skip_stars(pattern, {0})
    for letter in text:
        stay = {at for at in places if pattern[at : at + 1] == "*"}
        step = {at + 1 for at in places - stay if _is_same(pattern[at : at + 1], letter)}
        places = _skip_stars(pattern, stay | step)
    return [pattern[at:] for at in sorted(places)]


def _skip_stars(pattern: str, places: set[int]) -> set[int]:
    """These places, and those behind stars that stand for nothing."""
    found = set(places)
    for place in places:
        after = place
        while pattern[after : after + 1] == "*":
            after += 1
            found.add(after)
    return found


def _is_same(one: str, other: str) -> bool:
    return one == other or (bool(one) and fold_name(one) == fold_name(other) == "_")


def apply_rules(
    entry: ServerEntry, rules: Iterable[FileRules], prefixes: Sequence[str], wholes: Sequence[str]
) -> ServerEntry:
    """The entry with all that these files say about it."""
    own, is_off = entry.rules, entry.disabled
    folded = fold_name(entry.name)
    for one in rules:
        own = ToolRules(
            only=own.only,
            deny=_join(own.deny, tools_named_by(one.deny, prefixes, wholes)),
            ask=_join(own.ask, tools_named_by(one.ask, prefixes, wholes)),
            allow=_join(own.allow, tools_named_by(one.allow, prefixes, wholes)),
        )
        is_off = is_off or folded in one.off or (one.on is not None and folded not in one.on)
        is_off = is_off or (entry.scope == "project" and folded in one.declined)
    return replace(entry, rules=own, disabled=is_off)


def _join(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
