"""Is there memory to be had?

What would take hundreds of megabytes asks here first: in a container with less, to take them is to be ended. Linux
says; where nobody does, there is.
"""

import re
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path

__all__ = ["has_room"]

_GROUPS = "sys/fs/cgroup"
_NEWER, _OLDER = ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
"""What a container or service may have and what it has, in both generations of Linux's control groups."""


def has_room(size: int, *, root: Path = Path("/")) -> bool:
    """Whether so many bytes are left: in the machine, in our container or service, in our address space."""
    return all(left >= size for left in _left(root)) and _can_be_mapped(size)


def _left(root: Path) -> Iterator[int]:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _read(root / "proc/meminfo"), re.MULTILINE)
    if found:
        yield int(found[1]) * 1024
    for folder, (most, used) in _groups(root):
        limit, usage = _read(folder / most).strip(), _read(folder / used).strip()
        if limit.isdecimal() and usage.isdecimal():
            yield int(limit) - int(usage)


def _groups(root: Path) -> Iterator[tuple[Path, tuple[str, str]]]:
    """Those we are in. A container sees its own at the top; a service has its own below, and those above it hold
    too."""
    top = root / _GROUPS
    yield top / "memory", _OLDER
    ours = re.search(r"^0::/(.*)$", _read(root / "proc/self/cgroup"), re.MULTILINE)
    below = top / (ours[1] if ours else "")
    yield from ((folder, _NEWER) for folder in (below, *below.parents) if folder.is_relative_to(top))


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
