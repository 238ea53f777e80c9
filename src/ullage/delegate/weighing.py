"""What of an ask is weighed, and for which model?

Before anyone is chosen: for the model that would be asked first if the prompt were short. Weighs nothing.
"""

from ullage.messages import Format, Request
from ullage.models import ModelTable

from .ask import Ask
from .policy import Policy

__all__ = ["counted_as", "to_be_weighed"]

_COUNTED_AS = "gpt-4o"
"""Whose tokens are counted for a model that nobody knows."""


def to_be_weighed(ask: Ask, policy: Policy, models: ModelTable) -> tuple[Request, str]:
    named = policy.aliases.get(ask.force_model or policy.default_alias or "")
    entry = policy.models.get(named or ask.force_model or "")
    request = Request(format=Format.OPENAI_CHAT, model=None, messages=ask.messages, tools=ask.tools)
    return request, counted_as(None if entry is None else entry.model, models)


def counted_as(model: str | None, models: ModelTable) -> str:
    return _COUNTED_AS if model is None or models.get(model) is None else model
