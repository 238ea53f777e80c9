"""`Count`, the type of every token number, and the protocols of what produces counts.

`Weight` is what the rule file of every provider returns, part by part; `Rule` and `CountText` are the types of a rule
and of the counting function it receives. The rules themselves are in `rules`.

`Reach` widens or narrows the band of a whole request, by host, maker and kind. Each part of a weight has a band of its
own, and how reliable the sum of such bands is was measured: `fitted_bands` lists, for each class of recorded requests,
the factors by which the band of the sum must be stretched or may be drawn in so that nineteen of twenty requests lie in
it, and whether counts that a rule takes for exact were exact. A class without recordings uses its nearest relative: the
same maker on any host, then any maker.

`Steps` is long work cut into steps, so that an event loop can run other tasks meanwhile: a generator that yields every
few milliseconds and returns its result. `drain` runs it at once; `patiently` runs it on an event loop and gives way to
other tasks between steps. A step that waits for another thread yields the event for which it waits, and may be resumed
before that is set.

Two kinds of names are not in the model table. A plain rule (`plain_match`) counts characters, for agreement with a
program that counts so; it is used only when its name is given in place of a model's, does not depend on the text's
content, and has a wide band. An unknown model (`unheard`) is counted with the stand-in vocabulary, in the chat template
that its name suggests, within a wide band; it must be requested explicitly, because a name that is not in the table may
be mistyped and is an error elsewhere.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import ceil
from threading import Event
from typing import TYPE_CHECKING, Protocol, TypeVar

from ullage.models import PLAIN_RULES, Match, ModelCard

if TYPE_CHECKING:
    from ullage.messages import Request

__all__ = [
    "FLOOR",
    "PLAIN_RULES",
    "RESELLERS",
    "ZERO",
    "Count",
    "CountText",
    "Engine",
    "Method",
    "Reach",
    "Rule",
    "Steps",
    "Weight",
    "by_characters",
    "drain",
    "keys_of",
    "kind_of",
    "patiently",
    "plain_match",
    "reach_of",
    "stretch",
    "total",
    "unheard",
    "unheard_match",
]


class Method(StrEnum):
    """How a number was obtained, most reliable first; a sum has the method of its least reliable part."""

    EXACT = "exact"
    """Counted with the model's own tokenizer and the provider's own framing."""
    ANCHORED = "anchored"
    """Based on usage that the provider reported, plus a count of what was added since."""
    CALIBRATED = "calibrated"
    """Counted with other tokenizers and a factor measured on recorded requests."""
    ESTIMATED = "estimated"
    """Estimated from characters, or includes a part that cannot be counted outside the provider."""


_RANK = {method: rank for rank, method in enumerate(Method)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number of tokens with the range it lies in.

    `low` and `high` bound the true number for nineteen of twenty texts like this one; for an exact count both are the
    count itself.
    """

    tokens: int
    method: Method = Method.EXACT
    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.tokens <= self.high:
            raise ValueError(
                f"a count must satisfy 0 <= low <= tokens <= high, not {self.low}, {self.tokens}, {self.high}"
            )
        if self.method is Method.EXACT and self.low != self.high:
            raise ValueError("an exact count has no band")

    @classmethod
    @lru_cache(maxsize=65_536)
    def exact(cls, tokens: int) -> "Count":
        """Return an exact count. Instances are cached by number, because most texts are short."""
        return cls(tokens=tokens, method=Method.EXACT, low=tokens, high=tokens)

    @classmethod
    def within(cls, tokens: float, band: float, method: Method = Method.CALIBRATED) -> "Count":
        """Return `tokens` plus or minus the share `band` (0.08 is 8 %), and at least one token either way."""
        middle = max(0, round(tokens))
        reach = max(1.0, middle * band)
        return cls(tokens=middle, method=method, low=max(0, int(middle - reach)), high=int(middle + reach + 0.999))

    @property
    def band(self) -> tuple[int, int] | None:
        """The range that contains the true number, or None where the number is exact."""
        return None if self.method is Method.EXACT else (self.low, self.high)

    def __add__(self, other: "Count") -> "Count":
        return Count(
            tokens=self.tokens + other.tokens,
            method=max(self.method, other.method, key=_RANK.__getitem__),
            low=self.low + other.low,
            high=self.high + other.high,
        )


