"""Reading and replacing of configuration files that belong to other programs, and taking changes back.

A file is read without side effects, whatever is at its path. It is replaced only as a whole, in one step, and only if
it still has the content that was read before, so a change that a program writes meanwhile is never lost. Links are
followed, so that the file they lead to is replaced; its mode is kept.

`read_client` reads every file of one program and returns its content: servers with their rules, the model, and a
problem for everything that could not be understood. It changes nothing and raises nothing, whatever is in the files.

A record of a changed file contains a file as it was before and after the change, and the places that were changed. If
nothing else has changed the file since, `undo_change` restores it byte for byte; otherwise it merges: it removes what
was added, restores what was removed, and keeps every other change. Records are in the user's state folder and readable
by the user alone, because a configuration may contain secrets.
"""

import base64
import contextlib
import hashlib
import json
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

from ullage.start_cache import project_walk

from .config_locations import PROGRAMS, FileRules, Platform, Program, Surroundings, apply_rules
from .jsonc import edit_jsonc, parse_jsonc
from .server_entries import (
    ConfigFile,
    Edit,
    EditRefused,
    FileFormat,
    KeyPath,
    Problem,
    Put,
    Remove,
    ServerEntry,
    fingerprint,
    read_entry,
    value_at,
)
from .toml_text import edit_toml, parse_toml

__all__ = [
    "ChangeRecord",
    "ClientConfig",
    "FileChanged",
    "UndoFolder",
    "Undone",
    "current_surroundings",
    "edit_content",
    "hold_lock",
    "parse_config",
    "read_bytes",
    "read_client",
    "read_clients",
    "remove_file",
    "replace_file",
    "undo_change",
]

_LARGEST = 64 * 1024 * 1024
"""Maximum bytes of a file. Claude Code keeps a history in its file, which can be large."""
_LARGEST_RECORD = 3 * _LARGEST
"""Maximum bytes of a record, which contains two files in base 64."""
_LOCK_PATIENCE = 30.0
"""Seconds to wait for another Ullage process that is changing files."""


class FileChanged(EditRefused):
    """The file has changed since it was read."""


def read_bytes(path: str, *, most: int | None = None) -> bytes | None:
    """Return the content of a file; None if there is none.

    Raises:
        OSError: The file cannot be read, is not a regular file, or has more than `most` bytes, by default 64 MiB.
    """
    most = _LARGEST if most is None else most
    try:
        # Opened without blocking, because the path may be a pipe.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise OSError(f"the path cannot be used: {error}") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is not a regular file")
        content = file.read(most + 1) if found.st_size <= most else None
    if content is None or len(content) > most:
        raise OSError(f"it is larger than {most // 1024**2} MiB")
    return content


