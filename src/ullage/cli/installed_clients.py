"""Shared parts of `install`, `uninstall` and `status`: the user's files, and errors in one form."""

import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ullage import __version__
from ullage.clients.configs import (
    PROGRAMS,
    ClientConfig,
    ConfigFile,
    EditRefused,
    FileChanged,
    Program,
    UndoFolder,
    current_surroundings,
    find_program,
    parse_config,
    read_bytes,
    read_client,
)
from ullage.config import Places
from ullage.errors import BadConfiguration, InvalidArguments, Unavailable

__all__ = ["changing_files", "chosen_client", "own_settings", "program_of", "ullage_command", "undo_folder"]


def program_of(name: str) -> Program:
    """Return the program of that name.

    Raises:
        InvalidArguments: There is none.
    """
    found = find_program(name)
    if found is None:
        raise InvalidArguments(
            f"no program is called `{name}`", suggestion="name one of these", options=tuple(PROGRAMS)
        )
    return found


def chosen_client(name: str) -> ClientConfig:
    """Return the configuration of a program, as seen from the working folder."""
    return read_client(program_of(name), current_surroundings())


def undo_folder(places: Places) -> UndoFolder:
    """Return the folder with the records of changes to other programs' files."""
    return UndoFolder((places.state or places.data / "state") / "installs")


def own_settings(places: Places) -> tuple[bytes | None, dict[str, object]]:
    """Return the user's `ullage.toml`, as bytes and parsed.

    Raises:
        BadConfiguration: The file cannot be read.
    """
    path = str(places.user_file)
    try:
        content = read_bytes(path)
        document = parse_config(content or b"", ConfigFile(path=path, scope="user", format="toml"))
    except (OSError, ValueError) as error:
        raise BadConfiguration(
            f"`{path}` {error}", suggestion="mend the file first; `ullage doctor` says more"
        ) from error
    return content, document


def ullage_command() -> tuple[str, ...]:
    """Return the words that start this Ullage from anywhere: graphical programs do not have a shell's search path."""
    beside = Path(sys.executable).with_name("ullage.exe" if sys.platform == "win32" else "ullage")
    uvx = shutil.which("uvx")
    is_passing = any(part in ("archive-v0", "builds-v0") for part in beside.parts)
    if is_passing and uvx is not None:
        # Run by `uvx` from its cache, which may be cleaned up later.
        return str(Path(uvx).absolute()), f"ullage@{__version__}"
    if beside.is_file():
        return (str(beside),)
    return sys.executable, "-m", "ullage"


@contextmanager
def changing_files() -> Generator[None]:
    """Convert errors of file operations to errors for display."""
    try:
        yield
    except FileChanged as error:
        raise Unavailable(str(error), suggestion="nothing was changed; run this again") from error
    except EditRefused as error:
        raise BadConfiguration(
            str(error), suggestion="nothing was changed; mend the file, or edit it by hand"
        ) from error
    except OSError as error:
        where = f"`{error.filename}` " if error.filename else ""
        raise Unavailable(
            f"{where}cannot be written: {error.strerror or error}", suggestion="nothing was changed"
        ) from error
