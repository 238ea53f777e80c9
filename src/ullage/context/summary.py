"""How is a head put into fewer words by a model?

It is shown to the model in as many passes as its window wants, mostly one, each of which brings the summary of those
before up to date. An answer that will not do is asked for again, and after three calls in vain it is given up. What is
asked, what is shown and what will do, other files know.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from secrets import token_hex

import anyio
from anyio.to_thread import run_sync

from ullage.errors import UllageError, Unavailable

from .carried import Carried
from .clipping import fitted
from .entry import Entry
from .instructions import instructions, request_text
from .judging import Fault, Judge, failure
from .options import DEFAULTS
from .passes import passes
from .summarizer import Summarizer, SummaryRequest
from .transcript import pieces

__all__ = ["SummaryFailed", "summarise"]

_WINDOW = 32_000
"""Assumed where nobody knows."""
_MARGIN = 0.92
"""Of the window, for its model may count otherwise."""
_SHARE = 3
"""That part of the window is an earlier summary's at the most."""
_ANSWER, _THINKING = 4, 6
"""That part of the window is the most for a summary; that part, or a thousand tokens, an answer may always have, for
some models think before they write and it counts."""
_NONCE = 12
"""Characters that nobody guesses."""
_LEAST = 200
"""Tokens of a record under which there is no summarising."""


class SummaryFailed(Unavailable):
    """No summary was to be had."""

    code = "SUMMARY_FAILED"

    def __init__(self, reason: str, calls: int) -> None:
        super().__init__(reason)
        self.reason = reason
        """In a sentence, with nothing in it that must stay secret."""
        self.calls = calls
        """That came to nothing; none where it was not even tried."""


async def summarise(  # noqa: PLR0913
    head: Sequence[Entry],
    earlier: Carried | None,
    summarizer: Summarizer,
    *,
    count: Callable[[str], int],
    room: int,
    timeout: float = DEFAULTS.summary_timeout,
    failures: int = 3,
    nonce: Callable[[], str] = token_hex,
) -> str:
    """A summary of about `room` tokens of a head and of what an earlier summary told.

    Raises `SummaryFailed` when `failures` calls in all came to nothing, or when asking again would not help. A call may
    take `timeout` seconds. `nonce` gives words that nobody could guess.
    """
    told, window = earlier.summary.strip() if earlier else "", _window(summarizer)
    weight = sum(entry.weight.tokens for entry in head) + count(told)
    judge = Judge(count=count, room=min(room, window // _ANSWER), weight=weight, nonce=nonce()[:_NONCE])
    work = _Work(summarizer=summarizer, judge=judge, window=window, timeout=timeout, failures=failures)
    for record in await run_sync(work.records, head, told):
        told = await work.told(record, told)
    if not told:
        raise SummaryFailed("there is nothing to summarise", 0)
    return told


def _window(summarizer: Summarizer) -> int:
    try:
        return summarizer.window or _WINDOW
    except Exception as error:
        raise SummaryFailed(failure(error), 1) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """How it is asked for."""

    room: int
    max_tokens: int
    fault: str | None = None

    def after(self, fault: Fault) -> "_Demand":
        """For less where there was too much, with more room to end in."""
        if not fault.short:
            return replace(self, fault=fault.reason)
        return _Demand(room=self.room * 2 // 3, max_tokens=2 * self.max_tokens, fault=fault.reason)


@dataclass(slots=True, kw_only=True)
class _Work:
    """One head on its way to a summary."""

    summarizer: Summarizer
    judge: Judge
    window: int
    timeout: float
    failures: int
    failed: int = 0
    """Calls that came to nothing."""

    def records(self, head: Sequence[Entry], earlier: str) -> list[str]:
        """What is shown in each pass."""
        count, nonce = self.judge.count, self.judge.nonce
        asked = count(instructions(room=self.judge.room, nonce=nonce, update=True, fault="x" * 100))
        before = max(self.judge.room, min(count(earlier), self.window // _SHARE))
        room = int(_MARGIN * self.window) - asked - before - self._max_tokens
        if room < _LEAST:
            raise SummaryFailed(f"a window of {self.window:,} tokens is too small to summarise in", 0)
        return passes(pieces([entry.message for entry in head]), room=room, count=count, mark=nonce)

    async def told(self, record: str, earlier: str) -> str:
        """What a pass makes of the summary so far."""
        earlier = fitted(earlier, max(self.judge.room, self.window // _SHARE), self.judge.count)
        demand, tries = _Demand(room=self.judge.room, max_tokens=self._max_tokens), 0
        while True:
            verdict = await self._answer(record, earlier, demand)
            if isinstance(verdict, str):
                return verdict
            self.failed, tries = self.failed + 1, tries + 1
            if self.failed >= self.failures or tries > verdict.retries:
                raise SummaryFailed(verdict.reason, self.failed)
            demand = demand.after(verdict)

    @property
    def _max_tokens(self) -> int:
        return max(self.judge.room, min(1_000, self.window // _THINKING))

    async def _answer(self, record: str, earlier: str, demand: _Demand) -> str | Fault:
        nonce = self.judge.nonce
        told = instructions(room=demand.room, nonce=nonce, update=bool(earlier), fault=demand.fault)
        text = request_text(record, earlier, nonce)
        asked = SummaryRequest(instructions=told, text=text, max_tokens=self._allowed(demand, told, text))
        with anyio.move_on_after(self.timeout):
            try:
                return self.judge.judge(await self.summarizer.summarize(asked), told)
            except Exception as error:  # noqa: BLE001  whatever it is, a session does not end of it
                return Fault(reason=failure(error), retries=0 if isinstance(error, UllageError) else 1)
        return Fault(reason=f"the model that summarises gave no answer in {self.timeout:g} seconds", retries=0)

    def _allowed(self, demand: _Demand, told: str, text: str) -> int:
        """As many tokens as are asked for, where more than at first only as far as the window has them."""
        if demand.max_tokens <= self._max_tokens:
            return demand.max_tokens
        left = int(_MARGIN * self.window) - self.judge.count(told) - self.judge.count(text)
        return max(self._max_tokens, min(demand.max_tokens, left))