def replace_file(path: str, before: bytes | None, after: bytes, *, new_mode: int = 0o600) -> None:
    """Replace the content of a file in one step.

    Args:
        path: The file, or a link to it.
        before: Its content as it was read; None if it did not exist.
        after: Its new content.
        new_mode: The mode of a file that did not exist. An existing one keeps its own.

    Raises:
        FileChanged: The content is different now. Nothing was written.
        EditRefused: The file is read-only. Nothing was written.
        OSError: The file cannot be written, for lack of space or permission. It is unchanged.
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
            # Creates a new file, unless another has been created at its path.
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
    """Remove a file that still has this content.

    Raises:
        FileChanged: The content is different now. Nothing was removed.
        OSError: The file cannot be removed.
    """
    target = os.path.realpath(path)
    _check_unchanged(target, before)
    os.unlink(target)  # noqa: PTH108


def _check_unchanged(target: str, before: bytes | None) -> None:
    if read_bytes(target, most=_LARGEST_RECORD) != before:
        raise FileChanged(f"`{target}` was changed by another program meanwhile")


def _write_aside(target: str, content: bytes, mode: int, owner: tuple[int, int] | None) -> str:
    """Write the content to a new file beside the target, and return its path."""
    descriptor, aside = tempfile.mkstemp(prefix=".ullage-", dir=os.path.dirname(target))  # noqa: PTH120
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
            if sys.platform != "win32":
                if owner is not None and owner != (os.geteuid(), os.getegid()):
                    # Another user's file, changed by root; if its owner cannot be kept, it becomes this user's.
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
    """Hold a lock that other Ullage processes respect; the system releases it when the process ends.

    Raises:
        OSError: The lock file cannot be created, or another process has held the lock for half a minute.
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
    """The configuration in the files of one program."""

    program: Program
    files: tuple[ConfigFile, ...] = ()
    """Files that exist."""
    candidates: tuple[ConfigFile, ...] = ()
    """All files that may exist."""
    servers: tuple[ServerEntry, ...] = ()
    """Nearest scope first, including servers that are switched off or shadowed."""
    model: str | None = None
    """The model's name as the program spells it."""
    users_model: str | None = None
    """The model according to the user's own files alone, without those of a project."""
    defers_tools: bool = False
    """Whether the program, as configured, loads tool definitions on demand by itself."""
    problems: tuple[Problem, ...] = ()
    rules: tuple[FileRules, ...] = ()
    """The rules of all files."""
    documents: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    """The parsed files, by path. They may contain secrets."""
    project_contents: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """The files of a project as they were read, by path: a file may be swapped before its approval is checked."""

    @property
    def active_servers(self) -> tuple[ServerEntry, ...]:
        """Servers that the program would start."""
        return tuple(one for one in self.servers if not (one.disabled or one.is_shadowed or one.faults))


def current_surroundings(directory: Path | None = None) -> Surroundings:
    """Return where the programs of this user look for their files, as seen from a working folder."""
    home = str(Path.home())
    folder = str((directory or Path.cwd()).absolute())
    platform: Platform = "win32" if sys.platform == "win32" else "darwin" if sys.platform == "darwin" else "linux"
    folders = tuple(project_walk(folder, home))
    return Surroundings(platform=platform, home=home, environment=dict(os.environ), folders=folders)


def read_clients(around: Surroundings) -> tuple[ClientConfig, ...]:
    """Read every program of which at least one file exists."""
    found = (read_client(program, around) for program in PROGRAMS.values())
    return tuple(one for one in found if one.files or one.problems)


def read_client(program: Program, around: Surroundings) -> ClientConfig:
    """Read the configuration of one program, with a problem for everything that could not be understood."""
    documents, problems = list[tuple[ConfigFile, object]](), list[Problem]()
    project_contents = dict[str, bytes]()
    by_path = dict[str, ConfigFile]()
    for file in _with_folders(program.list_files(around)):
        by_path.setdefault(file.path, file)
    candidates = tuple(by_path.values())
    for file in candidates:
        try:
            content = read_bytes(file.path)
        except OSError as error:
            problems.append(Problem(file.path, f"cannot be read: {error.strerror or error}"))
            continue
        if content is not None:
            if file.scope == "project":
                project_contents[file.path] = content
            try:
                documents.append((file, parse_config(content, file)))
            except ValueError as error:
                problems.append(Problem(file.path, str(error)))
                documents.append((file, {}))
    order = {scope: place for place, scope in enumerate(program.scope_order)}
    rules = list[FileRules]()
    for file, document in documents:
        if program.read_rules is not None:
            said = program.read_rules(document, file, around)
            # A project's file may restrict the user's servers, and permits nothing.
            rules.append(replace(said, allow=(), exempt=()) if file.scope == "project" else said)
    servers = [
        entry for file, document in documents for entry in _read_servers(program, file, document, around, problems)
    ]
    servers.sort(key=lambda one: order.get(one.scope, len(order)))
    documents.sort(key=lambda one: order.get(one[0].scope, len(order)))
    entries, seen = list[ServerEntry](), set[str]()
    for one in servers:
        entry = apply_rules(one, rules, program.prefixes(one.name), program.wholes(one.name))
        entries.append(replace(entry, is_shadowed=True) if entry.name in seen else entry)
        seen.add(entry.name)
    return ClientConfig(
        program=program,
        files=tuple(file for file, _ in documents),
        candidates=candidates,
        servers=tuple(entries),
        model=_find_model(program, [document for file, document in documents if not file.is_optional]),
        users_model=_find_model(
            program, [document for file, document in documents if file.scope != "project" and not file.is_optional]
        ),
        defers_tools=_is_deferral_on(program, [one for _, one in documents], around),
        problems=tuple(problems),
        rules=tuple(rules),
        documents={file.path: document for file, document in documents},
        project_contents=project_contents,
    )


