"""What is in this request, in whosever format it is?"""

from collections.abc import Callable, Mapping
from typing import Any

from ullage.errors import UnreadableRequest
from ullage.tool import Json

from . import anthropic, gemini, neutral, openai_chat, openai_responses
from .detect import detect_format
from .parts import Format, Request

__all__ = ["read_request"]

_READERS: Mapping[Format, Callable[[Mapping[str, Json]], Request]] = {
    Format.OPENAI_CHAT: openai_chat.read,
    Format.OPENAI_RESPONSES: openai_responses.read,
    Format.ANTHROPIC: anthropic.read,
    Format.GEMINI: gemini.read,
    Format.ULLAGE: neutral.read,
}


def read_request(body: Mapping[str, Any], format: Format | None = None) -> Request:  # noqa: A002
    if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnreadableRequest(f"a request body is a JSON object, not {type(body).__name__}", options=tuple(Format))
    return _READERS[detect_format(body) if format is None else format](body)
