"""Decides whether and when to retry, and which models are benched for a while.

Pure. Waiting pays where the trouble passes by itself and soon; where it does not, the next model is asked at once,
and the one that failed is left in peace for a while. What no model would answer is not asked again. Where nobody
answers every attempt is told, so that no failure hides another.

A model that failed sits out for a while; then one call may try it, and while that call runs the others still pass it
by. Kept in memory: what failed in another process is not known here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from .model_call import Attempt, FailureKind, ProviderFailed
from .router import Candidate

__all__ = ["Benched", "Next", "Patience", "after", "unanswered"]

_PASSING = frozenset[FailureKind]({"connect", "server", "overloaded", "cut"})
"""Trouble that may be over in a moment."""
_BROKEN = frozenset[FailureKind]({"first_byte", "idle", "truncated", "malformed"})
"""An answer that took its time and came to nothing: the next model, and no second try."""
_ASKED_WRONGLY = frozenset[FailureKind]({"bad_request"})
_FOR_PEOPLE = frozenset[FailureKind]({"unauthorized", "not_found", "exhausted", "no_key"})
"""Trouble that lasts until somebody does something about it, whatever wait is named."""
_ADVICE: dict[FailureKind, str] = {
    "first_byte": "raise `first_byte_timeout` of the provider's table, or add a fallback",
    "idle": "raise `idle_timeout` of the provider's table, or add a fallback",
    "deadline": "allow the call more time, or ask for a shorter answer",
    "bad_request": "read what the provider says of the request, and change that",
    "refused": "rephrase the request, or name another model with `forceModel`",
}
"""What to do about a failure where the provider's own words suggest nothing."""
_OTHERWISE = "try again later, or add a fallback to the policy: `ullage route lint` shows what it has"
_OFF = "give the provider that is off what it lacks, or take its model out of the policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long and how often one waits for one model."""

    retries: int = 2
    """Of the same model, after its first attempt."""
    first_pause: float = 0.5
    """Seconds; each later one is twice as long, and each is taken at random between nothing and that."""
    longest_pause: float = 8.0
    longest_retry_after: float = 2.0
    """Seconds a provider may ask us to wait; longer ones bench the model."""
    bench: float = 30.0
    """Seconds for a model that failed for good, where the provider named none."""
    longest_bench: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What to do, and for how long."""

    do: Literal["retry", "next", "stop"]
    """`next` is the next candidate, `stop` is to give up."""
    wait: float = 0.0
    """Seconds before a retry."""
    bench: float = 0.0
    """Seconds in which this model is not to be asked; 0 for none."""
    larger: bool = False
    """Whether only a candidate with a larger window is of use."""
    loud: bool = False
    """Whether the user must hear of it, since no waiting mends it."""


def after(failure: ProviderFailed, tries: int, patience: Patience, *, chance: float, left: float | None) -> Next:
    """`tries` of this model so far, `chance` between 0 and 1, `left` the seconds before the deadline."""
    kind = failure.kind
    if kind == "deadline" or (left is not None and left <= 0):
        return Next(do="stop")
    if kind in _ASKED_WRONGLY:
        return Next(do="stop")
    if kind == "context_length":
        return Next(do="next", larger=True)
    if kind == "sealed":
        # It is asked again without them, which nobody need wait for.
        return Next(do="retry" if tries <= patience.retries + 1 else "next")
    if kind == "refused":
        return Next(do="next")
    if kind in _FOR_PEOPLE:
        bench = max(patience.bench, min(failure.retry_after or 0.0, patience.longest_bench))
        return Next(do="next", loud=kind != "no_key", bench=bench)
    if kind == "rate_limited":
        return _limited(failure, tries, patience, chance, left)
    if kind in _PASSING:
        return _passing(failure, tries, patience, chance, left)
    return Next(do="next", bench=patience.bench if kind in _BROKEN else 0.0)


def _limited(failure: ProviderFailed, tries: int, patience: Patience, chance: float, left: float | None) -> Next:
    asked = failure.retry_after
    if asked is None:
        return _passing(failure, tries, patience, chance, left)
    if asked > patience.longest_retry_after or tries > patience.retries or not _time_for(asked, left):
        return Next(do="next", bench=min(asked, patience.longest_bench))
    return Next(do="retry", wait=asked)


def _passing(failure: ProviderFailed, tries: int, patience: Patience, chance: float, left: float | None) -> Next:
    if failure.retry_after is not None and failure.retry_after > patience.longest_retry_after:
        return Next(do="next", bench=min(failure.retry_after, patience.longest_bench))
    wait = chance * min(patience.longest_pause, patience.first_pause * 2 ** (tries - 1))
    wait = max(wait, failure.retry_after or 0.0)
    if tries > patience.retries or not _time_for(wait, left):
        return Next(do="next", bench=patience.bench)
    return Next(do="retry", wait=wait)


def _time_for(wait: float, left: float | None) -> bool:
    return left is None or wait < left


def unanswered(failures: Sequence[tuple[Candidate, ProviderFailed]], attempts: Sequence[Attempt]) -> ProviderFailed:
    """Of the kind of the last failure. `failures` has one for each candidate, `attempts` every try of it."""
    if not failures:
        return ProviderFailed("no model was asked", kind="no_key", suggestion=_OFF)
    last = failures[-1][1]
    failed = ProviderFailed(
        _message(_lines(attempts)),
        kind=last.kind,
        status=last.status,
        retry_after=last.retry_after,
        suggestion="; ".join(dict.fromkeys(filter(None, (_advice(*one) for one in failures)))) or _OTHERWISE,
    )
    failed.usage = last.usage
    return failed


def _lines(attempts: Sequence[Attempt]) -> list[str]:
    """One for each attempt, and one for all tries of a model that failed alike."""
    said = [f"`{one.provider}`, model `{one.model}`: {one.error}" for one in attempts]
    counted = [(line, len(list(same))) for line, same in groupby(said)]
    return [line if times == 1 else f"{line} ({times} times)" for line, times in counted]


def _message(lines: Sequence[str]) -> str:
    return lines[0] if len(lines) == 1 else "\n  ".join(("no model answered:", *lines))


def _advice(candidate: Candidate, failed: ProviderFailed) -> str:
    if failed.kind == "no_key":
        return _OFF
    said = failed.suggestion or _ADVICE.get(failed.kind, "")
    return said.replace("the provider's", f"`{candidate.entry.provider}`'s")


@dataclass(slots=True)
class _Seat:
    until: float
    tried_since: float | None = None
    """When a call was let through to see whether it is well again."""


@dataclass(slots=True)
class Benched:
    clock: Callable[[], float]
    trial: float = 60.0
    """Seconds after which a trial that never ended counts as none."""
    _seats: dict[str, _Seat] = field(default_factory=dict[str, _Seat])

    def sit(self, model: str, seconds: float) -> None:
        """Not asked for so long; a longer wait that already holds is kept."""
        until = self.clock() + seconds
        known = self._seats.get(model)
        self._seats[model] = _Seat(max(until, 0.0 if known is None else known.until))

    def rise(self, model: str) -> None:
        """It answered."""
        self._seats.pop(model, None)

    def now(self) -> frozenset[str]:
        """Those to be passed by."""
        return frozenset(model for model, seat in self._seats.items() if not self._may_try(seat))

    def trying(self, model: str) -> None:
        """A call is about to ask it: until that has ended, it is the only one."""
        seat = self._seats.get(model)
        if seat is not None:
            seat.tried_since = self.clock()

    def _may_try(self, seat: _Seat) -> bool:
        now = self.clock()
        if now < seat.until:
            return False
        return seat.tried_since is None or now - seat.tried_since > self.trial
