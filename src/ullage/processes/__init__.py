"""Child processes: the watcher that ends them when Ullage is killed, and the search for all of their descendants.
Also the memory and the user of this process."""

from .current_user import user_name
from .memory import collect_garbage, release_free_memory
from .sweep import Process, find_processes, is_running, read_processes, signal_processes
from .watcher import ProcessWatcher, Registration, process_watcher

__all__ = [
    "Process",
    "ProcessWatcher",
    "Registration",
    "collect_garbage",
    "find_processes",
    "is_running",
    "process_watcher",
    "read_processes",
    "release_free_memory",
    "signal_processes",
    "user_name",
]
