from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import anyio
import httpx2
import pytest

from delegate.delegates import METER, QUICK, Both, FakePurse, delegate, one_fallback
from delegate.policies import policy
from delegate.streams import ANSWERS, WIRES, Scripted
from ullage.delegate import Ask, Delegate, Policy, ProviderFailed, Spend, Timeouts, TooLong
from ullage.messages import Message, Text
from ullage.models import Usage
from ullage.tool import Caller

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S4:fallback")]


def ask(text: str = "Please write the word hello", **more: object) -> Ask:
    return replace(Ask(messages=(Message(role="user", parts=(Text(text),)),)), **more)  # type: ignore[arg-type]


BROKEN = {
    "cut": Scripted([ANSWERS["chat"]], cut_after=2),
    "truncated": Scripted([ANSWERS["chat"][:2]]),
    "malformed": Scripted([[ANSWERS["chat"][0], "{nonsense"]]),
    "idle": Scripted([ANSWERS["chat"]], stall=2),
}


@pytest.mark.requirement("S4:stream", "S4:fallback")
@pytest.mark.parametrize("kind", BROKEN)
async def test_a_stream_that_fails_is_answered_by_the_next_model(kind: str):
    both = Both(replace(BROKEN[kind], requests=[], answers=list(BROKEN[kind].answers)))
    async with both.client() as client:
        outcome = await delegate(client).run(ask())
    assert (outcome.completion.text, outcome.candidate.alias) == ("Hello there", "long-context")
    assert outcome.fallback_used
    assert [one.kind for one in outcome.attempts][-2:] == [kind, None]
    assert outcome.attempts[-1].success


@pytest.mark.requirement("S4:retry")
@pytest.mark.parametrize("status", [429, 503])
async def test_trouble_that_passes_is_waited_out(status: int):
    short = httpx2.Response(status, headers={"retry-after": "0.01"})
    both = Both(Scripted([short, short, ANSWERS["chat"]]))
    async with both.client() as client:
        outcome = await delegate(client).run(ask())
    assert not outcome.fallback_used
    assert [one.success for one in outcome.attempts] == [False, False, True]
    assert outcome.attempts[1].waited >= 10


@pytest.mark.requirement("S4:retry", "S4:fallback")
async def test_a_long_wait_is_not_waited_and_the_next_call_passes_that_model_by():
    both = Both(Scripted([httpx2.Response(429, headers={"retry-after": "30"})]))
    async with both.client() as client:
        asking = delegate(client)
        with anyio.fail_after(20):
            first = await asking.run(ask())
            second = await asking.run(ask())
    assert [one.kind for one in first.attempts] == ["rate_limited", None]
    assert len(second.attempts) == 1
    assert second.route.rationale[-1] == "benched: chat-default"
    assert len(both.openai.requests) == 1


@pytest.mark.requirement("S4:retry")
@pytest.mark.parametrize("status", [400, 422])
async def test_what_was_asked_wrongly_is_asked_of_nobody_else(status: int):
    both = Both(Scripted([httpx2.Response(status, json={"error": {"message": "bad"}})]))
    purse = FakePurse()
    async with both.client() as client:
        with pytest.raises(ProviderFailed, match=str(status)):
            await delegate(client, purse).run(ask())
    assert (len(both.openai.requests), len(both.google.requests)) == (1, 0)
    assert purse.settled == [Spend(tokens=0, dollars=Decimal(0))]


@pytest.mark.requirement("S4:retry")
async def test_a_prompt_that_was_too_long_goes_to_the_next_larger_window():
    too_long = httpx2.Response(400, json={"error": {"code": "context_length_exceeded"}})
    chain = replace(policy(), fallbacks={"chat-default": ("chat-premium", "long-context")})
    both = Both(Scripted([too_long]))
    async with both.client() as client:
        outcome = await delegate(client, by=chain).run(ask())
    assert outcome.candidate.alias == "long-context"
    assert len(both.openai.requests) == 1, "chat-premium has the same window and is passed by"


@pytest.mark.requirement("S4:fallback")
@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_key_or_name_that_is_wrong_falls_back_and_is_said_aloud(status: int):
    both = Both(Scripted([httpx2.Response(status)]))
    async with both.client() as client:
        outcome = await delegate(client).run(ask())
    assert outcome.candidate.alias == "long-context"
    assert str(status) in outcome.warnings[0]


@pytest.mark.requirement("S4:retry", "S4:fallback")
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"code": "insufficient_quota", "type": "insufficient_quota", "message": "You exceeded your quota"}),
        (400, {"type": "invalid_request_error", "message": "Your credit balance is too low to go on"}),
    ],
)
async def test_an_account_with_nothing_left_is_asked_once_and_said_aloud(status: int, error: dict[str, str]):
    both = Both(Scripted([httpx2.Response(status, json={"error": error})]))
    async with both.client() as client:
        outcome = await delegate(client).run(ask())
    assert [one.kind for one in outcome.attempts] == ["exhausted", None]
    assert outcome.warnings == (f"openai answered {status}: {error['message']}",)


