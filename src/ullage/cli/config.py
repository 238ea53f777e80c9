"""Show the settings in force, with --why the file that each comes from, and what pending project files would add."""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import cast

from ullage.config import Loaded, Settings, approve_command, is_secret_name, masked_url
from ullage.tool import Json

from .configured import add_flags, check, reviewed
from .output import bold, columns, dim, emit, emit_json, plain, yellow

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--why", action="store_true", help="show which file, variable or flag each value comes from, pending ones too"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--model", metavar="NAME", help="the model whose tokens and window figures are about")
    parser.add_argument("--mode", choices=("auto", "search", "direct"), help="show tools behind find_tool, or directly")
    add_flags(parser)


@dataclass(frozen=True, slots=True)
class _Row:
    key: str
    value: str
    source: str
    is_pending: bool = False
    """Whether it is a restriction of a file that is not approved."""


def run(arguments: argparse.Namespace) -> int:
    check(arguments)
    loaded = reviewed(arguments)
    rows = list(_rows(loaded))
    if arguments.json:
        emit_json(_json(loaded, rows))
    elif arguments.why:
        _print_why(loaded, rows)
    else:
        for row in rows:
            if row.source != "default":
                emit(f"{plain(row.key)} = {plain(row.value)}")
    return 1 if loaded.errors else 0


def _rows(loaded: Loaded) -> Iterator[_Row]:
    settings, why = loaded.settings, loaded.why
    shown = {
        "store.url": masked_url(settings.store),
        **_fields("gateway", settings.gateway),
        **_fields("search", settings.search),
        **_fields("results", settings.results),
        **_fields("own", settings.own),
        **dict(_named(settings)),
    }
    pending = {str(one.path) for one in loaded.pending}
    for key, value in shown.items():
        source = why.get(key, "default")
        yield _Row(key, value, source, source in pending)


def _fields(table: str, value: object) -> dict[str, str]:
    names = [one.name for one in fields(value)]  # pyright: ignore[reportArgumentType] - always a dataclass
    return {
        f"{table}.{name}": _written(getattr(value, name)) for name in names if getattr(value, name) not in (None, ())
    }


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(str, cast('tuple[object, ...]', value)))}]" if isinstance(value, tuple) else str(value)


def _named(settings: Settings) -> Iterator[tuple[str, str]]:
    """Everything that has a name of the user's choosing. Values that may be secrets are left out."""
    for server in settings.servers:
        what = " ".join((server.command, *server.arguments)) if server.command else masked_url(server.url or "")
        env = [name if is_secret_name(name) else f"{name}={value}" for name, value in server.environment.items()]
        yield f"servers.{server.name}", ", ".join([what, *env, *(["disabled"] if server.disabled else [])])
    for database in settings.databases:
        yield f"sources.{database.name}", masked_url(database.url)
    for folders in settings.retrieves:
        yield f"retrieve.{folders.name}", ", ".join((*folders.folders, *folders.files))
    for provider in settings.providers:
        yield f"providers.{provider.name}", masked_url(provider.base_url)
    for name, profile in settings.clients.items():
        yield (
            f"clients.{name}",
            ", ".join(f"{key} {value}" for key, value in _fields("", profile).items()).replace(".", "", 1),
        )
    for token in settings.tokens:
        yield f"http.tokens.{token.name}", f"variable {token.env}" if token.env else f"file {token.file}"
    for scope, budget in settings.delegate.budgets.items():
        yield f"delegate.budgets.{scope}", ", ".join(f"{key} {value}" for key, value in _fields("", budget).items())


def _print_why(loaded: Loaded, rows: list[_Row]) -> None:
    table = [
        [plain(row.key), plain(row.value), dim(plain(_tilde(row.source)) + (" (pending)" if row.is_pending else ""))]
        for row in rows
    ]
    for line in columns(table):
        emit(line)
    for pending in loaded.pending:
        emit()
        emit(f"{yellow('pending')}  {bold(plain(_tilde(str(pending.path))))}  not approved: it would")
        for line in pending.effects:
            emit(f"  {plain(line)}")
        emit(f"  approve it with: {plain(approve_command(pending.path))}")


def _tilde(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path


def _json(loaded: Loaded, rows: list[_Row]) -> dict[str, Json]:
    return {
        "values": [
            {"key": row.key, "value": row.value, "source": row.source, "pending": row.is_pending} for row in rows
        ],
        "pending": [
            {"path": str(one.path), "sha256": one.unit.digest, "effects": list(one.effects), "pending": True}
            for one in loaded.pending
        ],
    }
