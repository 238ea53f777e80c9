"""Limits on the worker process: memory, the size of files it writes, core dumps and priority.

Windows has no such limits (untested there). macOS does not enforce the one on memory; each engine's own limit remains.
"""

import contextlib
import os
import sys

__all__ = ["confine"]

_RESERVED = 2 << 30
"""Addresses that DuckDB reserves without using them, above the memory it is given."""

_NICE = 5


def confine(*, memory: int, file_bytes: int) -> None:
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
        # Where it is already lower, or the system does not know it, there is nothing to set.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
