"""`Count`, the form of every token number, and the steps and engines that make it.

A `Count` is the only form in which a token number travels. It does not know what was counted or for whom.

The shape that every provider's rule file returns, and the two things it is given. No rule is known here.

How far the count of a whole request was seen to be off, by host, maker and kind.

A rule weighs a request part by part, and each part has a band of its own. What a sum of such bands is worth was
measured: `fitted` holds, for each class of recorded requests, by how much the band of the sum must be stretched or may
be drawn in so that nineteen of twenty lie in it, and whether counts that a rule holds for exact were. A class of which
nothing was recorded is judged by its nearest kin: the same maker on any host, then any maker.

Long work in steps, so that an event loop serves others meanwhile.

Work that may be long is a generator that yields after every few milliseconds and returns its result. `drain` runs it at
once; `patiently` runs it on an event loop and lets others in between. The work itself is written once. A step that
waits for another thread yields the event for which it waits, and may be resumed before that is set.

For whoever must agree with a program that counts so: asked for by the rule's name in place of a model's, and never
otherwise. Such a number knows nothing of the text, and its band says so.

By the vocabulary that speaks for those that are not public, in the chat template that its name suggests, within a wide
band. It must be asked for: a name that the table does not know stays an error elsewhere, for it may be mistyped.
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
    """How a number was found, surest first; a sum is as sure as its weakest part."""

    EXACT = "exact"
    """This model's own tokenizer and the provider's own framing."""
    ANCHORED = "anchored"
    """From usage that the provider reported, plus what came after it."""
    CALIBRATED = "calibrated"
    """Other tokenizers and a factor measured on recorded requests."""
    ESTIMATED = "estimated"
    """Characters, or a part nobody outside the provider can weigh."""


_RANK = {method: rank for rank, method in enumerate(Method)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number of tokens with the range it lies in.

    `low` and `high` bound nineteen of twenty texts like this one; for an exact count they are the count itself.
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
        """Made once for each number: most texts are short, and so are their counts."""
        return cls(tokens=tokens, method=Method.EXACT, low=tokens, high=tokens)

    @classmethod
    def within(cls, tokens: float, band: float, method: Method = Method.CALIBRATED) -> "Count":
        """`tokens` give or take the share `band` (0.08 is 8 %), and never less than one token either way."""
        middle = max(0, round(tokens))
        reach = max(1.0, middle * band)
        return cls(tokens=middle, method=method, low=max(0, int(middle - reach)), high=int(middle + reach + 0.999))

    @property
    def band(self) -> tuple[int, int] | None:
        """The range the true number lies in, or None where the number is exact."""
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
"""Seconds after which an event loop looks again whether an event is set."""
_BREATH = 1.0
"""The same without an event loop, where the event itself ends the wait."""


def drain(steps: Steps[Result]) -> Result:
    while True:
        try:
            awaited = next(steps)
        except StopIteration as stop:
            return stop.value
        if awaited is not None:
            awaited.wait(_BREATH)


async def patiently(steps: Steps[Result]) -> Result:
    while True:
        try:
            awaited = next(steps)
        except StopIteration as stop:
            return stop.value
        # Imported only for work that takes several steps: most counts are finished in the first.
        from anyio import sleep
        from anyio.lowlevel import checkpoint

        await (checkpoint() if awaited is None else sleep(_GLANCE))


_MARK = "(unknown) "
"""No model is called so."""


def unheard(model: str) -> str:
    """The name by which the meter counts for a model that is in no table; what it learns of one is not another's."""
    return _MARK + model


def unheard_match(name: str) -> Match | None:
    if not name.startswith(_MARK):
        return None
    return Match(asked=name, card=ModelCard(id=name, provider="none", family="unknown"), host=None, how="id")


FLOOR = 2.0
"""Tokens that a side of a band gains when it is doubled, so that a band of none can be stretched too."""


