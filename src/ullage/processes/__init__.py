"""Child processes: the search for programs, the watcher that ends processes when Ullage is killed, and the search for
all of their descendants. Also the user of this process.

Programs are searched for in the absolute folders of a search path only. An empty entry of `PATH` (`PATH=:/usr/bin`) and
a relative one (`./node_modules/.bin`) mean the working folder, which may be a stranger's repository with a program
called `npx`. Windows looks there before everything else. Empty entries of the variables in `LISTS_OF_FOLDERS` mean the
same to an interpreter or a loader.
"""

import os
import shutil
import sys
from pathlib import Path

from .end_processes import Process, find_processes, is_running, read_processes, signal_processes
from .watcher import ProcessWatcher, Registration, process_watcher

__all__ = [
    "LISTS_OF_FOLDERS",
    "Process",
    "ProcessWatcher",
    "Registration",
    "absolute_folders",
    "find_executable",
    "find_processes",
    "is_running",
    "process_watcher",
    "read_processes",
    "signal_processes",
    "user_name",
]

LISTS_OF_FOLDERS = frozenset({
    "PATH", "PYTHONPATH", "NODE_PATH", "GEM_PATH", "GOPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH", "NIX_LD_LIBRARY_PATH",
})  # fmt: skip
"""Variables with folders from which programs load code."""


def absolute_folders(path: str) -> str:
    """Return a list of folders, as in `PATH`, without its empty and relative entries."""
    return os.pathsep.join(one for one in path.split(os.pathsep) if Path(one.strip('"')).is_absolute())


def find_executable(name: str, path: str | None = None) -> str | None:
    """Return the path of a program; None if there is none.

    Args:
        name: A name, which is searched for, or a path.
        path: The search path; None for that of this process.
    """
    folders = absolute_folders(os.environ.get("PATH", os.defpath) if path is None else path)
    if sys.platform != "win32" or Path(name).name != name:
        return shutil.which(name, path=folders)
    # `shutil.which` would search the working folder first.
    endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(os.pathsep)  # pragma: no cover
    names = [name] if Path(name).suffix.upper() in map(str.upper, endings) else [name + one for one in endings]
    places = (Path(folder.strip('"')) / one for folder in folders.split(os.pathsep) if folder for one in names)
    return next((str(one) for one in places if one.is_file()), None)  # pragma: no cover


def user_name() -> str:
    """Return the operating system's user name of this process; a number where it has none, as in many containers."""
    # Like `getpass.getuser`, whose import would add some milliseconds to every start.
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if name := os.environ.get(variable):
            return name
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, OSError):
        return str(os.getuid())
