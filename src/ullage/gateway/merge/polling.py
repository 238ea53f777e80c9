"""Listens to members for changed tools, resources and prompts.

One question to many members, such as which tools they have: who can answer at once does, the rest are asked side by
side, and nobody waits longer than he wants to for those that do not answer. What was asked goes on being asked after
that. What the answers mean, others know.
"""

import math
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

import anyio

from ullage.errors import UllageError

from ..tool_source import Pacing, Spawn, Work
from .tool_view import Member, Missing

__all__ = ["Hearing", "Question", "Round", "are_same_answers"]

Answer = TypeVar("Answer")

_PATIENCE = 5.0
"""Seconds that a member which cannot answer at once is given when it is first asked, at the most, whoever waits."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_SILENT, _LATE = "it has not answered yet", "it did not answer in time"


def are_same_answers(before: tuple[tuple[Member, object], ...], now: tuple[tuple[Member, object], ...]) -> bool:
    """Whether nothing was heard since; looks at the answers, not at what is in them."""
    return len(before) == len(now) and all(
        old[0] is new[0] and old[1] is new[1] for old, new in zip(before, now, strict=True)
    )


class Question(Generic[Answer]):
    """How one member is asked."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[Answer]],
        *,
        peek: Callable[[], Answer | None] | None = None,
        recall: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self.ask = ask
        self.peek = peek
        """Answers at once, or not; None for a member that can only be asked."""
        self.recall = recall
        """Has the member look for an answer in what it wrote down, so that it can then be peeked at."""


class Hearing(Generic[Answer]):
    """One member's answer to one question."""

    def __init__(self, member: Member, question: Question[Answer], arrived: Callable[[], None]) -> None:
        self.member = member
        self.source = member.source
        self._question = question
        self._arrived = arrived
        self._said: Answer | None = None
        self._failure: str | None = None
        self._outdated = False
        self._asking: anyio.Event | None = None
        self._pause = _SHORTEST_PAUSE
        self._again_at = -math.inf
        """Before then, one that failed is not asked again."""
        self._pacing = Pacing(first=0.0)
        self._is_paced = False
        """Whether it was ever asked because of a change."""
        self._is_due = False
        """Whether someone waits out a pause to ask."""
        self._may_recall = question.recall is not None

    @property
    def answer(self) -> Answer | None:
        """The last one known."""
        known = None if self._question.peek is None else self._question.peek()
        return self._said if known is None else known

    @property
    def reason(self) -> str:
        """Why there is no answer."""
        return _SILENT if self._asking is not None or self._failure is None else self._failure

    @property
    def failure(self) -> str | None:
        return self._failure

    @property
    def is_wanted(self) -> bool:
        if self._asking is not None or not (self.answer is None or self._outdated):
            return False
        return self._failure is None or anyio.current_time() >= self._again_at

    @property
    def is_outdated(self) -> bool:
        """Whether there was a change since it was asked."""
        return self._outdated and self.is_wanted

    @property
    def has_failed(self) -> bool:
        """Whether it was asked and could not say; one that was only not waited for may yet."""
        return self._failure is not None and self._failure != _LATE and self._asking is None

    @property
    def is_being_asked(self) -> bool:
        return self._asking is not None

    @property
    def may_recall(self) -> bool:
        """Whether it has not yet looked for an answer in what was written down."""
        return self._may_recall

    @property
    def is_plain(self) -> bool:
        """Whether it can only be asked."""
        return self._question.peek is None

    def outdate(self) -> bool:
        """The answer no longer holds, and is kept until there is another. Who can be peeked at keeps his own."""
        self._outdated = self.is_plain
        return self._outdated

    async def recall(self) -> None:
        """Lets the member remember, once."""
        if self._may_recall and self._question.recall is not None:
            self._may_recall = False
            try:
                await self._question.recall()
            except UllageError as error:
                self._failure = error.message

    def begin(self) -> Work:
        """Marks the member as being asked; the returned function asks it."""
        self._asking, self._outdated = anyio.Event(), False
        return self._run

    def ask_soon(self, spawn: Spawn) -> None:
        """Has the member asked in the background: at once, or after a pause where it was asked just now."""
        if self._is_due:
            return
        pause = self._pacing.pause(anyio.current_time())
        self._is_paced, self._is_due = True, pause > 0
        spawn(partial(self._run_after, pause) if pause else self.begin())

    async def _run_after(self, pause: float) -> None:
        try:
            await anyio.sleep(pause)
        finally:
            self._is_due = False
        if self.is_wanted:
            await self.begin()()

    async def settled(self) -> None:
        """Waits until nobody is asking."""
        if self._asking is not None:
            await self._asking.wait()

    async def _run(self) -> None:
        assert self._asking is not None
        done, self._failure = self._asking, _LATE
        try:
            self._said = await self._question.ask()
            self._failure, self._pause = None, _SHORTEST_PAUSE
        except UllageError as error:
            self._fail(error.message)
        except Exception as error:  # noqa: BLE001 - a source of anyone's making; one that breaks must not break the rest
            # The message of a stranger's exception may hold an address or a token: its kind has to do.
            self._fail(f"it failed with {type(error).__name__}")
        finally:
            self._asking = None
            if self._is_paced:
                self._pacing.finished(anyio.current_time())
            done.set()
        self._arrived()

    def _fail(self, why: str) -> None:
        """Who fails is asked again after a pause, longer each time: views are asked for with every call."""
        self._failure = why
        self._outdated = self.is_plain
        self._again_at = anyio.current_time() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


