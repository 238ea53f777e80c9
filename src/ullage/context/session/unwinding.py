"""What did the file hold before something was let go?

A compaction put some lines into the place of others, and those others lie in its archive. To undo the latest one, and
then the one before it, gives back every earlier state, with whatever was appended since behind it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .line import Line
from .record import Generation

__all__ = ["Archived", "Unwound", "generation_of", "unwind"]

Archived = Callable[[Generation], Sequence[Line] | None]
"""The lines that a compaction let go, in order; None where they are not to be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwound:
    lines: tuple[Line, ...]
    generation: int
    """Of the state; above the wanted one where an archive is missing."""
    undone: tuple[Generation, ...]
    """The latest first."""
    missing: Generation | None = None


def generation_of(lines: Sequence[Line]) -> int:
    return max((line.generation.number for line in lines if line.generation), default=0)


def unwind(lines: Sequence[Line], archived: Archived, to: int = 0) -> Unwound:
    """As near to the wanted generation as the archives lead."""
    undone: list[Generation] = []
    while (latest := _latest(lines)) is not None and latest.number > to:
        before = archived(latest)
        if before is None or generation_of(before) >= latest.number:
            return Unwound(lines=tuple(lines), generation=latest.number, undone=tuple(undone), missing=latest)
        lines = _undone(lines, latest, before)
        undone.append(latest)
    return Unwound(lines=tuple(lines), generation=generation_of(lines), undone=tuple(undone))


def _latest(lines: Sequence[Line]) -> Generation | None:
    found = [line.generation for line in lines if line.generation is not None]
    return max(found, key=lambda generation: generation.number, default=None)


def _undone(lines: Sequence[Line], latest: Generation, before: Sequence[Line]) -> list[Line]:
    """By ids, so that a line that was lost in between does not cost its neighbour."""
    replaced = frozenset(latest.ids)
    result: list[Line] = []
    for line in lines:
        if line.generation is latest:
            result += before
        elif line.id not in replaced:
            result.append(line)
    return result