@pytest.mark.requirement("S4:env", "S4:providers")
async def test_a_provider_without_a_key_is_passed_by():
    both = Both(Scripted([ANSWERS["chat"]]))
    async with both.client() as client:
        asking = delegate(client)
        asking.providers = {"google": asking.providers["google"]}
        outcome = await asking.run(ask())
    assert [one.kind for one in outcome.attempts] == ["no_key", None]
    assert both.openai.requests == []


@pytest.mark.requirement("S4:usage", "S4:cost")
async def test_what_was_used_is_reported_and_priced_with_the_users_own_price():
    both, purse = Both(Scripted([ANSWERS["chat"]])), FakePurse()
    async with both.client() as client:
        outcome = await delegate(client, purse).run(ask())
    assert outcome.usage == Usage(input=39, output=5, cache_read=38)
    assert outcome.cost is not None
    assert outcome.cost.total == 39 * Decimal("0.000003") + 5 * Decimal("0.000009")
    assert purse.settled == [Spend(tokens=44, dollars=outcome.cost.total)]
    assert purse.reserved[0].tokens > outcome.estimated_input > 0


@pytest.mark.requirement("S4:usage", "S4:cost")
async def test_an_attempt_that_failed_after_it_began_is_billed_by_the_estimate():
    both, purse = Both(Scripted([ANSWERS["chat"]], cut_after=2)), FakePurse()
    async with both.client() as client:
        asking = delegate(client, purse)
        asking.patience = replace(QUICK, retries=0)
        outcome = await asking.run(ask())
    failed, answered = outcome.attempts
    assert (failed.usage.input, failed.usage_reported) == (outcome.estimated_input, False)
    assert failed.usage.output == METER.count("Hello there", "gpt-4o-mini").tokens
    assert failed.cost is not None
    assert answered.cost is not None
    assert outcome.cost is not None
    assert outcome.cost.total == (failed.cost.total or 0) + (answered.cost.total or 0)
    assert [one.dollars for one in purse.settled] == [failed.cost.total, answered.cost.total]


@pytest.mark.requirement("S4:usage")
async def test_a_provider_that_reports_nothing_gets_the_estimate_marked():
    both = Both(Scripted([ANSWERS["chat"][:3]]))
    async with both.client() as client:
        outcome = await delegate(client).run(ask())
    assert not outcome.usage_reported
    assert outcome.usage.input == outcome.estimated_input


@pytest.mark.requirement("S4:retry")
async def test_one_deadline_holds_over_all_attempts():
    both, purse = Both(Scripted([ANSWERS["chat"]], pause=60), Scripted([ANSWERS["gemini"]], pause=60)), FakePurse()
    async with both.client() as client:
        asking = delegate(client, purse)
        with anyio.fail_after(20), pytest.raises(ProviderFailed) as failed:
            await asking.run(ask(deadline=anyio.current_time() + 0.1))
    assert failed.value.kind == "deadline"
    assert len(purse.settled) == 1


@pytest.mark.requirement("S4:cost")
async def test_a_run_that_is_cancelled_is_settled_with_what_had_come():
    both, purse = Both(Scripted([ANSWERS["chat"]], stall=0.05)), FakePurse()
    async with both.client() as client:
        with anyio.CancelScope() as scope:
            await delegate(client, purse).run(ask(), lambda _: scope.cancel())
    assert scope.cancelled_caught
    assert purse.settled[0].tokens > 0


def on_the_wire(asking: Delegate, wire: str, timeouts: Timeouts | None = None) -> Delegate:
    openai = asking.providers["openai"]
    openai = replace(openai, wire=WIRES[wire], timeouts=timeouts or openai.timeouts)
    return replace(asking, providers={**asking.providers, "openai": openai})


@pytest.mark.requirement("S4:budgets")
async def test_what_was_reported_before_a_run_was_given_up_is_paid_for():
    both = Both(Scripted([ANSWERS["anthropic"]], stall=60))
    for limit in (None, 1.0):
        purse = FakePurse()
        async with both.client() as client:
            asking = on_the_wire(delegate(client, purse), "anthropic", Timeouts(first_byte=60, idle=60))
            with anyio.move_on_after(1 if limit is None else 20), suppress(ProviderFailed):
                await asking.run(ask(deadline=limit and anyio.current_time() + limit))
        assert purse.settled[0].tokens == 39 + 1


@pytest.mark.requirement("S4:usage")
async def test_usage_reported_at_the_start_is_not_taken_for_the_total():
    long = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "one two " * 50}}
    both, purse = Both(Scripted([[*ANSWERS["anthropic"][:2], long]])), FakePurse()
    async with both.client() as client:
        outcome = await on_the_wire(delegate(client, purse), "anthropic").run(ask())
    broken = outcome.attempts[0]
    assert (broken.kind, broken.usage.input, broken.usage_reported) == ("truncated", 39, False)
    assert broken.usage.output is not None
    assert broken.usage.output >= 100


