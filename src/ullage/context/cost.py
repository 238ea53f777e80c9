"""Price of compaction with a prompt cache.

A provider charges little for the part of a prompt that it still has in its cache and more than usual for what it puts
there. A compaction changes the prompt near its beginning, so that what is left is written to the cache again, once; in
return every later call reads less. Prices here are ratios to the price of a token of plain input, so that currencies
and price lists do not matter.

Example: with a threshold of 130,000 tokens and 1,000 more with each call, masks that leave 95,000 cost 14,643 tokens of
plain input a call until the next compaction, a summary that leaves 30,000 costs 9,725:

    price_per_call(left=95_000, rewritten=95_000, extra=0, refill=130_000, growth=1_000, prices=CachePrices())
    price_per_call(left=30_000, rewritten=30_000, extra=135_000, refill=130_000, growth=1_000, prices=CachePrices())
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf

from ullage.errors import InvalidArguments
from ullage.models import ModelTable, price_of

__all__ = ["CachePrices", "cache_prices_of", "price_per_call", "read_prices"]


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
