"""Which parts make a line?

A long line is kept in parts (`layout`), each known as `Continued` but the first. Whoever looks for something in it, or
reads it as a row, wants the line. What is looked for is not known here.
"""

from collections.abc import Iterable, Iterator, Sequence

from ullage.table import Continued

from .paging import Numbered

__all__ = ["LineTooLong", "lines_of_parts", "rejoined"]

_LONGEST_ROW = 4_000_000
"""Characters of one row. Joining, reading and freeing more would each hold up others."""
_MOST = 250
"""Parts of a line that are taken together."""
_AGAIN = 8
"""Of those, that are taken with the next ones too, so that what lies across is found."""


class LineTooLong(ValueError):
    """A line has more characters than a row may have."""


def rejoined(units: Iterable[Numbered]) -> Iterator[Numbered]:
    """Each line whole, under the number of its last unit; raises `LineTooLong` for one that cannot be a row."""
    parts, last, length = list[str](), 0, 0
    for number, unit in units:
        if parts and not isinstance(unit, Continued):
            yield last, "".join(parts)
            parts, length = [], 0
        parts.append(unit)
        last = number
        length += len(unit)
        if length > _LONGEST_ROW:
            raise LineTooLong
    if parts:
        yield last, "".join(parts)


def lines_of_parts(units: Iterable[Numbered]) -> Iterator[Sequence[Numbered]]:
    """The parts of each line; those of a very long one by and by, the last of them again with the next."""
    parts = list[Numbered]()
    for one in units:
        if parts and not isinstance(one[1], Continued):
            yield parts
            parts = []
        elif len(parts) == _MOST:
            yield parts
            parts = parts[-_AGAIN:]
        parts.append(one)
    if parts:
        yield parts
