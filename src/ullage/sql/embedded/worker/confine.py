"""What can the process not do, whatever happens in it?

Take more memory than it was given, write to a file beyond so many bytes, leave a picture of its memory behind, or stand
in the way of others on a busy machine. Windows has no such limits (untested there); macOS does not hold the one on
memory, where each engine's own limit remains.
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
