"""Find and end every process that belongs to a server, also those that left its process group.

Used in two ways. Ullage imports it to end one server completely. The watcher runs it as a program when Ullage has
died without ending its servers:

    python -I -S end_processes.py OWNER [PID:START | pending-N]...   end these processes and all with the owner's mark
    python -I -S end_processes.py --watch OWNER                      read entries from standard input until it closes

It needs the standard library alone and imports as little of it as possible, because it runs where Ullage no longer
does.

A process belongs to a server when it is the registered process, a member of its session or process group, a
descendant of such a process, or carries the mark that Ullage puts into the environment of everything it starts. The
mark finds processes whose parents have already ended. It does not count for a real daemon, that is a process in a
session of its own that has neither a parent among the server's processes nor a pipe or socket as standard input,
output or error: `gpg-agent` or `tmux`, started in passing by some tool, are meant to outlive it.

Everything but the process groups needs `/proc`, which is Linux. Elsewhere only the registered groups are ended.
"""

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "MARK",
    "Process",
    "find_processes",
    "is_running",
    "main",
    "read_processes",
    "signal_processes",
    "start_time",
    "sweep",
]

MARK = "ULLAGE_OWNER"
"""Variable in the environment of every process that Ullage starts: marks, one for each nested Ullage."""

_PROC = "/proc"
_TERM_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_KILL_SECONDS = 10.0
"""Seconds after which processes that survive SIGKILL (another user's, or stuck in the kernel) are left."""
_QUIET_SECONDS = 0.5
"""Seconds without a find before the sweep ends, so that a process that is just being started is not missed."""
_POLL_SECONDS = 0.05


class Process:
    """One entry of the process table."""

    __slots__ = ("group", "parent", "pid", "session", "started")

    def __init__(self, pid: int, parent: int, group: int, session: int, started: int) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.session = session
        self.started = started
        """Clock ticks since boot. With the pid it names one process for good, since pids are reused."""


def _read_process(pid: int) -> Process | None:
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib would be loaded for this alone
            text = file.read()
    except OSError:
        return None
    # The name in brackets may contain spaces and brackets itself.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def read_processes() -> "dict[int, Process]":
    """Return the process table by pid, without processes that have ended; empty where there is no `/proc`."""
    try:
        names = os.listdir(_PROC)  # noqa: PTH208
    except OSError:
        return {}
    found = (_read_process(int(name)) for name in names if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def start_time(pid: int) -> int:
    """Return the process's start in clock ticks since boot; 0 where it cannot be known."""
    process = _read_process(pid)
    return 0 if process is None else process.started


def _has_mark(pid: int, mark: str) -> bool:
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:  # noqa: PTH123
            environment = file.read()
    except OSError:
        return False
    prefix = f"{MARK}=".encode()
    wanted = mark.encode()
    for variable in environment.split(b"\0"):
        if variable.startswith(prefix):
            marks = variable[len(prefix) :].split(b",")
            return any(one == wanted or one.startswith(wanted + b".") for one in marks)
    return False


def _has_pipe(pid: int) -> bool:
    """Return whether standard input, output or error is a pipe or a socket, as for ordinary children of a server."""
    for number in range(3):
        try:
            target = os.readlink(f"{_PROC}/{pid}/fd/{number}")  # noqa: PTH115
        except OSError:
            continue
        if target.startswith(("pipe:", "socket:")):
            return True
    return False


def find_processes(
    processes: "Mapping[int, Process]", registered: "Mapping[int, int]", mark: str
) -> "dict[int, Process]":
    """Return the processes that belong to the registered ones.

    Args:
        processes: The process table, from `read_processes`.
        registered: Pid to start time of the processes that Ullage started.
        mark: Ullage's own mark, which covers all its servers, or that of one server.
    """
    own = os.getpid()
    marked = {pid for pid in processes if pid != own and _has_mark(pid, mark)}
    leaders = {pid for pid, started in registered.items() if pid in processes and processes[pid].started == started}
    # The pid of an exited leader still names its session, unless that ended too and the pid was reused; the
    # mark tells the two apart.
    gone = {pid for pid in registered if pid not in processes}
    found: set[int] = set()
    for process in processes.values():
        home = {process.session, process.group}
        is_member = process.pid in leaders or not leaders.isdisjoint(home)
        if is_member or (process.pid in marked and not gone.isdisjoint(home)):
            found.add(process.pid)

    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    orphans = {pid for pid in marked if processes[pid].parent not in marked and _has_pipe(pid)}
    waiting = list(found | orphans)
    found |= orphans
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return {pid: processes[pid] for pid in found if pid not in (own, 1)}


def is_running(process: Process) -> bool:
    """Return whether the process still runs, and its pid has not been reused."""
    return start_time(process.pid) == process.started


def signal_processes(processes: "Iterable[Process]", number: int) -> None:
    """Send a signal to each process that is still the same as when the table was read."""
    for process in processes:
        if is_running(process):
            try:
                os.kill(process.pid, number)
            except OSError:
                continue


def sweep(owner: str, registered: "dict[int, int]") -> None:
    """End all processes of an owner: SIGTERM, then SIGKILL, until none is left or nothing more can be done."""
    if not os.path.isdir(f"{_PROC}/self"):  # noqa: PTH112
        _end_groups(registered)
        return
    began = seen_at = time.monotonic()
    terminated: set[tuple[int, int]] = set()
    while time.monotonic() < began + _TERM_SECONDS + _KILL_SECONDS:
        now = time.monotonic()
        found = find_processes(read_processes(), registered, owner)
        if found:
            seen_at = now
        elif now > seen_at + _QUIET_SECONDS:
            return
        is_final = now > began + _TERM_SECONDS
        for process in found.values():
            # Kept as a root: its children belong to the server even if it has exited by the next round.
            registered[process.pid] = process.started
            if is_final:
                signal_processes([process], signal.SIGKILL)
            elif (process.pid, process.started) not in terminated:
                terminated.add((process.pid, process.started))
                signal_processes([process], signal.SIGTERM)
                signal_processes([process], signal.SIGCONT)
        time.sleep(_POLL_SECONDS)


def _end_groups(registered: "Mapping[int, int]") -> None:
    """End the registered process groups, where there is no process table.

    A pid is unregistered before it can be reused.
    """
    for number, pause in ((signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, 0.0)):
        for pid in registered:
            try:
                os.killpg(pid, number)
            except OSError:
                continue
        time.sleep(pause)


def main(words: list[str]) -> None:
    if words[0] == "--watch":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        owner, entries = words[1], dict[str, None]()
        # On systems without a shell. Entries come on standard input until it is closed, as to the shell watcher.
        for line in sys.stdin:
            if not line.endswith("\n"):
                break
            if line[0] == "+":
                entries[line[1:].strip()] = None
            else:
                entries.pop(line[1:].strip(), None)
    else:
        owner, entries = words[0], dict.fromkeys(words[1:])
    if entries:
        # Entries are `PID:START`; a `pending-N` is a process that was being started, which only its mark
        # identifies.
        pairs = [entry.partition(":") for entry in entries]
        parse = {int(pid): int(started or 0) for pid, _, started in pairs if pid.isdigit() and int(pid) > 1}
        sweep(owner, parse)


if __name__ == "__main__":
    main(sys.argv[1:])
