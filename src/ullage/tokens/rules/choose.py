"""Whose rule weighs this request, and what does it weigh?

The rule goes by the model, not by the format the request is written in: Claude behind an OpenAI-compatible address is
weighed as Claude. What the rules say is in one file a provider.
"""

from collections.abc import Iterator, Mapping

from ullage.messages import Message, Part, Request, Text, Thinking, ToolCall, ToolResult
from ullage.models import Match

from ..weight import Rule
from . import anthropic, chat, gemini, openai

__all__ = ["rule_of", "texts_of"]

_RULES: Mapping[str, Rule] = {"openai": openai.weigh, "anthropic": anthropic.weigh, "google": gemini.weigh}
_OPEN_FAMILIES = frozenset({"gpt-oss", "gemma"})
"""Open models of makers that have a rule of their own for the closed ones."""


def rule_of(match: Match) -> Rule:
    card = match.card
    return chat.weigh if card.family.startswith(tuple(_OPEN_FAMILIES)) else _RULES.get(card.provider, chat.weigh)


def texts_of(request: Request) -> Iterator[str]:
    """Every text that someone wrote into the request; what may be long, in short."""
    for message in (*request.system, *request.messages):
        yield from _texts_in(message)


def _texts_in(holder: Message | ToolResult) -> Iterator[str]:
    for part in holder.parts:
        yield from _texts_in(part) if isinstance(part, ToolResult) else _text_in(part)


def _text_in(part: Part) -> Iterator[str]:
    if isinstance(part, (Text, Thinking)):
        yield part.text
    elif isinstance(part, ToolCall):
        yield part.arguments
