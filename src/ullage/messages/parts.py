"""The neutral parts that the readers make of a request body. Nothing is dropped: what a reader does not know becomes
`Unknown` with its JSON value. Nothing is weighed here.

Bodies come from anywhere, and a reader must not fail on a number where a text should be.
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
    """Whose way of writing a request it is."""

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    ULLAGE = "ullage"
    """Nobody's but ours: a `Message`, or its JSON."""


SealedAs = Literal["signature", "redacted", "thought_signature", "encrypted"]
"""What a provider calls the opaque bytes of its thinking: Anthropic's two kinds, Gemini's, OpenAI's."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """Reasoning carried back to the model."""

    text: str
    signature: str | None = None
    """Opaque bytes the provider wants back (a signature, encrypted reasoning), as text."""
    sealed_as: SealedAs | None = field(default=None, compare=False)
    """Whose kind of bytes, for nobody else takes them; None where nobody said. It is no part of what is thought, so
    two thoughts may be equal without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image, a sound, a film or a document."""

    kind: Literal["image", "audio", "video", "document"]
    media_type: str | None = None
    data: str | None = None
    """Base64, where the request carries the bytes."""
    url: str | None = None
    """An address or a file id, where it does not."""
    detail: str | None = None
    """OpenAI's `low`, `high`, `auto`, `original`; Gemini's media resolution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    name: str
    arguments: str
    """JSON text, as it stood on the wire where the wire has text, else compact JSON."""
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    parts: tuple["Part", ...]
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part no reader knows; it passes through and is weighed as JSON."""

    value: Json


Part = Text | Thinking | Media | ToolCall | ToolResult | Unknown


def join_texts(parts: Iterable[Part]) -> str:
    """The texts among parts, a line's end between each two; what is no `Text` says nothing here."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    parts: tuple[Part, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as the request defines it."""

    name: str
    description: str | None = None
    schema: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """JSON Schema of the arguments, as written (Gemini's `parameters` kept in its own spelling)."""
    strict: bool | None = None
    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Every other key of the definition, raw."""
    hosted: Mapping[str, Json] | None = None
    """The raw definition where it is no plain function of the caller's: a tool that the provider runs itself (web
    search, code execution), a custom or deferred one, or a malformed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a model, in neutral parts and in the order it was written."""

    format: Format
    model: str | None
    system: tuple[Message, ...] = ()
    """What stands outside the messages (Anthropic's `system`, `instructions`, `systemInstruction`)."""
    messages: tuple[Message, ...] = ()
    """The conversation; OpenAI chat keeps its system and developer messages here, in place."""
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Json = None
    output_schema: Json = None
    """What the answer must look like (`response_format`, `text.format`, `responseSchema`), raw."""
    settings: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Every other key of the body (thinking, reasoning, temperature, …), raw."""


def items_of(value: Json) -> list[Json]:
    """A list as it is, nothing as no item, anything else as the only one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Json) -> str:
    return value if isinstance(value, str) else ""


def text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def extras(item: Mapping[str, Json], known: frozenset[str]) -> Iterator[Part]:
    """What stands beside the known keys and is not empty, so that nothing is lost."""
    for key, value in item.items():
        if key not in known and value not in (None, "", [], {}):
            yield Unknown({key: value})
