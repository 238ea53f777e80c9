"""How is a prompt answered, whatever fails on the way?

`Delegate` routes, asks the candidates in turn as `retry` decides, and tells what came of it. Who is asked is `route`'s
matter, one attempt is `attempt`'s, money `paying`'s and `tally`'s.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import httpx2

from ullage.errors import UllageError
from ullage.messages import Message
from ullage.models import Cost, ModelTable, Usage

from .ask import Ask, has_images, last_words, most_output, outgoing
from .attempt import Hear, attempt
from .benched import Benched
from .course import Course, Trial
from .exchange import Completion
from .failure import ProviderFailed
from .happening import Happening, Observer
from .language import detect_language
from .outcome import Attempt, Outcome
from .paying import Payment
from .policy import Policy
from .provider import Provider
from .retry import Next, Patience, after, unanswered
from .route import Candidate, Route, RouteRequest, route, without
from .shortening import Shortened, TooLong, shortened
from .spending import Purse, Unlimited
from .tally import NOTHING, as_reported, believable, completed, dearest, price_attempt, spent
from .weighing import counted_as, to_be_weighed

if TYPE_CHECKING:
    # Whoever has a meter to give has loaded its room; others need not wait for it.
    from ullage.tokens import Meter

__all__ = ["Ask", "Delegate"]

_SESSIONS = 1_000
"""Whose language is remembered."""


@dataclass(slots=True, kw_only=True)
class Delegate:
    """Asks models for answers. One a process; many runs at a time."""

    policy: Policy
    models: ModelTable
    meter: "Meter"
    providers: Mapping[str, Provider]
    off: Mapping[str, str] = field(default_factory=dict[str, str])
    """By provider, why it is not among them; no key is ever in it."""
    client: httpx2.AsyncClient
    purse: Purse = field(default_factory=Unlimited)
    observers: tuple[Observer, ...] = ()
    """Told of every run when it is over."""
    patience: Patience = field(default_factory=Patience)
    cut: bool = False
    """Whether a prompt that no window holds is cut in its middle, and said to be, rather than refused."""
    longest: float = 300.0
    """Seconds over all attempts, where the caller sets no deadline; three times as many where the first model
    reasons."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    chance: Callable[[], float] = random.random
    benched: Benched = field(default_factory=lambda: Benched(time.monotonic))
    _languages: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    async def plan(self, ask: Ask) -> tuple[Route, int]:
        """The route that `run` would take now, and the tokens of the prompt, without asking anyone."""
        estimated = await self._weigh(ask) if ask.prompt_tokens is None else ask.prompt_tokens
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
        return without(found, self.benched.now()), estimated

    async def run(self, ask: Ask, hear: Hear = lambda _: None) -> Outcome:
        """The first whole answer. Raises `ProviderFailed` that lists every attempt where nobody gave one."""
        ask, cut, (found, estimated) = await self._held_by_a_window(ask)
        longest = self.longest * (3 if found.candidates[0].thinks else 1)
        deadline = anyio.current_time() + longest if ask.deadline is None else ask.deadline
        course = Course(route=found, estimated=estimated, deadline=deadline, warnings=cut)
        order = _Order(ask=ask, hear=hear, payment=self._payment(ask, course))
        await order.payment.set_aside((), is_priced=self._is_priced(found.candidates[0], course))
        try:
            answered = await self._in_turn(order, course)
            course.warnings += await order.payment.settle(course.attempts)
        except BaseException as failed:
            await self._give_up(order, course, failed)
            raise
        outcome = course.outcome(*answered)
        self._tell(ask, course, outcome, None)
        return outcome

    async def _held_by_a_window(self, ask: Ask) -> tuple[Ask, list[str], tuple[Route, int]]:
        """The ask, cut where that is wanted and needed, what is to be said of it, and its plan."""
        try:
            return ask, [], await self.plan(ask)
        except TooLong as too_long:
            found = await self._shortened(ask, too_long.room) if self.cut or ask.cut else None
            if found is None:
                raise
        ask = replace(ask, messages=found.messages, prompt_tokens=None)
        return ask, [f"the prompt was cut: {found.left_out:,} characters left out"], await self.plan(ask)

    async def _shortened(self, ask: Ask, room: int) -> Shortened | None:
        def fits(messages: tuple[Message, ...]) -> bool:
            asked = to_be_weighed(replace(ask, messages=messages), self.policy, self.models)
            return self.meter.weigh(*asked).total.high <= room

        return await anyio.to_thread.run_sync(shortened, ask.messages, fits)

    def _payment(self, ask: Ask, course: Course) -> Payment:
        """Of what the dearest candidate would take if it used all that it may."""
        uses = [(one, _most(one, course.estimated)) for one in course.route.candidates]
        prices = [self._price(candidate, usage) for candidate, usage in uses]
        estimate = dearest([usage for _, usage in uses], prices)
        return Payment(purse=self.purse, estimate=estimate, caller=ask.caller, task=ask.task)

    def _is_priced(self, candidate: Candidate, course: Course) -> bool:
        price = self._price(candidate, _most(candidate, course.estimated))
        return spent((), price).dollars is not None

    async def _give_up(self, order: "_Order", course: Course, failed: BaseException) -> None:
        said = failed.message if isinstance(failed, UllageError) else "was given up"
        try:
            # Where the fault is ours nobody knows what was spent, and the estimate stands.
            if isinstance(failed, UllageError) or not isinstance(failed, Exception):
                await order.payment.settle(course.attempts)
        finally:
            self._tell(order.ask, course, None, said)

    def _tell(self, ask: Ask, course: Course, outcome: Outcome | None, error: str | None) -> None:
        happening = Happening(
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
            observer.happened(happening)

    async def _in_turn(self, order: "_Order", course: Course) -> tuple[Candidate, Completion]:
        failures = list[tuple[Candidate, ProviderFailed]]()
        for candidate in course.route.candidates:
            if candidate.window is not None and candidate.window <= course.at_least:
                continue
            try:
                return candidate, await self._patiently(candidate, order, course)
            except ProviderFailed as failure:
                failures.append((candidate, failure))
                if course.is_over:
                    break
        raise unanswered(failures, course.attempts)

    async def _patiently(self, candidate: Candidate, order: "_Order", course: Course) -> Completion:
        """One candidate, as often as is worth it."""
        tries, is_priced = 0, self._is_priced(candidate, course)
        while True:
            tries += 1
            course.warnings += await order.payment.set_aside(course.attempts, is_priced=is_priced)
            try:
                return await self._once(candidate, order, course)
            except ProviderFailed as failed:
                step = self._decide(failed, tries, course)
                self._note(candidate, failed, step, course)
                is_sealed_still = failed.kind == "sealed" and order.is_open
                order.is_open |= failed.kind == "sealed"
                if step.do != "retry" or is_sealed_still:
                    raise
                course.wait = step.wait
                await anyio.sleep(step.wait)

    def _decide(self, failed: ProviderFailed, tries: int, course: Course) -> Next:
        left = course.deadline - anyio.current_time()
        return after(failed, tries, self.patience, chance=self.chance(), left=left)

    def _note(self, candidate: Candidate, failed: ProviderFailed, step: Next, course: Course) -> None:
        course.is_over = step.do == "stop"
        if step.bench:
            self.benched.sit(candidate.entry.id, step.bench)
        if step.larger and candidate.window is not None:
            course.at_least = max(course.at_least, candidate.window)
        if step.loud:
            course.warnings.append(f"{candidate.entry.provider} {failed.message}")

    async def _once(self, candidate: Candidate, order: "_Order", course: Course) -> Completion:
        trial = Trial(candidate=candidate, hear=order.hear, waited=course.take_wait())
        self.benched.trying(candidate.entry.id)
        try:
            answer = await self._asked(candidate, order, course, trial)
        except ProviderFailed as failed:
            course.attempts.append(self._failed(trial, course, failed))
            raise
        except BaseException:
            # Cancelled in the middle: what had come was paid for.
            course.attempts.append(self._failed(trial, course, ProviderFailed("was given up", kind="deadline")))
            raise
        self.benched.rise(candidate.entry.id)
        course.attempts.append(self._answered(trial, course, answer))
        return answer

    async def _asked(self, candidate: Candidate, order: "_Order", course: Course, trial: Trial) -> Completion:
        provider = self.providers.get(candidate.entry.provider)
        if provider is None:
            why = self.off.get(candidate.entry.provider)
            raise ProviderFailed(f"is off: {why}" if why else "has no key or is not configured", kind="no_key")
        reader = provider.wire.reader()
        trial.so_far = reader.so_far
        asked = outgoing(candidate, order.ask, is_open=order.is_open)
        with anyio.move_on_at(course.deadline):
            return await attempt(self.client, provider, asked, trial.heard, reader)
        if reader.is_whole:
            return reader.finish()
        raise ProviderFailed("had not answered when the deadline came", kind="deadline")

    def _answered(self, trial: Trial, course: Course, answer: Completion) -> Attempt:
        # Counted only where the provider did not: a long answer takes its time.
        said = believable(answer.usage)
        came = 0 if said.output is not None else self._count(_written(trial.text, answer), trial.candidate)
        usage, reported = completed(said, sent=course.estimated, came=came)
        reckoned = self._price(trial.candidate, usage)
        cost = as_reported(reckoned, answer.reported_cost, trial.candidate.entry.provider, self.now())
        return trial.ended(usage=usage, reported=reported, cost=cost)

    def _failed(self, trial: Trial, course: Course, failed: ProviderFailed) -> Attempt:
        usage, reported, said = NOTHING, True, believable(trial.so_far())
        if trial.text or said.input is not None or failed.may_be_billed:
            # What is reported of an answer that broke off may be from its beginning. Where nothing came, or thoughts
            # that nobody sees may have, the answer is booked at the most that it could have been.
            came = self._count(trial.text, trial.candidate)
            if trial.candidate.thinks or (not trial.text and said.output is None):
                came = max(came, most_output(trial.candidate))
            usage, reported = completed(said, sent=course.estimated, came=came)
        return trial.ended(usage=usage, reported=reported, cost=self._price(trial.candidate, usage), failed=failed)

    def _price(self, candidate: Candidate, usage: Usage) -> Cost | None:
        provider = self.providers.get(candidate.entry.provider)
        host = None if provider is None else provider.host
        return price_attempt(usage, candidate.entry, self.models, host=host, when=self.now())

    async def _weigh(self, ask: Ask) -> int:
        """The upper edge of what the prompt weighs."""
        from ullage.tokens import patiently

        return (await patiently(self.meter.weigh_steps(*to_be_weighed(ask, self.policy, self.models)))).total.high

    def _count(self, text: str, candidate: Candidate) -> int:
        return self.meter.count(text, counted_as(candidate.entry.model, self.models)).tokens

    def _language(self, ask: Ask) -> tuple[str | None, str]:
        """Given, else detected where the policy goes by it, else the session's: one short prompt does not change the
        language of a session."""
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
    """An ask that is being answered."""

    ask: Ask
    hear: Hear
    payment: Payment
    is_open: bool = False
    """Whether it goes without sealed thoughts, since somebody could not take them."""


def _written(text: str, answer: Completion) -> str:
    """All that the model wrote: what was heard, and its calls, which nobody hears."""
    return "".join((text, *(f"{call.name}{call.arguments}" for call in answer.tool_calls)))


def _most(candidate: Candidate, estimated: int) -> Usage:
    return Usage(input=estimated, output=most_output(candidate))
