"""What does an agent need again of what was let go, and is it still there to the letter?

Part of `make bench-context`; alone, `python bench/context_continuity.py`. Every trace runs through windows in which it
is compacted, with a model that says one sentence instead of a summary. At each compaction the real rest of the session
tells what is needed: the identifiers in arguments of later calls which stood in a message that is now gone or changed,
and which nobody says again before the call. Kept is what can be read to the letter in what is left. What an identifier
is, is asked in several ways, none of them the ledger's own.

Short sessions get windows of a share of their own weight. Prints a table by family, then what is below the floor.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from context_alone import run_alone
from context_traces import MODELS, Trace, mended, read_traces
from context_validity import Says

from ullage.context import Entry, Options, Summarizer
from ullage.context.compaction import Teller, compact
from ullage.context.context_options import limits_of
from ullage.context.summary import Breaker
from ullage.context.text_protocol import read_as_tools
from ullage.context.token_weights import Scale
from ullage.messages import Format, Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.models import shipped
from ullage.tokens import Meter, drain

FLOOR = 0.95
ENOUGH = 20
"""Identifiers that joined sessions need at least, or they have no floor: one of five is 20 %."""
SHARES, LIGHT = (0.5, 0.6, 0.7, 0.8, 0.9), 40_000
"""Windows of a session that weighs less than this, as shares of it."""
WINDOWS = (16_000, 32_000, 64_000, 128_000, 200_000)
SMALL = 32_000
"""A long session in a smaller window is shown, but has no floor: what it lets go weighs twenty times the window."""
TINY = 2_000
"""So is a smaller window than this. No chat model in our table has one under 4,096, and the user's words, which come
first, fill so small a window alone. Sessions too short for a real window are joined (`joined`), and have a floor."""
JOINED_NAME = ", joined"
JOINED = 8_000
"""Tokens of a session that short ones are joined to at least. Half of it is the smallest of its windows."""
SENTENCE = Says("The user asked for something, much of it is done, and the rest of the work goes on.")

_SHAPED = re.compile(
    r"""https?://[^\s"'<>)\]}]+|[\w.+-]+@[\w-]+\.[\w.]+|(?:~|\.{0,2})?/?(?:[\w@.+-]+/)+[\w@.+-]*|[\w-]+\.[A-Za-z]{1,5}\b"""
    r"""|[A-Za-z_$][\w$]*(?:[_.][\w$]+)+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|\b[A-Z]{2,}[A-Z0-9_]*\b|\b(?=\w*\d)\w[\w-]*\b"""
)
_TOKEN = re.compile(r"""[^\s"'`(){}\[\]<>,;=|&]+""")
_SPECIAL = re.compile(r"[\d_/.@:-]|[a-z][A-Z]")
_SYMBOL = re.compile(r"\w{3,60}")
_FILE = re.compile(r"[\w@.-]+\.[A-Za-z][A-Za-z0-9]{0,4}\b")


def shaped(value: str) -> set[str]:
    """Paths, addresses, ids, numbers and symbols, by their shape."""
    return {found.rstrip(".,;:") for found in _SHAPED.findall(value) if len(found) > 1}


def tokens(value: str) -> set[str]:
    """What stands between white space, quotes and brackets, where it is no plain word."""
    found = (token.strip(".:!?*") for token in _TOKEN.findall(value))
    return {one for one in found if 2 < len(one) <= 100 and _SPECIAL.search(one) and re.search(r"\w", one)}


def values(value: str) -> set[str]:
    """A whole argument of one or two words."""
    whole = value.strip()
    return {whole} if 1 < len(whole) <= 80 and len(whole.split()) < 3 else set()


def symbols(value: str) -> set[str]:
    return {one for one in _SYMBOL.findall(value) if re.search(r"\d|_|[a-z][A-Z]", one)}


def files(value: str) -> set[str]:
    return set(_FILE.findall(value))


DEFINITIONS: Mapping[str, Callable[[str], set[str]]] = {
    "shaped": shaped,
    "tokens": tokens,
    "values": values,
    "symbols": symbols,
    "files": files,
}


@dataclass(slots=True)
class Kept:
    needed: int = 0
    kept: int = 0

    @property
    def share(self) -> float | None:
        """None where nothing was needed: that is no success."""
        return self.kept / self.needed if self.needed else None

    def __str__(self) -> str:
        return "–" if self.share is None else f"{self.share:.1%} of{self.needed:>5}"


