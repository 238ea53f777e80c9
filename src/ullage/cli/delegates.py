"""Whom can we delegate to, and what should the user know of it?

Looks at keys and policy; no provider is asked, since that would cost.
"""

from collections.abc import Mapping

from ullage.app.keys import is_on, key_variables, names_on, off
from ullage.config import ProviderSettings, Settings
from ullage.tool import Json

from .output import bold, dim, green
from .wording import how_many

__all__ = ["delegate_json", "delegate_lines"]


def delegate_lines(settings: Settings, environment: Mapping[str, str]) -> list[str]:
    """Empty where nobody spoke of delegating."""
    if not settings.delegate.is_wanted:
        return []
    present, policy = names_on(settings, environment), settings.delegate.policy
    models = "models of our own choice" if policy is None else how_many(len(policy.models), "model")
    head = f"{green('well')}: {models}, asked of {', '.join(present)}" if present else "off: no model can be asked"
    sentences = [*off(settings, environment), *_to_set(settings, is_on=bool(present))]
    return [f"{bold('delegate')}  {head}", *(f"  {dim('note')}  {one}" for one in sentences)]


def _to_set(settings: Settings, *, is_on: bool) -> list[str]:
    """Without a policy any key will do; with one, `off` names those that it wants."""
    if is_on or settings.delegate.policy is not None:
        return []
    return [f"set {' or '.join(key_variables(settings))}, or write a policy: see docs/delegate.md"]


def delegate_json(settings: Settings, environment: Mapping[str, str]) -> dict[str, Json]:
    return {
        "wanted": settings.delegate.is_wanted,
        "models": [] if settings.delegate.policy is None else list(settings.delegate.policy.models),
        "providers": [_provider_json(one, environment) for one in settings.providers],
        "notes": list(off(settings, environment)),
    }


def _provider_json(provider: ProviderSettings, environment: Mapping[str, str]) -> dict[str, Json]:
    """Without its address, which may hold a secret."""
    return {
        "name": provider.name,
        "kind": provider.kind,
        "key_env": provider.key_env,
        "on": is_on(provider, environment),
        "from": provider.came_from,
    }
