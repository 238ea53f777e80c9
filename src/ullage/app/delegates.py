"""How is a delegate put together from settings?

Providers with their keys, the policy, the purse and those who are told of each run. Loads all that asking models needs,
so whoever may never ask imports it late.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import httpx2

from ullage.config import Flags, ProviderSettings, Settings, load
from ullage.delegate import (
    Alert,
    Anthropic,
    Ceiling,
    Ceilings,
    Delegate,
    Gemini,
    LocalPurse,
    ModelEntry,
    Observer,
    OpenAIChat,
    OpenAIResponses,
    Policy,
    Provider,
    Purse,
    Scope,
    StoredPurse,
    Telemetry,
    Timeouts,
    Unlimited,
    UsageExport,
    Wire,
)
from ullage.errors import BadConfiguration, InvalidArguments
from ullage.ledger import Recorder, Recording, Unrecorded
from ullage.store import Database

from .counting import meter
from .default_policy import MODELS, default_policy
from .keys import is_on, key_of, key_variables, names_on, reasons_off
from .ledgering import Ledgering
from .storing import open_store

__all__ = ["build", "open_delegate", "policy_shown", "purse_of", "rebuilt", "with_model"]

_log = logging.getLogger(__name__)

_WIRES: Mapping[str, Wire] = {
    "openai": OpenAIResponses(),
    "openai-chat": OpenAIChat(output_key="max_completion_tokens"),
    "anthropic": Anthropic(),
    "google": Gemini(),
    "compatible": OpenAIChat(),
}


def build(
    settings: Settings,
    environment: Mapping[str, str],
    *,
    client: httpx2.AsyncClient,
    purse: Purse | None = None,
    recorder: Recorder | None = None,
) -> Delegate:
    """Raises `BadConfiguration` where there is nobody to ask."""
    return Delegate(
        policy=_policy_of(settings, environment),
        models=meter().models,
        meter=meter(),
        providers=_providers_of(settings, environment),
        off=reasons_off(settings, environment),
        cut=settings.delegate.cut,
        client=client,
        purse=purse or Unlimited(),
        observers=tuple(_observers(settings, recorder or Unrecorded())),
    )


def rebuilt(delegate: Delegate, settings: Settings, environment: Mapping[str, str], recorder: Recorder) -> Delegate:
    """The same for other settings: who sits out, and who spoke which language, is not forgotten."""
    return replace(
        delegate,
        policy=_policy_of(settings, environment),
        providers=_providers_of(settings, environment),
        off=reasons_off(settings, environment),
        cut=settings.delegate.cut,
        observers=tuple(_observers(settings, recorder)),
    )


def _policy_of(settings: Settings, environment: Mapping[str, str]) -> Policy:
    if settings.delegate.policy is not None:
        return settings.delegate.policy
    present = names_on(settings, environment)
    if not present:
        raise BadConfiguration(
            "there is no model to ask: no provider has a key, and no policy names another",
            suggestion=f"set {' or '.join(key_variables(settings))}, or write a policy: see docs/delegate.md",
        )
    return default_policy(present)


def policy_shown(settings: Settings, environment: Mapping[str, str]) -> Policy:
    """The same for whoever asks nobody: without any key, what would hold if every maker's were there."""
    has_none = settings.delegate.policy is None and not names_on(settings, environment)
    return default_policy(tuple(MODELS)) if has_none else _policy_of(settings, environment)


def _providers_of(settings: Settings, environment: Mapping[str, str]) -> dict[str, Provider]:
    """Those that can be asked."""
    return {one.name: _provider(one, environment) for one in settings.providers if is_on(one, environment)}


def _provider(settings: ProviderSettings, environment: Mapping[str, str]) -> Provider:
    timing = settings.timing
    given = {"connect": timing.connect, "first_byte": timing.first_byte, "idle": timing.idle}
    return Provider(
        name=settings.name,
        wire=_WIRES[settings.kind],
        base_url=settings.base_url,
        key=key_of(settings, environment),
        headers=dict(settings.headers),
        timeouts=Timeouts(**{name: seconds for name, seconds in given.items() if seconds is not None}),
        host=settings.host,
    )


