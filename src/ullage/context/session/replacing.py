"""Which lines make room for which?

Finds the lines that a compaction has read in the file as it is now, and says what stands there afterwards: the
compaction's own line, then the new messages, with those that were kept as they are between them. Writes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ullage.errors import InvalidArguments

from .line import Line, Pen, compaction_line, message_line
from .record import Draft, Generation, Record

__all__ = ["Region", "Value", "composed", "find_region", "narrowed"]

Value = Record | Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Lines that stand together, and what is around them."""

    before: tuple[Line, ...]
    old: tuple[Line, ...]
    after: tuple[Line, ...]

    @property
    def last(self) -> int:
        """The greatest number among them."""
        return max(line.seq for line in self.old)


def narrowed(old: Sequence[Record], new: Sequence[Value]) -> tuple[tuple[Record, ...], tuple[Value, ...]]:
    """The same without what stays at either end; one old record remains at the least, to say where."""
    _check(old, new)
    first, last = 0, 0
    while first < len(old) - 1 and first < len(new) and new[first] == old[first]:
        first += 1
    while last < min(len(old) - first - 1, len(new) - first) and new[-1 - last] == old[-1 - last]:
        last += 1
    return tuple(old[first : len(old) - last]), tuple(new[first : len(new) - last])


def find_region(lines: Sequence[Line], records: Sequence[Record]) -> Region | None:
    """Where the records stand one behind the other, byte for byte; None where they no longer do.

    Lines of earlier compactions right before them belong to them.
    """
    start = next((at for at, line in enumerate(lines) if line.raw == records[0].line), None)
    if start is None:
        return None
    end, wanted = start, list(reversed(records))
    while wanted:
        if end == len(lines) or not _goes_on(lines[end], wanted):
            return None
        end += 1
    while start and lines[start - 1].generation is not None:
        start -= 1
    return Region(before=tuple(lines[:start]), old=tuple(lines[start:end]), after=tuple(lines[end:]))


def composed(region: Region, values: Sequence[Value], generation: Generation) -> tuple[Line, ...]:
    """The lines of the whole file afterwards. Which ids the generation has is found here."""
    pen = Pen(session=generation.session, ts=generation.ts, generation=generation.number)
    numbers = {line.id: line.seq for line in region.old}
    kept = {line.id: line for line in region.old}
    new = [
        kept[value.id]
        if isinstance(value, Record)
        else message_line(pen, value, seq=numbers.get(value.of or "", region.last), place=place)
        for place, value in enumerate(values)
    ]
    # Lines of a type that is not known here: nobody knows what would be lost with them.
    new += [line for line in region.old if line.record is None and line.generation is None]
    marked = compaction_line(replace(generation, ids=tuple(line.id for line in new)), seq=region.last)
    return *region.before, marked, *new, *region.after


def _check(old: Sequence[Record], new: Sequence[Value]) -> None:
    kept = [value.id for value in new if isinstance(value, Record)]
    foreign = set(kept) - {record.id for record in old}
    if not old or foreign or len(set(kept)) < len(kept):
        raise InvalidArguments(
            "only records that are replaced can be kept among the new ones, each once",
            suggestion="give the records of the snapshot from `first` to before `last`, and drafts",
        )
    if list(old) == list(new):
        raise InvalidArguments("nothing would be replaced")


def _goes_on(line: Line, wanted: list[Record]) -> bool:
    """Whether it is the next of the wanted, which it then leaves, or no message at all."""
    if line.record is None:
        return True
    return line.raw == wanted.pop().line
