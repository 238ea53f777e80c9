"""Chooses the rules that weigh a request.

The rule goes by the model, not by the format the request is written in: Claude behind an OpenAI-compatible address
is weighed as Claude. What the rules say is in one file a provider.
"""

from collections.abc import Mapping

from ullage.models import Match

from ..count import Rule
from .anthropic import weigh as weigh_anthropic
from .gemini import weigh as weigh_gemini
from .open_models import weigh as weigh_chat
from .openai import weigh as weigh_openai

__all__ = ["rule_of"]

_RULES: Mapping[str, Rule] = {"openai": weigh_openai, "anthropic": weigh_anthropic, "google": weigh_gemini}
_OPEN_FAMILIES = frozenset({"gpt-oss", "gemma"})
"""Open models of makers that have a rule of their own for the closed ones."""


def rule_of(match: Match) -> Rule:
    card = match.card
    return weigh_chat if card.family.startswith(tuple(_OPEN_FAMILIES)) else _RULES.get(card.provider, weigh_chat)
