"""What does the system say, for wires that keep it apart?"""

from ullage.messages import Message, join_texts

from ..exchange import Outgoing

__all__ = ["before"]


def before(outgoing: Outgoing) -> tuple[str, tuple[Message, ...]]:
    """The system's words, and the messages without them."""
    system = [message for message in outgoing.messages if message.role in ("system", "developer")]
    rest = tuple(message for message in outgoing.messages if message.role not in ("system", "developer"))
    return "\n\n".join(filter(None, (join_texts(message.parts) for message in system))), rest
