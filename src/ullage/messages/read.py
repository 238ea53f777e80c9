"""What is in this request, in whosever format it is?"""

from collections.abc import Callable, Mapping
from typing import Any

from ullage.errors import UnreadableRequest
from ullage.tool import Json

from .anthropic import read as read_anthropic
from .bedrock import unwrap_count_tokens
from .detect import detect_format
from .gemini import read as read_gemini
from .neutral import read as read_neutral
from .openai_chat import read as read_openai_chat
from .openai_responses import read as read_openai_responses
from .parts import Format, Request

__all__ = ["read_request"]

_READERS: Mapping[Format, Callable[[Mapping[str, Json]], Request]] = {
    Format.OPENAI_CHAT: read_openai_chat,
    Format.OPENAI_RESPONSES: read_openai_responses,
    Format.ANTHROPIC: read_anthropic,
    Format.GEMINI: read_gemini,
    Format.ULLAGE: read_neutral,
}
_HELD_IN: Mapping[Format, frozenset[str]] = {
    Format.OPENAI_CHAT: frozenset({"messages", "prompt", "input"}),
    Format.OPENAI_RESPONSES: frozenset({"input"}),
    Format.ANTHROPIC: frozenset({"messages"}),
    Format.GEMINI: frozenset({"contents"}),
    Format.ULLAGE: frozenset({"messages"}),
}
"""The keys in which a format has its messages."""
_HELD_IN_ANY = frozenset[str]().union(*_HELD_IN.values()) - {"prompt"}
"""Not `prompt`: to Responses that is a template."""


def read_request(body: Mapping[str, Any], format: Format | None = None) -> Request:  # noqa: A002
    if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnreadableRequest(
            f"a request body is a JSON object, not {type(body).__name__}",
            suggestion='give a dict, such as {"model": …, "messages": […]}',
            options=tuple(Format),
        )
    if format is not None:
        _must_be(body, format)
    body = unwrap_count_tokens(body)
    return _READERS[detect_format(body) if format is None else format](body)


def _must_be(body: Mapping[str, Any], format: Format) -> None:  # noqa: A002
    """Another format's messages would be read as none at all."""
    others = sorted(body.keys() & _HELD_IN_ANY)
    if others and not body.keys() & _HELD_IN[format]:
        raise UnreadableRequest(
            f"the body has `{others[0]}` and is no `{format}` request",
            suggestion="name the format it is in, or none: it is told from its shape",
            options=tuple(Format),
        )
