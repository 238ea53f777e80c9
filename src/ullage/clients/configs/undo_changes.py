"""Records of changed files, so that a change can be taken back.

A record contains a file as it was before and after the change, and the places that were changed. If nothing else has
changed the file since, `undo_change` restores it byte for byte; otherwise it merges: it removes what was added,
restores what was removed, and keeps every other change. Records are in the user's state folder and readable by the user
alone, because a configuration may contain secrets.
"""

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from .client_files import hold_lock, read_bytes, remove_file, replace_file
from .jsonc import edit_jsonc, parse_jsonc
from .server_entries import Edit, EditRefused, FileFormat, KeyPath, Put, Remove, fingerprint, value_at
from .toml_text import edit_toml, parse_toml

__all__ = ["ChangeRecord", "UndoFolder", "Undone", "edit_content", "undo_change"]

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
    if current is None or current == record.before:
        # The file was removed or restored by other means, which also took the change back.
        return Undone(current, is_exact=current == record.before)
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
            (edits.append(Put(path, was)) if _says_same(is_now, ours) else kept.append(path))
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
    """Return whether a table holds no values, neither itself nor in tables inside it."""
    return isinstance(value, dict) and all(_is_empty(one) for one in cast("dict[str, object]", value).values())


def _without_added(before: object, after: object, now: object) -> list[object] | None:
    """Return a list without the items that the change added to it; None if it was not a list, or is no longer one."""
    if not (isinstance(before, list | None) and isinstance(after, list) and isinstance(now, list)):
        return None
    kept = cast("list[object]", before or [])
    added = [one for one in cast("list[object]", after) if one not in kept]
    return [one for one in cast("list[object]", now) if one not in added]


def _says_same(one: object, other: object) -> bool:
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
            earlier, old = self._load(name), read_bytes(str(name))
            joined = record
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
            known, current, old = self._load(name), read_bytes(record.file), read_bytes(str(name))
            if known is None or current is None or current == known.after:
                return
            after, now = _parse(known.after, known.format), _parse(current, known.format)
            places = (*known.added, *known.removed)
            if all(_says_same(value_at(after, path), value_at(now, path)) for path in places):
                replace_file(str(name), old, _dump(replace(known, after=current)))

    def hand_over(self, places: Sequence[KeyPath], record: ChangeRecord) -> None:
        """Add places that another program's change added to a record, so that its undo removes them.

        Raises:
            OSError: The record cannot be written.
        """
        with hold_lock(self.path / "lock"):
            name = self._name(record.program, record.file)
            known, old = self._load(name), read_bytes(str(name))
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
            replace_file(str(name), read_bytes(str(name)), old)

    def _load(self, name: Path) -> ChangeRecord | None:
        try:
            content = read_bytes(str(name))
            return None if content is None else _load_record(content)
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


def _load_record(content: bytes) -> ChangeRecord | None:
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
