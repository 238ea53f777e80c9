"""Builds the delegate from the settings: providers with their keys, policy, budgets, recorders and telemetry.

This module imports everything that is needed to call models, so it is imported late, where calls are possible.

The default policy uses current models of the providers whose keys are set: a small model for most prompts, a better
one for the rest, and the same pair of the other providers as fallbacks. The rules are those of the contracts:
Portuguese and longer prompts go to the better model.

The ledger gets one entry for each attempt, since each attempt may use another model. An entry has the attempt's tokens
and cost, never the prompt or the answer.

Delegated calls can read files from the user's folders, and earlier answers from the vault.

`DelegateSummarizer` calls a model of the user's settings. A summary is requested like any other delegated call, with
the same budgets, fallbacks and ledger entries. The context writes the prompt and decides whether the summary is
acceptable.
"""

import json
import logging
import os
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import httpx2

from ullage.config import (
    Flags,
    ProviderSettings,
    Settings,
    is_provider_on,
    key_variables,
    load,
    provider_key,
    providers_on,
    why_providers_off,
)
from ullage.context import SummaryAnswer, SummaryRequest
from ullage.delegate import (
    Alert,
    Anthropic,
    Ask,
    Attempt,
    Candidate,
    Ceiling,
    Ceilings,
    Conversation,
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
    RouteRequest,
    RunRecord,
    Scope,
    StoredPurse,
    Telemetry,
    Timeouts,
    Unlimited,
    UsageExport,
    Wire,
    read_policy,
    route,
)
from ullage.errors import BadConfiguration, InvalidArguments, UnknownHandle
from ullage.gateway import Vault
from ullage.ledger import KEEP_DAYS, AuditEvent, Entry, ModelUse, Recorder, Recording, Unrecorded
from ullage.messages import Format, Media, Message, Text, read_message, write_messages
from ullage.store import Database
from ullage.tokens import Method, patiently, unheard
from ullage.tool import ANONYMOUS, Caller, Json

from .count_text import meter
from .open_store import open_store

if TYPE_CHECKING:
    from ullage.retrieve import FileRoots

__all__ = [
    "MODELS",
    "DelegateSummarizer",
    "FilesOfRoots",
    "KeptAnswers",
    "Ledgering",
    "NamedSummarizer",
    "build",
    "default_policy",
    "open_delegate",
    "policy_shown",
    "purse_of",
    "rebuild_delegate",
    "with_model",
]

MODELS = {
    "openai": ("gpt-6-luna", "gpt-6.1-sol"),
    "anthropic": ("claude-haiku-5-5", "claude-sonnet-5-5"),
    "google": ("gemini-3.8-flash", "gemini-4-argon"),
}
"""By provider: the small model and the better one."""
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
"""Limits on output tokens; reasoning tokens count towards them."""
_TEMPERATURES: dict[str, Json] = {"default": 0.7, "code": 0.25, "creative": 0.9}


def default_policy(providers: Sequence[str]) -> Policy:
    """Return the default policy for these providers, at least one of which must be in `MODELS`."""
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
    models: dict[str, Json] = {}
    for identity in (*small, *better):
        provider, model = identity.split(":")
        models[identity] = {"provider": provider, "model": model}
    policy, _ = read_policy(
        {"aliases": aliases, "models": models},
        {"routing": {**_ROUTING, "fallbacks": fallbacks}, "caps": _CAPS, "temperatures": _TEMPERATURES},
    )
    return policy


@dataclass(frozen=True, slots=True)
class Ledgering:
    recorder: Recorder

    def record_run(self, run_record: RunRecord) -> None:
        for attempt in run_record.attempts:
            self.recorder.record(_ledgering_entry(run_record, attempt))
        if run_record.outcome is not None:
            answered = run_record.attempts[-1]
            # Of several attempts with one model, the last.
            failed = {(one.provider, one.model): one for one in run_record.attempts if not one.success}
            failed.pop((answered.provider, answered.model), None)
            for attempt in failed.values():
                caller, status = run_record.caller, "" if attempt.status is None else f" (HTTP {attempt.status})"
                fallback = AuditEvent(
                    time=run_record.time,
                    kind="fallback",
                    principal=caller.principal,
                    session=caller.session,
                    client=caller.client,
                    server=attempt.provider,
                    subject=attempt.model,
                    reason=f"{attempt.kind}{status}; answered by {answered.provider}:{answered.model}",
                )
                self.recorder.audit(fallback)