ZERO = Count.exact(0)


def total(counts: Iterable[Count]) -> Count:
    return sum(counts, start=ZERO)


Result = TypeVar("Result")
Steps = Generator[Event | None, None, Result]

_GLANCE = 0.002
"""Seconds between an event loop's checks whether an event is set."""
_BREATH = 1.0
"""Seconds of one wait without an event loop, where setting the event itself ends the wait."""


def drain(steps: Steps[Result]) -> Result:
    """Run the steps to their end in this thread and return their result."""
    while True:
        try:
            awaited = next(steps)
        except StopIteration as stop:
            return stop.value
        if awaited is not None:
            awaited.wait(_BREATH)


async def patiently(steps: Steps[Result]) -> Result:
    """Run the steps on the event loop, give way to other tasks between them, and return their result."""
    while True:
        try:
            awaited = next(steps)
        except StopIteration as stop:
            return stop.value
        # Imported only for work that takes several steps: most counts finish in the first.
        from anyio import sleep
        from anyio.lowlevel import checkpoint

        await (checkpoint() if awaited is None else sleep(_GLANCE))


_MARK = "(unknown) "
"""The prefix that marks an unknown model; no model's name begins with it."""


def unheard(model: str) -> str:
    """Return the name under which the meter counts for an unknown model, so that its corrections apply to no other
    model."""
    return _MARK + model


def unheard_match(name: str) -> Match | None:
    if not name.startswith(_MARK):
        return None
    return Match(asked=name, card=ModelCard(id=name, provider="none", family="unknown"), host=None, how="id")


FLOOR = 2.0
"""Tokens by which a side of a band grows when it is doubled, so that a band of zero width can be stretched too."""


RESELLERS = frozenset(
    {"api.portkey.ai", "gateway", "litellm", "opencode", "openrouter", "replicate", "requesty", "vercel", "zenmux"}
)
"""Hosts that forward a request to another host of their choice, in that host's format. A count that is exact for the
model's maker or for another host may not be exact for these."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The factors applied to the two sides of a sum's band."""

    below: float
    """Factor of the distance from the number down to the low end."""
    above: float
    exact: bool = False
    """Whether a sum that is exact by its rule stays exact."""

    def apply(self, count: Count) -> Count:
        if count.method is Method.EXACT and self.exact:
            return count
        low = count.tokens - stretch(count.tokens - count.low, self.below)
        high = count.tokens + stretch(count.high - count.tokens, self.above)
        method = Method.CALIBRATED if count.method is Method.EXACT else count.method
        return Count(tokens=count.tokens, method=method, low=max(0, int(low)), high=ceil(high))


def stretch(side: float, times: float) -> float:
    """Return one side of a band drawn in or stretched; when stretched, a narrow side gains more than its share."""
    return side * times + FLOOR * max(0.0, times - 1)


def kind_of(request: "Request") -> str:
    """Return `plain` for text alone, `tools` for definitions, calls or results, `other` for anything else."""
    from ullage.messages import Media, Thinking, ToolCall, ToolResult

    parts = [part for message in (*request.system, *request.messages) for part in message.parts]
    parts += [inner for part in parts if isinstance(part, ToolResult) for inner in part.parts]
    hosted = any(tool.hosted is not None for tool in request.tools)
    asked = request.output_schema
    shaped = asked is not None and not (isinstance(asked, dict) and asked.get("type") == "text")
    if hosted or shaped or any(isinstance(part, Media | Thinking) for part in parts):
        return "other"
    return "tools" if request.tools or any(isinstance(part, ToolCall | ToolResult) for part in parts) else "plain"


