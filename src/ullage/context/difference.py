"""What did a tier let go, told from what was there and what is left?"""

from collections.abc import Sequence

from .entry import Entry
from .shed import Change, Shed, Tier

__all__ = ["difference", "weight_of"]


def weight_of(entries: Sequence[Entry]) -> int:
    return sum(entry.weight.tokens for entry in entries)


def difference(tier: Tier, before: Sequence[Entry], after: Sequence[Entry]) -> Change:
    """Untouched entries are told by being the same objects."""
    left = {id(entry) for entry in after}
    broke_at = next(
        (place for place, pair in enumerate(zip(before, after, strict=False)) if pair[0] is not pair[1]), None
    )
    if broke_at is None:
        broke_at = min(len(before), len(after))
    shed = Shed(
        tier=tier,
        tokens=weight_of(before) - weight_of(after),
        messages=sum(id(entry) not in left for entry in before),
        broke_at=broke_at,
        reread=weight_of(after[broke_at:]),
    )
    return Change(tuple(after), shed)
