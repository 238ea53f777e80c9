"""What does the system say, for wires that keep it apart?"""

from ullage.messages import Message, Text

from ..exchange import Outgoing

__all__ = ["before"]


def before(outgoing: Outgoing) -> tuple[str, tuple[Message, ...]]:
    """The system's words, and the messages without them."""
    system = [message for message in outgoing.messages if message.role in ("system", "developer")]
    rest = tuple(message for message in outgoing.messages if message.role not in ("system", "developer"))
    return "\n\n".join(filter(None, map(_text, system))), rest


def _text(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))
