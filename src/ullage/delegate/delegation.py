"""`Delegate`: routes a request, tries the candidates in turn and reports the outcome.

`router` chooses the candidates, `attempt` sends one request, `retry` decides what follows a failure, and `spend_limits`
reserves and settles the cost.

`Ask` is the caller's request; `outgoing` turns it into the request for one candidate. A `Course` is the state of a run
in progress, a `Trial` that of one attempt; `Outcome` is the result.

`report` and `report_failure` write the metadata of a delegation (decision, parameters, rationale, usage, cost and
attempts) as JSON under one key of the reply's `_meta`, for failed replies too. It is for the client, never for the
model, and contains no response body of a provider.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import httpx2

from ullage.errors import UllageError
from ullage.messages import Format, Media, Message, Request, Thinking, ToolDefinition, join_texts
from ullage.models import Cost, ModelTable, Usage
from ullage.tool import ANONYMOUS, Caller, Json, JsonObject
from ullage.tracing import child_span

from .attempt import Hear, attempt
from .model_call import Attempt, Completion, Event, Observer, Outcome, Outgoing, Provider, ProviderFailed, RunRecord
from .policy import Policy
from .retry_fallback import ModelCooldowns, Patience, decide_next_step, unanswered_error
from .router import (
    Candidate,
    Route,
    RouteRequest,
    TooLong,
    detect_language,
    route,
    shorten_last_message,
    without,
)
from .spend_limits import (
    NOTHING,
    Payment,
    Purse,
    Unlimited,
    complete_usage,
    drop_impossible_usage,
    largest_spend,
    price_attempt,
    sum_spend,
    together,
    use_reported_cost,
)

if TYPE_CHECKING:
    from ullage.tokens import Meter

__all__ = [
    "DELEGATE",
    "Ask",
    "Course",
    "Delegate",
    "Trial",
    "cost_json",
    "counted_as",
    "has_images",
    "last_words",
    "most_output",
    "outgoing",
    "report",
    "report_failure",
    "usage_json",
    "weighing_arguments",
]

_OUTPUT = 4_096
"""Output tokens an answer may have where nothing else limits it; the same number is reserved in the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request to delegate: the messages, and how to choose and limit the model that answers them."""

    messages: tuple[Message, ...]
    force_model: str | None = None
    language: str | None = None
    tier: str | None = None
    domain: str = "default"
    temperature: float | None = None
    max_output_tokens: int | None = None
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Json = None
    output_schema: JsonObject | None = None
    caller: Caller = ANONYMOUS
    task: str | None = None
    """The caller's name for its task: a label in usage figures and a scope of budgets."""
    tool: str | None = None
    """The tool or command that sent the request (`run`, `diff`, `summary`): a label in usage figures."""
    deadline: float | None = None
    """Time on the event loop's clock; None for `Delegate.longest` from now."""
    cut: bool = False
    """Whether a prompt too long for every context window may be shortened, even if `Delegate.cut` is false."""
    alone: bool = False
    """Whether to try only the first candidate, without fallbacks."""
    prompt_tokens: int | None = None
    """Tokens of the prompt, if the caller knows them from an earlier report of the provider; otherwise they are
    counted."""


def last_words(messages: tuple[Message, ...]) -> str:
    """Return the text of the last user message."""
    users = [message for message in messages if message.role == "user"]
    return join_texts(users[-1].parts) if users else ""


def has_images(messages: tuple[Message, ...]) -> bool:
    """Return whether any message contains an image."""
    return any(isinstance(part, Media) and part.kind == "image" for message in messages for part in message.parts)


def outgoing(candidate: Candidate, ask: Ask, *, is_open: bool = False) -> Outgoing:
    """Return the request for one candidate.

    Args:
        candidate: the model to ask.
        ask: the caller's request.
        is_open: send no encrypted reasoning and request none.
    """
    thinks = False if is_open else candidate.thinks
    return Outgoing(
        model=candidate.entry.model,
        messages=_remove_sealed_reasoning(ask.messages) if thinks is False else ask.messages,
        max_output_tokens=most_output(candidate),
        temperature=candidate.parameters.temperature,
        tools=ask.tools,
        tool_choice=ask.tool_choice,
        output_schema=ask.output_schema,
        thinks=thinks is True,
    )


