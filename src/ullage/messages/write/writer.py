"""Writes neutral messages in any format.

What a format cannot say is left out: thinking that another provider sealed, media that it does not take, names
where it has none. What comes out is what a strict provider takes wherever what went in makes sense; it is not
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
    """One neutral message as the messages, contents or items that it is in a format: none where nothing can be said of
    it, several where each of its results or calls stands alone."""
    return _WRITERS[format][0](message)


def write_messages(messages: Iterable[Message], format: Format) -> Natives:  # noqa: A002
    """A history as a provider takes it, from wherever it comes: every call with an id of its own and every result with
    that of its call, and for Anthropic and Gemini in turns, results first. What the system says at the beginning has
    its place outside the messages there, and is left out."""
    return _WRITERS[format][1](messages)


def user_message(format: Format, text: str) -> object:  # noqa: A002
    return _said("user", text, format)


def assistant_message(format: Format, text: str) -> object:  # noqa: A002
    return _said("assistant", text, format)


def _said(role: Role, text: str, format: Format) -> object:  # noqa: A002
    match format:
        case Format.ULLAGE:
            return Message(role=role, parts=(Text(text),))
        case Format.GEMINI:
            return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
        case Format.OPENAI_RESPONSES:
            return {"type": "message", "role": role, "content": text}
        case _:
            return {"role": role, "content": text}


def _write_neutral(message: Message) -> Natives:
    return [to_json(message)]


def _write_neutrals(messages: Iterable[Message]) -> Natives:
    return list(map(to_json, messages))


_WRITERS: Mapping[Format, tuple[Callable[[Message], Natives], Callable[[Iterable[Message]], Natives]]] = {
    Format.OPENAI_CHAT: (write_chat, write_all_chat),
    Format.OPENAI_RESPONSES: (write_responses, write_all_responses),
    Format.ANTHROPIC: (write_anthropic, write_all_anthropic),
    Format.GEMINI: (write_gemini, write_all_gemini),
    Format.ULLAGE: (_write_neutral, _write_neutrals),
}
"""By format: who writes one message, and who a history."""
