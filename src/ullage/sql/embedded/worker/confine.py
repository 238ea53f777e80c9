"""Limits on the worker process: memory, the size of files it writes, core dumps and priority.

Windows has no such limits (untested there). macOS does not enforce the one on memory; each engine's own limit remains.
"""

import contextlib
import os
import sys

__all__ = ["confine"]

_RESERVED = 2 << 30
"""Address space that DuckDB reserves without using it, beyond its memory limit."""

_NICE = 5


def confine(*, memory: int, file_bytes: int) -> None:
    """Limit this process's memory, written files, core dumps and priority."""
    if sys.platform == "win32":
        return
    import resource

    os.nice(_NICE)
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_AS, memory + _RESERVED),
    ):
        # Nothing to do if the limit is already lower, or the system does not support it.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
