"""When is something let go, and how much?

The settings of a context, as people write them: in Python's spelling or in JSON's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from typing import Literal, TypedDict, TypeGuard, cast

from ullage.errors import InvalidArguments

from .cost import CachePrices, read_prices
from .spelling import camel

__all__ = ["DEFAULTS", "Options", "OptionsGiven", "Threshold", "read_options"]

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
