"""Which queries would have wanted this tool?

Makes pairs of a query and a tool from a tool's own parts, and hides from the tool the part that the query was made of:
so a pair teaches meaning, not copying. Real requests carry greetings, reasons and values that have nothing to do with
the tool; some queries get such filling, and some a sentence that is about something else. Others ask for two tools at
once. Random, but the same for the same seed.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools import Described, Row

from ullage.search.stemming_and_synonyms import sentences

__all__ = ["NOTHING", "Pair", "self_made", "supervised"]

NOTHING = -1
_NAME, _HEAD, _REST, _PARAMETERS = 1, 2, 3, 4
_OPENERS = (
    "I need to", "I want to", "Can you", "Could you please", "How do I", "Please", "I'd like to", "Help me",
    "We should", "Is there a way to", "Use a tool to", "My task is to", "First,", "Next step:", "I'm trying to",
    "Hey, can you", "For my report I must", "I was asked to", "Our team wants to", "find a tool to", "tool that can",
)  # fmt: skip
_CLOSERS = (
    "for Acme Corp", "in Berlin", "in New York", "for tomorrow", "on 2024-03-15", "with id 4821",
    "and tell me the result", "as soon as possible", "from last week", "for user john@example.com", "then summarise it",
    "because I have a presentation", "for the project 'Apollo'", "named test_1", "with a limit of 10", "in JSON format",
    "for the next 7 days", "between January and March", "and save it", "for $250", "in San Francisco, California",
    "at 9am", "and compare it with last year", "please explain it step by step", "from the file report.pdf", "thanks!",
)  # fmt: skip
_WITH = ("using {}", "with {}", "in {}", "on {}", "via the {} server", "from {}")
_JOINTS = (" and then ", " + ", ", ", " or ", ". Also, ", "; afterwards ", " and ", ". Then ")
_TOO_MANY = 100
"""Queries for one tool of a supervised set, so that no tool is all that is learnt."""


@dataclass(frozen=True, slots=True)
class Pair:
    query: str
    tool: int
    """Its place among the tools."""
    hidden: int = NOTHING
    """The field that the tool is shown without, or `NOTHING`."""
    english: str | None = None
    """What the encoder reads, where the query is in a language that it does not know."""
    written: bool = False
    """Whether somebody wrote the query for the tool, as `wishes` has them."""
    beside: int = NOTHING
    """The place of another tool that the query was made of as well, or `NOTHING`."""


def self_made(tools: Sequence[Described], stories: Sequence[str], chance: random.Random) -> Iterator[Pair]:
    """Up to nine pairs a tool. Stories are sentences about anything."""
    for place, tool in enumerate(tools):
        server, name, head, rest, parameters = tool.fields
        yield Pair(_maybe(f"{server} ", chance) + name, place, _NAME)
        yield Pair(head, place, _HEAD)
        yield Pair(filled(head, server, chance), place, _HEAD)
        yield Pair(filled(_some_words(head, chance), server, chance), place, chance.choice((NOTHING, _NAME, _HEAD)))
        said = [sentence for sentence in sentences(rest) if 4 <= len(sentence.split()) <= 40]
        if said:
            yield Pair(_maybe(f"{name}: ", chance) + chance.choice(said), place, _REST)
        if parameters:
            yield Pair(f"{_maybe(f'{name} ', chance)}{parameters}"[:160], place, _PARAMETERS)
        yield Pair(_told(filled(head, server, chance), stories, chance), place, _HEAD)
        other = chance.randrange(len(tools))
        yield Pair(_for_two(place, other, tools, chance), place, _HEAD, beside=other)
        beside = min(len(tools) - 1, max(0, place + chance.choice((-2, -1, 1, 2))))
        if tools[beside].server == tool.server:
            query = _for_two(place, beside, tools, chance)
            yield Pair(query, place, chance.choice((_NAME, _HEAD)), beside=beside)


def _for_two(place: int, other: int, tools: Sequence[Described], chance: random.Random) -> str:
    wishes = [_wish(tools[each].head) if chance.random() < 0.6 else tools[each].fields[1] for each in (place, other)]
    chance.shuffle(wishes)
    return filled(chance.choice(_JOINTS).join(wishes), tools[place].fields[0], chance)


def filled(wish: str, server: str, chance: random.Random) -> str:
    """A wish with words around it as people put them."""
    parts = [chance.choice(_OPENERS)] if chance.random() < 0.7 else []
    parts += [_wish(wish)]
    parts += [chance.choice(_WITH).format(server)] if server and chance.random() < 0.3 else []
    return " ".join(parts + chance.sample(_CLOSERS, chance.choice((0, 0, 1, 1, 2))))


def _told(wish: str, stories: Sequence[str], chance: random.Random) -> str:
    """A wish among one or two sentences that have nothing to do with it."""
    said = [f"{wish}.", *(f"{story.capitalize()}." for story in chance.sample(stories, chance.choice((1, 2))))]
    chance.shuffle(said)
    return " ".join(said)


def supervised(
    rows: Sequence[Row], places: dict[str, int], chance: random.Random, *, barred: frozenset[str] = frozenset()
) -> Iterator[Pair]:
    """The pairs of a set with queries of its own; tools that are barred are no answers."""
    shuffled = list(rows)
    chance.shuffle(shuffled)
    taken = dict[str, int]()
    for row in shuffled:
        for id_ in row["relevant"]:
            if id_ in places and id_ not in barred and taken.get(id_, 0) < _TOO_MANY:
                taken[id_] = taken.get(id_, 0) + 1
                yield Pair(row["query"], places[id_])


def _wish(head: str) -> str:
    """A description as an order: `Fetches all pages.` is `fetch all pages`."""
    first, _, others = head.rstrip(".!。 ").partition(" ")
    verb = first[:1].lower() + first[1:] if first[1:].islower() else first
    for ending, instead in (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("ss", "ss")):
        if verb.endswith(ending):
            return f"{verb.removesuffix(ending)}{instead} {others}".strip()
    return f"{re.sub('s$', '', verb)} {others}".strip()


def _some_words(text: str, chance: random.Random) -> str:
    words = text.split()
    return " ".join(word for word in words if chance.random() < 0.7) or text


def _maybe(text: str, chance: random.Random) -> str:
    return text if chance.random() < 0.5 else ""