@dataclass(slots=True)
class Figures:
    compactions: dict[str, int] = field(default_factory=dict[str, int])
    """By family."""
    found: dict[tuple[str, str], Kept] = field(default_factory=dict[tuple[str, str], Kept])
    """By family and definition."""

    def add(self, family: str, definition: str, needed: int, kept: int) -> None:
        tally = self.found.setdefault((family, definition), Kept())
        tally.needed += needed
        tally.kept += kept

    def missed(self) -> list[str]:
        return [
            f"{family}: {share:.1%} of {definition} that were needed are there, under {FLOOR:.0%}"
            for (family, definition), kept in self.found.items()
            if (share := kept.share) is not None and share < FLOOR and "in windows of" not in family
            if not family.endswith(JOINED_NAME) or kept.needed >= ENOUGH
        ]

    def to_json(self) -> dict[str, object]:
        return {
            family: {name: rounded(self.found[family, name].share) for name in DEFINITIONS}
            for family in self.compactions
        }


@dataclass(frozen=True, slots=True)
class Reading:
    """Where the identifiers of a trace stand."""

    said: Mapping[str, Mapping[str, tuple[int, ...]]]
    """By definition: each identifier of an argument, with the messages that have it, in order."""
    argued: Mapping[str, Mapping[str, frozenset[int]]]
    """The same, with the messages that have it in an argument."""

    def needed(self, definition: str, step: int, gone: set[int]) -> Iterator[str]:
        """What is said next in an argument, and was said in a message that is gone."""
        for word, places in self.said[definition].items():
            following = next((place for place in places if place >= step), None)
            if following in self.argued[definition][word] and any(place in gone for place in places if place < step):
                yield word


def stands_in(word: str, text: str) -> bool:
    """Whether a text has a word, and not only within a longer one: `64` is not in `0x40648`."""
    place = text.find(word)
    while place >= 0:
        end = place + len(word)
        is_begun = place > 0 and _is_inner(text[place - 1]) and _is_inner(word[0])
        if not (is_begun or (_is_inner(text[end : end + 1]) and _is_inner(word[-1]))):
            return True
        place = text.find(word, place + 1)
    return False


def _is_inner(character: str) -> bool:
    return character.isalnum() or character == "_"


def rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def reading_of(messages: Sequence[Message]) -> Reading:
    """Where the protocol is text, an action that the assistant writes is a call."""
    messages = read_as_tools(messages)
    texts = tuple("\n".join(text for part in message.parts for text in texts_of(part)) for message in messages)
    argued = {name: _argued(messages, define) for name, define in DEFINITIONS.items()}
    words = {word for found in argued.values() for word in found}
    places = {word: tuple(place for place, text in enumerate(texts) if stands_in(word, text)) for word in words}
    said = {name: {word: places[word] for word in found} for name, found in argued.items()}
    return Reading(said, argued)


