"""Files that are mapped into memory, and whose pages can be released.

Pages that were read count as this process's memory although the system keeps them anyway. Released pages are mapped
again when they are read, without reading the file.
"""

import mmap
from weakref import WeakSet

__all__ = ["add_mapped_file", "release_mapped_pages"]

_mapped: WeakSet[mmap.mmap] = WeakSet()


def add_mapped_file(mapped: mmap.mmap) -> None:
    """Add a map of a file that is only read."""
    _mapped.add(mapped)


def release_mapped_pages() -> None:
    """Release the pages of all added maps, where the system can do so."""
    advice = getattr(mmap, "MADV_DONTNEED", None)
    if advice is not None:
        for mapped in tuple(_mapped):
            mapped.madvise(advice)
