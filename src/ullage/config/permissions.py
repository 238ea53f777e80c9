"""Which tools does Claude Code keep from its model, or ask about?

Its settings name a tool `mcp__server__tool`, or a whole server `mcp__server`, under `permissions.deny` and
`permissions.ask`, and the servers of a project's `.mcp.json` that a person declined. What it allows without asking is
not taken over: that is between it and whoever sits there.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from ullage.gateway import Rules

from .kinds import NAMES
from .narrowing import EVERY, literal

__all__ = ["Permissions", "permissions_of", "rules_for"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    """Servers of a `.mcp.json`."""


def permissions_of(document: object, projects: Iterable[str]) -> Permissions | None:
    """Those of a settings file or of its entries for these folders; None where it has none."""
    permissions = _table(_table(document).get("permissions"))
    entries = _table(_table(document).get("projects"))
    parts = [_table(document), *(_table(entries.get(project)) for project in projects)]
    found = Permissions(
        deny=tuple(name for name in _names(permissions, "deny") if name.startswith("mcp__")),
        ask=tuple(name for name in _names(permissions, "ask") if name.startswith("mcp__")),
        declined=tuple(name for part in parts for name in _names(part, "disabledMcpjsonServers")),
    )
    return found if permissions or found != Permissions() else None


def _table(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _names(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    return cast("tuple[str, ...] | None", NAMES.read(table.get(key))) or ()


def rules_for(server: str, permissions: Permissions) -> Rules:
    """What they hold back of one server."""
    return Rules(ask=_patterns(server, permissions.ask), deny=_patterns(server, permissions.deny))


def _patterns(server: str, names: Iterable[str]) -> tuple[str, ...]:
    # Claude Code writes `_` for whatever cannot stand in a tool's name.
    whole = "mcp__" + re.sub(r"[^A-Za-z0-9_-]", "_", server)
    found = list[str]()
    for name in names:
        if name in (whole, "mcp__*"):
            found.extend(EVERY)
        elif name.startswith(f"{whole}__"):
            tool = name.removeprefix(f"{whole}__")
            found.append("*".join(literal(part) for part in tool.split("*")))
    return tuple(dict.fromkeys(found))