def keys_of(host: str, maker: str, kind: str, method: Method) -> Iterator[str]:
    """Yield the classes that a request belongs to, the narrowest first.

    For exact counts of resellers only the classes of resellers apply.
    """
    ending = f"{kind} {method}"
    yield from (f"{host} {maker} {ending}", f"{host} * {ending}")
    if host in RESELLERS:
        yield from (f"resellers {maker} {ending}", f"resellers * {ending}")
    if host not in RESELLERS or method is not Method.EXACT:
        yield from (f"* {maker} {ending}", f"* * {ending}")


def reach_of(request: "Request", match: Match, method: Method, reaches: Mapping[str, Reach]) -> Reach | None:
    """Return the reach of the narrowest class that was measured; None where there is none."""
    host = match.host or match.card.provider
    keys = keys_of(host, match.card.provider, kind_of(request), method)
    return next((reaches[key] for key in keys if key in reaches), None)


_TOO_FEW = 3
"""The factor for the upper end of a plain rule's band: rows of a table have had up to three times the tokens that the
rule gives; prose has had half."""


def plain_match(name: str) -> Match | None:
    """Return a match with a card made for the plain rule of that name; None for any other name."""
    if name not in PLAIN_RULES:
        return None
    card = ModelCard(id=name, provider="none", family="characters", tokenizer=name)
    return Match(asked=name, card=card, host=None, how="id")


def by_characters(text: str, each: int) -> Count:
    tokens = -(-len(text) // each)
    return Count(tokens=tokens, method=Method.ESTIMATED, low=tokens // 2, high=tokens * _TOO_FEW) if text else ZERO


class Engine(Protocol):
    """Counts texts exactly with named vocabularies. A literal such as `<|endoftext|>` in a text is counted as text."""

    def available(self, vocabulary: str) -> bool: ...

    def adds_up(self, vocabulary: str) -> bool:
        """Return whether a text has the tokens of its parts together where it is cut at a seam (`bpe.find_seams`)."""
        ...

    def counter(self, vocabulary: str) -> Callable[[str], int]:
        """Return a function that counts with an available vocabulary, loading it if necessary."""
        ...

    def steps(self, vocabulary: str, text: str) -> Steps[int]:
        """Count in steps, with a yield at least every few milliseconds however large the text is."""
        ...


CountText = Callable[[str], Count]
"""Counts a plain text with the tokenizer of the model; a text counted before costs one look-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """The weight of one request, part by part. The parts add up to what the provider would report as input."""

    framing: Count = ZERO
    """Tokens that the provider adds once a request, whatever its content."""
    system: Count = ZERO
    tools: tuple[Count, ...] = ()
    """One count a tool definition, in the order of `Request.tools`."""
    tools_framing: Count = ZERO
    """Tokens added once where there is any tool."""
    messages: tuple[Count, ...] = ()
    """One count a message, including its framing, in the order of `Request.messages`."""
    output_schema: Count = ZERO
    reach: Reach | None = None
    """The factors for the band of the sum; None leaves the sum of the parts' bands."""

    @property
    def total(self) -> Count:
        parts = (self.framing, self.system, *self.tools, self.tools_framing, *self.messages, self.output_schema)
        return total(parts) if self.reach is None else self.reach.apply(total(parts))

    def map(self, change: Callable[[Count], Count]) -> "Weight":
        """Return the weight with `change` applied to every part."""
        return Weight(
            framing=change(self.framing),
            system=change(self.system),
            tools=tuple(map(change, self.tools)),
            tools_framing=change(self.tools_framing),
            messages=tuple(map(change, self.messages)),
            output_schema=change(self.output_schema),
            reach=self.reach,
        )


Rule = Callable[["Request", Match, CountText], Weight]
"""Weighs a request for the model (and host) of the match. Pure."""
