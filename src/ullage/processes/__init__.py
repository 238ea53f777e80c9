"""Child processes: the watcher that ends them when Ullage is killed, and the search for all of their descendants."""

from .sweep import Process, find_processes, is_running, read_processes, signal_processes
from .watcher import ProcessWatcher, Registration, process_watcher

__all__ = [
    "Process",
    "ProcessWatcher",
    "Registration",
    "find_processes",
    "is_running",
    "process_watcher",
    "read_processes",
    "signal_processes",
]
