"""Show the settings in force. With --why, also show the source of each value and what pending files would add."""

import argparse
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import cast

from ullage.config import Loaded, Settings, approve_command, masked_url
from ullage.gateway import Server
from ullage.wire import redacted, secrets_of

from .load_settings import add_flags, check, review_settings
from .output import bold, columns, cut, dim, emit, emit_json, plain, say, table_width, width_of, yellow

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--why",
        action="store_true",
        help="show the file, variable or flag that sets each value, including pending files",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--model", metavar="NAME", help="model for token counts and the window")
    parser.add_argument("--mode", choices=("auto", "search", "direct"), help="show tools behind find_tool, or directly")
    add_flags(parser)


_NARROWEST = 12
"""Minimum characters of a value that is printed beside its source."""
_WIDEST = 44
"""Maximum characters of a value that is printed beside its source."""


@dataclass(frozen=True, slots=True)
class _Row:
    key: str
    value: str
    source: str
    is_pending: bool = False
    """Whether it is a restriction from a file that is not approved."""


def run(arguments: argparse.Namespace) -> int:
    check(arguments)
    loaded = review_settings(arguments)
    rows: list[_Row] = []
    settings, why = loaded.settings, loaded.why
    shown = {
        "store.url": masked_url(settings.store),
        **_fields("gateway", settings.gateway),
        **_fields("search", settings.search),
        **_fields("results", settings.results),
        **_fields("own", settings.own),
        **dict(_list_named_settings(settings)),
    }
    pending = {str(one.path) for one in loaded.pending}
    for key, value in shown.items():
        parts = key.split(".")
        source = why.get(key) or why.get(".".join(parts[:2]), "default")
        rows.append(_Row(key, value, source, source in pending))
    if arguments.json:
        emit_json(
            {
                "values": [
                    {"key": row.key, "value": row.value, "source": row.source, "pending": row.is_pending}
                    for row in rows
                ],
                "pending": [
                    {"path": str(one.path), "sha256": one.unit.digest, "effects": list(one.effects), "pending": True}
                    for one in loaded.pending
                ],
            }
        )
    elif arguments.why:
        _print_why(loaded, rows)
    else:
        for row in rows:
            emit(f"{plain(row.key)} = {plain(row.value)}")
    for issue in loaded.errors:
        say(f"ullage: {issue.sentence()}")
    return 1 if loaded.errors else 0


def _fields(table: str, value: object) -> dict[str, str]:
    names = [one.name for one in fields(value)]  # pyright: ignore[reportArgumentType] - always a dataclass
    return {
        f"{table}.{name}": _format_value(getattr(value, name))
        for name in names
        if getattr(value, name) not in (None, ())
    }


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(str, cast('tuple[object, ...]', value)))}]" if isinstance(value, tuple) else str(value)


def _server_rows(server: Server) -> Iterator[tuple[str, str]]:
    """Yield how a server is started or reached, without secrets; of its variables only the names."""
    what = shlex.join((server.command, *server.arguments)) if server.command else masked_url(server.url or "")
    what = redacted(what, secrets_of(server, os.environ))
    yield f"servers.{server.name}", f"{what} (disabled)" if server.disabled else what
    said = {
        "env": tuple(server.environment),
        "inherit_env": server.inherit_env,
        "definition_changes": server.definition_changes,
        "description": server.description,
    }
    for key, value in said.items():
        if value and value != "hold":
            yield f"servers.{server.name}.{key}", _format_value(value)
    rules = server.rules if server.rules.under is None else server.rules.under
    for key in ("allow", "ask", "deny", "hidden", "pinned", "read_only", "writing"):
        patterns = dict.fromkeys((*getattr(server.rules, key), *getattr(rules, key)))
        if patterns:
            yield f"servers.{server.name}.{key}", _format_value(tuple(patterns))


def _list_named_settings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield everything that has a name chosen by the user. Values that may be secrets are left out."""
    for server in settings.servers:
        yield from _server_rows(server)
    for database in settings.databases:
        yield f"sources.{database.name}", masked_url(database.url)
        for key in ("masked", "functions"):
            if getattr(database, key):
                yield f"sources.{database.name}.{key}", _format_value(getattr(database, key))
    for folders in settings.retrieves:
        yield f"retrieve.{folders.name}", ", ".join((*folders.folders, *folders.files))
    for provider in settings.providers:
        yield f"providers.{provider.name}", masked_url(provider.base_url)
    for name, profile in settings.clients.items():
        yield (
            f"clients.{name}",
            ", ".join(f"{key.removeprefix('.')} {value}" for key, value in _fields("", profile).items()),
        )
    for token in settings.tokens:
        yield f"http.tokens.{token.name}", f"variable {token.env}" if token.env else f"file {token.file}"
    for scope, budget in settings.delegate.budgets.items():
        yield (
            f"delegate.budgets.{scope}",
            ", ".join(f"{key.removeprefix('.')} {value}" for key, value in _fields("", budget).items()),
        )


def _print_why(loaded: Loaded, rows: list[_Row]) -> None:
    sources = [plain(_tilde(row.source)) + (" (pending)" if row.is_pending else "") for row in rows]
    room, limit = _WIDEST, table_width()
    if limit is not None:
        taken = max((width_of(row.key) for row in rows), default=0) + max(map(width_of, sources), default=0) + 4
        room = min(_WIDEST, max(limit - taken, _NARROWEST))
    table = [
        [plain(row.key), cut(plain(row.value), room), dim(source)] for row, source in zip(rows, sources, strict=True)
    ]
    for line in columns(table):
        emit(line)
    for pending in loaded.pending:
        emit()
        emit(f"{yellow('pending')}  {bold(plain(_tilde(str(pending.path))))}  not approved. After approval it would:")
        for line in pending.effects:
            emit(f"  {plain(line)}")
        emit(f"  approve it with: {plain(approve_command(pending.path))}")


def _tilde(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path
