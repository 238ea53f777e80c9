"""Watcher process that ends every child process when Ullage dies, in whatever way.

Ullage normally ends its servers itself. SIGKILL, a crash or the kernel's out-of-memory killer prevent that, and a
parent-death signal (`PR_SET_PDEATHSIG`) would reach only direct children: `npx` and `uvx` run the real server as a
grandchild. So each Ullage has one small process with the reading end of a pipe whose only writing end is Ullage's. When
the pipe closes while servers are still registered, the watcher runs `end_processes.py`.

The watcher is a loop of `/bin/sh` (1.6 MiB resident, 0.1 MiB of it its own; Python would take 8.3 MiB), started with
the first child process, in a session of its own, with no other file descriptor. Every child process is registered: an
entry `pending-N` is written before a process is started, and the process carries a mark in its environment by which the
sweep finds it. If the watcher is killed, it is restarted and all entries are sent again.

On macOS and the BSDs the same watcher ends the registered process groups. On Windows there is none.
"""

import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from .end_processes import MARK, start_time

__all__ = ["ProcessWatcher", "Registration", "process_watcher"]

_log = logging.getLogger(__name__)

_SWEEP = Path(__file__).with_name("end_processes.py")
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables that an interpreter may need to start at all."""
_LIVED = 10.0
"""Seconds of life after which a watcher that ends counts as killed, not as unable to run."""
_LONGEST_PAUSE = 60.0

_LOOP = """
trap '' HUP INT TERM
list=' '
while read -r line; do
  entry=${line#?}
  case $line in
    +*) list="$list$entry " ;;
    -*) case $list in *" $entry "*) list="${list%%" $entry "*} ${list#*" $entry "}" ;; esac ;;
  esac
done
python=$0 sweep=$1 owner=$2
set -- $list
[ $# -eq 0 ] || exec "$python" -I -S "$sweep" "$owner" "$@"
"""
"""Reads `+ENTRY` and `-ENTRY` lines until end of file; an incomplete last line is ignored."""


class Registration:
    """One child process, from before its start until nothing of it is left."""

    def __init__(self, watcher: "ProcessWatcher", number: int) -> None:
        self._watcher = watcher
        self.mark = f"{watcher.owner}.{number}"
        self.entry = f"pending-{number}"
        above = os.environ.get(MARK, "")
        self.environment = {MARK: f"{above},{self.mark}" if above else self.mark}
        """Variables to add to the environment of the process."""
        self.process_id: int | None = None
        self.start_time = 0

    def started(self, process_id: int) -> None:
        """Send the watcher the pid of the started process."""
        self.process_id, self.start_time = process_id, start_time(process_id)
        self._watcher.replace_entry(self, f"{process_id}:{self.start_time}")


class ProcessWatcher:
    """The watcher of this process. Usable from any thread and without an event loop."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the inherited watcher, in a forked child: only the parent's end must trigger the parent's watcher."""
        self.owner = secrets.token_hex(12)
        self._lock = threading.Lock()
        self._registered: set[Registration] = set()
        self._count = 0
        self._pause = 0.0
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.returncode = 0  # It is not this process's child.
            with suppress(OSError):
                process.stdin.close()

    @property
    def process_id(self) -> int | None:
        """The watcher's pid; None where it does not run."""
        process = self._process
        return None if process is None else process.pid

    @contextmanager
    def registration(self) -> Generator[Registration]:
        """Register a process that is about to be started; it must have ended when the context does.

        with process_watcher().registration() as registered:
            process = subprocess.Popen(command, env={**environment, **registered.environment})
            registered.started(process.pid)
            ...
        """
        with self._lock:
            self._count += 1
            registered = Registration(self, self._count)
            self._registered.add(registered)
            if self._process is None:
                self._start()
            else:
                self._write(f"+{registered.entry}\n")
        try:
            yield registered
        finally:
            with self._lock:
                self._registered.discard(registered)
                self._write(f"-{registered.entry}\n")

    def replace_entry(self, registered: Registration, entry: str) -> None:
        with self._lock:
            before, registered.entry = registered.entry, entry
            self._write(f"+{entry}\n-{before}\n")

    def _start(self) -> None:
        """Start the watcher process and send it all registered entries; the caller holds the lock."""
        if sys.platform == "win32" or not sys.executable:  # pragma: no cover
            return
        shell = shutil.which("sh", path=os.defpath)
        words = (
            [shell, "-c", _LOOP, sys.executable, str(_SWEEP), self.owner]
            if shell
            else [sys.executable, "-I", "-S", str(_SWEEP), "--watch", self.owner]
        )
        try:
            process = self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            _log.warning("servers may stay behind if Ullage is killed: no watcher process can be started: %s", error)
            return
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        self._write("".join(f"+{one.entry}\n" for one in self._registered))
        threading.Thread(target=self._restart_when_gone, args=(process,), name="process-watcher", daemon=True).start()

    def _write(self, lines: str) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        try:
            written = os.write(process.stdin.fileno(), lines.encode())
        except BlockingIOError:
            written = 0
        except OSError:
            return  # It has ended, and is about to be started again.
        if written < len(lines):
            # It does not read. Another watcher is started and gets all entries again.
            process.kill()

    def _restart_when_gone(self, process: "subprocess.Popen[bytes]") -> None:
        began = time.monotonic()
        status = process.wait()
        if self._process is not process:
            return
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        _log.warning("the watcher process that ends servers if Ullage is killed has ended (%s); starting another", how)
        self._pause = 0.0 if time.monotonic() - began > _LIVED else min(max(2 * self._pause, 0.1), _LONGEST_PAUSE)
        time.sleep(self._pause)
        with self._lock:
            if self._process is process:
                self._process = None
                with suppress(OSError):
                    cast("IO[bytes]", process.stdin).close()
                self._start()


_watcher = ProcessWatcher()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watcher.reset)


def process_watcher() -> ProcessWatcher:
    """Return this process's watcher; the watcher process is started with the first registration."""
    return _watcher
