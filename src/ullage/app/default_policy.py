"""Who answers where the user has a key and no policy?

Present models of the makers whose keys are there: a small one for most prompts, a better one for the rest, and the same
of the other makers as fallbacks. The rules are those of the contracts: Portuguese goes to the better one, and so do
longer prompts.
"""

from collections.abc import Sequence

from ullage.delegate import Policy, read_policy
from ullage.tool import Json

__all__ = ["MODELS", "default_policy"]

MODELS = {
    "openai": ("gpt-6-luna", "gpt-6.1-sol"),
    "anthropic": ("claude-haiku-5-5", "claude-sonnet-5-5"),
    "google": ("gemini-3.8-flash", "gemini-4-argon"),
}
"""By provider, the small one and the better one."""
_ROUTING: dict[str, Json] = {
    "defaultAlias": "chat-default",
    "languageHeuristics": {
        "pt": {"alias": "chat-premium", "temperature": 0.6},
        "en": {"alias": "chat-default", "temperature": 0.7},
        "es": {"temperature": 0.65},
    },
    "tokenBuckets": [
        {"maxPromptTokens": 1200, "alias": "chat-default"},
        {"maxPromptTokens": 2800, "alias": "chat-premium"},
        {"alias": "long-context"},
    ],
}
_CAPS: dict[str, Json] = {"default": 8192, "tiers": {"trial": 1024, "pro": 8192, "enterprise": 32_768}}
"""Of tokens that a model thinks in as well."""
_TEMPERATURES: dict[str, Json] = {"default": 0.7, "code": 0.25, "creative": 0.9}


def default_policy(providers: Sequence[str]) -> Policy:
    """For these providers, of which one at least is in `MODELS`."""
    present = [name for name in MODELS if name in providers]
    small, better = ([f"{name}:{MODELS[name][place]}" for name in present] for place in (0, 1))
    aliases: dict[str, Json] = {
        "chat-default": small[0],
        "chat-premium": better[0],
        "reasoning": better[0],
        "long-context": better[-1],
    }
    fallbacks: dict[str, Json] = {
        "chat-default": [*small[1:], better[0]],
        "chat-premium": [*better[1:], small[0]],
        "reasoning": [*better[1:]],
        "long-context": [*better[:-1]],
    }
    policy, _ = read_policy(
        {"aliases": aliases, "models": {one: _entry(one) for one in (*small, *better)}},
        {"routing": {**_ROUTING, "fallbacks": fallbacks}, "caps": _CAPS, "temperatures": _TEMPERATURES},
    )
    return policy


def _entry(identity: str) -> Json:
    provider, model = identity.split(":")
    return {"provider": provider, "model": model}
