"""What did a provider answer, to be carried back in the next request?

An answer as its API gave it, whole: a dict, or an SDK's object made plain. Streams are not read here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ullage.errors import InvalidArguments
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from .fields import table_at, tables_at
from .parts import Format
from .usage import read_usage

__all__ = ["Answer", "read_answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    natives: tuple[dict[str, Json], ...]
    """The messages or items that go into the history."""
    usage: Usage


def read_answer(response: JsonObject, format: Format) -> Answer:  # noqa: A002
    """Nothing where it holds no answer: an error has neither message nor usage."""
    reader = _READERS.get(format)
    if reader is None:
        raise InvalidArguments(
            "no provider answers in neutral parts",
            suggestion="give usage and messages apart: observe(usage=…, answer=…)",
        )
    natives, usage = reader(response)
    return Answer(tuple(natives), read_usage(usage, format))


def _chat(response: JsonObject) -> tuple[list[dict[str, Json]], JsonObject]:
    messages = [dict(table_at(choice, "message")) for choice in tables_at(response, "choices")[:1]]
    return [message for message in messages if message], table_at(response, "usage")


def _responses(response: JsonObject) -> tuple[list[dict[str, Json]], JsonObject]:
    return [dict(item) for item in tables_at(response, "output")], table_at(response, "usage")


def _anthropic(response: JsonObject) -> tuple[list[dict[str, Json]], JsonObject]:
    content = response.get("content")
    answered: list[dict[str, Json]] = [{"role": "assistant", "content": content}] if content else []
    return answered, table_at(response, "usage")


def _gemini(response: JsonObject) -> tuple[list[dict[str, Json]], JsonObject]:
    contents = [dict(table_at(one, "content")) for one in tables_at(response, "candidates")[:1]]
    return [content for content in contents if content.get("parts")], table_at(response, "usageMetadata")


_READERS: Mapping[Format, Callable[[JsonObject], tuple[list[dict[str, Json]], JsonObject]]] = {
    Format.OPENAI_CHAT: _chat,
    Format.OPENAI_RESPONSES: _responses,
    Format.ANTHROPIC: _anthropic,
    Format.GEMINI: _gemini,
}
