"""Writes neutral messages in any format.

Content that a format cannot express is left out: thinking signed by another provider, media that it does not accept,
names where it has none. The output is valid for a strict provider wherever the input is a consistent history; it is not
checked here.
"""

from collections.abc import Callable, Iterable, Mapping

from ullage.tool import Json

from ..neutral import to_json
from ..parts import Format, Message, Role, Text
from .anthropic import write as write_anthropic
from .anthropic import write_all as write_all_anthropic
from .gemini import write as write_gemini
from .gemini import write_all as write_all_gemini
from .openai import write_all_chat, write_all_responses, write_chat, write_responses

__all__ = ["assistant_message", "user_message", "write_message", "write_messages"]

Natives = list[dict[str, Json]]


def write_message(message: Message, format: Format) -> Natives:  # noqa: A002
    """Write one neutral message in a format.

    Returns:
        Messages, contents or items: none where the format cannot express it, several where each result or call is one.
    """
    return _WRITERS[format][0](message)


def write_messages(messages: Iterable[Message], format: Format) -> Natives:  # noqa: A002
    """Write a history in a form the provider accepts, whatever its source.

    Every call gets a unique id and every result that of its call; for Anthropic and Gemini messages are merged into
    turns, results first. For these two the leading system messages are left out, because they belong outside the
    messages.
    """
    return _WRITERS[format][1](messages)


def user_message(format: Format, text: str) -> object:  # noqa: A002
    """Return a user's message with one text, in a format."""
    return _write_text_message("user", text, format)


def assistant_message(format: Format, text: str) -> object:  # noqa: A002
    """Return an assistant's message with one text, in a format."""
    return _write_text_message("assistant", text, format)


def _write_text_message(role: Role, text: str, format: Format) -> object:  # noqa: A002
    match format:
        case Format.ULLAGE:
            return Message(role=role, parts=(Text(text),))
        case Format.GEMINI:
            return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
        case Format.OPENAI_RESPONSES:
            return {"type": "message", "role": role, "content": text}
        case _:
            return {"role": role, "content": text}


_WRITERS: Mapping[Format, tuple[Callable[[Message], Natives], Callable[[Iterable[Message]], Natives]]] = {
    Format.OPENAI_CHAT: (write_chat, write_all_chat),
    Format.OPENAI_RESPONSES: (write_responses, write_all_responses),
    Format.ANTHROPIC: (write_anthropic, write_all_anthropic),
    Format.GEMINI: (write_gemini, write_all_gemini),
    Format.ULLAGE: (lambda message: [to_json(message)], lambda messages: list(map(to_json, messages))),
}
"""By format: the functions that write one message and a history."""
