"""Decides whether and when to retry, and which models are skipped for a while.

`decide_next_step` is a pure function. It waits and retries if the failure is likely to pass soon. Otherwise the next
model is tried at once, and the failed one is skipped for a while. A request that no model would answer is not
retried. If no model answers, the error lists every attempt, so that no failure hides another.

`ModelCooldowns` keeps the models that failed recently. After a model's cooldown one call may try it while the others
continue to skip it. It is kept in memory and does not know failures in other processes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from .model_call import Attempt, FailureKind, ProviderFailed
from .router import Candidate

__all__ = ["ModelCooldowns", "NextStep", "Patience", "decide_next_step", "unanswered_error"]

_TRANSIENT = frozenset[FailureKind]({"connect", "server", "overloaded", "cut"})
"""Failures that may pass within a moment."""
_UNUSABLE = frozenset[FailureKind]({"first_byte", "idle", "truncated", "malformed"})
"""Failures after a long wait: try the next model, without a retry."""
_INVALID_REQUESTS = frozenset[FailureKind]({"bad_request"})
_NEED_A_PERSON = frozenset[FailureKind]({"unauthorized", "not_found", "exhausted", "no_key"})
"""Failures that last until a person acts, even if the provider names a wait."""
_ADVICE: dict[FailureKind, str] = {
    "first_byte": "raise `first_byte_timeout` of the provider's table, or add a fallback",
    "idle": "raise `idle_timeout` of the provider's table, or add a fallback",
    "deadline": "allow the call more time, or ask for a shorter answer",
    "bad_request": "read what the provider says of the request, and change that",
    "refused": "rephrase the request, or name another model with `forceModel`",
}
"""The suggestion for a failure if the provider's own message contains none."""
_OTHERWISE = "try again later, or add a fallback to the policy: `ullage route lint` shows what it has"
_KEY_ADVICE = "give the provider that is off what it lacks, or take its model out of the policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long and how often to retry one model."""

    retries: int = 2
    """Retries of the same model after its first attempt."""
    first_pause: float = 0.5
    """Seconds. Each later pause is twice as long, and the actual pause is random between zero and that."""
    longest_pause: float = 8.0
    longest_retry_after: float = 2.0
    """Longest wait in seconds accepted from a provider; a longer one benches the model."""
    bench: float = 30.0
    """Seconds to bench a model whose failure will not pass soon, if the provider named no wait."""
    longest_bench: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """The step that follows a failed attempt."""

    do: Literal["retry", "next", "stop"]
    """`retry` the model, try the `next` candidate, or `stop`."""
    wait: float = 0.0
    """Seconds before a retry."""
    bench: float = 0.0
    """Seconds to bench the model; 0 for none."""
    larger: bool = False
    """Whether only a candidate with a larger context window can help."""
    loud: bool = False
    """Whether to warn the user, because waiting does not resolve it."""


def decide_next_step(
    failure: ProviderFailed, tries: int, patience: Patience, *, chance: float, left: float | None
) -> NextStep:
    """Return the step that follows a failure.

    Args:
        failure: the failed attempt.
        tries: attempts with this model so far.
        patience: the retry settings.
        chance: a random number between 0 and 1.
        left: seconds before the deadline; None for no deadline.
    """
    kind = failure.kind
    if kind == "deadline" or (left is not None and left <= 0):
        return NextStep(do="stop")
    if kind in _INVALID_REQUESTS:
        return NextStep(do="stop")
    if kind == "context_length":
        return NextStep(do="next", larger=True)
    if kind == "sealed":
        # Retry without the encrypted reasoning; no wait is needed.
        return NextStep(do="retry" if tries <= patience.retries + 1 else "next")
    if kind == "refused":
        return NextStep(do="next")
    if kind in _NEED_A_PERSON:
        bench = max(patience.bench, min(failure.retry_after or 0.0, patience.longest_bench))
        return NextStep(do="next", loud=kind != "no_key", bench=bench)
    asked = failure.retry_after
    if kind == "rate_limited" and asked is not None:
        if asked > patience.longest_retry_after or tries > patience.retries or not _time_for(asked, left):
            return NextStep(do="next", bench=min(asked, patience.longest_bench))
        return NextStep(do="retry", wait=asked)
    if kind == "rate_limited" or kind in _TRANSIENT:
        return _decide_after_passing_failure(failure, tries, patience, chance, left)
    return NextStep(do="next", bench=patience.bench if kind in _UNUSABLE else 0.0)


