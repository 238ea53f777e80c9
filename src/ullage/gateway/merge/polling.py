"""Polls members for their tools, resources or prompts.

A `PollRound` sends one request to all members, such as listing their tools. Members with a cached answer return it
at once; the others are polled concurrently, and a caller waits no longer than its time limit. A member that has not
answered by then continues to be polled in the background, and one that failed is polled again after a growing pause.
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

import anyio

from ullage.errors import UllageError

from ..tool_source import Pacing, Spawn, Work
from .tool_view import Member, Missing

__all__ = ["MemberPoll", "PollQuestion", "PollRound", "are_same_answers"]

Answer = TypeVar("Answer")

_PATIENCE = 5.0
"""Most seconds that a caller waits for a member without a remembered answer."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_SILENT, _LATE = "it has not answered yet", "it did not answer in time"


def are_same_answers(before: tuple[tuple[Member, object], ...], now: tuple[tuple[Member, object], ...]) -> bool:
    """Whether the members and answers are the same objects as before. Answers are not compared by value."""
    return len(before) == len(now) and all(
        old[0] is new[0] and old[1] is new[1] for old, new in zip(before, now, strict=True)
    )


class PollQuestion(Generic[Answer]):
    """How one member is polled.

    Attributes:
        ask: Polls the member.
        peek: Returns the member's cached answer, or None; None for a member without a cache.
        recall: Makes the member load its stored answer, so that `peek` can return it.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[Answer]],
        *,
        peek: Callable[[], Answer | None] | None = None,
        recall: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self.ask = ask
        self.peek = peek
        self.recall = recall


class MemberPoll(Generic[Answer]):
    """The poll state of one member: its answer, its failure, and when to poll it again."""

    def __init__(self, member: Member, question: PollQuestion[Answer], arrived: Callable[[], None]) -> None:
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
        """A member that failed is not polled again before that time."""
        self._pacing = Pacing(first=0.0)
        self._is_paced = False
        """Whether it was ever polled because of a change."""
        self._is_due = False
        """Whether a task is waiting for a pause to end before it polls."""
        self._may_recall = question.recall is not None

    @property
    def answer(self) -> Answer | None:
        """The last known answer."""
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
        """Whether the member should be polled now."""
        if self._asking is not None or not (self.answer is None or self._outdated):
            return False
        return self._failure is None or anyio.current_time() >= self._again_at

    @property
    def is_outdated(self) -> bool:
        """Whether something changed since it was last polled."""
        return self._outdated and self.is_wanted

    @property
    def has_failed(self) -> bool:
        """Whether the last poll failed. A member that is merely late has not failed."""
        return self._failure is not None and self._failure != _LATE and self._asking is None

    @property
    def is_being_asked(self) -> bool:
        return self._asking is not None

    @property
    def may_recall(self) -> bool:
        """Whether it has not yet loaded its stored answer."""
        return self._may_recall

    @property
    def is_plain(self) -> bool:
        """Whether it has no cache and must be polled."""
        return self._question.peek is None

    def is_settled(self, member: Member, answer: Answer) -> bool:
        """Whether it is this member's with this answer, and needs no poll. Asked with every call."""
        return (
            self.member is member
            and self._asking is None
            and not self._outdated
            and not self._may_recall
            and self.answer is answer
        )

    def outdate(self) -> bool:
        """Mark the answer as outdated; it is used until there is a new one.

        A member that remembers its answers keeps them up to date by itself.
        """
        self._outdated = self.is_plain
        return self._outdated

    async def recall(self) -> None:
        """Make the member load what it stored, once."""
        if self._may_recall and self._question.recall is not None:
            self._may_recall = False
            try:
                await self._question.recall()
            except UllageError as error:
                self._failure = error.message

    def begin(self) -> Work:
        """Mark the member as being polled; the returned function polls it."""
        self._asking, self._outdated = anyio.Event(), False
        return self._run

    def ask_soon(self, spawn: Spawn) -> None:
        """Poll the member in the background, after a pause if it was polled just before."""
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

    async def wait_until_answered(self) -> None:
        """Wait until the member is no longer being polled."""
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
            # The exception's message may contain an address or a token, so only its type is reported.
            self._fail(f"it failed with {type(error).__name__}")
        finally:
            self._asking = None
            if self._is_paced:
                self._pacing.finished(anyio.current_time())
            done.set()
        self._arrived()

    def _fail(self, why: str) -> None:
        """Record a failure; the next attempt follows after a pause that doubles each time."""
        self._failure = why
        self._outdated = self.is_plain
        self._again_at = anyio.current_time() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