def parse_config(content: bytes, file: ConfigFile) -> dict[str, object]:
    """Return the tables of a file.

    Raises:
        ValueError: The file is not text in its format; the message describes the error.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8 text") from error
    if file.format == "markdown":
        return dict(read_front_matter(text))
    try:
        document = parse_toml(text) if file.format == "toml" else parse_jsonc(text)
    except RecursionError as error:
        raise ValueError("is nested too deep") from error
    except ValueError as error:
        raise ValueError(f"is not {file.format.upper()}: {error}") from error
    if not isinstance(document, dict):
        raise ValueError("does not hold a table of settings")  # noqa: TRY004 - a fault of the file
    return cast("dict[str, object]", document)


_KEY = re.compile(r"""(?P<quote>["']?)(?P<name>[\w-]+)(?P=quote)\s*:""")
_WORD = re.compile(r"""[^\s,:\[\]{}"'#]+""")


def read_front_matter(text: str) -> dict[str, list[str]]:
    """Return the words in the front matter of a Markdown text, by the key at the left margin that they belong to.

    This is not a reader of YAML: keys and values below the same key are words alike. It serves to find names of tools,
    of which none may be missed, however the list is written.
    """
    lines = iter(text.removeprefix("\ufeff").splitlines())
    found = dict[str, list[str]]()
    if next(lines, "").rstrip() != "---":
        return found
    words = list[str]()
    for line in lines:
        if line.rstrip() in ("---", "..."):
            break
        key = _KEY.match(line)
        if key is not None:
            words = found.setdefault(key["name"], [])
        words += _WORD.findall(line[key.end() :] if key is not None else line)
    return found


_MOST_AGENTS = 500
"""Descriptions of agents that are read of one folder."""


def _with_folders(files: Iterable[ConfigFile]) -> Iterator[ConfigFile]:
    """Yield the files, with each folder replaced by its files of its format; of agents, also those in its folders."""
    for file in files:
        if not file.is_folder:
            yield file
        elif file.format == "markdown":
            found = (Path(folder) / name for folder, _, names in os.walk(file.path) for name in names)
            agents = islice((path for path in found if path.suffix == ".md"), _MOST_AGENTS)
            yield from (replace(file, path=str(path), is_folder=False) for path in sorted(agents))
        else:
            with contextlib.suppress(OSError):
                ending = file.ending or f".{file.format}"
                names = sorted(one.name for one in os.scandir(file.path) if one.name.endswith(ending))
                for name in names:
                    yield replace(file, path=str(Path(file.path) / name), is_folder=False)


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
        # The entry only overrides a server that another of its files configures.
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


def _find_model(program: Program, documents: Iterable[object]) -> str | None:
    for document in documents:
        for path in program.models:
            keys = tuple(str(value_at(document, (key[1:-1],))) if key.startswith("{") else key for key in path)
            value = value_at(document, keys)
            if isinstance(value, str) and value.strip():
                return value.strip()
    return None


def _is_deferral_on(program: Program, documents: Iterable[object], around: Surroundings) -> bool:
    """Return whether the program loads tools on demand, by the variables in its settings and around it."""
    said = dict[str, object]()
    for document in documents:
        table = value_at(document, ("env",))
        said = {**(cast("dict[str, object]", table) if isinstance(table, dict) else {}), **said}
    return is_deferring(program, {**around.environment, **said})


def is_deferring(program: Program, environment: Mapping[str, object]) -> bool:
    """Return whether a program with these variables loads tools on demand.

    Claude Code 2.1.325 does unless `ENABLE_TOOL_SEARCH` says otherwise, whatever the address of its model's API.
    """
    wish = str(environment.get("ENABLE_TOOL_SEARCH", "")).lower()
    is_off = program.name == "claude" and wish in ("false", "0", "no", "off", "auto:100")
    return program.defers_tools and not is_off


_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRecord:
    """One change of one file."""

    program: str
    file: str
    """The path by which the file was changed."""
    format: FileFormat
    before: bytes | None = field(repr=False)
    """None if the change created the file."""
    after: bytes = field(repr=False)
    removed: tuple[KeyPath, ...] = ()
    added: tuple[KeyPath, ...] = ()


@dataclass(frozen=True, slots=True)
class Undone:
    """A file after a change was taken back."""

    content: bytes | None = field(repr=False)
    """None if the file is to be removed."""
    is_exact: bool
    """Whether these are the bytes from before the change."""
    kept: tuple[KeyPath, ...] = ()
    """Places that were changed again since; they are left unchanged."""


def edit_content(content: bytes | None, format: FileFormat, edits: Sequence[Edit]) -> bytes:  # noqa: A002
    """Return the content of a file after these edits, or of a new file if `content` is None.

    Raises:
        EditRefused: The file cannot be edited without risk to its content.
    """
    try:
        text = (content or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise EditRefused("the file is not UTF-8 text") from error
    return (edit_toml if format == "toml" else edit_jsonc)(text, edits).encode("utf-8")


def undo_change(record: ChangeRecord, current: bytes | None) -> Undone:
    """Return the file as it should be after the change is taken back.

    Raises:
        EditRefused: The file was changed since and cannot be read any more.
    """
    if current == record.after:
        return Undone(record.before, is_exact=True)
    if current == record.before or (current is None and not record.removed):
        # The file was restored or removed by other means, which also took the change back.
        return Undone(current, is_exact=current == record.before)
    # What was moved out of a file that is gone now is put into a new one.
    before, after, now = (_parse(one, record.format) for one in (record.before, record.after, current))
    edits, kept = list[Edit](), list[KeyPath]()
    for path in record.added:
        was, ours, is_now = (value_at(one, path) for one in (before, after, now))
        items = _without_added(was, ours, is_now)
        if items or (items is not None and was is not None):
            edits.append(Put(path, items))
        elif is_now is not None and was is None:
            # An entry added by Ullage is removed even if something was added to it since.
            edits.append(Remove(path))
        elif is_now is not None:
            (edits.append(Put(path, was)) if _has_same_content(is_now, ours) else kept.append(path))
    for path in record.removed:
        was = value_at(before, path)
        if value_at(now, path) is not None and path not in record.added:
            kept.append(path)
        elif was is not None:
            edits.append(Put(path, was))
    content = edit_content(current, record.format, edits)
    emptied = _find_emptied(record, before, _parse(content, record.format))
    return Undone(edit_content(content, record.format, emptied), is_exact=False, kept=tuple(kept))


def _find_emptied(record: ChangeRecord, before: object, now: object) -> list[Edit]:
    """Return the removals of tables that the change created and that are empty now, without those inside others."""
    found = list[KeyPath]()
    for path in record.added:
        parents = (path[:length] for length in range(1, len(path)))
        emptied = (one for one in parents if value_at(before, one) is None and _is_empty(value_at(now, one)))
        found += [one for one in emptied if one not in found][:1]
    return [Remove(path) for path in found]


def _is_empty(value: object) -> bool:
    """Return whether a table has no values, neither itself nor in tables inside it."""
    return isinstance(value, dict) and all(_is_empty(one) for one in cast("dict[str, object]", value).values())


def _without_added(before: object, after: object, now: object) -> list[object] | None:
    """Return a list without the items that the change added to it; None if it was not a list, or is no longer one."""
    if not (isinstance(before, list | None) and isinstance(after, list) and isinstance(now, list)):
        return None
    kept = cast("list[object]", before or [])
    added = [one for one in cast("list[object]", after) if one not in kept]
    return [one for one in cast("list[object]", now) if one not in added]


def _has_same_content(one: object, other: object) -> bool:
    return fingerprint(one, is_ordered=False) == fingerprint(other, is_ordered=False)


def _parse(content: bytes | None, format: FileFormat) -> object:  # noqa: A002
    try:
        text = (content or b"").decode("utf-8")
        return parse_toml(text) if format == "toml" else parse_jsonc(text)
    except (ValueError, RecursionError) as error:
        raise EditRefused(f"the file cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class UndoFolder:
    """The records of all changed files, one for each program and file."""

    path: Path

    @contextlib.contextmanager
    def hold_turn(self) -> Generator[None]:
        """Let one process after the other change the user's file and the records, each as the one before has left them.

        Raises:
            OSError: Another process is changing files for half a minute already.
        """
        with hold_lock(self.path / "turn.lock"):
            yield

    def change(self, record: ChangeRecord) -> bytes | None:
        """Carry out a change: write the record, then replace the file.

        An earlier record of the same file is continued, so that one undo takes back both.

        Returns:
            The earlier record, for `roll_back`; None if there was none.

        Raises:
            FileChanged: The file has changed since the change was prepared. Nothing was written.
            EditRefused: The file is read-only. Nothing was written.
            OSError: The file or the record cannot be written. The file is unchanged.
        """
        with hold_lock(self.path / "lock"):
            name = self._name(record.program, record.file)
            earlier, old = self._load(name), self._read(name)
            joined = record
            if earlier is None and old is not None:
                raise EditRefused(f"`{name}` cannot be read, and it says what was changed before")
            if earlier is not None:
                base = undo_change(earlier, record.before)
                joined = replace(
                    record,
                    before=base.content,
                    removed=tuple(dict.fromkeys((*earlier.removed, *record.removed))),
                    added=tuple(dict.fromkeys((*earlier.added, *record.added))),
                )
            replace_file(str(name), old, _dump(joined))
            try:
                replace_file(record.file, record.before, record.after)
            except BaseException:
                with contextlib.suppress(OSError, EditRefused):
                    self._put_back(name, old)
                raise
            return old

    def roll_back(self, record: ChangeRecord, earlier: bytes | None) -> None:
        """Take back a change that was just carried out, without a trace.

        Args:
            record: The change.
            earlier: The return value of `change`.
        """
        with hold_lock(self.path / "lock"), contextlib.suppress(OSError, EditRefused):
            if record.before is None:
                remove_file(record.file, record.after)
            else:
                replace_file(record.file, record.after, record.before)
            self._put_back(self._name(record.program, record.file), earlier)

    def undo(self, record: ChangeRecord) -> Undone:
        """Take back a change and delete its record.

        Raises:
            FileChanged: The file was changed at the same time. Nothing was written.
            EditRefused: The file cannot be read any more, or is read-only. Nothing was written.
            OSError: The file cannot be written. It is unchanged.
        """
        with hold_lock(self.path / "lock"):
            current = read_bytes(record.file)
            undone = undo_change(record, current)
            if undone.content is None:
                if current is not None:
                    remove_file(record.file, current)
            elif undone.content != current:
                replace_file(record.file, current, undone.content)
            self.forget(record)
            return undone

    def adopt_rewrite(self, record: ChangeRecord) -> None:
        """Record the current content of a file as the content after the change.

        Programs rewrite a changed file when they first read it: Qwen Code adds `$version`, opencode `$schema`. That is
        not a change by the user, and undo should still restore the bytes from before. Nothing is done if the content of
        the changed places is different now.
        """
        with hold_lock(self.path / "lock"), contextlib.suppress(OSError, EditRefused):
            name = self._name(record.program, record.file)
            known, current, old = self._load(name), read_bytes(record.file), self._read(name)
            if known is None or current is None or current == known.after:
                return
            after, now = _parse(known.after, known.format), _parse(current, known.format)
            places = (*known.added, *known.removed)
            if all(_has_same_content(value_at(after, path), value_at(now, path)) for path in places):
                replace_file(str(name), old, _dump(replace(known, after=current)))

    def hand_over(self, places: Sequence[KeyPath], record: ChangeRecord) -> None:
        """Add places that another program's change added to a record, so that its undo removes them.

        Raises:
            OSError: The record cannot be written.
        """
        with hold_lock(self.path / "lock"):
            name = self._name(record.program, record.file)
            known, old = self._load(name), self._read(name)
            if known is not None:
                added = tuple(dict.fromkeys((*known.added, *places)))
                replace_file(str(name), old, _dump(replace(known, added=added)))

    def forget(self, record: ChangeRecord) -> None:
        """Delete a record whose change was taken back by other means."""
        with contextlib.suppress(FileNotFoundError):
            self._name(record.program, record.file).unlink()

    def records(self, program: str | None = None) -> tuple[ChangeRecord, ...]:
        """Return the records that can be read, of one program or all, the latest first."""
        try:
            names = sorted(self.path.glob("*.json"), key=lambda one: one.stat().st_mtime_ns, reverse=True)
        except OSError:
            return ()
        found = (self._load(name) for name in names)
        return tuple(one for one in found if one is not None and program in (None, one.program))

    def _name(self, program: str, file: str) -> Path:
        digest = hashlib.sha256(os.path.realpath(file).encode("utf-8", "surrogateescape")).hexdigest()
        return self.path / f"{program}-{digest[:16]}.json"

    def _put_back(self, name: Path, old: bytes | None) -> None:
        if old is None:
            name.unlink(missing_ok=True)
        else:
            replace_file(str(name), self._read(name), old)

    def unreadable(self, program: str) -> tuple[str, ...]:
        """Return the paths of a program's records that cannot be read."""
        names = (one for one in self.path.glob("*.json") if re.fullmatch(rf"{program}-[0-9a-f]{{16}}", one.stem))
        return tuple(str(name) for name in names if self._load(name) is None)

    def _read(self, name: Path) -> bytes | None:
        return read_bytes(str(name), most=_LARGEST_RECORD)

    def _load(self, name: Path) -> ChangeRecord | None:
        try:
            content = self._read(name)
            if content is None:
                return None
            said = cast("dict[str, Any]", json.loads(content))
            if said["version"] != _VERSION:
                return None
            return ChangeRecord(
                program=said["program"],
                file=said["file"],
                format=said["format"],
                before=None if said["before"] is None else base64.b64decode(said["before"]),
                after=base64.b64decode(said["after"]),
                removed=tuple(tuple(path) for path in said["removed"]),
                added=tuple(tuple(path) for path in said["added"]),
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None


def _dump(record: ChangeRecord) -> bytes:
    said: dict[str, Any] = {
        "version": _VERSION,
        "program": record.program,
        "file": record.file,
        "format": record.format,
        "before": None if record.before is None else base64.b64encode(record.before).decode("ascii"),
        "after": base64.b64encode(record.after).decode("ascii"),
        "removed": [list(path) for path in record.removed],
        "added": [list(path) for path in record.added],
    }
    return json.dumps(said, indent=1).encode("ascii")
