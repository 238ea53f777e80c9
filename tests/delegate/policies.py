"""The policy of the tests: the aliases, buckets and prices that the contracts speak of."""

from typing import Any

from ullage.delegate import Policy, read_policy

__all__ = ["MODELS", "POLICIES", "policy"]


def _model(name: str, output: int, temperature: float, cap: int, price: tuple[float, float]) -> dict[str, Any]:
    provider, _, model = name.partition(":")
    return {
        "provider": provider,
        "model": model,
        "max_output_tokens": output,
        "temperature": temperature,
        "cap": {"default": cap, "hard": output},
        "pricing": {"currency": "USD", "input": price[0], "output": price[1]},
    }


MODELS: dict[str, Any] = {
    "aliases": {
        "chat-default": "openai:gpt-4o-mini",
        "chat-premium": "openai:gpt-4o",
        "reasoning": "anthropic:claude-3-5-sonnet",
        "long-context": "google:gemini-1.5-pro",
    },
    "models": {
        "openai:gpt-4o-mini": _model("openai:gpt-4o-mini", 4096, 0.7, 2048, (0.000003, 0.000009)),
        "openai:gpt-4o": _model("openai:gpt-4o", 4096, 0.65, 3072, (0.00001, 0.00003)),
        "anthropic:claude-3-5-sonnet": _model("anthropic:claude-3-5-sonnet", 4096, 0.6, 2048, (0.000008, 0.000024)),
        "google:gemini-1.5-pro": _model("google:gemini-1.5-pro", 8192, 0.7, 4096, (0.0000075, 0.0000225)),
    },
}
POLICIES: dict[str, Any] = {
    "routing": {
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
        "fallbacks": {
            "chat-default": ["chat-premium", "long-context"],
            "chat-premium": ["chat-default", "long-context"],
            "reasoning": ["chat-premium"],
            "long-context": ["chat-premium"],
        },
    },
    "caps": {"default": 2048, "tiers": {"trial": 1024, "pro": 3072, "enterprise": 4096}},
    "temperatures": {"default": 0.7, "code": 0.25, "creative": 0.9},
}


def policy() -> Policy:
    read, faults = read_policy(MODELS, POLICIES)
    assert faults == ()
    return read
