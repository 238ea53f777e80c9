"""What do we know of a model, and who said so?

A card holds figures only: no price (see `price`), no look-up (see `table`), no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

__all__ = ["Match", "ModelCard", "Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a figure comes from, and of which day it is."""

    name: str
    date: date


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """One model. A figure nobody has published is None."""

    id: str
    provider: str
    """Who made it, not who hosts it: `meta` for Llama on Groq."""
    family: str
    """Models that share tokenizer and framing, such as `gpt-4o`, `gpt-5`, `claude-4.5`, `gemini-2.5`."""
    aliases: tuple[str, ...] = ()
    """Other names for the same model: dated ids, hosts' spellings, `-latest`."""
    window: int | None = None
    """Tokens of input and output together, or of input where the provider limits them apart."""
    max_output: int | None = None
    tokenizer: str | None = None
    """The vocabulary's name in the meter; None where no public one fits."""
    accepts: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """What the model takes (`temperature`, `tools`, `images`, …); absent where unknown."""
    retired: date | None = None
    """The day it was or will be switched off; None while no such day is announced."""
    replaced_by: str | None = None
    sources: Mapping[str, Source] = field(default_factory=dict[str, Source])
    """Field name to the source of that figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A name as someone wrote it, and the card it stands for."""

    asked: str
    card: ModelCard
    host: str | None
    """Who serves it, when the name says so with a prefix: `groq` in `groq/llama-3.3-70b`."""
    how: str
    """`id`, `alias`, `dated` or `family`: by which rule the card was found."""
