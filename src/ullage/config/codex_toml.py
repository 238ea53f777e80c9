"""Which servers stand in Codex's `config.toml`?

The tables `[mcp_servers.NAME]`. What Codex leaves out or asks for stays so; its other settings are not looked at.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from ullage.options import Rules

from .kinds import VARIABLE
from .layer import Layer
from .loose import Loose, flag, pairs, read_tables, seconds, text, texts
from .narrowing import narrowed
from .page import Page

__all__ = ["read_codex_toml"]

_UNASKED = ("approve", "auto")
"""Approval modes in which Codex decides by itself; it still asks before `call_tool_write`, as it is set to."""


def read_codex_toml(page: Page) -> Layer:
    try:
        table = cast("Mapping[str, object]", tomllib.loads(page.text)).get("mcp_servers")
    except (ValueError, RecursionError) as error:
        return replace(_nothing(page, f"is not TOML: {error or 'nested too deep'}"), is_unread=True)
    if table is None:
        return _nothing(page, "has no `[mcp_servers]`")
    found = read_tables(page, [(("mcp_servers",), table)], _values)
    return Layer(
        source=page.file,
        servers=found.servers,
        withheld=found.withheld(),
        issues=tuple(found.issues),
        is_foreign=True,
    )


def _nothing(page: Page, why: str) -> Layer:
    issue = page.issue("problem", f"{why}; none of its servers are used")
    return Layer(source=page.file, issues=(issue,), is_foreign=True)


def _values(entry: Loose) -> dict[str, Any]:
    milliseconds = entry.take(seconds, "startup_timeout_ms")
    return {
        "command": entry.take(text, "command"),
        "arguments": entry.take(texts, "args"),
        "environment": _environment(entry),
        "directory": entry.take(text, "cwd"),
        "url": entry.take(text, "url"),
        "headers": _headers(entry),
        "disabled": entry.take(flag, "enabled") is False,
        "start_timeout": entry.take(seconds, "startup_timeout_sec") or (milliseconds and milliseconds / 1000),
        "call_timeout": entry.take(seconds, "tool_timeout_sec"),
        "rules": _rules(entry),
    }


def _environment(entry: Loose) -> dict[str, str] | None:
    """The variables that are written out in `env`, and those of `env_vars` that are set here."""
    named = entry.take(_variable_names, "env_vars") or ()
    inherited = {name: f"${{{name}}}" for name in named if name in entry.page.environment}
    return {**inherited, **(entry.take(pairs, "env") or {})} or None


def _variable_names(value: object) -> tuple[str, ...] | None:
    """Names of variables, each a text or a table with a `name`."""
    if not isinstance(value, list):
        return None
    items = cast("list[object]", value)
    names = [cast("dict[str, object]", item).get("name") if isinstance(item, dict) else item for item in items]
    return None if None in map(_variable, names) else cast("tuple[str, ...]", tuple(names))


def _variable(value: object) -> str | None:
    return cast("str | None", VARIABLE.read(value))


def _variables(value: object) -> dict[str, str] | None:
    found = pairs(value)
    return found if found is not None and all(_variable(name) for name in found.values()) else None


def _headers(entry: Loose) -> dict[str, str] | None:
    """Those written out and those whose value is a variable's."""
    headers = entry.take(pairs, "http_headers") or {}
    headers |= {name: f"${{{one}}}" for name, one in (entry.take(_variables, "env_http_headers") or {}).items()}
    bearer = entry.take(_variable, "bearer_token_env_var")
    return headers | ({"Authorization": f"Bearer ${{{bearer}}}"} if bearer else {}) or None


def _rules(entry: Loose) -> Rules:
    tools = entry.take(_tools, "tools") or {}
    modes = {name: str(one["approval_mode"]) for name, one in tools.items() if one.get("approval_mode") is not None}
    off = [name for name, one in tools.items() if one.get("enabled") is False]
    return narrowed(
        only=entry.tools("enabled_tools"),
        denied=(*(entry.tools("disabled_tools") or ()), *off),
        asked=[name for name, mode in modes.items() if mode not in _UNASKED],
        ask_rest=entry.take(text, "default_tools_approval_mode") not in (None, *_UNASKED),
        unasked=[name for name, mode in modes.items() if mode in _UNASKED],
    )


def _tools(value: object) -> dict[str, dict[str, object]] | None:
    """The tables of single tools."""
    if not isinstance(value, dict):
        return None
    tables = cast("dict[str, object]", value)
    return {name: cast("dict[str, object]", one) for name, one in tables.items() if isinstance(one, dict)}
