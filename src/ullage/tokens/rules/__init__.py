"""Token counts of whole requests, a module for each provider.

The rule depends on the model, not on the format of the request: Claude behind an OpenAI-compatible API is weighed as
Claude.
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
"""Open models of makers whose closed models have a rule of their own."""


def rule_of(match: Match) -> Rule:
    card = match.card
    return weigh_chat if card.family.startswith(tuple(_OPEN_FAMILIES)) else _RULES.get(card.provider, weigh_chat)
