"""Is there memory to be had?

What would take hundreds of megabytes asks here first: in a container with less, to take them is to be ended. Linux
says; where nobody does, there is.
"""

import re
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path

__all__ = ["has_room"]

_GROUPS = (
    ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
"""What a container may have and what it has, in both generations of Linux's control groups."""


def has_room(size: int, *, root: Path = Path("/")) -> bool:
    """Whether so many bytes are left: in the machine, in our container, in our address space."""
    return all(left >= size for left in _left(root)) and _can_be_mapped(size)


def _left(root: Path) -> Iterator[int]:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _read(root / "proc/meminfo"), re.MULTILINE)
    if found:
        yield int(found[1]) * 1024
    for most, used in _GROUPS:
        limit, usage = _read(root / most).strip(), _read(root / used).strip()
        if limit.isdecimal() and usage.isdecimal():
            yield int(limit) - int(usage)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def _can_be_mapped(size: int) -> bool:
    """Nothing is touched, so nothing is taken."""
    try:
        mmap(-1, size).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True
