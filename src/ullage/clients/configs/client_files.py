"""Reading and replacing of configuration files that belong to other programs.

A file is read without side effects, whatever is at its path. It is replaced only as a whole, in one step, and only
where it still has the content that was read before: a program that writes it meanwhile never loses its change. Links
are followed, so that the file they lead to is the one replaced; its mode stays.

Reads the MCP servers that other programs have configured.

`read_client` reads every file of one program and returns what it says: servers with their rules, the model, and a
problem for everything that could not be understood. It changes nothing and raises nothing, whatever is in the files.
"""

import contextlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from ullage.start_cache import project_walk

from .jsonc import parse_jsonc
from .programs import PROGRAMS, FileRules, Platform, Program, Surroundings, apply_rules
from .server_entries import ConfigFile, EditRefused, KeyPath, Problem, ServerEntry, read_entry, value_at
from .toml_text import parse_toml

__all__ = [
    "ClientConfig",
    "FileChanged",
    "current_surroundings",
    "hold_lock",
    "parse_config",
    "read_bytes",
    "read_client",
    "read_clients",
    "remove_file",
    "replace_file",
]

_LARGEST = 64 * 1024 * 1024
"""Bytes. Claude Code keeps a history in its file, which may have many."""
_LOCK_PATIENCE = 30.0
"""Seconds to wait for another Ullage that is just changing files."""


class FileChanged(EditRefused):
    """The file is not as it was when it was read."""


def read_bytes(path: str) -> bytes | None:
    """The content of a file; None where there is none.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger than 64 MiB.
    """
    try:
        # Without blocking: somebody may have put a pipe there.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise OSError(f"the path cannot be used: {error}") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is not a regular file")
        content = file.read(_LARGEST + 1) if found.st_size <= _LARGEST else None
    if content is None or len(content) > _LARGEST:
        raise OSError("it is larger than 64 MiB")
    return content


def replace_file(path: str, before: bytes | None, after: bytes, *, new_mode: int = 0o600) -> None:
    """Replaces the content of a file in one step.

    Args:
        path: the file, or a link to it.
        before: its content as it was read; None where it was not there.
        after: its new content.
        new_mode: the mode of a file that was not there. An existing one keeps its own.

    Raises:
        FileChanged: it has another content now. Nothing was written.
        EditRefused: it is read-only. Nothing was written.
        OSError: it cannot be written: no space, no right. It is as it was.
    """
    target = os.path.realpath(path)
    if before is None:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    _check_unchanged(target, before)
    mode = new_mode
    owner: tuple[int, int] | None = None
    if before is not None:
        found = os.stat(target)  # noqa: PTH116
        mode, owner = stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid)
        if not mode & 0o222:
            raise EditRefused(f"`{path}` is read-only")
    aside = _write_aside(target, after, mode, owner)
    try:
        _check_unchanged(target, before)
        if before is None:
            # Puts a new file in its place, unless another one has come there.
            try:
                os.link(aside, target)
            except FileExistsError as error:
                raise FileChanged(f"`{target}` was made by another program meanwhile") from error
            except OSError:
                # A file system without hard links.
                os.replace(aside, target)  # noqa: PTH105
        else:
            os.replace(aside, target)  # noqa: PTH105
    finally:
        with contextlib.suppress(OSError):
            os.unlink(aside)  # noqa: PTH108
    with contextlib.suppress(OSError):
        descriptor = os.open(os.path.dirname(target), os.O_RDONLY)  # noqa: PTH120
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_file(path: str, before: bytes) -> None:
    """Removes a file that still has this content.

    Raises:
        FileChanged: it has another one. Nothing was removed.
        OSError: it cannot be removed.
    """
    target = os.path.realpath(path)
    _check_unchanged(target, before)
    os.unlink(target)  # noqa: PTH108


def _check_unchanged(target: str, before: bytes | None) -> None:
    if read_bytes(target) != before:
        raise FileChanged(f"`{target}` was changed by another program meanwhile")


def _write_aside(target: str, content: bytes, mode: int, owner: tuple[int, int] | None) -> str:
    """A new file with this content beside the target."""
    descriptor, aside = tempfile.mkstemp(prefix=".ullage-", dir=os.path.dirname(target))  # noqa: PTH120
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
            if sys.platform != "win32":
                if owner is not None and owner != (os.geteuid(), os.getegid()):
                    # Another user's file, changed by root; where that is not allowed, it becomes this user's.
                    with contextlib.suppress(OSError):
                        os.fchown(descriptor, *owner)
                os.fchmod(descriptor, mode)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)  # noqa: PTH108
        raise
    return aside


@contextlib.contextmanager
def hold_lock(path: Path) -> Generator[None]:
    """Holds a lock that other processes of Ullage respect; the system releases it when its holder dies.

    Raises:
        OSError: the lock file cannot be made, or another process has held the lock for half a minute.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + _LOCK_PATIENCE
    try:
        while not _try_lock(descriptor):
            if time.monotonic() > until:
                raise OSError(f"another process holds `{path}`")
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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
    users_model: str | None = None
    """The same by the user's own files, whatever a project says."""
    defers_tools: bool = False
    """Whether the program, as it is set up, loads tool definitions on demand by itself."""
    problems: tuple[Problem, ...] = ()
    documents: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    """The parsed files, by path. They may hold secrets."""

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
    candidates = tuple(_distinct_files(_with_folders(program.list_files(around))))
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
        users_model=_find_model(program, [document for file, document in documents if file.scope != "project"]),
        defers_tools=program.defers_tools and _is_deferral_on(program, [one for _, one in documents], around),
        problems=tuple(problems),
        documents={file.path: document for file, document in documents},
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


def _with_folders(files: Iterable[ConfigFile]) -> Iterator[ConfigFile]:
    """The files, each folder replaced by its files of its format."""
    for file in files:
        if not file.is_folder:
            yield file
            continue
        with contextlib.suppress(OSError):
            names = sorted(one.name for one in os.scandir(file.path) if one.name.endswith(f".{file.format}"))
            for name in names:
                yield replace(file, path=str(Path(file.path) / name), is_folder=False)


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