def _observers(settings: Settings, recorder: Recorder) -> list[Observer]:
    said = settings.delegate
    observers: list[Observer] = [
        Ledgering(recorder),
        Telemetry(level=said.log_level or "info", cost_alert=said.cost_alert),
    ]
    if said.usage_export is not None:
        observers.append(UsageExport(Path(said.usage_export).expanduser()))
    return observers


def purse_of(database: Database | None, settings: Callable[[], Settings]) -> Purse:
    """Budgets as the settings have them at each call."""
    if database is None:
        return LocalPurse(ceilings=lambda: _ceilings(settings()), alert=_alert)
    return StoredPurse(database=database, ceilings=lambda: _ceilings(settings()), alert=_alert)


def _ceilings(settings: Settings) -> Ceilings:
    said = settings.delegate
    by_scope: dict[Scope, Ceiling] = {
        scope: Ceiling(dollars=budget.dollars, tokens=budget.tokens) for scope, budget in said.budgets.items()
    }
    return Ceilings(by_scope=by_scope) if said.alerts is None else Ceilings(by_scope=by_scope, alert_at=said.alerts)


def _alert(alert: Alert) -> None:
    _log.warning("%s", alert.message)


def _keep_quiet(settings: Settings) -> None:
    """Lines for operators are for those who ask for them; without any handler Python would write them to standard
    error."""
    log = logging.getLogger("ullage.delegate")
    if settings.delegate.log_level is None and not log.handlers:
        log.addHandler(logging.NullHandler())


def _settings_of_folder(environment: Mapping[str, str]) -> Settings:
    loaded = load(Flags(), environment, Path.cwd())
    for issue in loaded.pending_issues:
        _log.warning("%s", issue.sentence())
    return loaded.settings


@asynccontextmanager
async def open_delegate(
    settings: Settings | None = None, *, environment: Mapping[str, str] = os.environ
) -> AsyncGenerator[Delegate]:
    """A delegate of one's own, without a gateway; by the settings of the working directory unless others are given.

    Raises `BadConfiguration` where there is nobody to ask. Budgets and the ledger are those of every other process.
    """
    chosen = _settings_of_folder(environment) if settings is None else settings
    _keep_quiet(chosen)
    loss = "budgets hold for this process alone"
    database, _ = await anyio.to_thread.run_sync(open_store, chosen.store, loss)
    recording = None if database is None else Recording(database)
    try:
        async with httpx2.AsyncClient() as client:
            purse = purse_of(database, lambda: chosen)
            yield build(chosen, environment, client=client, purse=purse, recorder=recording)
    finally:
        with anyio.CancelScope(shield=True):
            if recording is not None:
                await recording.close()
            if database is not None:
                database.close()


def with_model(delegate: Delegate, model: str) -> tuple[Delegate, ModelEntry]:
    """The delegate with a model among those it may ask, and the model's entry.

    `model` is an alias or id of the policy, or any model of a provider whose key is set.
    """
    policy = delegate.policy
    named = policy.models.get(policy.aliases.get(model, model))
    found = named or next((one for one in policy.models.values() if one.model == model), None)
    if found is not None:
        return delegate, found
    entry = _entry_of(delegate, model)
    return replace(delegate, policy=replace(policy, models={**policy.models, entry.id: entry})), entry


def _entry_of(delegate: Delegate, model: str) -> ModelEntry:
    provider, joint, name = model.partition(":")
    if joint and provider in delegate.providers:
        return ModelEntry(id=model, provider=provider, model=name)
    match = delegate.models.get(model)
    if match is not None and match.card.provider in delegate.providers:
        return ModelEntry(id=f"{match.card.provider}:{model}", provider=match.card.provider, model=model)
    raise InvalidArguments(
        f"nobody can be asked for `{model}`",
        suggestion="name the provider too, as in `openai:gpt-4o`, and set its key",
        options=(*delegate.policy.aliases, *delegate.providers),
    )
