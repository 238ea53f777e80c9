"""Options of a context: window, thresholds, limits and cost.

The settings of a context, as people write them: in Python's spelling or in JSON's.

What the user says wins, unless the provider has refused less; else what the provider said when it was full; else the
model's card; else a default, and then that is said.

The options of a context as numbers of tokens, for one window and one load that cannot be let go. All are on the scale
on which the history is weighed.

Price of compaction with a prompt cache.

A provider charges little for the part of a prompt that it still has in its cache and more than usual for what it puts
there. A compaction changes the prompt near its beginning, so that what is left is written to the cache again, once; in
return every later call reads less. Prices here are ratios to the price of a token of plain input, so that currencies
and price lists do not matter.

Example: with a threshold of 130,000 tokens and 1,000 more with each call, masks that leave 95,000 cost 14,643 tokens of
plain input a call until the next compaction, a summary that leaves 30,000 costs 9,725:

    price_per_call(left=95_000, rewritten=95_000, extra=0, refill=130_000, growth=1_000, prices=CachePrices())
    price_per_call(left=30_000, rewritten=30_000, extra=135_000, refill=130_000, growth=1_000, prices=CachePrices())
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from math import inf
from typing import Literal, TypedDict, TypeGuard, cast

from ullage.errors import InvalidArguments
from ullage.models import ModelTable, Window, price_of

__all__ = [
    "DEFAULTS",
    "CachePrices",
    "Limits",
    "Options",
    "OptionsGiven",
    "Threshold",
    "cache_prices_of",
    "camel",
    "limits_of",
    "price_per_call",
    "read_options",
    "read_prices",
    "window_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePrices:
    """What a token costs, in tokens of plain input. The defaults are Anthropic's, with its cache of five minutes."""

    read: float = 0.1
    """A token that the cache has."""
    write: float = 1.25
    """A token that is put into it."""
    output: float = 5.0
    lifetime: float = 300.0
    """Seconds after its last use for which a prompt stays in the cache."""

    def __post_init__(self) -> None:
        for name in ("read", "write", "output", "lifetime"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
                raise InvalidArguments(f"`{name}` of cache prices is a number from 0 on, not `{value}`")


def read_prices(given: Mapping[str, object]) -> CachePrices:
    """Prices as a settings file or JSON has them: `{"read": 0.1, "write": 1.0}`."""
    unknown = next((key for key in given if key not in CachePrices.__slots__), None)
    if unknown is not None:
        raise InvalidArguments(f"no cache price is called `{unknown}`", options=tuple(CachePrices.__slots__))
    return CachePrices(**given)  # pyright: ignore[reportArgumentType]  checked by the class itself


def cache_prices_of(models: ModelTable, model: str, *, when: datetime) -> CachePrices:
    """The prices of a model on a day; the defaults for a model whose prices nobody knows.

    A price list without a price for the cache means that cached input costs what other input costs.
    """
    match = models.get(model)
    price = None if match is None else price_of(match, when=when)
    if price is None or not price.input:
        return CachePrices()
    each = (price.cache_read, price.cache_write, price.output)
    read, write, output = (1.0 if one is None else float(one / price.input) for one in each)
    return CachePrices(read=read, write=write, output=output)


def price_per_call(  # noqa: PLR0913
    *, left: int, rewritten: int, extra: float, refill: int, growth: float, prices: CachePrices
) -> float:
    """Mean price of a call from one compaction to the next, without what new messages and answers cost.

    Args:
        left: Tokens of the prompt after the compaction.
        rewritten: Tokens of these that the cache has to take up again.
        extra: Price of the compaction itself, such as that of a summarising call.
        refill: Tokens of the prompt at which the next compaction is due.
        growth: Tokens by which each call makes the prompt longer.
        prices: Of the cache.

    Returns:
        Tokens of plain input.
    """
    calls = max(1.0, (refill - left) / max(1.0, growth))
    return prices.read * (left + max(left, refill)) / 2 + (prices.write * rewritten + extra) / calls


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def window_of(models: ModelTable, model: str, *, said: int | None = None, learnt: int | None = None) -> Window:
    """`said` is the user's word, `learnt` what an overflow taught."""
    return models.window(model, said if said is not None else learnt)


Threshold = float | tuple[Literal["fraction", "tokens", "messages"], float]
"""A share of the window from 0 to 1, or a pair that says of what."""


class OptionsGiven(TypedDict, total=False):
    """Options as arguments, in either spelling."""

    context_window: int | None
    contextWindow: int | None
    compact_threshold: Threshold
    compactThreshold: Threshold
    disable_compaction: bool
    disableCompaction: bool
    keep: float | None
    target: float
    reserve: float
    cold_threshold: float
    coldThreshold: float
    wait_for_cold_cache: bool
    waitForColdCache: bool
    cache_prices: CachePrices | Mapping[str, float] | None
    cachePrices: CachePrices | Mapping[str, float] | None
    least_gain: float
    leastGain: float
    summary_timeout: float
    summaryTimeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    context_window: int | None = None
    """None for the model's own."""
    compact_threshold: Threshold = 0.65
    """At which something is let go."""
    disable_compaction: bool = False
    keep: float | None = None
    """Share of the window that the untouched tail may fill. None for a tenth, the cheapest with a prompt cache, though
    at least 8,000 tokens where these are less than 0.20 of the window, and else that. The original kept 0.30."""
    target: float = 0.50
    """The share of the window that is used at most when something was let go."""
    reserve: float = 0.15
    """The share of the window that stays free for the answer."""
    least_gain: float = 0.10
    """The share of what is used that must be won, or nothing is touched."""
    cold_threshold: float = 0.50
    """Share of the window from which on something is let go as soon as the prompt cache has expired: everything would
    have to be written to it again. 1 turns this off."""
    wait_for_cold_cache: bool = False
    """Puts off a compaction that is due until the prompt cache has expired, or until the window is full."""
    cache_prices: CachePrices | None = None
    """None for those of the model."""
    summary_timeout: float = 60.0
    """Seconds that a model may take to summarise: the longest summary that is asked for, 4,000 tokens, takes 50 at 80
    tokens a second. Who waits for a model that hangs waits no longer."""

    def __post_init__(self) -> None:
        if self.context_window is not None and not (_is_number(self.context_window) and self.context_window >= 1):
            raise InvalidArguments(f"a window has at least one token, not `{self.context_window}`")
        if not _is_threshold(self.threshold):
            raise InvalidArguments(
                f"`{self.compact_threshold}` is no threshold",
                suggestion='a share from 0 to 1, ("tokens", 100_000) or ("messages", 200)',
            )
        for name in ("keep", "target", "reserve", "least_gain"):
            share = getattr(self, name)
            if not (_is_number(share) and 0 <= share < 1) and not (name == "keep" and share is None):
                raise InvalidArguments(f"`{name}` is a share from 0 to 1, not `{share}`")
        for name in ("disable_compaction", "wait_for_cold_cache"):
            if not isinstance(said := getattr(self, name), bool):
                raise InvalidArguments(f"`{name}` is true or false, not `{said}`")
        if self.cache_prices is not None and not isinstance(self.cache_prices, CachePrices):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArguments(
                f"`cache_prices` are prices by their names, not `{self.cache_prices}`",
                suggestion='CachePrices(read=0.1, write=1.25), or {"read": 0.1, "write": 1.25} as an option',
                options=tuple(CachePrices.__slots__),
            )
        if not (_is_number(self.cold_threshold) and 0 < self.cold_threshold <= 1):
            raise InvalidArguments(f"`cold_threshold` is a share above 0 and up to 1, not `{self.cold_threshold}`")
        if not (_is_number(self.summary_timeout) and 0 < self.summary_timeout < inf):
            raise InvalidArguments(f"`summary_timeout` is a number of seconds above 0, not `{self.summary_timeout}`")

    @property
    def threshold(self) -> tuple[Literal["fraction", "tokens", "messages"], float]:
        said = self.compact_threshold
        return said if isinstance(said, tuple) else ("fraction", said)

    def tail(self, window: float) -> float:
        """Tokens that the untouched tail may have in a window of so many."""
        if self.keep is not None:
            return self.keep * window
        return max(_CHEAP_KEEP * window, min(_LEAST_TAIL, _SMALL_KEEP * window))


def _is_threshold(said: Sequence[object]) -> bool:
    """Whatever a settings file may say instead."""
    if len(said) != len(("kind", "value")):
        return False
    kind, value = said
    most = {"fraction": 1.0, "tokens": inf, "messages": inf}.get(str(kind), 0.0)
    return _is_number(value) and 0 < value <= most and value < inf


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CHEAP_KEEP, _LEAST_TAIL, _SMALL_KEEP = 0.10, 8_000, 0.20
"""Share of the window, and tokens, of a tail of which nobody said how long it is, and its share of a small window.
Under 8,000 tokens a tail is only a few results long, and there is little money in windows that small; a longer one
would leave a summary or digest too little room to say what belongs together."""
ORIGINAL_KEEP = 0.30
_ORIGINAL = frozenset({"contextWindow", "compactThreshold", "disableCompaction"})
"""The options of the original, in its spelling."""
DEFAULTS = Options()
_NAMES = tuple(one.name for one in fields(Options))


def read_options(given: Mapping[str, object]) -> Options:
    """Options by their names, in either spelling: `compact_threshold` or `compactThreshold`.

    The original's own three options in its own spelling (`contextWindow`, `compactThreshold`, `disableCompaction`) give
    the original's tail of 0.30 where `keep` is not among the options.

    Raises:
        InvalidArguments: For a name that is none, or a value that its option cannot have.
    """
    spelt = {camel(name): name for name in _NAMES} | {name: name for name in _NAMES}
    unknown = next((key for key in given if key not in spelt), None)
    if unknown is not None:
        raise InvalidArguments(f"no option is called `{unknown}`", options=_NAMES)
    named = {spelt[key]: value for key, value in given.items()}
    # JSON has lists where Python has tuples, and objects where Python has values.
    if isinstance(threshold := named.get("compact_threshold"), list):
        named["compact_threshold"] = tuple(cast("list[object]", threshold))
    if isinstance(prices := named.get("cache_prices"), Mapping):
        named["cache_prices"] = read_prices(cast("Mapping[str, object]", prices))
    if not _ORIGINAL.isdisjoint(given):
        named.setdefault("keep", ORIGINAL_KEEP)
    return Options(**cast("dict[str, float]", named))  # pyright: ignore[reportArgumentType]


_TARGET, _KEEP = 0.50 / 0.65, 0.30 / 0.65
"""Of the threshold, where it lies so low that the usual shares of the window would lie above it."""
_MARGIN = 0.98
"""Of the target, what is aimed at: what is left is weighed together afterwards, and a small window is few tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    window: int
    fixed: int
    """What the system prompt and the tools weigh, which is never let go."""
    soft: int
    """From here on something is let go."""
    hard: int
    """Here the window ends, less what stays free for the answer."""
    target: int
    """What is used when something was let go."""
    keep: int
    """What the untouched tail may weigh."""
    least_gain: float
    refill: int = 0
    """Where the next compaction will be due; `soft` may lie lower, where one is made at once."""
    prices: CachePrices = field(default_factory=CachePrices)

    @property
    def is_irreducible(self) -> bool:
        """Whether nothing that could be let go would bring the use under the threshold."""
        return self.fixed >= self.soft

    @property
    def measure(self) -> int:
        """What shares for single things are taken of: the window, or less where the threshold lies low."""
        return min(self.window, 2 * self.target)

    @property
    def goal(self) -> int:
        """What the messages may weigh when something was let go; what the window holds where that is not to be had."""
        wanted = self.target - self.fixed
        return wanted if wanted > 0 else max(0, self.hard - self.fixed)

    def is_over(self, messages: int) -> bool:
        return self.fixed + messages >= self.hard


def limits_of(  # noqa: PLR0913
    options: Options, window: int, *, fixed: int, used: int, scale: float = 1.0, now: bool = False
) -> Limits:
    """`scale` is what the provider counts for each token of ours; `fixed` and `used` are ours. With `now`, something is
    to be let go although the threshold may not be reached."""
    ours = window / scale
    kind, value = options.threshold
    refill = {"fraction": value * ours, "tokens": value / scale, "messages": float(used)}[kind]
    soft = max(1.0, float(used)) if now else refill
    # A threshold at or under the target would be met again at once.
    is_low = soft <= options.target * ours
    return Limits(
        window=int(ours),
        fixed=fixed,
        soft=int(soft),
        hard=int(ours * (1 - options.reserve)),
        target=int(_MARGIN * (soft * _TARGET if is_low else options.target * ours)),
        keep=int(min(soft * _KEEP, options.tail(ours)) if is_low else options.tail(ours)),
        least_gain=options.least_gain,
        refill=int(max(refill, soft)),
        prices=options.cache_prices or CachePrices(),
    )
