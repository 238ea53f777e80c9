"""How do messages become turns, for formats in which user and assistant take turns?

Results belong to the user's turn and come first in it, and what the system says has its place outside.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import dropwhile

from ullage.tool import Json

from ..parts import Message

__all__ = ["Turn", "conversation", "merged"]

Turn = tuple[str, list[dict[str, Json]]]
"""A role, and what is said in it."""


def conversation(messages: Iterable[Message]) -> Iterator[Message]:
    """Without what the system says at the beginning; what it says later, not every model takes but from the user."""
    for message in dropwhile(_is_system, messages):
        yield replace(message, role="user") if _is_system(message) else message


def merged(turns: Iterable[Turn], is_result: Callable[[dict[str, Json]], bool]) -> list[Turn]:
    """With neighbours of one role as one turn; those in which nothing is said are left out."""
    made: list[Turn] = []
    for role, parts in turns:
        if parts and made and made[-1][0] == role:
            made[-1][1].extend(parts)
        elif parts:
            made.append((role, list(parts)))
    return [(role, sorted(parts, key=lambda part: not is_result(part))) for role, parts in made]


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")
