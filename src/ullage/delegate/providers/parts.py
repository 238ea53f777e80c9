"""What of a message's parts does every wire need?"""

import json
from collections.abc import Iterable
from typing import TypeVar, cast

from ullage.messages import Media, Message, Part, Text, ToolCall
from ullage.tool import Json

from ..exchange import Outgoing

__all__ = ["address", "arguments", "before", "of", "text_of"]

Kind = TypeVar("Kind")


def of(kind: type[Kind], parts: Iterable[Part]) -> tuple[Kind, ...]:
    return tuple(part for part in parts if isinstance(part, kind))


def text_of(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in of(Text, parts))


def before(outgoing: Outgoing) -> tuple[str, tuple[Message, ...]]:
    """The system's words, and the messages without them, for wires that keep them apart."""
    system = [message for message in outgoing.messages if message.role in ("system", "developer")]
    rest = tuple(message for message in outgoing.messages if message not in system)
    return "\n\n".join(filter(None, (text_of(message.parts) for message in system))), rest


def arguments(call: ToolCall) -> Json:
    """As JSON, for wires that do not carry them as text; what is none is not lost."""
    try:
        return cast("Json", json.loads(call.arguments))
    except ValueError:
        return {"arguments": call.arguments}


def address(media: Media) -> str:
    """As a data URL where the bytes are here."""
    return media.url or f"data:{media.media_type or 'application/octet-stream'};base64,{media.data or ''}"
