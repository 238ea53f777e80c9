"""How are several numbered things named in a sentence?"""

from collections.abc import Sequence

__all__ = ["listed"]


def listed(noun: str, numbers: Sequence[int]) -> str:
    """`line 7`, `lines 3, 7 and 8`."""
    *most, last = map(str, numbers)
    return f"{noun}s {', '.join(most)} and {last}" if most else f"{noun} {last}"
