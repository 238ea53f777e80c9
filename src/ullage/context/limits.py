"""Where are the marks on the vessel?

The options of a context as numbers of tokens, for one window and one load that cannot be let go. All are on the scale
on which the history is weighed.
"""

from dataclasses import dataclass, field

from .cost import CachePrices
from .options import Options

__all__ = ["Limits", "limits_of"]

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