def _argued(messages: Sequence[Message], define: Callable[[str], set[str]]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for place, message in enumerate(messages):
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        for word in {
            word for call in calls for leaf in leaves(read_arguments(call.arguments)) for word in define(leaf)
        }:
            found.setdefault(word, set()).add(place)
    return {word: frozenset(places) for word, places in found.items()}


def texts_of(part: Part) -> Iterator[str]:
    match part:
        case Text(text) | Thinking(text=text):
            yield text
        case ToolCall():
            yield from leaves(read_arguments(part.arguments))
        case ToolResult():
            for inner in part.parts:
                yield from texts_of(inner)
        case Unknown(value):
            yield from leaves(value)
        case _:
            pass


def read_arguments(arguments: str) -> Any:  # noqa: ANN401
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def leaves(value: Any) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


@dataclass(slots=True, kw_only=True)
class Way:
    """A trace on its way through a window. Nothing but the messages fills it."""

    scale: Scale
    window: int
    chunks: Sequence[Sequence[object]]
    """What came between two calls of the model."""
    entries: tuple[Entry, ...] = ()
    generation: int = 1
    summarizer: Summarizer | None = SENTENCE

    async def points(self) -> list[tuple[int, tuple[Entry, ...]]]:
        """After how many messages something was let go, and what was left."""
        found, seen = list[tuple[int, tuple[Entry, ...]]](), 0
        for chunk in self.chunks[:-1]:
            self.entries, seen = drain(self.scale.grown(self.entries, chunk)), seen + len(chunk)
            if await self._compact():
                found.append((seen, self.entries))
        return found

    async def _compact(self) -> bool:
        used = sum(entry.weight.tokens for entry in self.entries)
        limits = limits_of(Options(), self.window, fixed=0, used=used)
        if used < limits.soft:
            return False
        breaker = Breaker(lambda: 0.0)
        teller = Teller(scale=self.scale, summarizer=self.summarizer, breaker=breaker, generation=self.generation)
        made = await compact(self.entries, limits, self.scale, teller)
        self.entries, self.generation = made.entries, self.generation + made.compacted
        return made.compacted


async def follow(trace: Trace, scale: Scale, figures: Figures) -> None:
    chunks = trace.chunks(scale.format)
    entries = drain(scale.entries([native for chunk in chunks for native in chunk]))
    weight = sum(entry.weight.tokens for entry in entries)
    reading = reading_of([entry.message for entry in entries])
    for window in windows(weight):
        way = Way(scale=scale, window=window, chunks=chunks)
        small = window < (SMALL if weight >= LIGHT else TINY)
        size = f"{window:,}" if window >= TINY else f"under {TINY:,}"
        family = f"{trace.family} in windows of {size}" if small else trace.family
        for step, left in await way.points():
            figures.compactions[family] = figures.compactions.get(family, 0) + 1
            tell(figures, family, reading, [entry.native for entry in entries[:step]], left)


def tell(figures: Figures, family: str, reading: Reading, before: Sequence[object], left: Sequence[Entry]) -> None:
    whole = {id(entry.native) for entry in left}
    gone = {place for place, native in enumerate(before) if id(native) not in whole}
    text = "\n".join(text for entry in left for part in entry.message.parts for text in texts_of(part))
    for name in DEFINITIONS:
        needed = list(reading.needed(name, len(before), gone))
        figures.add(family, name, len(needed), sum(stands_in(word, text) for word in needed))


def joined(traces: Sequence[Trace], scale: Scale) -> Iterator[Trace]:
    """Sessions in which a user has one short task done after the other: those of a family too light for a window that
    exists, in order, as many as fill one."""
    families = dict[str, list[Trace]]()
    for trace in traces:
        if _weight_of(trace, scale) * min(SHARES) < TINY:
            families.setdefault(trace.family, []).append(trace)
    for family, light in families.items():
        session, weight = list[Trace](), 0
        for trace in light:
            session.append(trace)
            weight += _weight_of(trace, scale)
            if weight >= JOINED:
                messages = mended(message for one in session for message in one.messages)
                name = f"{session[0].name}-{session[-1].name}"
                yield Trace(family=f"{family}{JOINED_NAME}", name=name, system="", messages=tuple(messages))
                session, weight = [], 0


def _weight_of(trace: Trace, scale: Scale) -> int:
    return sum(
        entry.weight.tokens
        for entry in drain(scale.entries([one for two in trace.chunks(scale.format) for one in two]))
    )


def windows(weight: int) -> list[int]:
    if weight < LIGHT:
        return [int(share * weight) for share in SHARES]
    return [window for window in WINDOWS if 0.65 * window < weight]


def run(data: Path) -> Figures:
    return anyio.run(_run, read_traces(data))


async def _run(traces: Sequence[Trace]) -> Figures:
    figures = Figures()
    scale = Scale(Meter(shipped()), MODELS[Format.OPENAI_CHAT], Format.OPENAI_CHAT)
    for trace in (*traces, *joined(traces, scale)):
        await follow(trace, scale, figures)
    return figures


def report(figures: Figures) -> None:
    print(f"{'needed again and there':34}{'compactions':>12}" + "".join(f"{name:>16}" for name in DEFINITIONS))
    for family, compactions in figures.compactions.items():
        kept = [figures.found[family, name] for name in DEFINITIONS]
        shares = "".join(f"{one!s:>16}" for one in kept)
        print(f"{family:34}{compactions:>12,}{shares}")


if __name__ == "__main__":
    sys.exit(run_alone(run, report))
