"""Which identifiers are kept, and how many fit?

The likeliest first, as many as the room has. What stands in the messages beside the ledger needs no place in it, and
neither does a part of what is in it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from ullage.messages import Message
from ullage.tokens import Steps, drain

from .ledger import Item, can_stand, item_of, read_identifiers, write
from .ranking import points
from .sightings import Seen, Sightings

__all__ = ["identifier_steps", "identifiers"]

_FULL = 0.98
"""Of the room: what is left then is not worth another count."""
_EDGE = re.compile(r"[/.:]+")
_BATCH = 1_000
"""Words that are looked at before others are let in."""


def identifiers(
    messages: Sequence[Message],
    *,
    room: int,
    count: Callable[[str], int],
    earlier: Sequence[str] = (),
    beside: Sequence[Message] = (),
) -> str:
    """What may be needed to the letter of messages that are let go, within `room` tokens.

    Words of `earlier` ledgers compete for a place. `beside` is what stays: what it says is not repeated.
    """
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
    said, staying = Sightings(), Sightings()
    yield from said.read(messages)
    yield from staying.read(beside)
    for text in earlier:
        _recall(said, text)
        yield
    kept = yield from _with_parts(staying.found)
    ranked = yield from _ranked(said, kept, len(messages))
    most = max(0, room)  # For a word has a token at least.
    return (yield from _fitted([item_of(word, said.found[word].name) for word in ranked[:most]], room, count))


def _recall(said: Sightings, ledger: str) -> None:
    for item in read_identifiers(ledger):
        seen = Seen.EARLIER if item.name is None else Seen.EARLIER | Seen.NAMED
        said.add(item.word, seen, -1, name=item.name).rank = item.rank


def _ranked(said: Sightings, staying: set[str], messages: int) -> Steps[list[str]]:
    scored = list[tuple[float, str]]()
    for place, (word, sighting) in enumerate(said.found.items()):
        worth = points(word, sighting, messages)
        if worth is not None and word not in staying and can_stand(word):
            scored.append((-worth, word))
        if place % _BATCH == _BATCH - 1:
            yield
    yield
    return [word for _, word in sorted(scored)]


def _fitted(items: Sequence[Item], room: int, count: Callable[[str], int]) -> Steps[str]:
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


def _without_parts(items: Sequence[Item]) -> Iterator[Item]:
    """Without what begins or ends another: a file's name where its path is there, an object where its member is."""
    parts = {part for item in items for part in _parts(item.word)}
    return (item for item in items if item.word not in parts)


def _with_parts(words: Iterable[str]) -> Steps[set[str]]:
    found = set[str]()
    for place, word in enumerate(words):
        found.update((word, *_parts(word)))
        if place % _BATCH == _BATCH - 1:
            yield
    return found


def _parts(word: str) -> Iterator[str]:
    for edge in _EDGE.finditer(word, 1):
        yield word[: edge.start()]
        yield word[edge.start() :]
        yield word[edge.end() :]
