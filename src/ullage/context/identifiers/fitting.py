"""Which identifiers are kept, and how many fit?

The likeliest first, as many as the room has; none that is a part of one before it. What stands in the messages beside
the ledger needs no place in it.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from ullage.messages import Message
from ullage.tokens import Steps, drain

from .ledger import Item, read_identifiers, write
from .ranking import points
from .sightings import Seen, Sightings

__all__ = ["identifier_steps", "identifiers"]

_FULL = 0.98
"""Of the room: what is left then is not worth another count."""
_EDGE = re.compile(r"[/.:]+")


def identifiers(
    messages: Sequence[Message],
    *,
    room: int,
    count: Callable[[str], int],
    earlier: Sequence[str] = (),
    beside: Sequence[Message] = (),
) -> str:
    """The ledger of what was said, within `room` tokens; `earlier` ledgers compete for a place."""
    return drain(identifier_steps(messages, room=room, count=count, earlier=earlier, beside=beside))


def identifier_steps(
    messages: Sequence[Message],
    *,
    room: int,
    count: Callable[[str], int],
    earlier: Sequence[str] = (),
    beside: Sequence[Message] = (),
) -> Steps[str]:
    """The same in steps of a few milliseconds."""
    said, present = Sightings(), Sightings()
    yield from said.read(messages)
    yield from present.read(beside)
    for text in earlier:
        _recall(said, text)
    ranked = yield from _ranked(said, present, len(messages))
    return (yield from _fitted(ranked, room, count))


def _recall(said: Sightings, text: str) -> None:
    items = read_identifiers(text)
    for item in items:
        said.add(item.word, Seen.EARLIER | (Seen.NAMED if item.name else Seen.EARLIER), -1, name=item.name)
        said.found[item.word].rank = item.rank


def _ranked(said: Sightings, present: Sightings, messages: int) -> Steps[list[Item]]:
    scored = list[tuple[float, Item]]()
    beside = {*present.found, *(part for word in present.found for part in _parts(word))}
    for place, (word, sighting) in enumerate(said.found.items()):
        worth = points(word, sighting, messages)
        if worth is not None and word not in beside and "`" not in word:
            scored.append((worth, Item(word, sighting.name)))
        if place % 1000 == 999:
            yield
    return [item for _, item in sorted(scored, key=lambda pair: (-pair[0], pair[1].word))]


def _fitted(ranked: Sequence[Item], room: int, count: Callable[[str], int]) -> Steps[str]:
    items = list(_distinct(ranked, room))
    best, fits, fails, guess = "", 0, len(items) + 1, len(items)
    while fits + 1 < fails:
        yield
        text = write(_without_parts(items[:guess]))
        tokens = count(text)
        if tokens > room:
            fails = guess
        else:
            best, fits = text, guess
            if tokens > _FULL * room:
                break
        guess = min(max(guess * room // max(1, tokens), fits + 1), fails - 1)
    return best


def _distinct(ranked: Sequence[Item], most: int) -> Iterator[Item]:
    """At most so many, without what is a part of one before it."""
    written = ""
    for item in ranked:
        if most > 0 and item.word not in written:
            most -= 1
            written += f"{item.word}\n"
            yield item


def _without_parts(items: Sequence[Item]) -> list[Item]:
    """Without what begins or ends another: a file's name where its path is there, an object where its member is."""
    parts = {part for item in items for part in _parts(item.word)}
    return [item for item in items if item.word not in parts]


def _parts(word: str) -> Iterator[str]:
    for edge in _EDGE.finditer(word, 1):
        yield word[: edge.start()]
        yield word[edge.start() :]
        yield word[edge.end() :]