class Round(Generic[Answer]):
    """One question to every member that can be asked it, in the order of the members."""

    def __init__(
        self,
        question_to: Callable[[Member], Question[Answer] | None],
        arrived: Callable[[], None],
        spawn: Spawn | None,
        patience: float,
    ) -> None:
        self._patience = min(patience, _PATIENCE)
        self._question_to = question_to
        self._arrived = arrived
        self._spawn = spawn
        self._hearings: dict[str, Hearing[Answer]] = {}

    def replace(self, members: Iterable[Member]) -> None:
        """Another set of members; what was heard of a source that stays is kept."""
        old, self._hearings = self._hearings, {}
        for member in members:
            kept = old.get(member.name)
            if kept is not None and kept.source is member.source:
                kept.member = member
                self._hearings[member.name] = kept
            elif (question := self._question_to(member)) is not None:
                self._hearings[member.name] = Hearing(member, question, self._answered)

    def _answered(self) -> None:
        self._arrived()
        if self._spawn is not None:
            for hearing in self._hearings.values():
                if hearing.is_outdated:
                    hearing.ask_soon(self._spawn)

    def known(self) -> tuple[tuple[Member, Answer], ...]:
        """The last answer of each member that ever gave one."""
        heard = ((hearing.member, hearing.answer) for hearing in self._hearings.values())
        return tuple((member, answer) for member, answer in heard if answer is not None)

    def missing(self) -> tuple[Missing, ...]:
        return tuple(
            Missing(name, one.reason, prefix=one.member.prefix, has_failed=one.has_failed)
            for name, one in self._hearings.items()
            if one.answer is None
        )

    def failed(self) -> tuple[Missing, ...]:
        """Members whose last answer was a failure, whether or not an earlier answer is known."""
        return tuple(Missing(name, one.failure) for name, one in self._hearings.items() if one.failure is not None)

    def outdate(self, name: str) -> bool:
        """Whether the member has to be asked again."""
        hearing = self._hearings.get(name)
        return hearing is not None and hearing.outdate()

    async def recall(self) -> None:
        """Has members that were never asked remember what they last said; starts none of them."""
        for hearing in tuple(self._hearings.values()):
            if hearing.may_recall:
                await hearing.recall()

    def ask_in_background(self) -> bool:
        """Asks whoever is to be asked, without waiting; False where there is no background."""
        if self._spawn is None:
            return False
        for hearing in self._wanted(None):
            hearing.ask_soon(self._spawn)
        return True

    async def gather(self, wait: float, only: frozenset[str] | None = None) -> None:
        """Asks whoever is to be asked, and waits for them, up to `wait` seconds in all."""
        wanted = self._wanted(only)
        if not wanted and not any(one.is_being_asked for one in self._hearings.values()):
            # Nearly always: a view is asked for with every call.
            return
        if self._spawn is None:
            await _all(wanted, max(wait, self._patience))
            return
        fresh = [hearing for hearing in wanted if hearing.is_plain]
        deadline = anyio.current_time() + wait
        for hearing in wanted:
            self._spawn(hearing.begin())
        await _settled(fresh, max(deadline, anyio.current_time() + self._patience))
        await _settled((one for one in self._hearings.values() if only is None or one.member.name in only), deadline)

    def _wanted(self, only: frozenset[str] | None) -> list[Hearing[Answer]]:
        return [one for name, one in self._hearings.items() if one.is_wanted and (only is None or name in only)]


async def _all(wanted: list[Hearing[Answer]], wait: float) -> None:
    """Without a background: who has not answered by then is no longer being asked."""
    if not wanted:
        return
    with anyio.move_on_after(wait):
        async with anyio.create_task_group() as group:
            for hearing in wanted:
                group.start_soon(hearing.begin())


async def _settled(hearings: Iterable[Hearing[Answer]], deadline: float) -> None:
    with anyio.CancelScope(deadline=deadline):
        for hearing in hearings:
            await hearing.settled()
