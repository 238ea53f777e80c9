"""Reads the MCP servers that other programs have configured.

`read_client` reads every file of one program and returns what it says: servers with their rules, the model, and a
problem for everything that could not be understood. It changes nothing and raises nothing, whatever is in the files.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from ullage.start_cache import project_walk

from .edits import KeyPath, value_at
from .entries import ConfigFile, Problem, ServerEntry, read_entry
from .files import read_bytes
from .jsonc import parse_jsonc
from .programs import PROGRAMS, Platform, Program, Surroundings
from .toml_text import parse_toml
from .tool_rules import FileRules, apply_rules

__all__ = ["ClientConfig", "current_surroundings", "parse_config", "read_client", "read_clients"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """What one program's files say."""

    program: Program
    files: tuple[ConfigFile, ...] = ()
    """Those that are there."""
    candidates: tuple[ConfigFile, ...] = ()
    """All that may be there."""
    servers: tuple[ServerEntry, ...] = ()
    """Nearest scope first, those that are switched off or shadowed among them."""
    model: str | None = None
    """As the program names it."""
    defers_tools: bool = False
    """Whether the program, as it is set up, loads tool definitions on demand by itself."""
    problems: tuple[Problem, ...] = ()

    @property
    def active_servers(self) -> tuple[ServerEntry, ...]:
        """Those that the program would start."""
        return tuple(one for one in self.servers if not (one.disabled or one.is_shadowed or one.faults))


def current_surroundings(directory: Path | None = None) -> Surroundings:
    """Where programs of this user look for their files, seen from a working folder."""
    home = str(Path.home())
    folder = str((directory or Path.cwd()).absolute())
    platform: Platform = "win32" if sys.platform == "win32" else "darwin" if sys.platform == "darwin" else "linux"
    folders = tuple(project_walk(folder, home))
    return Surroundings(platform=platform, home=home, environment=dict(os.environ), folders=folders)


def read_clients(around: Surroundings) -> tuple[ClientConfig, ...]:
    """Every program of which at least one file is there."""
    found = (read_client(program, around) for program in PROGRAMS.values())
    return tuple(one for one in found if one.files or one.problems)


def read_client(program: Program, around: Surroundings) -> ClientConfig:
    """What one program's files say, with a problem for everything that could not be understood."""
    documents, problems = list[tuple[ConfigFile, object]](), list[Problem]()
    candidates = tuple(_distinct_files(program.list_files(around)))
    for file in candidates:
        try:
            content = read_bytes(file.path)
        except OSError as error:
            problems.append(Problem(file.path, f"cannot be read: {error.strerror or error}"))
            continue
        if content is not None:
            try:
                documents.append((file, parse_config(content, file)))
            except ValueError as error:
                problems.append(Problem(file.path, str(error)))
                documents.append((file, {}))
    order = {scope: place for place, scope in enumerate(program.scope_order)}
    rules = [program.read_rules(document, file, around) for file, document in documents if program.read_rules]
    servers = [
        entry for file, document in documents for entry in _read_servers(program, file, document, around, problems)
    ]
    servers.sort(key=lambda one: order.get(one.scope, len(order)))
    documents.sort(key=lambda one: order.get(one[0].scope, len(order)))
    return ClientConfig(
        program=program,
        files=tuple(file for file, _ in documents),
        candidates=candidates,
        servers=tuple(_mark_shadowed(_apply_all(program, one, rules) for one in servers)),
        model=_find_model(program, [document for _, document in documents]),
        defers_tools=program.defers_tools and _is_deferral_on(program, [one for _, one in documents], around),
        problems=tuple(problems),
    )


def parse_config(content: bytes, file: ConfigFile) -> dict[str, object]:
    """The tables of a file.

    Raises:
        ValueError: the file is not text in its format; the message says what is wrong with it.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8 text") from error
    try:
        document = parse_toml(text) if file.format == "toml" else parse_jsonc(text)
    except RecursionError as error:
        raise ValueError("is nested too deep") from error
    except ValueError as error:
        raise ValueError(f"is not {file.format.upper()}: {error}") from error
    if not isinstance(document, dict):
        raise ValueError("does not hold a table of settings")  # noqa: TRY004 - a fault of the file
    return cast("dict[str, object]", document)


def _distinct_files(files: Iterable[ConfigFile]) -> Iterator[ConfigFile]:
    seen = set[str]()
    for file in files:
        if file.path not in seen:
            seen.add(file.path)
            yield file


def _read_servers(
    program: Program, file: ConfigFile, document: object, around: Surroundings, problems: list[Problem]
) -> Iterator[ServerEntry]:
    for path, table, place in program.tables_of(file, document):
        if not isinstance(table, dict):
            problems.append(Problem(file.path, f"`{path[-1]}` is not a table of servers", path))
            continue
        for name, raw in cast("dict[str, object]", table).items():
            entry = _read_server(program, (*path, name), raw, place, around)
            if entry is not None:
                problems += [Problem(file.path, f"server `{name}`: {fault}", entry.path) for fault in entry.faults]
                yield entry


def _read_server(
    program: Program, path: KeyPath, raw: object, place: ConfigFile, around: Surroundings
) -> ServerEntry | None:
    table = cast("Mapping[str, object]", raw) if isinstance(raw, dict) else None
    if table is not None and program.name == "opencode" and not {"command", "url"} & table.keys():
        # An override of a server that another of its files configures.
        return None
    entry = read_entry(
        cast("object", raw),
        program.keys,
        name=path[-1],
        place=place,
        path=path,
        program=program.name,
        home=around.home,
        variables=around.environment,
    )
    return entry if program.finish_entry is None or table is None else program.finish_entry(entry, table)


def _apply_all(program: Program, entry: ServerEntry, rules: Iterable[FileRules]) -> ServerEntry:
    return apply_rules(entry, rules, program.prefixes(entry.name), program.wholes(entry.name))


def _mark_shadowed(servers: Iterable[ServerEntry]) -> Iterator[ServerEntry]:
    seen = set[str]()
    for one in servers:
        yield replace(one, is_shadowed=True) if one.name in seen else one
        seen.add(one.name)


def _find_model(program: Program, documents: Iterable[object]) -> str | None:
    for document in documents:
        for path in program.models:
            keys = tuple(str(value_at(document, (key[1:-1],))) if key.startswith("{") else key for key in path)
            value = value_at(document, keys)
            if isinstance(value, str) and value.strip():
                return value.strip()
    return None


def _is_deferral_on(program: Program, documents: Iterable[object], around: Surroundings) -> bool:
    """Claude Code loads tools on demand unless told otherwise, or with another address for its model's API."""
    if program.name != "claude":
        return True
    said = dict[str, object]()
    for document in documents:
        table = value_at(document, ("env",))
        said = {**(cast("dict[str, object]", table) if isinstance(table, dict) else {}), **said}
    said = {**around.environment, **said}
    wish = str(said.get("ENABLE_TOOL_SEARCH", "")).lower()
    if wish in ("false", "0", "no", "off"):
        return False
    return bool(wish) or not said.get("ANTHROPIC_BASE_URL")
