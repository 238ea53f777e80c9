"""What did the user decide about models?

A policy as values: which models there are, what they are called, and by what rules one is chosen. It is read from files
elsewhere, checked by `lint`, and gone by in `route`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ullage.models import Price

__all__ = ["Bucket", "LanguageRule", "ModelEntry", "Policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model that may be asked."""

    id: str
    """As the policy names it: `openai:gpt-4o`."""
    provider: str
    """Which of the configured providers is asked."""
    model: str
    """What the provider calls it."""
    max_output_tokens: int | None = None
    temperature: float | None = None
    cap_default: int | None = None
    """Output tokens where neither tier nor request asks for more."""
    cap_hard: int | None = None
    """Output tokens that nothing goes beyond."""
    price: Price | None = None
    """The user's own, which wins over every other."""
    window: int | None = None
    """The user's own, instead of the model table's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRule:
    alias: str | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Prompts of so many tokens go to this alias."""

    alias: str
    at_least: int = 0
    at_most: int | None = None
    """None for no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Alias to the id of a model."""
    models: Mapping[str, ModelEntry] = field(default_factory=dict[str, ModelEntry])
    default_alias: str | None = None
    languages: Mapping[str, LanguageRule] = field(default_factory=dict[str, LanguageRule])
    """By two-letter code."""
    buckets: tuple[Bucket, ...] = ()
    """In order; the first that takes a prompt's size is meant."""
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By alias, those asked after it, in order."""
    cap_default: int | None = None
    tiers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Output tokens by tier."""
    temperatures: Mapping[str, float] = field(default_factory=dict[str, float])
    """By domain; `default` among them."""
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    """System prompts by task: `run`, `diff`, `tests`, `judge`."""
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """Dotted key (`routing.tokenBuckets.0`) to file and line, for whoever mends it."""
