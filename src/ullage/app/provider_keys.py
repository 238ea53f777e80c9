"""API keys of model providers, from the environment.

No provider is contacted, and no message contains a key.
"""

from collections.abc import Mapping

from ullage.config import BUILT_IN, ProviderSettings, Settings

__all__ = ["is_on", "key_of", "key_variables", "names_on", "off", "reasons_off"]


def key_of(provider: ProviderSettings, environment: Mapping[str, str]) -> str | None:
    """Return the provider's key; None where it needs none, or has none."""
    return environment.get(provider.key_env or "", "").strip() or None


def is_on(provider: ProviderSettings, environment: Mapping[str, str]) -> bool:
    key = key_of(provider, environment)
    return provider.key_env is None or (key is not None and (key.isascii() and key.isprintable() and " " not in key))


def names_on(settings: Settings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the providers that can be called for a model of the policy; without a policy, for the default models."""
    policy = settings.delegate.policy
    wanted = BUILT_IN.keys() if policy is None else {one.provider for one in policy.models.values()}
    return tuple(one.name for one in settings.providers if one.name in wanted and is_on(one, environment))


def off(settings: Settings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each provider that the policy uses and that cannot be called."""
    return tuple(f"provider `{name}` is off: {why}" for name, why in reasons_off(settings, environment).items())


def reasons_off(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return by provider why it cannot be called."""
    policy = settings.delegate.policy
    wanted = dict.fromkeys(one.provider for one in policy.models.values()) if policy else ()
    known = {one.name: one for one in settings.providers}
    said = [(name, _why(known.get(name), environment)) for name in wanted]
    return {name: why for name, why in said if why is not None}


def key_variables(settings: Settings) -> tuple[str, ...]:
    """Return the variables of which one must be set for the default models."""
    return tuple(one.key_env for one in settings.providers if one.name in BUILT_IN and one.key_env)


def _why(provider: ProviderSettings | None, environment: Mapping[str, str]) -> str | None:
    if provider is None:
        return "the policy names it, and it is not configured"
    if is_on(provider, environment):
        return None
    if key_of(provider, environment) is None:
        return f"`{provider.key_env}` is not set"
    return f"what `{provider.key_env}` holds is no key"
