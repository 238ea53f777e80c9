"""Which of several places decides about delegating, and what may a project say of it?

A policy and a provider are each taken whole from the highest place that has one, budgets key by key. A project's file
changes no provider of the user's, sends none of the user's variables anywhere unless the user's own file names them,
and lifts no budget: not by a larger one, nor by prices that make calls look cheap.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from .delegating import BUILT_IN, Budget, DelegateSettings, ProviderSettings, Scope
from .issue import Issue
from .layer import Layer
from .policies import judged

if TYPE_CHECKING:
    from ullage.delegate import Policy

__all__ = ["combined_delegation", "combined_providers"]


def combined_delegation(
    layers: Sequence[Layer], values: Mapping[str, Any], why: dict[str, str], today: date
) -> tuple[DelegateSettings, tuple[Issue, ...]]:
    policy, issues = _policy(layers, why, today)
    said = DelegateSettings(
        is_wanted=policy is not None or any(layer.delegation.is_mentioned for layer in layers),
        policy=policy,
        warnings=tuple(issue.sentence() for issue in issues if issue.severity == "note"),
        budgets=_budgets(layers),
        cut=next((layer.values["delegate.cut"] for layer in layers if "delegate.cut" in layer.values), False),
        alerts=_alerts(layers),
        file_roots=values.get("delegate.file_roots", ()),
        log_level=values.get("delegate.log_level"),
        cost_alert=values.get("delegate.cost_alert"),
        usage_export=values.get("delegate.usage_export"),
    )
    return said, issues


def _policy(layers: Sequence[Layer], why: dict[str, str], today: date) -> "tuple[Policy | None, tuple[Issue, ...]]":
    for layer in layers:
        documents = layer.delegation.policy
        if documents is not None:
            why["delegate.policy"] = layer.source
            policy, issues = judged(documents, layer.source, today)
            if layer.is_project and any(_has_money(other) for other in layers if other.is_users):
                return _unpriced(policy), (*issues, *_price_notes(policy, layer))
            return policy, issues
    return None, ()


def _has_money(layer: Layer) -> bool:
    return any(budget.dollars is not None for budget in layer.delegation.budgets.values())


def _unpriced(policy: "Policy") -> "Policy":
    return replace(policy, models={name: replace(one, price=None) for name, one in policy.models.items()})


def _price_notes(policy: "Policy", layer: Layer) -> Iterator[Issue]:
    if any(one.price is not None for one in policy.models.values()):
        said = "the prices of this policy came with the project and are not used: you have budgets in dollars"
        hint = "to have them used, write the policy into your own ullage.toml"
        yield Issue(severity="note", message=said, file=layer.source, key="delegate.models", suggestion=hint)


def _budgets(layers: Sequence[Layer]) -> dict[Scope, Budget]:
    """The user's, made smaller where a project says so."""
    found = dict[Scope, Budget]()
    for layer in reversed(layers):
        for scope, budget in layer.delegation.budgets.items():
            known = found.get(scope, Budget())
            found[scope] = _least(known, budget) if layer.is_project else _first(budget, known)
    return found


def _first(above: Budget, below: Budget) -> Budget:
    return Budget(
        dollars=below.dollars if above.dollars is None else above.dollars,
        tokens=below.tokens if above.tokens is None else above.tokens,
    )


def _least(one: Budget, other: Budget) -> Budget:
    dollars = [budget.dollars for budget in (one, other) if budget.dollars is not None]
    tokens = [budget.tokens for budget in (one, other) if budget.tokens is not None]
    return Budget(dollars=min(dollars, default=None), tokens=min(tokens, default=None))


def _alerts(layers: Sequence[Layer]) -> Any:  # noqa: ANN401 - as its kind reads it
    """The user's, to which a project adds; else the project's."""
    said = [
        (layer.is_project, layer.values["delegate.alerts"]) for layer in layers if "delegate.alerts" in layer.values
    ]
    projects = [alerts for is_project, alerts in said if is_project]
    users = next((alerts for is_project, alerts in said if not is_project), ())
    return tuple(sorted({part for alerts in (*projects, users) for part in alerts})) or None


def combined_providers(
    layers: Sequence[Layer], why: dict[str, str]
) -> tuple[tuple[ProviderSettings, ...], tuple[Issue, ...]]:
    """Those of every layer and those that are there without one, each as a whole from the highest that may have it."""
    found, issues = dict[str, ProviderSettings | None](), list[Issue]()
    for layer in reversed(layers):
        for name, provider in layer.delegation.providers.items():
            fault = _fault(name, provider, layers) if layer.is_project else None
            if fault is not None:
                issues.append(_left_out(name, layer, *fault))
            else:
                found[name], why[f"providers.{name}"] = provider, layer.source
    present = {**BUILT_IN, **found}
    return tuple(one for one in present.values() if one is not None), tuple(issues)


def _fault(name: str, provider: ProviderSettings | None, layers: Sequence[Layer]) -> tuple[str, str] | None:
    """Why one that came with a project may not be used."""
    if name in BUILT_IN or any(name in layer.delegation.providers for layer in layers if layer.is_users):
        return "a project's file does not change a provider of yours", "give it another name, or write it in your own"
    allowed = {one for layer in layers if layer.is_users for one in layer.values.get("delegate.project_keys", ())}
    asked = frozenset[str]() if provider is None else provider.variables - allowed
    if not asked:
        return None
    names = ", ".join(f"`{one}`" for one in sorted(asked))
    return f"a project's file may not send {names} anywhere", "name them under `project_keys` in your own ullage.toml"


def _left_out(name: str, layer: Layer, why: str, hint: str) -> Issue:
    issue = Issue(severity="problem", message="", file=layer.source, key=f"providers.{name}", suggestion=hint)
    return replace(issue, message=f"provider `{name}` is left out: {why}")
