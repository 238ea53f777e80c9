"""Tasks and sessions end; failures, substitutes and prices are told as they are."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from delegate.delegates import Both, delegate, one_fallback, saying
from delegate.streams import ANSWERS, Scripted
from ullage.delegate import (
    DELEGATE,
    Alert,
    Ceiling,
    Ceilings,
    DelegateSource,
    LocalPurse,
    ProviderFailed,
    Purse,
    Spend,
    StoredPurse,
)
from ullage.delegate.delegate_tools import read_scopes
from ullage.errors import InvalidArguments, OverBudget, UllageError
from ullage.gateway import failed
from ullage.store import Database
from ullage.tool import Call, Caller, JsonObject, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S4:budgets")]

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
ME = Caller(principal="me", session="one")


@dataclass
class Bench:
    """A purse with a clock."""

    purse: Purse
    clock: list[datetime]
    told: list[Alert] = field(default_factory=list[Alert])

    async def spend(
        self, tokens: int, task: str | None = None, caller: Caller = ME, estimate: int | None = None
    ) -> None:
        ticket = await self.purse.reserve(_spend(estimate or tokens), caller, task)
        await self.purse.settle(ticket, _spend(tokens))

    async def spend_in_parts(self, tokens: int) -> None:
        """In calls that fit under the ceiling of a task, each of which is one of its own."""
        for _ in range(tokens // 10):
            await self.spend(10)

    def later(self, minutes: float) -> None:
        self.clock[0] += timedelta(minutes=minutes)


def _spend(tokens: int) -> Spend:
    return Spend(tokens=tokens, dollars=Decimal(tokens) / 1000)


@pytest.fixture(params=["local", "sqlite"])
def bench(request: pytest.FixtureRequest, tmp_path: Path):
    clock, told = [NOW], list[Alert]()
    limit = Ceiling(tokens=100)
    set_to = Ceilings(by_scope={"task": limit, "session": Ceiling(tokens=1_000), "day": Ceiling(tokens=10_000)})
    if request.param == "local":
        yield Bench(LocalPurse(ceilings=lambda: set_to, alert=told.append, now=lambda: clock[0]), clock, told)
        return
    database = Database.open(tmp_path / "store.db")
    stored = StoredPurse(database=database, ceilings=lambda: set_to, alert=told.append, now=lambda: clock[0])
    yield Bench(stored, clock, told)
    database.close()


@pytest.mark.requirement("S4:budgets")
async def test_a_task_ends_after_thirty_idle_minutes(bench: Bench):
    await bench.spend(60, "docs")
    bench.later(20)
    await bench.spend(30, "docs")
    bench.later(29)
    with pytest.raises(OverBudget, match="this task"):
        await bench.spend(20, "docs")
    bench.later(1)
    await bench.spend(100, "docs")
    with pytest.raises(OverBudget, match="this task"):
        await bench.spend(1, "docs")


@pytest.mark.requirement("S4:budgets")
async def test_a_session_ends_after_thirty_idle_minutes_and_a_day_does_not(bench: Bench):
    await bench.spend_in_parts(1_000)
    with pytest.raises(OverBudget, match="this session"):
        await bench.spend(1)
    await bench.spend(1, caller=replace(ME, session="two"))
    for _ in range(8):
        bench.later(30)
        await bench.spend_in_parts(1_000)
    bench.later(30)
    await bench.spend_in_parts(990)
    bench.later(30)
    with pytest.raises(OverBudget, match="this day"):
        await bench.spend(100)


@pytest.mark.requirement("S4:budgets")
async def test_a_call_that_took_long_was_activity_until_its_end(bench: Bench):
    ticket = await bench.purse.reserve(_spend(90), ME, "docs")
    bench.later(25)
    await bench.purse.settle(ticket, _spend(90))
    bench.later(10)
    with pytest.raises(OverBudget, match="this task"):
        await bench.spend(20, "docs")


@pytest.mark.requirement("S4:budgets")
async def test_a_caller_ends_only_its_own_tasks_and_sessions(bench: Bench):
    await bench.spend(100, "docs")
    await bench.purse.end(replace(ME, principal="you"), "docs")
    with pytest.raises(OverBudget, match="this task"):
        await bench.spend(1, "docs")
    await bench.purse.end(ME, "docs")
    await bench.spend(100, "docs")
    with pytest.raises(OverBudget, match="this task"):
        await bench.spend(1, "docs")
    await bench.spend_in_parts(800)
    with pytest.raises(OverBudget, match="this session"):
        await bench.spend(1)
    await bench.purse.end(ME)
    await bench.spend_in_parts(1_000)


@pytest.mark.requirement("S4:budgets")
async def test_every_threshold_is_reported_once_for_concurrent_calls(bench: Bench):
    tickets = [await bench.purse.reserve(_spend(20), ME, "docs") for _ in range(5)]
    for ticket in tickets:
        await bench.purse.settle(ticket, _spend(17))
    assert [one.part for one in bench.told if one.scope == "task"] == [Decimal("0.5"), Decimal("0.8")]


@pytest.mark.parametrize(
    ("meta", "task", "ends"),
    [
        ({}, None, (False, False)),
        ({"dev.ullage/task": "docs"}, "docs", (False, False)),
        ({"dev.ullage/task": "x" * 200}, "x" * 200, (False, False)),
        ({"dev.ullage/task": {"name": "docs"}}, "docs", (False, False)),
        ({"dev.ullage/task": {"name": "docs", "end": True}}, "docs", (True, False)),
        ({"dev.ullage/session": {"end": True}}, None, (False, True)),
    ],
)
async def test_a_task_is_named_in_the_metadata_of_a_call(meta: JsonObject, task: str | None, ends: tuple[bool, bool]):
    found = read_scopes(meta)
    assert (found.task, (found.ends_task, found.ends_session)) == (task, ends)


@pytest.mark.parametrize(
    "meta",
    [
        {"dev.ullage/task": one}
        for one in ("", " ", 3, [], {}, {"name": 3}, {"name": "a", "end": 1}, {"name": "a", "x": 1}, "x" * 201)
    ]
    + [{"dev.ullage/session": one} for one in ("one", {"end": "yes"}, {"name": "a"})],
)
async def test_what_is_no_name_is_refused(meta: JsonObject):
    with pytest.raises(InvalidArguments, match="cannot be read"):
        read_scopes(meta)


async def call(both: Both, purse: Purse | None = None, **other: Any) -> Reply:  # noqa: ANN401
    async with both.client() as client:
        return await DelegateSource(delegate=delegate(client, purse)).call(Call(caller=ME, **other))


@pytest.mark.requirement("S4:budgets")
async def test_calls_of_one_task_share_its_ceiling_and_others_do_not():
    set_to = Ceilings(by_scope={"task": Ceiling(tokens=2_120)})
    purse = LocalPurse(ceilings=lambda: set_to, now=lambda: NOW)
    both, asked = Both(Scripted([ANSWERS["chat"]])), {"prompt": "Please write hello"}
    for _ in range(2):
        await call(both, purse, tool="delegate.run", arguments=asked, meta={"dev.ullage/task": "docs"})
    ending: JsonObject = {"dev.ullage/task": {"name": "docs", "end": True}}
    with pytest.raises(OverBudget, match="this task"):
        await call(both, purse, tool="delegate.run", arguments=asked, meta=ending)
    await call(both, purse, tool="delegate.run", arguments=asked, meta={"dev.ullage/task": "docs"})
    for _ in range(4):
        await call(both, purse, tool="delegate.run", arguments=asked)


@pytest.mark.requirement("S4:reply", "S4:cost", "U:errors")
async def test_where_every_model_fails_the_metadata_has_attempts_and_cost():
    cut = Scripted([ANSWERS["chat"]], cut_after=2)
    both = Both(cut, Scripted([httpx2.Response(503)]))
    with pytest.raises(ProviderFailed) as raised:
        await call(both, tool="delegate.run", arguments={"prompt": "Please write hello"})
    reply = failed(raised.value)
    told: Any = reply.meta[DELEGATE]
    assert [one["success"] for one in told["meta"]["attempts"]] == [False] * 6
    assert told["meta"]["fallback_used"] is True
    assert told["cost"]["total"] > 0
    assert told["rationale"]
    assert reply.is_error


@pytest.mark.requirement("S4:fallback")
async def test_the_substitute_of_a_model_that_cools_down_is_a_fallback():
    limited = httpx2.Response(429, headers={"retry-after": "30"})
    both = Both(Scripted([limited]))
    async with both.client() as client:
        source = DelegateSource(delegate=delegate(client))
        for attempts in (2, 1):
            reply = await source.call(Call(tool="delegate.run", arguments={"prompt": "Please write hello"}))
            told: Any = reply.meta[DELEGATE]
            assert (told["decision"]["alias"], told["meta"]["fallback_used"]) == ("long-context", True)
            assert len(told["meta"]["attempts"]) == attempts
        both.google.answers = [httpx2.Response(503)]
        with pytest.raises(ProviderFailed) as raised:
            await source.call(Call(tool="delegate.run", arguments={"prompt": "Please write hello"}))
    lost: Any = failed(raised.value).meta[DELEGATE]
    assert lost["meta"]["fallback_used"] is True


@pytest.mark.requirement("S4:cost")
async def test_a_price_of_the_user_s_own_has_no_day():
    reply = await call(Both(Scripted([ANSWERS["chat"]])), tool="delegate.run", arguments={"prompt": "Please write"})
    told: Any = reply.meta[DELEGATE]
    assert (told["cost"]["price_source"], told["cost"]["as_of"]) == ("the user's own", None)


@pytest.mark.requirement("S4:more", "S4:route")
@pytest.mark.parametrize(("domain", "temperature"), [("code", 0.25), ("creative", 0.9), ("default", 0.7)])
async def test_domains_need_no_temperature_in_the_policy(domain: str, temperature: float):
    both = Both(Scripted([ANSWERS["chat"]]))
    async with both.client() as client:
        one = delegate(client, by=replace(one_fallback(), temperatures={}))
        await DelegateSource(delegate=one).call(
            Call(tool="delegate.run", arguments={"prompt": "Please write", "metadata": {"domain": domain}})
        )
    assert both.openai.bodies[0]["temperature"] == temperature


@pytest.mark.requirement("S4:more")
async def test_patches_and_tests_need_no_temperature_in_the_policy():
    both = Both(Scripted([saying("no patch")]))
    async with both.client() as client:
        source = DelegateSource(delegate=delegate(client, by=replace(one_fallback(), temperatures={})))
        for tool in ("delegate.diff", "delegate.tests"):
            with pytest.raises(UllageError, match="none of 3 answers"):
                await source.call(Call(tool=tool, arguments={"prompt": "Please mend it", "files": {"a.py": "x\n"}}))
    assert both.openai.bodies[0]["temperature"] == 0.25


FAILING: list[Callable[[], Any]] = [
    lambda: httpx2.ConnectError("no"),
    lambda: httpx2.Response(500),
    lambda: httpx2.Response(400),
    lambda: httpx2.Response(418),
    lambda: httpx2.Response(401),
    lambda: httpx2.Response(429),
    list,
    lambda: ["{broken"],
    lambda: [{"error": {"message": "x"}}],
]


@pytest.mark.requirement("U:errors")
@pytest.mark.parametrize("answer", FAILING)
async def test_no_suggestion_is_empty_for_any_failure(answer: Callable[[], Any]):
    both = Both(Scripted([answer(), answer(), answer()]), Scripted([answer(), answer(), answer()]))
    with anyio.fail_after(20), pytest.raises(ProviderFailed) as raised:
        await call(both, tool="delegate.run", arguments={"prompt": "Please write"})
    assert raised.value.suggestion
    assert raised.value.wire()["suggestion"]


@pytest.mark.requirement("U:errors")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"prompt": 1},
        {"prompt": "x", "forceModel": "none"},
        {"prompt": "x", "metadata": {"tier": "none"}},
        {"prompt": "x", "metadata": {"domain": "none"}},
        {"prompt": "x", "files": ["a"]},
        {"prompt": "x", "continue": "r1"},
        {"prompt": "x", "context": ["r1"]},
        {"prompt": "x", "schema": 3},
    ],
)
async def test_no_suggestion_is_empty_for_any_request(arguments: JsonObject):
    with pytest.raises(UllageError) as raised:
        await call(Both(Scripted([ANSWERS["chat"]])), tool="delegate.run", arguments=arguments)
    assert raised.value.suggestion


async def test_an_error_without_a_suggestion_gets_one():
    @dataclass
    class Silent:
        async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
            raise InvalidArguments("no", options=("a",) if handles == ("r1",) else ())

    async with Both(Scripted([ANSWERS["chat"]])).client() as client:
        source = DelegateSource(delegate=delegate(client), held=Silent())
        for handle, hint in (("r1", "options"), ("r2", "try again")):
            with pytest.raises(InvalidArguments) as raised:
                await source.call(Call(tool="delegate.run", arguments={"prompt": "x", "context": [handle]}))
            assert hint in raised.value.suggestion


@pytest.mark.requirement("S4:budgets")
@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("dev.ullage/session", True),
        ("dev.ullage/session", {"end": "yes"}),
        ("dev.ullage/session", {"name": "x"}),
        ("dev.ullage/task", ""),
        ("dev.ullage/task", 5),
        ("dev.ullage/task", {"name": "x", "end": 1}),
        ("dev.ullage/task", {"name": "x", "other": True}),
    ],
)
def test_a_scope_that_cannot_be_read_is_named(key: str, wrong: Any):  # noqa: ANN401
    with pytest.raises(InvalidArguments, match=key):
        read_scopes({key: wrong})


@pytest.mark.requirement("S4:budgets")
def test_sessions_and_tasks_end_only_where_it_is_said():
    ended = read_scopes({"dev.ullage/session": {"end": True}, "dev.ullage/task": {"name": "docs", "end": True}})
    assert (ended.task, ended.ends_task, ended.ends_session) == ("docs", True, True)
    kept = read_scopes({"dev.ullage/session": {"end": False}, "dev.ullage/task": "docs"})
    assert (kept.task, kept.ends_task, kept.ends_session) == ("docs", False, False)
    assert read_scopes({}).task is None