def _remove_sealed_reasoning(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Remove reasoning that OpenAI's models encrypted, and messages that contain nothing else.

    Another account cannot decrypt it, and a model that does not reason refuses it.
    """
    opened = list[Message]()
    for message in messages:
        parts = tuple(
            part
            for part in message.parts
            if not isinstance(part, Thinking) or part.signature is None or part.sealed_as not in (None, "encrypted")
        )
        if parts or not message.parts:
            opened.append(replace(message, parts=parts))
    return tuple(opened)


def most_output(candidate: Candidate) -> int:
    """Return the output tokens a candidate may write."""
    return candidate.parameters.max_output_tokens or _OUTPUT


@dataclass(slots=True, kw_only=True)
class Course:
    """The state of a run in progress."""

    route: Route
    estimated: int
    """Estimated tokens of the prompt."""
    deadline: float
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    warnings: list[str] = field(default_factory=list[str])
    wait: float = 0.0
    """Seconds waited since the last attempt."""
    at_least: int = 0
    """The next candidate must have a context window larger than this, in tokens."""
    is_over: bool = False
    """Whether no further candidate may be tried."""

    @property
    def cost(self) -> Cost | None:
        """Cost of all attempts so far; None if one of them has no known price."""
        return together([one.cost for one in self.attempts])

    def take_wait(self) -> float:
        """Return the seconds waited since the last attempt, and reset them to zero."""
        waited, self.wait = self.wait, 0.0
        return waited

    def outcome(self, candidate: Candidate, completion: Completion) -> Outcome:
        """Return the outcome of a run whose last attempt answered."""
        last = self.attempts[-1]
        return Outcome(
            completion=completion,
            candidate=candidate,
            route=self.route,
            estimated_input=self.estimated,
            usage=last.usage,
            usage_reported=last.usage_reported,
            cost=self.cost,
            attempts=tuple(self.attempts),
            warnings=tuple(self.warnings),
        )


@dataclass(slots=True, kw_only=True)
class Trial:
    """One attempt in progress: its text so far, its usage and its start time."""

    candidate: Candidate
    hear: Hear
    waited: float
    so_far: Callable[[], Usage] = Usage
    """Returns the usage the provider has reported so far."""
    started: float = field(default_factory=time.perf_counter)
    _pieces: list[str] = field(default_factory=list[str])

    def heard(self, event: Event) -> None:
        """Record a piece of the answer and pass it to the listener."""
        self._pieces.append(event.text)
        self.hear(event)

    @property
    def text(self) -> str:
        """All text received so far, reasoning included."""
        return "".join(self._pieces)

    def ended(
        self, *, usage: Usage, reported: bool, cost: Cost | None, failed: ProviderFailed | None = None
    ) -> Attempt:
        """Return the record of the finished attempt."""
        entry = self.candidate.entry
        return Attempt(
            alias=self.candidate.alias,
            provider=entry.provider,
            model=entry.model,
            success=failed is None,
            milliseconds=round((time.perf_counter() - self.started) * 1000, 1),
            waited=round(self.waited * 1000, 1),
            kind=None if failed is None else failed.kind,
            error=None if failed is None else failed.message,
            status=None if failed is None else failed.status,
            usage=usage,
            usage_reported=reported,
            cost=cost,
        )


DELEGATE = "dev.ullage/delegate"


def report(outcome: Outcome) -> dict[str, Json]:
    """Return the metadata of a delegation that answered, as JSON."""
    candidate = outcome.candidate
    said: dict[str, Json] = {
        "decision": {
            "provider": candidate.entry.provider,
            "model": candidate.entry.model,
            "alias": candidate.alias,
        },
        "parameters": {
            "max_output_tokens": candidate.parameters.max_output_tokens,
            "temperature": candidate.parameters.temperature,
        },
        "rationale": list(outcome.route.rationale),
        "usage": {
            "estimated_input_tokens": outcome.estimated_input,
            **usage_json(outcome.usage),
            "reported": outcome.usage_reported,
        },
        "cost": cost_json(outcome.cost),
        "meta": {"fallback_used": outcome.fallback_used, "attempts": [_attempt(one) for one in outcome.attempts]},
        "finish": outcome.completion.finish,
    }
    if outcome.warnings:
        said["warnings"] = list(outcome.warnings)
    return said


def report_failure(runs: Sequence[RunRecord]) -> dict[str, Json]:
    """Return the metadata of a failed call: what was tried, and what it cost.

    Args:
        runs: the runs of the call, some of which may have answered; empty if no model was asked.
    """
    attempts = [attempt for one in runs for attempt in one.attempts]
    return {
        "decision": None,
        "rationale": [reason for one in runs for reason in one.route.rationale],
        "usage": {"estimated_input_tokens": sum(one.estimated_input for one in runs)},
        "cost": cost_json(together([one.cost for one in attempts]) if attempts else None),
        "meta": {
            "fallback_used": any(one.route.preferred for one in runs)
            or len({(one.provider, one.model) for one in attempts}) > 1,
            "attempts": [_attempt(one) for one in attempts],
        },
    }


def usage_json(usage: Usage) -> dict[str, Json]:
    """Return the tokens of a request as JSON; null for what the provider did not report."""
    total = None if usage.input is None or usage.output is None else usage.input + usage.output
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": total,
        "cached_input_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }


def cost_json(cost: Cost | None) -> Json:
    """Return a cost as JSON; null if the price is unknown."""
    if cost is None:
        return None
    return {
        "currency": cost.currency,
        "input": _money(cost.input),
        "output": _money(cost.output),
        "total": _money(cost.total),
        "price_source": cost.source,
        "as_of": None if cost.date is None else cost.date.isoformat(),
    }


def _money(amount: Decimal | None) -> float | None:
    """Return an amount as a float; no price has enough digits to be rounded by this."""
    return None if amount is None else float(amount)


def _attempt(one: Attempt) -> dict[str, Json]:
    said: dict[str, Json] = {
        "alias": one.alias,
        "provider": one.provider,
        "model": one.model,
        "success": one.success,
        "latency_ms": one.milliseconds,
    }
    if one.waited:
        said["waited_ms"] = one.waited
    if not one.success:
        said |= {"kind": one.kind, "status": one.status, "error": one.error}
        if one.usage.input or one.usage.output:
            said |= {"usage": usage_json(one.usage), "cost": cost_json(one.cost)}
    return said


_COUNTED_AS = "gpt-4o"
"""The model whose tokenizer counts for models that are not in the table."""


def weighing_arguments(ask: Ask, policy: Policy, models: ModelTable) -> tuple[Request, str]:
    """Return the request to count and the model to count it for, before a route is chosen.

    The model is the one the policy would ask first for a short prompt.
    """
    named = policy.aliases.get(ask.force_model or policy.default_alias or "")
    entry = policy.models.get(named or ask.force_model or "")
    request = Request(format=Format.OPENAI_CHAT, model=None, messages=ask.messages, tools=ask.tools)
    return request, counted_as(None if entry is None else entry.model, models)


def counted_as(model: str | None, models: ModelTable) -> str:
    """Return the model whose tokenizer counts for `model`."""
    return _COUNTED_AS if model is None or models.get(model) is None else model


_SESSIONS = 1_000
"""Sessions whose language is kept."""


_PROVIDER_NAMES = {"google": "gcp.gemini"}
"""Providers that OpenTelemetry's conventions know under another name."""


@dataclass(slots=True, kw_only=True)
class Delegate:
    """Delegates requests to models: routes, retries, falls back and accounts for the cost.

    One instance per process; many runs may be in progress at a time.

    Example:
        outcome = await delegate.run(Ask(messages=messages, tier="small"))
        print(join_texts(outcome.completion.message.parts))
    """

    policy: Policy
    models: ModelTable
    meter: "Meter"
    providers: Mapping[str, Provider]
    off: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why a provider is not available, by its name; never contains a key."""
    client: httpx2.AsyncClient
    purse: Purse = field(default_factory=Unlimited)
    observers: tuple[Observer, ...] = ()
    """Called with every run when it has ended."""
    patience: Patience = field(default_factory=Patience)
    cut: bool = False
    """Whether to shorten a prompt too long for every context window, with a warning, instead of refusing it."""
    longest: float = 300.0
    """Limit in seconds for all attempts of a run without a deadline; three times as long if the first model reasons."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    chance: Callable[[], float] = random.random
    cooldowns: ModelCooldowns = field(default_factory=lambda: ModelCooldowns(time.monotonic))
    _languages: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    async def plan(self, ask: Ask) -> tuple[Route, int]:
        """Return the route that `run` would take now and the tokens of the prompt, without calling a model.

        Raises:
            InvalidArguments: the model, tier or domain does not exist, or the prompt fits no context window.
        """
        estimated = ask.prompt_tokens
        if estimated is None:
            from ullage.tokens import patiently

            weighed = await patiently(self.meter.weigh_steps(*weighing_arguments(ask, self.policy, self.models)))
            estimated = weighed.total.high
        language, how = self._language(ask)
        found = route(
            RouteRequest(
                prompt_tokens=estimated,
                language=language,
                language_from=how,
                force_model=ask.force_model,
                tier=ask.tier,
                domain=ask.domain,
                temperature=ask.temperature,
                max_output_tokens=ask.max_output_tokens,
                has_images=has_images(ask.messages),
            ),
            self.policy,
            self.models,
        )
        if ask.alone:
            return replace(found, candidates=found.candidates[:1]), estimated
        return without(found, self.cooldowns.active()), estimated

    async def run(self, ask: Ask, hear: Hear = lambda _: None) -> Outcome:
        """Return the first complete answer.

        Args:
            ask: the request.
            hear: called with each piece of an answer as it arrives, also of attempts that fail later.

        Raises:
            ProviderFailed: no candidate answered; the error lists every attempt.
            OverBudget: a spending ceiling leaves too little for the request.
            InvalidArguments: the model, tier or domain does not exist, or the prompt fits no context window.
        """
        ask, cut, (found, estimated) = await self._fit_window(ask)
        longest = self.longest * (3 if found.candidates[0].thinks else 1)
        deadline = anyio.current_time() + longest if ask.deadline is None else ask.deadline
        course = Course(route=found, estimated=estimated, deadline=deadline, warnings=cut)
        # The estimate is the most that the most expensive candidate could cost.
        uses = [(one, _largest_usage(one, course.estimated)) for one in course.route.candidates]
        prices = [self._price(candidate, usage) for candidate, usage in uses]
        estimate = largest_spend([usage for _, usage in uses], prices)
        order = _Order(
            ask=ask, hear=hear, payment=Payment(purse=self.purse, estimate=estimate, caller=ask.caller, task=ask.task)
        )
        await order.payment.set_aside((), is_priced=self._is_priced(found.candidates[0], course))
        try:
            answered = await self._try_candidates(order, course)
            course.warnings += await order.payment.settle(course.attempts)
        except BaseException as failed:
            said = failed.message if isinstance(failed, UllageError) else "was given up"
            try:
                # After an internal error the amount spent is unknown, so the estimate remains booked.
                if isinstance(failed, UllageError) or not isinstance(failed, Exception):
                    await order.payment.settle(course.attempts)
            finally:
                self._report_run(order.ask, course, None, said)
            raise
        outcome = course.outcome(*answered)
        self._report_run(ask, course, outcome, None)
        return outcome

    async def _fit_window(self, ask: Ask) -> tuple[Ask, list[str], tuple[Route, int]]:
        """Return the request (shortened if allowed and necessary), warnings about that, and its plan."""
        try:
            return ask, [], await self.plan(ask)
        except TooLong as too_long:
            found = None
            if self.cut or ask.cut:
                room = too_long.room

                def fits(messages: tuple[Message, ...]) -> bool:
                    asked = weighing_arguments(replace(ask, messages=messages), self.policy, self.models)
                    return self.meter.weigh(*asked).total.high <= room

                found = await anyio.to_thread.run_sync(shorten_last_message, ask.messages, fits)
            if found is None:
                raise
        ask = replace(ask, messages=found.messages, prompt_tokens=None)
        return ask, [f"the prompt was cut: {found.left_out:,} characters left out"], await self.plan(ask)

    def _is_priced(self, candidate: Candidate, course: Course) -> bool:
        price = self._price(candidate, _largest_usage(candidate, course.estimated))
        return sum_spend((), price).dollars is not None

    def _report_run(self, ask: Ask, course: Course, outcome: Outcome | None, error: str | None) -> None:
        run_record = RunRecord(
            time=self.now(),
            caller=ask.caller,
            task=ask.task or ask.tool,
            tool=ask.tool,
            route=course.route,
            estimated_input=course.estimated,
            attempts=tuple(course.attempts),
            cost=course.cost,
            outcome=outcome,
            error=error,
        )
        for observer in self.observers:
            observer.record_run(run_record)

    async def _try_candidates(self, order: "_Order", course: Course) -> tuple[Candidate, Completion]:
        failures = list[tuple[Candidate, ProviderFailed]]()
        for candidate in course.route.candidates:
            if candidate.window is not None and candidate.window <= course.at_least:
                continue
            try:
                return candidate, await self._try_with_retries(candidate, order, course)
            except ProviderFailed as failure:
                failures.append((candidate, failure))
                if course.is_over:
                    break
        raise unanswered_error(failures, course.attempts)

    async def _try_with_retries(self, candidate: Candidate, order: "_Order", course: Course) -> Completion:
        """Try one candidate as often as the retry rules allow."""
        tries, is_priced = 0, self._is_priced(candidate, course)
        while True:
            tries += 1
            course.warnings += await order.payment.set_aside(course.attempts, is_priced=is_priced)
            try:
                return await self._try_once(candidate, order, course)
            except ProviderFailed as failed:
                left = course.deadline - anyio.current_time()
                step = decide_next_step(failed, tries, self.patience, chance=self.chance(), left=left)
                course.is_over = step.do == "stop"
                if step.bench:
                    self.cooldowns.start(candidate.entry.id, step.bench)
                if step.larger and candidate.window is not None:
                    course.at_least = max(course.at_least, candidate.window)
                if step.loud:
                    course.warnings.append(f"{candidate.entry.provider} {failed.message}")
                is_sealed_still = failed.kind == "sealed" and order.is_open
                order.is_open |= failed.kind == "sealed"
                if step.do != "retry" or is_sealed_still:
                    raise
                course.wait = step.wait
                await anyio.sleep(step.wait)

    async def _try_once(self, candidate: Candidate, order: "_Order", course: Course) -> Completion:
        trial = Trial(candidate=candidate, hear=order.hear, waited=course.take_wait())
        self.cooldowns.begin_trial(candidate.entry.id)
        try:
            answer = await self._ask_provider(candidate, order, course, trial)
        except ProviderFailed as failed:
            course.attempts.append(self._record_failure(trial, course, failed))
            raise
        except BaseException:
            # Cancelled during the attempt: what had arrived is billed.
            course.attempts.append(self._record_failure(trial, course, ProviderFailed("was given up", kind="deadline")))
            raise
        self.cooldowns.end(candidate.entry.id)
        # Count only if the provider reported no usage: counting a long answer is slow.
        said = drop_impossible_usage(answer.usage)
        # The model also wrote its tool calls, which are not streamed.
        came = 0
        if said.output is None:
            calls = (f"{call.name}{call.arguments}" for call in answer.tool_calls)
            came = self._count("".join((trial.text, *calls)), trial.candidate)
        usage, reported = complete_usage(said, sent=course.estimated, came=came)
        reckoned = self._price(trial.candidate, usage)
        cost = use_reported_cost(reckoned, answer.reported_cost, trial.candidate.entry.provider, self.now())
        course.attempts.append(trial.ended(usage=usage, reported=reported, cost=cost))
        return answer

    async def _ask_provider(self, candidate: Candidate, order: "_Order", course: Course, trial: Trial) -> Completion:
        provider = self.providers.get(candidate.entry.provider)
        if provider is None:
            why = self.off.get(candidate.entry.provider)
            raise ProviderFailed(f"is off: {why}" if why else "has no key or is not configured", kind="no_key")
        reader = provider.wire.reader()
        trial.so_far = reader.so_far
        asked = outgoing(candidate, order.ask, is_open=order.is_open)
        # The span does not contain the prompt.
        is_gemini = candidate.entry.provider == "google"
        operation, address = "generate_content" if is_gemini else "chat", httpx2.URL(provider.base_url)
        with child_span(
            f"{operation} {asked.model}",
            gen_ai__operation__name=operation,
            gen_ai__provider__name=_PROVIDER_NAMES.get(candidate.entry.provider, candidate.entry.provider),
            gen_ai__request__model=asked.model,
            gen_ai__request__stream=True,
            gen_ai__request__max_tokens=asked.max_output_tokens,
            gen_ai__request__temperature=asked.temperature,
            server__address=address.host,
            server__port=address.port or (443 if address.scheme == "https" else 80),
        ) as span:
            try:
                with anyio.move_on_at(course.deadline):
                    return await attempt(self.client, provider, asked, trial.heard, reader)
            except ProviderFailed as failed:
                if span is not None:
                    span.error = str(failed.status or failed.kind)
                raise
            finally:
                if span is not None:
                    usage = drop_impossible_usage(reader.so_far())
                    span.set(
                        gen_ai__usage__input_tokens=usage.input,
                        gen_ai__usage__output_tokens=usage.output,
                        gen_ai__usage__cache_read__input_tokens=usage.cache_read,
                        gen_ai__usage__cache_creation__input_tokens=usage.cache_write,
                        gen_ai__usage__reasoning__output_tokens=usage.reasoning,
                    )
        if reader.is_whole:
            return reader.finish()
        raise ProviderFailed("had not answered when the deadline came", kind="deadline")

    def _record_failure(self, trial: Trial, course: Course, failed: ProviderFailed) -> Attempt:
        usage, reported, said = NOTHING, True, drop_impossible_usage(trial.so_far())
        if trial.text or said.input is not None or failed.may_be_billed:
            # The usage reported for an interrupted answer may date from its beginning. If nothing arrived, or if
            # hidden reasoning may have been written, book the maximum output.
            came = self._count(trial.text, trial.candidate)
            if trial.candidate.thinks or (not trial.text and said.output is None):
                came = max(came, most_output(trial.candidate))
            usage, reported = complete_usage(said, sent=course.estimated, came=came)
        return trial.ended(usage=usage, reported=reported, cost=self._price(trial.candidate, usage), failed=failed)

    def _price(self, candidate: Candidate, usage: Usage) -> Cost | None:
        provider = self.providers.get(candidate.entry.provider)
        host = None if provider is None else provider.host
        return price_attempt(usage, candidate.entry, self.models, host=host, when=self.now())

    def _count(self, text: str, candidate: Candidate) -> int:
        return self.meter.count(text, counted_as(candidate.entry.model, self.models)).tokens

    def _language(self, ask: Ask) -> tuple[str | None, str]:
        """Return the language of a request and how it was found.

        In this order: given in the request, detected (if the policy has language rules), the session's. A short prompt
        whose language is unclear keeps the session's language.
        """
        session = (ask.caller.principal, ask.caller.session)
        said, how = ask.language, "given"
        if said is None and self.policy.languages:
            words = last_words(ask.messages)
            said, how = detect_language(words), "detected"
        if said is None:
            return self._languages.get(session), "the session's"
        if len(self._languages) >= _SESSIONS:
            self._languages.clear()
        self._languages[session] = said
        return said, how


@dataclass(slots=True, kw_only=True)
class _Order:
    """A run's request, listener and payment."""

    ask: Ask
    hear: Hear
    payment: Payment
    is_open: bool = False
    """Whether to send no encrypted reasoning, because a provider refused it."""


def _largest_usage(candidate: Candidate, estimated: int) -> Usage:
    return Usage(input=estimated, output=most_output(candidate))
