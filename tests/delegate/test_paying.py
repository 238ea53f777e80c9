import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import httpx2
import pytest

from delegate.delegates import Both, FakePurse, delegate, one_fallback
from delegate.streams import ANSWERS, Scripted
from ullage.delegate import Ask, Ceiling, Ceilings, Event, StoredPurse
from ullage.errors import OverBudget
from ullage.messages import Message, Text
from ullage.store import Database

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S4:budgets")]

ASK = Ask(messages=(Message(role="user", parts=(Text("Please write the word hello"),)),))


@pytest.mark.requirement("S4:budgets")
async def test_a_failed_attempt_is_settled_before_the_next_one():
    both, purse = Both(Scripted([ANSWERS["chat"]], cut_after=2)), FakePurse()
    async with both.client() as client:
        asking = delegate(client, purse)
        purse.reservations = 1
        with pytest.raises(OverBudget):
            await asking.run(ASK)
    assert len(both.openai.requests) == 1
    assert both.google.requests == []
    assert [one.tokens > 0 for one in purse.settled] == [True]


@pytest.mark.requirement("S4:budgets")
async def test_failed_attempts_count_towards_the_ceiling_of_a_call(tmp_path: Path):
    both, free = Both(Scripted([ANSWERS["chat"]], cut_after=2)), FakePurse()
    database = Database.open(tmp_path / "store.db")
    async with both.client() as client:
        await delegate(client, free).run(ASK)
        asked, enough = len(both.openai.requests), Ceiling(tokens=free.reserved[0].tokens)
        purse = StoredPurse(database=database, ceilings=lambda: Ceilings(by_scope={"call": enough}))
        with pytest.raises(OverBudget, match="this call"):
            await delegate(client, purse).run(ASK)
    database.close()
    assert len(both.openai.requests) == asked + 1


@pytest.mark.requirement("S4:budgets")
async def test_what_took_nothing_needs_no_new_estimate():
    both, purse = Both(Scripted([httpx2.Response(503)])), FakePurse()
    async with both.client() as client:
        outcome = await delegate(client, purse).run(ASK)
    assert len(outcome.attempts) == 4
    assert (len(purse.reserved), len(purse.settled)) == (1, 1)


@pytest.mark.requirement("S4:budgets")
async def test_an_estimate_is_charged_if_an_internal_error_hides_the_usage():
    both, purse = Both(Scripted([ANSWERS["chat"]])), FakePurse()

    def hear(_: Event) -> None:
        raise RuntimeError("a fault of ours")

    async with both.client() as client:
        with pytest.raises(RuntimeError):
            await delegate(client, purse).run(ASK, hear)
    assert (len(purse.reserved), len(purse.settled)) == (1, 0)


@pytest.mark.requirement("S4:budgets")
async def test_an_answer_is_not_lost_where_its_price_cannot_be_written_down():
    both, purse = Both(Scripted([ANSWERS["chat"]])), FakePurse(broken=True)
    async with both.client() as client:
        outcome = await delegate(client, purse).run(ASK)
    assert outcome.completion.text == "Hello there"
    assert "so the estimate is charged: the disk is full" in outcome.warnings[0]


@pytest.mark.requirement("S4:budgets")
async def test_a_fallback_without_a_price_is_skipped_under_a_money_limit(tmp_path: Path):
    both = Both(Scripted([httpx2.Response(503)]))
    database = Database.open(tmp_path / "store.db")
    purse = StoredPurse(database=database, ceilings=lambda: Ceilings(by_scope={"day": Ceiling(dollars=Decimal(9))}))
    models = one_fallback().models
    unpriced = {
        name: replace(entry, price=None, model="my-own") if entry.provider == "google" else entry
        for name, entry in models.items()
    }
    async with both.client() as client:
        with pytest.raises(OverBudget, match="not known"):
            await delegate(client, purse, replace(one_fallback(), models=unpriced)).run(ASK)
    database.close()
    assert both.openai.requests
    assert both.google.requests == []


@pytest.mark.requirement("S4:budgets")
async def test_a_model_may_answer_with_no_more_than_was_set_aside_for_it():
    both, purse = Both(Scripted([ANSWERS["chat"]])), FakePurse()
    unknown = {
        name: replace(entry, model="my-own", max_output_tokens=None, cap_default=None, cap_hard=None)
        for name, entry in one_fallback().models.items()
    }
    async with both.client() as client:
        policy = replace(one_fallback(), models=unknown, cap_default=None)
        outcome = await delegate(client, purse, policy).run(ASK)
    allowed = json.loads(both.openai.requests[0].content)["max_tokens"]
    assert purse.reserved[0].tokens == outcome.estimated_input + allowed