def _decide_after_passing_failure(
    failure: ProviderFailed, tries: int, patience: Patience, chance: float, left: float | None
) -> NextStep:
    if failure.retry_after is not None and failure.retry_after > patience.longest_retry_after:
        return NextStep(do="next", bench=min(failure.retry_after, patience.longest_bench))
    wait = chance * min(patience.longest_pause, patience.first_pause * 2 ** (tries - 1))
    wait = max(wait, failure.retry_after or 0.0)
    if tries > patience.retries or not _time_for(wait, left):
        return NextStep(do="next", bench=patience.bench)
    return NextStep(do="retry", wait=wait)


def _time_for(wait: float, left: float | None) -> bool:
    return left is None or wait < left


def unanswered_error(
    failures: Sequence[tuple[Candidate, ProviderFailed]], attempts: Sequence[Attempt]
) -> ProviderFailed:
    """Return the error for a run that no candidate answered, of the kind of the last failure.

    Args:
        failures: the last failure of each candidate.
        attempts: every attempt with any candidate.
    """
    if not failures:
        return ProviderFailed("no model was asked", kind="no_key", suggestion=_KEY_ADVICE)
    last = failures[-1][1]
    said = [f"`{one.provider}`, model `{one.model}`: {one.error}" for one in attempts]
    counted = [(line, len(list(same))) for line, same in groupby(said)]
    lines = [line if times == 1 else f"{line} ({times} times)" for line, times in counted]
    advice = list[str]()
    for candidate, failure in failures:
        hint = failure.suggestion or _ADVICE.get(failure.kind, "")
        is_off = failure.kind == "no_key"
        advice.append(_KEY_ADVICE if is_off else hint.replace("the provider's", f"`{candidate.entry.provider}`'s"))
    failed = ProviderFailed(
        lines[0] if len(lines) == 1 else "\n  ".join(("no model answered:", *lines)),
        kind=last.kind,
        status=last.status,
        retry_after=last.retry_after,
        suggestion="; ".join(dict.fromkeys(filter(None, advice))) or _OTHERWISE,
    )
    failed.usage = last.usage
    return failed


@dataclass(slots=True)
class _Cooldown:
    until: float
    tried_since: float | None = None
    """When a call was allowed to try the model again."""


@dataclass(slots=True)
class ModelCooldowns:
    """Models to skip for a while because they failed."""

    clock: Callable[[], float]
    trial: float = 60.0
    """Seconds after which a trial that never ended is ignored."""
    _cooldowns: dict[str, _Cooldown] = field(default_factory=dict[str, _Cooldown])

    def start(self, model: str, seconds: float) -> None:
        """Skip a model for some seconds, or longer if an earlier failure says so."""
        until = self.clock() + seconds
        known = self._cooldowns.get(model)
        self._cooldowns[model] = _Cooldown(max(until, 0.0 if known is None else known.until))

    def end(self, model: str) -> None:
        """Use a model again after it answered."""
        self._cooldowns.pop(model, None)

    def active(self) -> frozenset[str]:
        """Return the models to skip."""
        skipped, now = set[str](), self.clock()
        for model, cooldown in self._cooldowns.items():
            is_tried = cooldown.tried_since is not None and now - cooldown.tried_since <= self.trial
            if now < cooldown.until or is_tried:
                skipped.add(model)
        return frozenset(skipped)

    def begin_trial(self, model: str) -> None:
        """Record that a call is about to try a model; until it ends, other calls skip the model."""
        cooldown = self._cooldowns.get(model)
        if cooldown is not None:
            cooldown.tried_since = self.clock()
