"""Has a file changed since it was read?

By time, size and inode: enough to notice an edit, a replacement, a file that came or went, without reading it. What
the change means is not asked here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Stamp", "Stamps", "changed", "stamp_of", "stamps_of"]


@dataclass(frozen=True, slots=True)
class Stamp:
    modified: int
    """In nanoseconds, as is `touched`."""
    touched: int
    size: int
    inode: int


Stamps = Mapping[Path, Stamp | None]
"""None for a file that is not there."""


def stamp_of(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def stamps_of(paths: Iterable[Path]) -> dict[Path, Stamp | None]:
    return {path: stamp_of(path) for path in paths}


def changed(before: Stamps, now: Stamps) -> frozenset[Path]:
    """The files of both that are not what they were."""
    return frozenset(path for path in before.keys() & now.keys() if before[path] != now[path])
