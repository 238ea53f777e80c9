import threading
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from ullage.errors import StoreFailed
from ullage.gateway.find.usage_learning import Learning
from ullage.search import Need, Use, Used
from ullage.tool import Caller, Needs, Origin, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:hybrid")]

ANN = Caller(principal="ann", session="one")
Value = Any

BOB = Caller(principal="bob", session="one")
ISSUE, BRANCH = ("github", "create_issue"), ("github", "create_branch")
WANTED = Need(frozenset({"creat", "issu"}))
OTHER = Need(frozenset({"weather", "forecast"}))


class Store:
    """Uses in memory, with what was asked of it."""

    def __init__(self) -> None:
        self.kept: defaultdict[str, list[Use]] = defaultdict(list)
        self.loads: list[str] = []
        self.fails = False

    def load(self, principal: str, now: float) -> tuple[Use, ...]:
        self.loads.append(principal)
        if self.fails:
            raise StoreFailed("the database is gone")
        return tuple(self.kept[principal])

    def add(self, principal: str, terms: Iterable[str], tool: Used, now: float) -> None:
        if self.fails:
            raise StoreFailed("the database is gone")
        self.kept[principal].append(Use(terms=frozenset(terms), tool=tool, last=now))


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 11, 15, tzinfo=UTC)

    def passed(self) -> float:
        return self.at.timestamp()

    def now(self) -> datetime:
        return self.at

    def wait(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def learning(store: Store, clock: Clock) -> Learning:
    return Learning(store, clock=clock.passed, now=clock.now)


def answered(tool: Used = ISSUE, **changes: Value) -> Reply:
    return replace(Reply.text("done"), origin=Origin(*tool), **changes)


async def test_a_tool_that_was_shown_and_called_gains_in_the_next_search(learning: Learning):
    assert await learning.bonuses(ANN, WANTED) == {}
    learning.showed(ANN, WANTED, [BRANCH, ISSUE])
    await learning.called(ANN, answered())
    assert list(await learning.bonuses(ANN, WANTED)) == [ISSUE]
    assert await learning.bonuses(ANN, OTHER) == {}


async def test_it_is_known_after_a_restart(learning: Learning, store: Store, clock: Clock):
    learning.showed(ANN, WANTED, [ISSUE])
    await learning.called(ANN, answered())
    again = Learning(store, clock=clock.passed, now=clock.now)
    assert list(await again.bonuses(ANN, WANTED)) == [ISSUE]


@pytest.mark.parametrize(
    "reply",
    [
        answered(is_error=True),
        answered(needs=Needs({"who": {"method": "elicitation/create"}})),
        replace(answered(), origin=None),
        answered(("github", "never_shown")),
        answered(("gitlab", "create_issue")),
    ],
    ids=["failed", "not answered yet", "nobody's", "not shown", "another server's"],
)
async def test_nothing_is_learnt_from_other_calls(learning: Learning, store: Store, reply: Reply):
    learning.showed(ANN, WANTED, [ISSUE])
    await learning.called(ANN, reply)
    assert not store.kept


async def test_a_search_is_credited_with_a_tool_once(learning: Learning, store: Store):
    learning.showed(ANN, WANTED, [ISSUE, BRANCH])
    for _ in range(3):
        await learning.called(ANN, answered())
    await learning.called(ANN, answered(BRANCH))
    assert [use.tool for use in store.kept["ann"]] == [ISSUE, BRANCH]


async def test_the_latest_search_that_showed_a_tool_is_credited_and_no_earlier_one(learning: Learning, store: Store):
    learning.showed(ANN, OTHER, [ISSUE])
    learning.showed(ANN, WANTED, [ISSUE])
    learning.showed(ANN, OTHER, [BRANCH])
    for _ in range(2):
        await learning.called(ANN, answered())
    assert [use.terms for use in store.kept["ann"]] == [WANTED.terms]


async def test_a_query_that_was_only_a_name_is_not_noted(learning: Learning, store: Store):
    learning.showed(ANN, Need(), [ISSUE])
    await learning.called(ANN, answered())
    assert not store.kept
    assert await learning.bonuses(ANN, Need()) == {}
    assert not store.loads


async def test_one_principal_learns_nothing_from_another(learning: Learning):
    learning.showed(ANN, WANTED, [ISSUE])
    await learning.called(BOB, answered())
    await learning.called(ANN, answered())
    assert await learning.bonuses(BOB, WANTED) == {}
    assert await learning.bonuses(ANN, WANTED) != {}


async def test_one_session_is_not_credited_with_the_calls_of_another_but_gains_by_them(learning: Learning):
    other = replace(ANN, session="two")
    learning.showed(ANN, WANTED, [ISSUE])
    await learning.called(other, answered())
    assert await learning.bonuses(other, WANTED) == {}
    await learning.called(ANN, answered())
    assert await learning.bonuses(other, WANTED) != {}


async def test_uses_are_read_once_and_again_when_they_may_be_old(learning: Learning, store: Store, clock: Clock):
    for _ in range(3):
        await learning.bonuses(ANN, WANTED)
    assert store.loads == ["ann"]
    clock.wait(60)
    store.add("ann", WANTED.terms, ISSUE, clock.passed())
    assert list(await learning.bonuses(ANN, WANTED)) == [ISSUE], "of another process"
    assert store.loads == ["ann", "ann"]


async def test_what_was_forgotten_elsewhere_counts_no_more_within_a_minute(
    learning: Learning, store: Store, clock: Clock
):
    learning.showed(ANN, WANTED, [ISSUE])
    await learning.bonuses(ANN, WANTED)
    await learning.called(ANN, answered())
    store.kept.clear()
    clock.wait(60)
    assert await learning.bonuses(ANN, WANTED) == {}


async def test_a_store_that_fails_teaches_nothing_and_harms_nobody(learning: Learning, store: Store, clock: Clock):
    store.fails = True
    assert await learning.bonuses(ANN, WANTED) == {}
    learning.showed(ANN, WANTED, [ISSUE])
    await learning.called(ANN, answered())
    store.fails = False
    clock.wait(60)
    assert await learning.bonuses(ANN, WANTED) == {}
    assert store.loads == ["ann", "ann"]


async def test_a_search_does_not_wait_for_a_store_that_hangs():
    ended = threading.Event()

    class Hanging(Store):
        def load(self, principal: str, now: float) -> tuple[Use, ...]:
            ended.wait(30)
            return ()

    try:
        with anyio.fail_after(10):
            assert await Learning(Hanging(), patience=0.01).bonuses(ANN, WANTED) == {}
    finally:
        ended.set()


async def test_what_is_made_of_uses_is_made_aside():
    threads = set[str]()

    class Noting(tuple[Use, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[Use]:
            threads.add(threading.current_thread().name)
            return tuple.__iter__(self)

    class Full(Store):
        def load(self, principal: str, now: float) -> tuple[Use, ...]:
            return Noting([Use(terms=WANTED.terms, tool=ISSUE, last=now)])

    assert list(await Learning(Full()).bonuses(ANN, WANTED)) == [ISSUE]
    assert threads
    assert threading.main_thread().name not in threads


async def test_writing_holds_nobody_up(store: Store):
    waiting: list[Callable[[], Coroutine[Any, Any, None]]] = []
    learning = Learning(store, waiting.append)
    await learning.bonuses(ANN, WANTED)
    learning.showed(ANN, WANTED, [ISSUE])
    await learning.called(ANN, answered())
    assert list(await learning.bonuses(ANN, WANTED)) == [ISSUE], "what is not written yet counts already"
    assert not store.kept["ann"]
    for work in waiting:
        await work()
    assert len(store.kept["ann"]) == 1


async def test_what_the_background_did_not_come_to_write_is_written_at_the_end(store: Store):
    learning = Learning(store, lambda _: None)
    learning.showed(ANN, WANTED, [ISSUE, BRANCH])
    await learning.called(ANN, answered())
    await learning.called(ANN, answered(BRANCH))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(learning.save)
        tasks.start_soon(learning.save)
    assert [use.tool for use in store.kept["ann"]] == [ISSUE, BRANCH], "each of them once"


async def test_a_writer_that_is_cancelled_loses_nothing(store: Store):
    learning = Learning(store, lambda _: None)
    learning.showed(ANN, WANTED, [ISSUE])
    await learning.called(ANN, answered())
    with anyio.CancelScope() as scope:
        scope.cancel()
        await learning.save()
    assert not store.kept["ann"]
    await learning.save()
    assert len(store.kept["ann"]) == 1


async def test_only_the_last_sessions_and_searches_are_held(learning: Learning, store: Store):
    learning.showed(ANN, WANTED, [ISSUE])
    for number in range(300):
        learning.showed(replace(ANN, session=f"s{number}"), OTHER, [BRANCH])
    await learning.called(ANN, answered())
    assert not store.kept, "the session was let go"
    learning.showed(ANN, WANTED, [ISSUE])
    for _ in range(20):
        learning.showed(ANN, OTHER, [BRANCH])
    await learning.called(ANN, answered())
    assert not store.kept, "the search was let go"


async def test_only_the_last_principals_uses_are_held(learning: Learning, store: Store):
    for number in range(100):
        await learning.bonuses(Caller(principal=f"p{number}", session="one"), WANTED)
    await learning.bonuses(Caller(principal="p99", session="one"), WANTED)
    assert len(store.loads) == 100
    await learning.bonuses(Caller(principal="p0", session="one"), WANTED)
    assert len(store.loads) == 101
