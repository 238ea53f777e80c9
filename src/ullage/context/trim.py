"""Drops what nothing else made small enough.

The oldest groups are dropped, one after the other, as far as nothing that must stay is among them; then what is left is
truncated, harder each time, the user's own words last. It always comes to an end, and says by how much the history is
still too large.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from .clamp import clamp
from .cut import Parting
from .difference import difference, weight_of
from .entry import Entry
from .placing import assembled, bridges
from .remake import Remake
from .requests import read_history
from .shed import Change

__all__ = ["Trimmed", "trim"]

_SMALLEST = 200
"""Tokens to which a single part is clamped at the worst."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    change: Change
    kept: tuple[Entry, ...]
    """What remains as it was before any of it was truncated; as many as remain, in the same order."""
    over: int
    """Tokens above the room that are left all the same: what must stay is larger than that."""

    @property
    def fits(self) -> bool:
        return not self.over


def trim(entries: Sequence[Entry], scale: Remake, room: int, *, recalls: bool = False) -> Trimmed:
    kept = left = tuple(entries)
    if left and weight_of(left) > room:
        kept = _without_the_oldest(left, scale, room)
        left = _clamped(kept, scale, room, recalls=recalls)
    return Trimmed(difference("trim", entries, left), kept, max(0, weight_of(left) - room))


def _without_the_oldest(entries: Sequence[Entry], scale: Remake, room: int) -> tuple[Entry, ...]:
    """As few groups less as the room demands, and never the last."""
    parting, bridge = Parting(entries), bridges(scale)
    told = [place for place, entry in enumerate(entries) if entry.kind == "summary"][:1]

    def left(cut: int) -> tuple[Entry, ...]:
        before = {*parting.stays(cut), *(place for place in told if place < cut)}
        return assembled(None, entries, (*sorted(before), *range(cut, len(entries))), bridge)

    places = parting.places
    first = bisect_left(places, True, key=lambda cut: weight_of(left(cut)) <= room)
    return left(places[min(first, len(places) - 1)])


def _clamped(entries: tuple[Entry, ...], scale: Remake, room: int, *, recalls: bool) -> tuple[Entry, ...]:
    most = max(_SMALLEST, room // 2)
    while weight_of(entries) > room:
        cut = partial(clamp, entries, scale, most, recalls=recalls, last_resort=True, reading=read_history(entries))
        change = cut()
        if change is None or weight_of(change.entries) > room:
            change = cut(said_most=most) or change
        entries = entries if change is None else change.entries
        if most == _SMALLEST:
            break
        most = max(_SMALLEST, most // 2)
    return entries
