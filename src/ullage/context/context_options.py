"""Options of a context: window, thresholds, limits and cost.

`Options` are the settings of a context, spelt as in Python or as in JSON.

The window is the user's, unless the provider refused a smaller request; otherwise the one in the provider's error
message; otherwise the one in the model card; otherwise a default, which is reported as unresolved.

`Limits` are the options in tokens, for one window and one fixed load (system prompt and tools) that cannot be dropped.
All figures are on the scale on which the history is weighed.

`price_per_call` is the price of a compaction with a prompt cache. A provider charges little for the part of a prompt
that is still in its cache, and more than usual for what it writes to the cache. A compaction changes the prompt near
its beginning, so that the remainder is written to the cache again, once; in return every later call reads less. Prices
are ratios to the price of a token of plain input, so that currencies and price lists do not matter.

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
    """Prices of a token, in tokens of plain input. The defaults are Anthropic's with its five-minute cache."""

    read: float = 0.1
    """Price of a token that is read from the cache."""
    write: float = 1.25
    """Price of a token that is written to the cache."""
    output: float = 5.0
    lifetime: float = 300.0
    """Seconds after its last use for which a prompt stays in the cache."""

    def __post_init__(self) -> None:
        for name in ("read", "write", "output", "lifetime"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
                raise InvalidArguments(f"`{name}` of cache prices is a number from 0 on, not `{value}`")


def read_prices(given: Mapping[str, object]) -> CachePrices:
    """Read cache prices from a settings file or JSON: `{"read": 0.1, "write": 1.0}`.

    Raises:
        InvalidArguments: A name or a value is not valid.
    """
    unknown = next((key for key in given if key not in CachePrices.__slots__), None)
    if unknown is not None:
        raise InvalidArguments(f"no cache price is called `{unknown}`", options=tuple(CachePrices.__slots__))
    return CachePrices(**given)  # pyright: ignore[reportArgumentType]  checked by the class itself


def cache_prices_of(models: ModelTable, model: str, *, when: datetime) -> CachePrices:
    """Return the cache prices of a model on a day, or the defaults if its prices are unknown.

    If a price list has no price for the cache, cached input costs as much as other input.
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
    """Return the mean price of a call from one compaction to the next, without the cost of new messages and answers.

    Args:
        left: Tokens of the prompt after the compaction.
        rewritten: Tokens of these that must be written to the cache again.
        extra: Price of the compaction itself, such as that of a summarising call.
        refill: Tokens of the prompt at which the next compaction is due.
        growth: Tokens by which each call makes the prompt longer.
        prices: Prices of the cache.

    Returns:
        The price, in tokens of plain input.
    """
    calls = max(1.0, (refill - left) / max(1.0, growth))
    return prices.read * (left + max(left, refill)) / 2 + (prices.write * rewritten + extra) / calls


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def window_of(models: ModelTable, model: str, *, said: int | None = None, learnt: int | None = None) -> Window:
    """Return the window of a model: `said` by the user, else `learnt` from an overflow, else the model's own."""
    return models.window(model, said if said is not None else learnt)


Threshold = float | tuple[Literal["fraction", "tokens", "messages"], float]
"""Share of the window from 0 to 1, or a pair of kind and value."""


class OptionsGiven(TypedDict, total=False):
    """The options as keyword arguments, in either spelling."""

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
    """Options of a context. Shares are of the context window, from 0 to 1.

    Raises:
        InvalidArguments: A value is not valid for its option.
    """

    context_window: int | None = None
    """Context window in tokens; None for the model's own."""
    compact_threshold: Threshold = 0.65
    """Usage of the window at which the history is compacted."""
    disable_compaction: bool = False
    keep: float | None = None
    """Share of the window that the untouched tail may fill. None means a tenth, the cheapest with a prompt cache, but
    at least 8,000 tokens if these are less than 0.15 of the window, otherwise 0.15. The original kept 0.30."""
    target: float = 0.50
    """Largest share of the window in use after a compaction."""
    reserve: float = 0.15
    """Share of the window that stays free for the answer."""
    least_gain: float = 0.10
    """Smallest share of the tokens in use that a compaction must save; otherwise nothing is changed."""
    cold_threshold: float = 0.50
    """Share of the window from which the history is compacted as soon as the prompt cache has expired, since everything
    would have to be written to it again. 1 turns this off."""
    wait_for_cold_cache: bool = False
    """Whether to delay a due compaction until the prompt cache has expired or the window is full."""
    cache_prices: CachePrices | None = None
    """Prices of the prompt cache; None for those of the model."""
    summary_timeout: float = 60.0
    """Seconds that a model may take to summarise. The longest summary, 4,000 tokens, takes 50 seconds at 80 tokens a
    second. The limit also bounds the wait for a model that hangs."""

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
        """The threshold as a pair of kind and value."""
        said = self.compact_threshold
        return said if isinstance(said, tuple) else ("fraction", said)

    def tail(self, window: float) -> float:
        """Return the most tokens of the untouched tail in a window of `window` tokens."""
        if self.keep is not None:
            return self.keep * window
        return max(_CHEAP_KEEP * window, min(_LEAST_TAIL, _SMALL_KEEP * window))


def _is_threshold(said: Sequence[object]) -> bool:
    """Return whether a value, which may come from a settings file, is a valid threshold."""
    if len(said) != len(("kind", "value")):
        return False
    kind, value = said
    most = {"fraction": 1.0, "tokens": inf, "messages": inf}.get(str(kind), 0.0)
    return _is_number(value) and 0 < value <= most and value < inf


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CHEAP_KEEP, _LEAST_TAIL, _SMALL_KEEP = 0.10, 8_000, 0.15
"""Share of the window, and fewest tokens, of the tail by default, and its largest share of a small window. A tail under
8,000 tokens contains only a few results, and windows that small cost little. A longer tail would leave a summary or
digest too little room to explain what belongs together."""
ORIGINAL_KEEP = 0.30
_ORIGINAL = frozenset({"contextWindow", "compactThreshold", "disableCompaction"})
"""The options of the original program, in its spelling."""
DEFAULTS = Options()
_NAMES = tuple(one.name for one in fields(Options))


def read_options(given: Mapping[str, object]) -> Options:
    """Read options by name, in either spelling: `compact_threshold` or `compactThreshold`.

    If one of the original program's three options is given in its spelling (`contextWindow`, `compactThreshold`,
    `disableCompaction`) and `keep` is not given, the tail is 0.30 of the window, as in the original.

    Raises:
        InvalidArguments: A name is unknown, or a value is not valid for its option.
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
"""Shares of the threshold. They apply if it is so low that the usual shares of the window would exceed it."""
_MARGIN = 0.98
"""Share of the target that a compaction aims at. The remaining messages are weighed together only afterwards, and a
small window leaves little tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The options of a context in tokens, for one window and one fixed load."""

    window: int
    fixed: int
    """Tokens of the system prompt and the tools, which are never dropped."""
    soft: int
    """Tokens from which the history is compacted."""
    hard: int
    """Tokens at which the window ends, less the reserve for the answer."""
    target: int
    """Most tokens in use after a compaction."""
    keep: int
    """Most tokens of the untouched tail."""
    least_gain: float
    refill: int = 0
    """Tokens at which the next compaction is due. `soft` is lower than this if a compaction is made at once."""
    prices: CachePrices = field(default_factory=CachePrices)

    @property
    def is_irreducible(self) -> bool:
        """Whether the fixed load alone reaches the threshold, so that no compaction can bring the usage below it."""
        return self.fixed >= self.soft

    @property
    def measure(self) -> int:
        """Tokens that the shares of single parts are taken of: the window, or less if the threshold is low."""
        return min(self.window, 2 * self.target)

    @property
    def goal(self) -> int:
        """Most tokens of the messages after a compaction. If the fixed load exceeds the target, what the window can
        contain."""
        wanted = self.target - self.fixed
        return wanted if wanted > 0 else max(0, self.hard - self.fixed)

    def is_over(self, messages: int) -> bool:
        """Return whether the fixed load and `messages` tokens of messages fill the window up to the reserve."""
        return self.fixed + messages >= self.hard


def limits_of(  # noqa: PLR0913
    options: Options, window: int, *, fixed: int, used: int, scale: float = 1.0, now: bool = False
) -> Limits:
    """Convert options to limits in tokens.

    Args:
        options: The options.
        window: Context window, as the provider counts it.
        fixed: Tokens of the system prompt and the tools, on the history's scale.
        used: Tokens in use, on the history's scale.
        scale: The provider's count for each token of Ullage's count.
        now: Whether to compact at once, even below the threshold.
    """
    ours = window / scale
    kind, value = options.threshold
    refill = {"fraction": value * ours, "tokens": value / scale, "messages": float(used)}[kind]
    soft = max(1.0, float(used)) if now else refill
    # A threshold at or below the target would be reached again at once.
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
