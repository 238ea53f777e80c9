"""How is a prompt cut that no window holds?

In the middle of the text that the user said last, because its beginning says what is wanted and its end is what was
said last; a mark in its place says how much is gone. Everything else stays as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ullage.errors import InvalidArguments
from ullage.messages import Message, Text

__all__ = ["Shortened", "TooLong", "shortened"]


class TooLong(InvalidArguments):
    """A prompt that no window holds, and the tokens that would have fitted."""

    room: int = 0


@dataclass(frozen=True, slots=True)
class Shortened:
    messages: tuple[Message, ...]
    left_out: int
    """Characters."""


def shortened(messages: tuple[Message, ...], fits: Callable[[tuple[Message, ...]], bool]) -> Shortened | None:
    """The most of it that fits; None where nothing of that text would."""
    place = _place(messages)
    if place is None:
        return None
    message, part = place
    text = _text(messages, place)
    low, high = 0, len(text) - 1
    while low < high:
        kept = (low + high + 1) // 2
        low, high = (kept, high) if fits(_cut(messages, message, part, kept)) else (low, kept - 1)
    return Shortened(_cut(messages, message, part, low), len(text) - low) if low else None


def _place(messages: tuple[Message, ...]) -> tuple[int, int] | None:
    """Of the longest text of the user's last message."""
    users = [number for number, message in enumerate(messages) if message.role == "user"]
    if not users:
        return None
    parts = [
        (len(part.text), number) for number, part in enumerate(messages[users[-1]].parts) if isinstance(part, Text)
    ]
    return (users[-1], max(parts)[1]) if parts else None


def _text(messages: tuple[Message, ...], place: tuple[int, int]) -> str:
    part = messages[place[0]].parts[place[1]]
    return part.text if isinstance(part, Text) else ""


def _cut(messages: tuple[Message, ...], message: int, part: int, kept: int) -> tuple[Message, ...]:
    text = _text(messages, (message, part))
    head, tail = text[: kept - kept // 2], text[len(text) - kept // 2 :]
    mark = f"\n[… {len(text) - kept:,} characters left out …]\n"
    parts = list(messages[message].parts)
    parts[part] = Text(f"{head}{mark}{tail}")
    return (*messages[:message], replace(messages[message], parts=tuple(parts)), *messages[message + 1 :])
