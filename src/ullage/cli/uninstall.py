"""Remove Ullage from a program and restore its servers.

The program's file is restored byte for byte. If it has changed since the installation, only the servers are put
back and Ullage's entry is removed. Entries in your ullage.toml that only this program used are removed.
"""

import argparse
import contextlib
import time

from ullage.app.install_plan import plan_uninstall
from ullage.clients.configs import (
    PROGRAMS,
    ChangeRecord,
    ConfigFile,
    FileChanged,
    UndoFolder,
    edit_content,
    parse_config,
    read_bytes,
    read_names,
    remove_file,
    replace_file,
    value_at,
)
from ullage.config import Places
from ullage.errors import BadConfiguration, UnknownResource
from ullage.tool import Json

from ..app.install_plan import changing_files, program_of, undo_folder
from .output import emit, emit_json, short_path

__all__ = ["arguments", "run"]

_ATTEMPTS = 20
_PAUSE = 0.05
"""Seconds between attempts to change the user's file."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", metavar="CLIENT", help=", ".join(PROGRAMS))
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    program, places = program_of(arguments.client), Places.of_user()
    undo = undo_folder(places)
    records = undo.records(program.name)
    for path in undo.unreadable(program.name):
        raise BadConfiguration(
            f"`{path}` cannot be read, and it says what was changed for {program.title}",
            suggestion=f"nothing was changed; put the servers back by hand: they are in `{places.user_file}`",
        )
    if not records:
        raise UnknownResource(
            f"Ullage is not installed in {program.title}",
            suggestion="`ullage status` shows where it is",
            options=tuple(dict.fromkeys(one.program for one in undo.records())),
        )
    restored = list[dict[str, Json]]()
    with changing_files():
        # The program's own files first: until its servers are restored there, they must stay behind Ullage.
        for record in sorted(records, key=lambda one: one.file == str(places.user_file)):
            if record.file == str(places.user_file):
                _clean_own_file(record, undo)
            else:
                undone = undo.undo(record)
                restored.append(
                    {"file": record.file, "exact": undone.is_exact, "kept": [".".join(path) for path in undone.kept]}
                )
    with contextlib.suppress(OSError):
        # The folder stays where the user has other files in it.
        places.user_file.parent.rmdir()
    if arguments.json:
        emit_json({"client": program.name, "restored": list(restored)})
        return 0
    for one in restored:
        how = "restored byte for byte" if one["exact"] else "merged, because it was changed since the installation"
        emit(f"{short_path(str(one['file']))}  {how}")
    emit(f"Ullage was removed from {program.title}. Restart it for the change to take effect.")
    return 0


def _clean_own_file(record: ChangeRecord, undo: UndoFolder) -> None:
    """Remove from the user's file what only this program used, again if another process changes it meanwhile.

    The program's own servers are back by now, so nothing else would remove the rest.
    """
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(FileChanged):
            _try_to_clean(record, undo)
            return
        time.sleep(_PAUSE)
    _try_to_clean(record, undo)


def _try_to_clean(record: ChangeRecord, undo: UndoFolder) -> None:
    current = read_bytes(record.file)
    # The records say which programs use a server, and another removal may have handed some over to this one.
    with undo.hold_turn():
        record = next((one for one in undo.records(record.program) if one.file == record.file), record)
        if current is not None:
            content = record.before if current == record.after else _without_program(record, current, undo)
            if content is None:
                remove_file(record.file, current)
            else:
                replace_file(record.file, current, content)
        undo.forget(record)


def _without_program(record: ChangeRecord, current: bytes, undo: UndoFolder) -> bytes | None:
    """Return the user's file without what only this program used; None if nothing else is left.

    A server that stays for another program is handed over to it, and is removed when that one is uninstalled.
    """
    try:
        own = parse_config(current, ConfigFile(path=record.file, scope="user", format="toml"))
    except ValueError as error:
        raise BadConfiguration(
            f"Ullage was removed, but `{record.file}`, which still has the servers, {error}",
            suggestion=f"mend the file, then run `ullage uninstall {record.program}` again",
        ) from error
    others = [one for one in undo.records() if one.file == record.file and one.program != record.program]
    for path in (one for one in record.added if one[0] == "servers"):
        members = {one.program: value_at(own, ("groups", one.program, "servers")) for one in others}
        heir = next((one for one in others if path[1] in read_names(members[one.program])), None)
        if heir is not None:
            undo.hand_over((path,), heir)
    content = edit_content(current, "toml", plan_uninstall(record.program, own, record.added))
    return content if content.strip() else None
