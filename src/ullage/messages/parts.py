"""The neutral parts into which the readers convert a request body.

Nothing is dropped: what a reader does not recognise becomes `Unknown` with its JSON value. Tokens are not counted here.
Bodies come from any source, so a reader never fails on a number where a text should be.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from ullage.tool import Json

__all__ = [
    "Format",
    "Media",
    "Message",
    "Part",
    "Request",
    "Role",
    "SealedAs",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolDefinition",
    "ToolResult",
    "Unknown",
    "extras",
    "items_of",
    "join_texts",
    "text_of",
    "text_or_none",
]

Role = Literal["system", "developer", "user", "assistant", "tool"]


class Format(StrEnum):
    """The format of a request or message."""

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    ULLAGE = "ullage"
    """Ullage's own format: a `Message`, or its JSON."""


SealedAs = Literal["signature", "redacted", "thought_signature", "encrypted"]
"""The kind of opaque bytes a provider attaches to thinking: Anthropic's two, Gemini's, OpenAI's."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """Reasoning that is sent back to the model."""

    text: str
    signature: str | None = None
    """Opaque bytes that the provider requires back (a signature, encrypted reasoning), as text."""
    sealed_as: SealedAs | None = field(default=None, compare=False)
    """The kind of the bytes, because only the provider that made them accepts them; None where unknown. Excluded from
    comparison, so that two thoughts may be equal without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image, audio, video or document."""

    kind: Literal["image", "audio", "video", "document"]
    media_type: str | None = None
    data: str | None = None
    """Base64, where the request contains the bytes."""
    url: str | None = None
    """An address or a file id, where the request does not contain the bytes."""
    detail: str | None = None
    """OpenAI's `low`, `high`, `auto`, `original`; Gemini's media resolution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool by the model."""

    name: str
    arguments: str
    """JSON text: unchanged where the wire has text, else compact JSON."""
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool call."""

    parts: tuple["Part", ...]
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part that no reader recognises. It is passed through, and counted as JSON."""

    value: Json


Part = Text | Thinking | Media | ToolCall | ToolResult | Unknown


def join_texts(parts: Iterable[Part]) -> str:
    """Return the texts among the parts, joined by line breaks; parts other than `Text` are skipped."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message: a role and its parts, in order."""

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as the request defines it."""

    name: str
    description: str | None = None
    schema: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """JSON Schema of the arguments, as written (Gemini's `parameters` in its own spelling)."""
    strict: bool | None = None
    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Every other key of the definition, raw."""
    hosted: Mapping[str, Json] | None = None
    """The raw definition, where it is not a plain function of the caller's: a tool that the provider runs itself (web
    search, code execution), a custom or deferred one, or a malformed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a model, in neutral parts and in the order it was written."""

    format: Format
    model: str | None
    system: tuple[Message, ...] = ()
    """System text outside the messages (Anthropic's `system`, `instructions`, `systemInstruction`)."""
    messages: tuple[Message, ...] = ()
    """The conversation; system and developer messages of OpenAI chat stay here, in place."""
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Json = None
    output_schema: Json = None
    """The required form of the answer (`response_format`, `text.format`, `responseSchema`), raw."""
    settings: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Every other key of the body (thinking, reasoning, temperature, …), raw."""


def items_of(value: Json) -> list[Json]:
    """Return a list as it is, None as an empty list, any other value as a list of one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Json) -> str:
    return value if isinstance(value, str) else ""


def text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def extras(item: Mapping[str, Json], known: frozenset[str]) -> Iterator[Part]:
    """Yield the non-empty values under other than the known keys, so that nothing is lost."""
    for key, value in item.items():
        if key not in known and value not in (None, "", [], {}):
            yield Unknown({key: value})