@pytest.mark.requirement("S4:usage")
async def test_calls_without_reported_usage_are_counted():
    call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": '{"where": "' + "far away " * 30 + '"}'}}
    said = [{"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}]
    async with Both(Scripted([said])).client() as client:
        outcome = await delegate(client).run(ask())
    assert outcome.usage.output is not None
    assert outcome.usage.output > 60
    assert not outcome.usage_reported


@pytest.mark.requirement("S4:risks")
async def test_a_sessions_language_sticks():
    both = Both(Scripted([ANSWERS["chat"]]))
    async with both.client() as client:
        asking = delegate(client)
        assert (await asking.plan(ask("Explique o que é um contador de tokens")))[0].candidates[
            0
        ].alias == "chat-premium"
        route, _ = await asking.plan(ask("ok"))
        assert route.rationale[0] == "language: pt (the session's) -> chat-premium"
        other = ask("ok", caller=Caller(principal="someone", session="else"))
        assert (await asking.plan(other))[0].candidates[0].alias == "chat-default"


@pytest.mark.requirement("S4:risks", "S4:fallback")
async def test_the_languages_of_very_many_sessions_are_not_all_kept():
    both = Both(Scripted([ANSWERS["chat"]]))
    async with both.client() as client:
        asking = delegate(client)

        async def alias(prompt: str, session: int) -> str | None:
            caller = Caller(principal="ada", session=f"s{session}")
            return (await asking.plan(ask(prompt, caller=caller)))[0].candidates[0].alias

        for number in range(MOST_SESSIONS):
            await alias("Explique o que é um contador de tokens", number)
        assert await alias("ok", 0) == "chat-premium"
        await alias("Explique o que é um contador de tokens", MOST_SESSIONS)
        assert await alias("ok", MOST_SESSIONS) == "chat-premium"
        assert await alias("ok", 0) == "chat-default"


MOST_SESSIONS = 1_000
LONG = "Please sum up: " + "word and word again " * 200_000 + " and end with THE END"


def tiny() -> Policy:
    small = {key: replace(entry, window=3_000, cap_hard=100) for key, entry in policy().models.items()}
    return replace(one_fallback(), models=small)


@pytest.mark.requirement("S4:risks")
async def test_a_prompt_that_no_window_holds_is_refused_unless_it_may_be_cut():
    both = Both(Scripted([ANSWERS["chat"]]))
    async with both.client() as client:
        with pytest.raises(TooLong, match="the largest window is 3000"):
            await delegate(client, by=tiny()).run(ask(LONG))
        assert both.openai.requests == []
        outcome = await delegate(client, by=tiny()).run(ask(LONG, cut=True))
    sent = both.openai.bodies[0]["messages"][0]["content"] if both.openai.requests else ""
    sent = sent or both.google.bodies[0]["contents"][0]["parts"][0]["text"]
    assert sent.startswith("Please sum up:")
    assert sent.endswith("THE END")
    assert "characters left out" in sent
    assert 2_700 < outcome.estimated_input <= 2_900
    assert outcome.warnings[0].startswith("the prompt was cut: ")


@pytest.mark.requirement("S4:risks")
async def test_what_cannot_be_cut_is_refused_all_the_same():
    both = Both(Scripted([ANSWERS["chat"]]))
    async with both.client() as client:
        asking = delegate(client, by=tiny())
        asking.cut = True
        system = Message(role="system", parts=(Text(LONG),))
        for messages in ((system, Message(role="user", parts=(Text("Hi"),))), (system,)):
            with pytest.raises(TooLong):
                await asking.run(Ask(messages=messages))


@pytest.mark.requirement("S4:cost")
async def test_the_cost_of_a_model_without_a_price_is_unknown():
    unpriced = {key: replace(entry, price=None, model="my-own") for key, entry in policy().models.items()}
    both, purse = Both(Scripted([ANSWERS["chat"]])), FakePurse()
    async with both.client() as client:
        outcome = await delegate(client, purse, replace(one_fallback(), models=unpriced)).run(ask())
    assert outcome.cost is None
    assert purse.settled == [Spend(tokens=44, dollars=None)]


@pytest.mark.requirement("S4:cost")
async def test_what_the_provider_says_it_billed_wins():
    said = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 1, "cost": 0.25}}
    both = Both(Scripted([[*ANSWERS["chat"][:3], said]]))
    async with both.client() as client:
        outcome = await delegate(client).run(ask())
    assert outcome.cost is not None
    assert (outcome.cost.total, outcome.cost.source) == (Decimal("0.25"), "reported by openai")


async def test_where_nobody_answers_every_attempt_is_listed():
    server, unreachable = httpx2.Response(500), httpx2.ConnectError("at http://secret.test")
    both = Both(Scripted([server, server, server]), Scripted([unreachable, unreachable, unreachable]))
    async with both.client() as client:
        with pytest.raises(ProviderFailed) as raised:
            await delegate(client).run(ask())
    first, *lines = raised.value.message.splitlines()
    assert first == "no model answered:"
    assert lines[0].startswith("  `openai`, model `gpt-4o-mini`: ")
    assert lines[0].endswith(" (3 times)")
    assert lines[1].startswith("  `google`, model `")
    assert lines[1].endswith("`: cannot be reached (3 times)")
    assert raised.value.kind == "connect"
    assert raised.value.suggestion.endswith("check `google`'s address")
