"""Would the provider take these messages, or refuse them?

Held against what providers name when they refuse a request, and told for each format in a file of its own. It is no
schema: keys, types and media are not looked at, only what letting messages go can break.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from ullage.tool import Json

from .native import plain, read_message
from .parts import Format, Message
from .valid_anthropic import altered as altered_anthropic
from .valid_anthropic import refused as refused_anthropic
from .valid_anthropic import speaker as speaker_anthropic
from .valid_gemini import altered as altered_gemini
from .valid_gemini import refused as refused_gemini
from .valid_gemini import speaker as speaker_gemini
from .valid_neutral import altered as altered_neutral
from .valid_neutral import refused as refused_neutral
from .valid_neutral import speaker as speaker_neutral
from .valid_openai_chat import refused as refused_openai_chat
from .valid_openai_chat import speaker as speaker_openai_chat
from .valid_openai_responses import altered as altered_openai_responses
from .valid_openai_responses import refused as refused_openai_responses
from .valid_openai_responses import speaker as speaker_openai_responses

__all__ = ["faults"]

One = TypeVar("One")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules(Generic[One]):
    """The rules of one format, over messages in the form that it reads."""

    read: Callable[[object], One]
    refused: Callable[[Sequence[One]], Iterator[str]]
    speaker: Callable[[One], str | None]
    altered: Callable[[Sequence[One], Sequence[One]], Iterator[str]]


def faults(
    natives: Sequence[object],
    format: Format,  # noqa: A002
    *,
    original: Sequence[object] | None = None,
) -> tuple[str, ...]:
    """What is wrong with these messages, one line a fault; nothing where they are valid.

    With the `original` that they were made of, what is wrong with that too is not told again; what providers take but
    nobody should make is told (turns of one side by side, a history that the user does not begin), and so is thinking
    that is not as it was.
    """
    rules = _RULES[format]
    now = [rules.read(native) for native in natives]
    if original is None:
        return tuple(rules.refused(now))
    before = [rules.read(native) for native in original]
    found = Counter(_strictly(rules, now)) - Counter(_strictly(rules, before))
    return (*found.elements(), *(rules.altered(now, before) if before else ()))


def _strictly(rules: "_Rules[One]", items: Sequence[One]) -> Iterator[str]:
    yield from rules.refused(items)
    speakers = [name for name in map(rules.speaker, items) if name is not None]
    if speakers and speakers[0] != "user":
        yield "the first turn is not the user's"
    for name, after in pairwise(speakers):
        if name == after and name in ("user", "assistant"):
            yield f"two turns of the {name}'s stand side by side"


def _item(native: object) -> Mapping[str, Json]:
    """A bare text is the user's, where a format has such."""
    return (
        {"role": "user", "content": native, "parts": [{"text": native}]} if isinstance(native, str) else plain(native)
    )


def _neutral(native: object) -> Message:
    return read_message(native, Format.ULLAGE)


def _nothing_sealed(_items: Sequence[Any], _original: Sequence[Any]) -> Iterator[str]:
    return iter(())


_RULES: Mapping[Format, "_Rules[Any]"] = {
    Format.OPENAI_CHAT: _Rules(
        read=_item, refused=refused_openai_chat, speaker=speaker_openai_chat, altered=_nothing_sealed
    ),
    Format.OPENAI_RESPONSES: _Rules(
        read=_item,
        refused=refused_openai_responses,
        speaker=speaker_openai_responses,
        altered=altered_openai_responses,
    ),
    Format.ANTHROPIC: _Rules(
        read=_item, refused=refused_anthropic, speaker=speaker_anthropic, altered=altered_anthropic
    ),
    Format.GEMINI: _Rules(read=_item, refused=refused_gemini, speaker=speaker_gemini, altered=altered_gemini),
    Format.ULLAGE: _Rules(read=_neutral, refused=refused_neutral, speaker=speaker_neutral, altered=altered_neutral),
}
