"""How is too little room shared out among too many texts?

The worthiest are let in first, each with the little that it needs to make sense; what is then left is shared in the
ratio of their worths, and none gets more than it needs.
"""

from collections.abc import Sequence

__all__ = ["shared"]


def shared(sizes: Sequence[int], worths: Sequence[float], leasts: Sequence[int], room: int) -> list[int]:
    """What each gets of the room, in all no more than that; nothing for those that are left out. `leasts` is what each
    gets at least where it is let in and needs it. Of equal worth, the later is let in first."""
    given, left = [0] * len(sizes), max(0, room)
    for place in sorted(range(len(sizes)), key=lambda place: (worths[place], place), reverse=True):
        needs = min(sizes[place], leasts[place])
        if needs > left and any(given):
            break
        given[place] = min(needs, left)
        left -= given[place]
    return _filled(given, sizes, worths, left)


def _filled(given: list[int], sizes: Sequence[int], worths: Sequence[float], left: int) -> list[int]:
    """The rest, shared out by worth: first to those who want least for theirs, for what they leave goes to others."""
    wanting = [place for place, has in enumerate(given) if 0 < has < sizes[place]]
    whole = sum(worths[place] for place in wanting)
    for place in sorted(wanting, key=lambda place: (sizes[place] - given[place]) / worths[place]):
        more = min(sizes[place] - given[place], left, int(left * worths[place] / max(whole, worths[place])))
        given[place] += more
        left -= more
        whole -= worths[place]
    return given