class PollRound(Generic[Answer]):
    """Polls all members that support a request, in the order of the members.

    Args:
        question_to: Returns how to poll a member; None if it does not support the request.
        arrived: Called after each answer.
        spawn: Runs work in the background; None if there is no background.
        patience: Seconds to wait for a member without a cached answer.
    """

    def __init__(
        self,
        question_to: Callable[[Member], PollQuestion[Answer] | None],
        arrived: Callable[[], None],
        spawn: Spawn | None,
        patience: float,
    ) -> None:
        self._patience = min(patience, _PATIENCE)
        self._question_to = question_to
        self._arrived = arrived
        self._spawn = spawn
        self._polls: dict[str, MemberPoll[Answer]] = {}

    def replace(self, members: Iterable[Member]) -> None:
        """Replace the members; answers of sources that stay are kept."""
        old, self._polls = self._polls, {}
        for member in members:
            kept = old.get(member.name)
            if kept is not None and kept.source is member.source:
                kept.member = member
                self._polls[member.name] = kept
            elif (question := self._question_to(member)) is not None:
                self._polls[member.name] = MemberPoll(member, question, self._answered)

    def _answered(self) -> None:
        self._arrived()
        if self._spawn is not None:
            for poll in self._polls.values():
                if poll.is_outdated:
                    poll.ask_soon(self._spawn)

    def known(self) -> tuple[tuple[Member, Answer], ...]:
        """The last answer of each member that ever answered."""
        heard = ((poll.member, poll.answer) for poll in self._polls.values())
        return tuple((member, answer) for member, answer in heard if answer is not None)

    def has_not_changed(
        self, before: Sequence[tuple[Member, Answer]], is_same: Callable[[Answer, Answer], bool]
    ) -> bool:
        """Whether `known` would return the same members and answers as before. Asked with every call."""
        at = 0
        for poll in self._polls.values():
            answer = poll.answer
            if answer is None:
                continue
            if at == len(before):
                return False
            member, old = before[at]
            if member is not poll.member or (old is not answer and not is_same(old, answer)):
                return False
            at += 1
        return at == len(before)

    def is_settled(self, before: Sequence[tuple[Member, Answer]]) -> bool:
        """Whether every member has given the same answer as before, and none needs to be polled or is being polled."""
        if len(self._polls) != len(before):
            return False
        for poll, (member, answer) in zip(self._polls.values(), before, strict=True):
            if not poll.is_settled(member, answer):
                return False
        return True

    def missing(self) -> tuple[Missing, ...]:
        return tuple(
            Missing(name, one.reason, prefix=one.member.prefix, has_failed=one.has_failed)
            for name, one in self._polls.items()
            if one.answer is None
        )

    def failed(self) -> tuple[Missing, ...]:
        """Members that failed the last time, also where an earlier answer is known."""
        return tuple(Missing(name, one.failure) for name, one in self._polls.items() if one.failure is not None)

    def outdate(self, name: str) -> bool:
        """Mark a member's answer as outdated; return whether the member must be polled again."""
        poll = self._polls.get(name)
        return poll is not None and poll.outdate()

    async def recall(self) -> None:
        """Make members that were never polled load their stored answers. Starts no server."""
        for poll in tuple(self._polls.values()):
            if poll.may_recall:
                await poll.recall()

    def ask_in_background(self) -> bool:
        """Poll in the background without waiting; return False if there is no background."""
        if self._spawn is None:
            return False
        for poll in self._wanted(None):
            poll.ask_soon(self._spawn)
        return True

    async def gather(self, wait: float, only: frozenset[str] | None = None) -> None:
        """Poll the members that need it, and wait up to `wait` seconds for all of them."""
        wanted = self._wanted(only)
        if not wanted and not any(one.is_being_asked for one in self._polls.values()):
            # The usual case: a view is requested with every call.
            return
        if self._spawn is None:
            # Without a background, a request that is not answered in time is cancelled.
            if wanted:
                with anyio.move_on_after(max(wait, self._patience)):
                    async with anyio.create_task_group() as group:
                        for poll in wanted:
                            group.start_soon(poll.begin())
            return
        fresh = [poll for poll in wanted if poll.is_plain]
        deadline = anyio.current_time() + wait
        for poll in wanted:
            self._spawn(poll.begin())
        await _wait_for(fresh, max(deadline, anyio.current_time() + self._patience))
        await _wait_for((one for one in self._polls.values() if only is None or one.member.name in only), deadline)

    def _wanted(self, only: frozenset[str] | None) -> list[MemberPoll[Answer]]:
        return [one for name, one in self._polls.items() if one.is_wanted and (only is None or name in only)]


async def _wait_for(polls: Iterable[MemberPoll[Answer]], deadline: float) -> None:
    with anyio.CancelScope(deadline=deadline):
        for poll in polls:
            await poll.wait_until_answered()