def _ledgering_entry(run_record: RunRecord, attempt: Attempt) -> Entry:
    caller, usage, cost = run_record.caller, attempt.usage, attempt.cost
    total = None if cost is None else cost.total
    return Entry(
        time=run_record.time,
        kind="model",
        principal=caller.principal,
        session=caller.session,
        session_inferred=caller.session_inferred,
        client=caller.client,
        server=attempt.provider,
        tool=None if (run_record.tool or run_record.task) is None else f"delegate.{run_record.tool or run_record.task}",
        model=attempt.model,
        tokens=(usage.input or 0) + (usage.output or 0),
        method=Method.ANCHORED if attempt.usage_reported else Method.ESTIMATED,
        milliseconds=attempt.milliseconds,
        is_error=not attempt.success,
        use=ModelUse(
            usage=usage,
            dollars=total if cost is not None and cost.currency == "USD" else None,
            key=uuid.uuid4().hex,
        ),
        detail={
            "alias": attempt.alias,
            "currency": None if cost is None else cost.currency,
            "cost": None if total is None else f"{total:f}",
            "price_source": None if cost is None else cost.source,
            "kind": attempt.kind,
        },
    )


_TOOL = "delegate.answer"


@dataclass(frozen=True, slots=True)
class FilesOfRoots:
    """Reads files of the allowed folders, off the event loop."""

    roots: "FileRoots"

    async def texts(self, paths: tuple[str, ...]) -> dict[str, str]:
        return await anyio.to_thread.run_sync(self.roots.texts, paths)

    async def images(self, names: tuple[str, ...]) -> tuple[Media, ...]:
        found = await anyio.to_thread.run_sync(self.roots.images, names)
        return tuple(Media(kind="image", media_type=one.media_type, data=one.data) for one in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswers:
    """Answers stored in the vault.

    They count towards the vault's limits, are readable only by the principal who received them, and survive a restart.
    """

    vault: Vault

    async def keep(self, conversation: Conversation, caller: Caller) -> str | None:
        messages = write_messages(conversation.messages, Format.ULLAGE)
        text = json.dumps({"model": conversation.model, "messages": messages}, ensure_ascii=False)
        kept = partial(self.vault.keep_text, text, principal=caller.principal, server="delegate", tool=_TOOL)
        return await self.vault.aside(kept)

    async def open(self, handle: str, caller: Caller) -> Conversation:
        def read() -> str:
            opened = self.vault.open(handle, caller.principal)
            if opened.header.tool != _TOOL:
                raise UnknownHandle(
                    f"`{handle[:40]}` is a result, and no answer that could be continued",
                    suggestion="give it under `context` instead",
                )
            return "".join(opened.text(shape) for shape in opened.shapes)

        said: dict[str, Any] = json.loads(await self.vault.aside(read))
        messages = tuple(read_message(one, Format.ULLAGE) for one in said["messages"])
        return Conversation(model=said["model"], messages=messages)


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
    """Build a delegate from the settings.

    Raises:
        BadConfiguration: No provider can be called.
    """
    return Delegate(
        policy=_policy_of(settings, environment),
        models=meter().models,
        meter=meter(),
        providers=_providers_of(settings, environment),
        off=why_providers_off(settings, environment),
        cut=settings.delegate.cut,
        client=client,
        purse=purse or Unlimited(),
        observers=tuple(_observers(settings, recorder or Unrecorded())),
    )


def rebuild_delegate(
    delegate: Delegate, settings: Settings, environment: Mapping[str, str], recorder: Recorder
) -> Delegate:
    """Build a delegate for changed settings; it keeps the providers' cooldowns and known API dialects."""
    return replace(
        delegate,
        policy=_policy_of(settings, environment),
        providers=_providers_of(settings, environment),
        off=why_providers_off(settings, environment),
        cut=settings.delegate.cut,
        observers=tuple(_observers(settings, recorder)),
    )


def _policy_of(settings: Settings, environment: Mapping[str, str]) -> Policy:
    if settings.delegate.policy is not None:
        return settings.delegate.policy
    present = providers_on(settings, environment)
    if not present:
        raise BadConfiguration(
            "no model is available: no provider has a key, and no policy names another model",
            suggestion=f"set {' or '.join(key_variables(settings))}, or write a policy: see docs/delegate.md",
        )
    return default_policy(present)


def policy_shown(settings: Settings, environment: Mapping[str, str]) -> Policy:
    """Return the policy for display; with no key set, the policy that would apply if every provider's key were."""
    has_none = settings.delegate.policy is None and not providers_on(settings, environment)
    return default_policy(tuple(MODELS)) if has_none else _policy_of(settings, environment)


def _providers_of(settings: Settings, environment: Mapping[str, str]) -> dict[str, Provider]:
    """Return the providers that can be called."""
    return {one.name: _provider(one, environment) for one in settings.providers if is_provider_on(one, environment)}


def _provider(settings: ProviderSettings, environment: Mapping[str, str]) -> Provider:
    timing = settings.timing
    given = {"connect": timing.connect, "first_byte": timing.first_byte, "idle": timing.idle}
    return Provider(
        name=settings.name,
        wire=_WIRES[settings.kind],
        base_url=settings.base_url,
        key=provider_key(settings, environment),
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
    """Return a purse that reads the budgets from the settings at each call."""
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


@asynccontextmanager
async def open_delegate(
    settings: Settings | None = None, *, environment: Mapping[str, str] = os.environ
) -> AsyncGenerator[Delegate]:
    """Open a delegate without a gateway, from the given settings or those of the working directory.

    Budgets and the ledger are shared with all other processes.

    Raises:
        BadConfiguration: No provider can be called.
    """
    async with open_delegate_and_ledger(settings, environment=environment) as (delegate, _):
        yield delegate


@asynccontextmanager
async def open_delegate_and_ledger(
    settings: Settings | None = None, *, environment: Mapping[str, str] = os.environ
) -> AsyncGenerator[tuple[Delegate, Recorder]]:
    """Open a delegate like `open_delegate`, with the ledger that its model calls are recorded in."""
    if settings is None:
        loaded = load(Flags(), environment, Path.cwd())
        for issue in loaded.pending_issues:
            _log.warning("%s", issue.sentence())
        chosen = loaded.settings
    else:
        chosen = settings
    # Operator log lines are opt-in. Without any handler Python would write them to standard
    # error.
    log = logging.getLogger("ullage.delegate")
    if chosen.delegate.log_level is None and not log.handlers:
        log.addHandler(logging.NullHandler())
    loss = "budgets hold for this process alone"
    database, _ = await anyio.to_thread.run_sync(open_store, chosen.store, loss)
    recording = None if database is None else Recording(database, keep_days=KEEP_DAYS)
    try:
        async with httpx2.AsyncClient() as client:
            purse = purse_of(database, lambda: chosen)
            built = build(chosen, environment, client=client, purse=purse, recorder=recording)
            yield built, recording or Unrecorded()
    finally:
        with anyio.CancelScope(shield=True):
            if recording is not None:
                await recording.close()
            if database is not None:
                database.close()


def with_model(delegate: Delegate, model: str) -> tuple[Delegate, ModelEntry]:
    """Return the delegate with a model added to its policy, and the model's entry.

    `model` is an alias or id of the policy, or any model of a provider whose key is set.
    """
    policy = delegate.policy
    named = policy.models.get(policy.aliases.get(model, model))
    found = named or next((one for one in policy.models.values() if one.model == model), None)
    if found is not None:
        return delegate, found
    provider, joint, name = model.partition(":")
    if joint and provider in delegate.providers:
        entry = ModelEntry(id=model, provider=provider, model=name)
    else:
        match = delegate.models.get(model)
        if match is not None and match.card.provider in delegate.providers:
            entry = ModelEntry(id=f"{match.card.provider}:{model}", provider=match.card.provider, model=model)
        else:
            raise InvalidArguments(
                f"nobody can be asked for `{model}`",
                suggestion="name the provider too, as in `openai:gpt-4o`, and set its key",
                options=(*delegate.policy.aliases, *delegate.providers),
            )
    return replace(delegate, policy=replace(policy, models={**policy.models, entry.id: entry})), entry


@dataclass(frozen=True, slots=True)
class NamedSummarizer:
    """A summarizer for a model's name.

    The settings of the working directory, with their keys and budgets, are read for each summary: compactions are rare,
    and nothing stays open between them.
    """

    model: str
    """An alias or id of the policy, or any model of a provider whose key is set, as `openai:gpt-4o` or `gpt-4o`."""
    caller: Caller = ANONYMOUS

    @property
    def window(self) -> int | None:
        window = meter().models.window(self.model.rpartition(":")[2])
        return window.tokens if window.resolved else None

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        async with open_delegate() as opened:
            delegate, entry = with_model(opened, self.model)
            return await DelegateSummarizer(delegate=delegate, model=entry.id, caller=self.caller).summarize(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateSummarizer:
    delegate: Delegate
    model: str | None = None
    """An alias or a model's id; None for the policy's default."""
    caller: Caller = ANONYMOUS

    @property
    def window(self) -> int | None:
        """Context window in tokens of the model that is called first."""
        return self._first.window

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        outcome = await self.delegate.run(
            Ask(
                messages=(
                    Message(role="system", parts=(Text(request.instructions),)),
                    Message(role="user", parts=(Text(request.text),)),
                ),
                force_model=self.model,
                max_output_tokens=request.max_tokens,
                caller=self.caller,
                tool="summary",
                prompt_tokens=await self._weigh(request),
            )
        )
        cost = outcome.cost
        dollars = None if cost is None or cost.total is None or cost.currency != "USD" else str(cost.total)
        return SummaryAnswer(
            text=outcome.completion.text,
            complete=outcome.completion.finish != "length",
            refused=outcome.completion.finish == "refusal",
            cost=dollars,
        )

    @property
    def _first(self) -> Candidate:
        asked = RouteRequest(prompt_tokens=0, force_model=self.model)
        return route(asked, self.delegate.policy, self.delegate.models).candidates[0]

    async def _weigh(self, request: SummaryRequest) -> int:
        """Return the middle of the request's token band: the caller has left room in the window for the rest of the
        band."""
        meter, model = self.delegate.meter, self._first.entry.model
        name = model if meter.models.get(model) is not None else unheard(model)
        texts = [await patiently(meter.steps(text, name)) for text in (request.instructions, request.text)]
        return sum(count.tokens for count in texts)
