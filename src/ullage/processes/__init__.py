"""Child processes: the search for programs, the watcher that ends processes when Ullage is killed, and the search for
all of their descendants. Also the user of this process."""

import os

from .end_processes import Process, find_processes, is_running, read_processes, signal_processes
from .search_path import LISTS_OF_FOLDERS, absolute_folders, find_executable
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
