"""What stands in for a summary when no model answers?"""

from collections.abc import Callable, Sequence

from ullage.messages import Message, Text

__all__ = ["digest"]


def digest(messages: Sequence[Message], *, room: int, count: Callable[[str], int], earlier: object = None) -> str:
    said = [part.text for one in messages if one.role == "user" for part in one.parts if isinstance(part, Text)]
    text = "\n".join(said)
    while text and count(text) > room:
        text = text[: len(text) * 3 // 4]
    return text
