"""What `install`, `uninstall` and `status` share: the user's files, and errors in the one shape."""

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
    """The program of that name; raises `InvalidArguments` where there is none."""
    found = find_program(name)
    if found is None:
        raise InvalidArguments(
            f"no program is called `{name}`", suggestion="name one of these", options=tuple(PROGRAMS)
        )
    return found


def chosen_client(name: str) -> ClientConfig:
    """What a program has configured, seen from the working folder."""
    return read_client(program_of(name), current_surroundings())


def undo_folder(places: Places) -> UndoFolder:
    """Where the changes of other programs' files are recorded."""
    return UndoFolder((places.state or places.data / "state") / "installs")


def own_settings(places: Places) -> tuple[bytes | None, dict[str, object]]:
    """The user's `ullage.toml`, as it is and parsed.

    Raises:
        BadConfiguration: it cannot be read.
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
    """The words that start this Ullage from anywhere: programs with windows have no search path of a shell."""
    beside = Path(sys.executable).with_name("ullage.exe" if sys.platform == "win32" else "ullage")
    uvx = shutil.which("uvx")
    is_passing = any(part in ("archive-v0", "builds-v0") for part in beside.parts)
    if is_passing and uvx is not None:
        # Run by `uvx` from its cache, which is cleaned up some day.
        return str(Path(uvx).absolute()), f"ullage@{__version__}"
    if beside.is_file():
        return (str(beside),)
    return sys.executable, "-m", "ullage"


@contextmanager
def changing_files() -> Generator[None]:
    """Turns what goes wrong with files into errors for people."""
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
