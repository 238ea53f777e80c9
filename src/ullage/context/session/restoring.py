"""Which lines was the file made of at that generation?

Backwards the archives lead; forwards, to where the file was before it was brought back, a copy of the whole file.
"""

from collections.abc import Iterable, Sequence

from .line import Line
from .unwinding import Archived, unwind

__all__ = ["state_at"]

_Lines = Sequence[Line]


def state_at(lines: _Lines, generation: int, archived: Archived, wholes: Iterable[_Lines]) -> tuple[Line, ...] | None:
    """With whatever was appended since behind it; None where nothing leads there. Of the copies, the latest first."""
    back = unwind(lines, archived, generation)
    if back.generation == generation:
        return back.lines
    origin = unwind(lines, archived).lines
    found = (_continued(whole, generation, archived, origin) for whole in wholes)
    return next((state for state in found if state is not None), None)


def _continued(whole: _Lines, generation: int, archived: Archived, origin: _Lines) -> tuple[Line, ...] | None:
    """The state that a copy leads to, and behind it what the origin of today has more than the copy's."""
    there, begun = unwind(whole, archived, generation), unwind(whole, archived).lines
    is_same = [line.raw for line in begun] == [line.raw for line in origin[: len(begun)]]
    return (*there.lines, *origin[len(begun) :]) if there.generation == generation and is_same else None
