"""Which processes did a test start, however far down, and how much memory do they hold?

A process is known by a mark in its environment, which all it starts inherit.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

__all__ = ["MARK", "gateway_of", "left_behind", "marked", "marking", "memory_of"]

MARK = "LC_ULLAGE_TEST_MARK"
"""A variable that every server inherits by its name, so that processes below the gateway bear it too."""
PROCESSES = Path("/proc")
MOMENT = 10
"""Seconds in which what was told to end has ended; machines are slow and shared."""


def marked(mark: str) -> Iterator[int]:
    wanted = f"{MARK}={mark}".encode()
    for folder in PROCESSES.glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0"):
            yield int(folder.name)


@contextmanager
def marking(folder: Path) -> Iterator[str]:
    """A mark of a test's own; what still bears it in the end is ended."""
    yield str(folder)
    for process in marked(str(folder)):
        os.kill(process, signal.SIGKILL)


async def left_behind(mark: str) -> list[int]:
    """Who is still there a moment after the end."""
    with anyio.move_on_after(MOMENT):
        while list(marked(mark)):
            await anyio.sleep(0.1)
    return list(marked(mark))


def gateway_of(mark: str) -> int:
    """The one of them that this process started."""
    own = [process for process in marked(mark) if _parent_of(process) == os.getpid()]
    assert len(own) == 1, own
    return own[0]


def memory_of(process: int) -> int:
    """Bytes it holds itself."""
    pages = int((PROCESSES / str(process) / "statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _parent_of(process: int) -> int:
    try:
        status = (PROCESSES / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(status.rpartition(")")[2].split()[1])
