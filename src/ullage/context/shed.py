"""What was let go, by which means, and what did that break?"""

from dataclasses import dataclass
from typing import Literal

from .entry import Entry

__all__ = ["Change", "Shed", "Tier"]

Tier = Literal["clamp", "mask", "summarise", "digest", "trim"]
"""The means, cheapest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shed:
    tier: Tier
    tokens: int
    """That the history weighs less."""
    messages: int
    """That were changed or left out."""
    broke_at: int
    """The place of the first message that is not what it was; a prompt cache holds up to there."""
    reread: int
    """Tokens behind that place, which the provider must read anew once."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a tier leaves of a history."""

    entries: tuple[Entry, ...]
    shed: Shed
