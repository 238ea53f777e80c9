"""The price of using a model.

The user's own price comes first, then that of genai-prices; otherwise the price is unknown, which is None, never 0.
genai-prices is imported only when a price is requested, and never downloads anything: its prices are those of the
installed version.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from .model_cards import Match, forms

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

__all__ = ["Cost", "Price", "Usage", "cost_of", "price_of"]

_ZERO = Decimal(0)
_HOSTS = {"bedrock": "aws", "google-vertex": "google", "moonshot": "moonshotai", "xai": "x-ai"}
"""Ullage's name of a host to that of genai-prices, where they differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as a provider reports them, in inclusive buckets. None is a figure that it did not report."""

    input: int | None = None
    """All input, including what was read from and written to a cache."""
    output: int | None = None
    """All output, including reasoning."""
    cache_read: int | None = None
    """The part of the input that was read from a cache; priced as other input where it was not reported."""
    cache_write: int | None = None
    """The part of the input that was written to a cache; priced as other input where it was not reported."""
    reasoning: int | None = None
    """The part of the output that was reasoning."""

    def __post_init__(self) -> None:
        parts = (self.input, self.output, self.cache_read, self.cache_write, self.reasoning)
        if any(part is not None and part < 0 for part in parts):
            raise ValueError(f"a usage cannot be negative: {self}")
        if self.input is not None and self.input < (self.cache_read or 0) + (self.cache_write or 0):
            raise ValueError(f"input includes what was read from and written to the cache: {self}")
        if self.output is not None and self.output < (self.reasoning or 0):
            raise ValueError(f"output includes reasoning: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a request. A part whose tokens or price are unknown is None, and then so is the total."""

    input: Decimal | None
    output: Decimal | None
    currency: str
    source: str
    date: date | None
    """The day of the prices; None for the user's own, which have no date."""
    reported: Decimal | None = None
    """The total as billed, where the biller reported it: it takes precedence over the sum of the parts."""

    @property
    def total(self) -> Decimal | None:
        if self.reported is not None:
            return self.reported
        return None if self.input is None or self.output is None else self.input + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of one token. Where a price rises with the length of the prompt, this is the lowest."""

    input: Decimal | None
    output: Decimal | None
    cache_read: Decimal | None = None
    """The price of reading from a cache; None where it has no price of its own, and costs as other input does."""
    cache_write: Decimal | None = None
    """The price of writing to a cache; None where it has no price of its own, and costs as other input does."""
    currency: str = "USD"
    source: str
    date: date | None
    """The day of the price; None for the user's own, which applies on every day."""

    def cost(self, usage: Usage) -> Cost:
        cost = _times(usage.input, self.input)
        if usage.input is not None and self.input is not None:
            read, write = usage.cache_read or 0, usage.cache_write or 0
            cost = (usage.input - read - write) * self.input
            cost += read * (self.input if self.cache_read is None else self.cache_read)
            cost += write * (self.input if self.cache_write is None else self.cache_write)
        return Cost(
            input=cost,
            output=_times(usage.output, self.output),
            currency=self.currency,
            source=self.source,
            date=self.date,
        )


def price_of(match: Match, *, when: datetime, host: str | None = None, own: Price | None = None) -> Price | None:
    """Return the price of a token on a day: the user's own, else the host's, else None.

    Args:
        match: The model.
        when: The time whose prices apply.
        host: The host that serves the model; the match's where None.
        own: The user's own price, which takes precedence.
    """
    if own is not None:
        return own
    found = _calculate_price(Usage(input=0, output=0), match, when, host)
    if found is None:
        return None
    price = found.model_price
    return Price(
        input=_each(price.input_mtok),
        output=_each(price.output_mtok),
        cache_read=_each(price.cache_read_mtok),
        cache_write=_each(price.cache_write_mtok),
        source=_source(),
        date=when.date(),
    )


def cost_of(
    usage: Usage, match: Match, *, when: datetime, host: str | None = None, own: Price | None = None
) -> Cost | None:
    """Return the cost of a request, including steps of a price that rises with the prompt; None where no price is
    known.

    Args:
        usage: The tokens that the provider reported.
        match: The model.
        when: The time whose prices apply.
        host: The host that served the model; the match's where None.
        own: The user's own price, which takes precedence.
    """
    if own is not None:
        return own.cost(usage)
    found = _calculate_price(usage, match, when, host)
    if found is None:
        return None
    return Cost(
        input=_cost_if_priced(usage.input, found.model_price.input_mtok, found.input_price),
        output=_cost_if_priced(usage.output, found.model_price.output_mtok, found.output_price),
        currency="USD",
        source=_source(),
        date=when.date(),
    )


def _times(tokens: int | None, price: Decimal | None) -> Decimal | None:
    if tokens == 0:
        return _ZERO
    return None if tokens is None or price is None else tokens * price


def _cost_if_priced(tokens: int | None, price: object, cost: Decimal) -> Decimal | None:
    """Return None where the price is unknown: genai-prices adds nothing for it, which would read as free."""
    if tokens == 0:
        return _ZERO
    return None if tokens is None or price is None else cost


def _each(price: object) -> Decimal | None:
    """Return the price of one token from that of a million; of a stepped price, the first step."""
    base = getattr(price, "base", price)
    return base.scaleb(-6) if isinstance(base, Decimal) else None


def _calculate_price(usage: Usage, match: Match, when: datetime, host: str | None) -> "PriceCalculation | None":
    import genai_prices

    billed = host or match.host or match.card.provider
    counted = genai_prices.Usage(
        input_tokens=usage.input or 0,
        output_tokens=usage.output or 0,
        cache_read_tokens=(usage.cache_read or 0) if usage.input else 0,
        cache_write_tokens=(usage.cache_write or 0) if usage.input else 0,
        output_reasoning_tokens=(usage.reasoning or 0) if usage.output else 0,
    )
    for reference in _references(match):
        try:
            return genai_prices.calc_price(
                counted, reference, provider_id=_HOSTS.get(billed, billed), genai_request_timestamp=when
            )
        except LookupError:
            continue
    return None


def _references(match: Match) -> Iterator[str]:
    """Yield the names under which to look up a price: as written, because a region can have its own price, then
    shorter, then the card's id.

    A card found by family is another model than the one asked for, and its price would be a guess.
    """
    written = match.asked
    yield written
    while "/" in written:
        written = written.partition("/")[2]
        yield written
    for _, bare in forms(match.asked):
        yield bare
    if match.how not in ("family", "version"):
        yield match.card.id


def _source() -> str:
    import genai_prices

    return f"genai-prices {genai_prices.__version__}"
