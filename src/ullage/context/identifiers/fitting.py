"""Which identifiers are kept, and how many fit?

The likeliest first, as many as the room has. What stands in the messages beside the ledger needs no place in it, and
neither does a part of what is in it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from ullage.messages import Message, Text, ToolCall, ToolResult
from ullage.tokens import Steps, drain

from .kinds import Kind, kind_of
from .ledger import Item, can_stand, item_of, read_identifiers, write
from .ranking import points
from .records import MARK, fit_records, read_records, records_of
from .sightings import Seen, Sightings
from .words import slices

__all__ = ["identifier_steps", "identifiers"]

_FULL = 0.98
"""Of the room: what is left then is not worth another count."""
_LONG = 32
"""Characters of a word or a command that is not repeated for the few that it has beside what is known."""
_EDGE = re.compile(r"[/.:]+")
_RECORDS, _ALONE, _BESIDE = 0.90, 6.0, 1.0
"""Share of the room that records may fill at most: so many times the part that the room is of what is let go, or of its
square where something else relates things: a model's summary, or results that were written in fewer words. Records take
more room than a list of the same words: where much is let go for little room, more is found in a list."""
_RECORDED = 0.2
"""Rank of a word of an earlier record, from 0 for the first of a line to 1."""
_STANDS_FOR = 20
"""Times its own size that an earlier ledger stands for."""
_CHARACTERS = 4
"""Of a token, where a text is only gauged."""
_SPOKEN = Seen.USER | Seen.ASSISTANT | Seen.ARGUMENT
"""Where a value is seen that somebody spoke of, and that was not only read."""
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


def identifier_steps(  # noqa: PLR0913
    messages: Sequence[Message],
    *,
    room: int,
    count: Callable[[str], int],
    earlier: Sequence[str] = (),
    beside: Sequence[Message] = (),
    alone: bool = True,
    related: Sequence[Message] | None = None,
) -> Steps[str]:
    """The same in steps of a few milliseconds. `alone` where no model has said what belongs together; `related` are the
    messages of whose results records are made, all where it is None."""
    said, staying = Sightings(), Sightings()
    yield from said.read(messages)
    yield from staying.read(beside)
    for text in earlier:
        _recall(said, text)
        yield
    records = yield from records_of(messages if related is None else related)
    records = [*(one for text in earlier for one in read_records(text, records)), *records]
    spoken = {word for found in (said.found, staying.found) for word, seen in found.items() if seen.seen & _SPOKEN}
    part = room / max(1, _gauged(messages, earlier))
    share = min(_RECORDS, _ALONE * part if alone else _BESIDE * part**2)
    lines = yield from fit_records(records, spoken, int(share * room), count)
    told = "\n".join(lines)
    for text in slices(told):
        staying.read_text(text)
        yield
    kept = yield from _with_parts(staying.found)
    ranked = yield from _ranked(said, kept, len(messages))
    left = room - (count(told) + 1 if told else 0)
    items = [
        item_of(word, said.found[word].name)
        for word in ranked[: max(0, left)]
        if not ((" " in word and word in told) or _is_repeated(word, kept))
    ]
    listed = yield from _fitted(items, left, count)  # A word has a token at least.
    return "\n".join(filter(None, (told, listed)))


def _gauged(messages: Sequence[Message], earlier: Sequence[str]) -> int:
    """About how many tokens messages have, and had of which only a ledger is left."""
    texts = (part.parts if isinstance(part, ToolResult) else (part,) for one in messages for part in one.parts)
    parts = (part for inner in texts for part in inner)
    size = sum(
        len(part.text if isinstance(part, Text) else part.arguments if isinstance(part, ToolCall) else "")
        for part in parts
    )
    return (size + _STANDS_FOR * sum(map(len, earlier))) // _CHARACTERS


def _recall(said: Sightings, ledger: str) -> None:
    """What an earlier ledger lists; of its records, each word, should the record find no place again."""
    for line in ledger.split("\n"):
        if line.startswith(MARK):
            said.read_text(line.removeprefix(MARK), Seen.EARLIER, rank=_RECORDED)
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


def _is_repeated(word: str, kept: Set[str]) -> bool:
    """Whether a long word or command names nothing but what stands beside."""
    if len(word) < _LONG:
        return False
    if " " not in word:
        return word.startswith("./") and word[2:] in kept
    named = [one for one in word.split() if kind_of(one) not in (Kind.WORD, Kind.NAME)]
    return bool(named) and all(one in kept for one in named)


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
