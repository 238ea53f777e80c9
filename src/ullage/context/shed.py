"""What a compaction did: by which means, to which messages, and what that broke."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from ullage.tool import Json

from .entry import Entry

__all__ = ["Change", "Dropped", "Fate", "Shed", "Tier", "merge_dropped"]

Tier = Literal["clamp", "mask", "summarise", "digest", "trim"]
"""The means, cheapest first."""

Fate = Literal["in_summary", "excerpt_in_summary", "summarised", "digested", "masked", "truncated", "dropped"]
"""What became of a message: its words stand in the summary message, whole or as an excerpt; a model summarised it; it
is part of a digest; a line stands for its results; it lost its middle; nothing is left of it."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Messages of a history that are not what they were, one after the other with the same fate."""

    first: int
    last: int
    """The numbers of the first and the last of them in the history before, counted from 1."""
    fate: Fate
    tokens: int
    """That are gone from where the messages were; what a summary has of them is not subtracted."""

    def to_json(self) -> dict[str, Json]:
        return {"first": self.first, "last": self.last, "fate": self.fate, "tokens": self.tokens}


def merge_dropped(single: Iterable[Dropped]) -> tuple[Dropped, ...]:
    """Neighbours of one fate as one, in order."""
    merged = list[Dropped]()
    for one in single:
        before = merged[-1] if merged else None
        if before is not None and before.fate == one.fate and before.last + 1 == one.first:
            merged[-1] = replace(before, last=one.last, tokens=before.tokens + one.tokens)
        else:
            merged.append(one)
    return tuple(merged)
