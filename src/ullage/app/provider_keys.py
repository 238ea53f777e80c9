"""API keys of model providers, from the environment.

Looks into the environment; nobody is asked. A key is never among what is said.
"""

from collections.abc import Mapping

from ullage.config import BUILT_IN, ProviderSettings, Settings

__all__ = ["is_on", "key_of", "key_variables", "names_on", "off", "reasons_off"]


def key_of(provider: ProviderSettings, environment: Mapping[str, str]) -> str | None:
    """None where it needs none, or has none."""
    return environment.get(provider.key_env or "", "").strip() or None


def is_on(provider: ProviderSettings, environment: Mapping[str, str]) -> bool:
    key = key_of(provider, environment)
    return provider.key_env is None or (key is not None and (key.isascii() and key.isprintable() and " " not in key))


def names_on(settings: Settings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The providers that can be asked for a model of the policy; without one, for a model of our own choice."""
    policy = settings.delegate.policy
    wanted = BUILT_IN.keys() if policy is None else {one.provider for one in policy.models.values()}
    return tuple(one.name for one in settings.providers if one.name in wanted and is_on(one, environment))


def off(settings: Settings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each provider that the policy means and that cannot be asked."""
    return tuple(f"provider `{name}` is off: {why}" for name, why in reasons_off(settings, environment).items())


def reasons_off(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Why each of those cannot be asked, by its name."""
    policy = settings.delegate.policy
    wanted = dict.fromkeys(one.provider for one in policy.models.values()) if policy else ()
    known = {one.name: one for one in settings.providers}
    said = [(name, _why(known.get(name), environment)) for name in wanted]
    return {name: why for name, why in said if why is not None}


def key_variables(settings: Settings) -> tuple[str, ...]:
    """Those of which one has to be set for a model of our own choice."""
    return tuple(one.key_env for one in settings.providers if one.name in BUILT_IN and one.key_env)


def _why(provider: ProviderSettings | None, environment: Mapping[str, str]) -> str | None:
    if provider is None:
        return "the policy names it, and it is not configured"
    if is_on(provider, environment):
        return None
    if key_of(provider, environment) is None:
        return f"`{provider.key_env}` is not set"
    return f"what `{provider.key_env}` holds is no key"