RESELLERS = frozenset(
    {"api.portkey.ai", "gateway", "litellm", "opencode", "openrouter", "replicate", "requesty", "vercel", "zenmux"}
)
"""Hosts that pass a request on to whichever host they choose, in whichever format that one reads: what was exact where
the model's maker or another host counted it may not be here."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What becomes of the band of a sum."""

    below: float
    """Times the distance from the low end to the number."""
    above: float
    exact: bool = False
    """Whether a sum that is exact by its rule stays so."""

    def apply(self, count: Count) -> Count:
        if count.method is Method.EXACT and self.exact:
            return count
        low = count.tokens - stretch(count.tokens - count.low, self.below)
        high = count.tokens + stretch(count.high - count.tokens, self.above)
        method = Method.CALIBRATED if count.method is Method.EXACT else count.method
        return Count(tokens=count.tokens, method=method, low=max(0, int(low)), high=ceil(high))


def stretch(side: float, times: float) -> float:
    """One side of a band drawn in or stretched; in stretching, a narrow one gains more than its share."""
    return side * times + FLOOR * max(0.0, times - 1)


def kind_of(request: "Request") -> str:
    """`plain` for text alone, `tools` with definitions, calls or results, `other` with anything that is neither."""
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
    """The classes that a request belongs to, the narrowest first.

    Exact counts of resellers are judged by resellers alone.
    """
    ending = f"{kind} {method}"
    yield from (f"{host} {maker} {ending}", f"{host} * {ending}")
    if host in RESELLERS:
        yield from (f"resellers {maker} {ending}", f"resellers * {ending}")
    if host not in RESELLERS or method is not Method.EXACT:
        yield from (f"* {maker} {ending}", f"* * {ending}")


def reach_of(request: "Request", match: Match, method: Method, reaches: Mapping[str, Reach]) -> Reach | None:
    """The reach of the narrowest class that was measured; None where none was."""
    host = match.host or match.card.provider
    keys = keys_of(host, match.card.provider, kind_of(request), method)
    return next((reaches[key] for key in keys if key in reaches), None)


_TOO_FEW = 3
"""Rows of a table have had so many times the tokens that a plain rule gives them; prose has had half."""


def plain_match(name: str) -> Match | None:
    """A card that stands for the rule of that name; None where it is no rule's."""
    if name not in PLAIN_RULES:
        return None
    card = ModelCard(id=name, provider="none", family="characters", tokenizer=name)
    return Match(asked=name, card=card, host=None, how="id")


def by_characters(text: str, each: int) -> Count:
    tokens = -(-len(text) // each)
    return Count(tokens=tokens, method=Method.ESTIMATED, low=tokens // 2, high=tokens * _TOO_FEW) if text else ZERO


class Engine(Protocol):
    """Counts texts exactly with named vocabularies. A literal such as `<|endoftext|>` in a text is text."""

    def available(self, vocabulary: str) -> bool: ...

    def counter(self, vocabulary: str) -> Callable[[str], int]:
        """Counts the tokens of a text; for a vocabulary that is available, which is loaded if it was not."""
        ...

    def steps(self, vocabulary: str, text: str) -> Steps[int]:
        """The same number, with a yield at least every few milliseconds however large the text is."""
        ...


CountText = Callable[[str], Count]
"""Counts a plain text with the tokenizer of the model at hand; a text seen before costs a look-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """One request, weighed part by part; the parts sum to what the provider would report as input."""

    framing: Count = ZERO
    """What the provider adds once a request, whatever is in it."""
    system: Count = ZERO
    tools: tuple[Count, ...] = ()
    """One a definition, in the order of `Request.tools`."""
    tools_framing: Count = ZERO
    """What the presence of any tool adds once."""
    messages: tuple[Count, ...] = ()
    """One a message, its own framing included, in the order of `Request.messages`."""
    output_schema: Count = ZERO
    reach: Reach | None = None
    """What becomes of the band of the sum; None leaves it as the parts' bands add up."""

    @property
    def total(self) -> Count:
        parts = (self.framing, self.system, *self.tools, self.tools_framing, *self.messages, self.output_schema)
        return total(parts) if self.reach is None else self.reach.apply(total(parts))

    def map(self, change: Callable[[Count], Count]) -> "Weight":
        """Every part changed in the same way."""
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
