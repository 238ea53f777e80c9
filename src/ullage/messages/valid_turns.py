"""Who speaks in turn?

What the rules of several providers share: messages as turns, each of one speaker.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ullage.tool import Json

__all__ = ["Item", "Turn", "objects_of", "turns_of"]

Item = Mapping[str, Json]
"""A message, or a part of one, as its provider writes it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker says before another does."""

    speaker: str
    parts: tuple[Item, ...]


def turns_of(
    messages: Iterable[Item], speaker: Callable[[Item], str], parts: Callable[[Item], Sequence[Item]]
) -> list[Turn]:
    return [
        Turn(name, tuple(part for message in told for part in parts(message)))
        for name, told in groupby(messages, speaker)
    ]


def objects_of(value: Json) -> list[Item]:
    """The objects of a list; anything else has none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
