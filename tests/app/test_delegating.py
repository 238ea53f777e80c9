"""Other models behind the gateway: when they are there, what is asked of whom, and who is told."""

import csv
import json
import logging
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from app.loopback import Loopback, loopback
from approving import load
from delegate.policies import MODELS, POLICIES
from ullage.app.build_delegate import MODELS as CHOSEN
from ullage.app.build_delegate import default_policy, open_delegate
from ullage.app.build_gateway import Gateway, open_gateway
from ullage.app.build_sources import DELEGATED, RETRIEVED
from ullage.app.count_text import meter
from ullage.config import Flags, providers_off
from ullage.delegate import (
    DELEGATE,
    TOOLS,
    Alert,
    Ask,
    Ceiling,
    Ceilings,
    LocalPurse,
    Policy,
    ProviderFailed,
    RouteRequest,
    Spend,
    lint,
    route,
)
from ullage.errors import BadConfiguration, OverBudget, UnknownHandle, UnknownTool
from ullage.gateway import META
from ullage.ledger import read_entries
from ullage.messages import Message, Text
from ullage.models import shipped
from ullage.retrieve import TOOL
from ullage.store import Database
from ullage.tokens import Method
from ullage.tool import Call, Caller, Reply
from upstreams import scripted, tool, write_toml

pytestmark = pytest.mark.anyio

SEARCH = '[gateway]\nmode = "search"\n'
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")
ME = Caller(principal="me", session="s")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, "ORCH_LOG_LEVEL", "ORCH_COST_ALERT_USD", "ORCH_USAGE_EXPORT"):
        monkeypatch.delenv(name, raising=False)


def write_user(work: Path, text: str) -> Path:
    file = work.parent / "home" / "config" / "ullage" / "ullage.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def write_conf(work: Path, models: Any = MODELS, policies: Any = POLICIES) -> None:  # noqa: ANN401
    (work / "conf").mkdir(exist_ok=True)
    (work / "conf" / "models.json").write_text(json.dumps(models), encoding="utf-8")
    (work / "conf" / "policies.json").write_text(json.dumps(policies), encoding="utf-8")


@asynccontextmanager
async def opened(work: Path) -> AsyncGenerator[Gateway]:
    async with open_gateway(load(Flags(), os.environ, work), environment=os.environ) as gateway:
        await gateway.view(30)
        yield gateway


async def names(gateway: Gateway) -> list[str]:
    return [one.name for one in (await gateway.flagged(None).source.tools()).tools]


async def ask(gateway: Gateway, name: str, /, caller: Caller = ME, **arguments: Any) -> Reply:  # noqa: ANN401
    return await gateway.flagged(None).source.call(Call(tool=name, arguments=arguments, caller=caller))


def text(reply: Reply) -> str:
    return str(reply.content[-1]["text"])


def said(reply: Reply) -> dict[str, Any]:
    return cast("dict[str, Any]", reply.meta[DELEGATE])


@pytest.mark.requirement("U:own", "S4:providers")
async def test_nothing_of_it_is_there_without_a_key_or_without_a_word_of_it(
    work: Path, monkeypatch: pytest.MonkeyPatch
):
    write_conf(work)
    async with opened(work) as gateway:
        assert await names(gateway) == ["count-tokens", "read_result"]
        with pytest.raises(UnknownTool):
            await ask(gateway, "delegate.run", prompt="hi")
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    async with opened(work) as gateway:
        assert "delegate.run" not in await names(gateway)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    async with opened(work) as gateway:
        assert [one for one in await names(gateway) if one.startswith("delegate")] == list(DELEGATED)
    for name in ("models", "policies"):
        (work / "conf" / f"{name}.json").unlink()
    async with opened(work) as gateway:
        assert "delegate.run" not in await names(gateway)
    write_user(work, "[delegate]\n")
    async with opened(work) as gateway:
        assert "delegate.run" in await names(gateway)


@pytest.mark.requirement("U:own")
async def test_run_is_listed_the_rest_are_found_and_names_may_have_underscores(
    work: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    write_conf(work)
    many = scripted(*(tool(f"tool_{number}") for number in range(3)))
    write_toml(work / "ullage.toml", SEARCH, many=many)
    async with opened(work) as gateway:
        listed = ["find_tool", "call_tool", "call_tool_write", "count-tokens", "read_result", "delegate.run"]
        assert await names(gateway) == listed
        found = await ask(gateway, "find_tool", tool_description="have a model write a unified patch")
        assert "delegate.diff" in text(found)
    write_toml(work / "ullage.toml", f"{SEARCH}underscore_names = true\n[own]\npinned = ['delegate.diff']\n", many=many)
    async with opened(work) as gateway:
        assert (await names(gateway))[-2:] == ["delegate_run", "delegate_diff"]
    write_toml(work / "ullage.toml", f"{SEARCH}[own]\ndeny = ['delegate.*']\n", many=many)
    async with opened(work) as gateway:
        assert "delegate.run" not in await names(gateway)
        denied = await ask(gateway, "delegate.run", prompt="hi")
        assert json.loads(text(denied))["error_code"] == "DENIED"


def test_the_names_that_are_known_before_anything_is_loaded_are_the_tools():
    assert tuple(one.name for one in TOOLS) == DELEGATED
    assert TOOL.name == RETRIEVED


@pytest.fixture
def provider(work: Path, monkeypatch: pytest.MonkeyPatch):
    """OpenAI and Google on loopback, with the original's policy; Anthropic has no key."""
    write_conf(work)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("GOOGLE_API_KEY", "g-test")
    with loopback() as found:
        write_user(work, found.providers())
        yield found


@pytest.mark.requirement("S4:reply", "S4:usage", "S4:cost")
async def test_a_call_is_answered_and_everything_else_is_metadata_and_in_the_ledger(work: Path, provider: Loopback):
    async with opened(work) as gateway:
        store = gateway.settings.store
        reply = await ask(gateway, "delegate.run", prompt="Você pode dizer qual é a capital da França?")
        assert text(reply) == "Hello there"
        assert said(reply)["decision"] == {"provider": "openai", "model": "gpt-4o", "alias": "chat-premium"}
        assert said(reply)["usage"]["total_tokens"] == 44
        assert said(reply)["cost"]["total"] == pytest.approx(39 * 0.00001 + 5 * 0.00003)
        assert cast("Any", reply.meta[META])["tokens"]["estimated"] == 2
        (path, headers, body) = provider.asked[0]
        assert (path, headers["authorization"], body["model"]) == ("/v1/responses", "Bearer sk-test", "gpt-4o")
    database = Database.open(store)
    (entry,) = [one for one in read_entries(database) if one.kind == "model"]
    database.close()
    assert (entry.tokens, entry.model, entry.server, entry.tool) == (44, "gpt-4o", "openai", "delegate.run")
    assert (entry.method, entry.is_error, entry.principal) == (Method.ANCHORED, False, "me")
    assert (entry.detail["cost"], entry.detail["alias"]) == ("0.00054", "chat-premium")


@pytest.mark.requirement("S4:fallback", "S4:telemetry")
async def test_a_refused_model_is_passed_over_and_every_attempt_told(
    work: Path, provider: Loopback, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    export = work / "use.csv"
    monkeypatch.setenv("ORCH_USAGE_EXPORT", str(export))
    monkeypatch.setenv("ORCH_COST_ALERT_USD", "0.0000001")
    caplog.set_level(logging.INFO, "ullage.delegate")
    provider.refusing = {"gpt-4o-mini": 401, "gpt-4o": 404}
    async with opened(work) as gateway:
        reply = await ask(gateway, "delegate.run", prompt="What is the capital of France?")
    assert said(reply)["decision"]["provider"] == "google"
    assert [one["success"] for one in said(reply)["meta"]["attempts"]] == [False, False, True]
    assert said(reply)["meta"]["fallback_used"] is True
    assert "SECRET BODY" not in json.dumps([said(reply), caplog.messages])
    events = [json.loads(line)["event"] for line in caplog.messages if line.startswith("{")]
    assert {"fallback", "route", "cost_alert"} <= set(events)
    rows = list(csv.DictReader(export.read_text(encoding="utf-8").splitlines()))
    assert [row["success"] for row in rows] == ["False", "False", "True"]
    assert "sk-test" not in export.read_text(encoding="utf-8") + " ".join(caplog.messages)


@pytest.mark.requirement("S4:more", "S4:cost")
@pytest.mark.parametrize("judge", [None, "chat-premium"])
async def test_what_a_consensus_cost_is_what_the_ledger_says_with_those_who_failed_among_it(
    work: Path, provider: Loopback, judge: str | None
):
    provider.cut = {"gpt-4o-mini", "gpt-4o"}
    asked: dict[str, Any] = {"models": ["chat-default", "long-context"], **({"judge": judge} if judge else {})}
    async with opened(work) as gateway:
        store = gateway.settings.store
        reply = await ask(gateway, "delegate.consensus", prompt="Greet me.", **asked)
    assert list(said(reply)["answers"]) == ["long-context"]
    database = Database.open(store)
    entries = [one for one in read_entries(database) if one.kind == "model"]
    database.close()
    assert any(one.is_error and one.tokens for one in entries)
    assert said(reply)["cost"]["total"] == float(sum(Decimal(str(one.detail["cost"])) for one in entries))


@pytest.mark.requirement("S4:schema", "S4:more")
async def test_context_is_put_before_the_prompt_without_passing_through_the_callers_window(
    work: Path, provider: Loopback
):
    (work / "docs").mkdir()
    (work / "docs" / "guide.md").write_text("# Kettles\n\nA kettle boils water in 3 minutes.\n", encoding="utf-8")
    give = tool("give", inputSchema={"type": "object"})
    settings = '[results]\nbudget = 300\n[retrieve.docs]\nfolders = ["docs"]\n[retrieve.more]\nfiles = ["README.md"]\n'
    write_toml(work / "ullage.toml", settings, notes=scripted(give))
    rows = [{"id": number, "name": f"item {number}"} for number in range(900)]
    content = [{"type": "text", "text": json.dumps(rows)}, {"type": "text", "text": "and a last word"}]
    async with opened(work) as gateway:
        assert "retrieve.search" in await names(gateway)
        assert "more__retrieve_search" in await names(gateway)
        cut = await ask(gateway, "notes__give", result={"content": content})
        held = text(cut).partition('handle="')[2].partition('"')[0]
        found = await ask(gateway, "retrieve.search", query="how long does a kettle take")
        passages = text(found).rpartition(": ")[2]
        reply = await ask(gateway, "delegate.run", prompt="Sum up.", context=[held, passages])
        assert text(reply) == "Hello there"
        (asked,) = provider.prompts
        for piece in ("item 899", "and a last word", "boils water", "Sum up."):
            assert piece in asked
        stranger = await ask(gateway, "delegate.run", Caller(principal="you", session="s"), prompt="x", context=[held])
        assert json.loads(text(stranger))["error_code"] == "UNKNOWN_HANDLE"


@pytest.mark.requirement("S4:schema")
async def test_several_handles_share_one_budget_and_what_finds_no_room_is_said(work: Path):
    give = tool("give", inputSchema={"type": "object"})
    write_toml(work / "ullage.toml", "[results]\nbudget = 300\n", notes=scripted(give))
    content = [{"type": "text", "text": json.dumps([{"id": number, "name": "x" * 40} for number in range(500)])}]
    async with opened(work) as gateway:
        cut = await ask(gateway, "notes__give", result={"content": content})
        handle = text(cut).partition('handle="')[2].partition('"')[0]
        held = gateway.delegating.held
        both = await held.passages((handle, handle), ME, 600)
        assert meter().count(both, "gpt-4o").tokens <= 610
        assert both.count('{"id":0') + both.count("\n0,") == 2
        assert (await held.passages((handle,) * 3, ME, 90)).endswith("[3 more left out]")
        with pytest.raises(UnknownHandle):
            await held.passages(("r1",), ME, 500)


@pytest.mark.requirement("S4:budgets")
async def test_a_call_over_the_budget_is_refused_before_anybody_is_asked(
    work: Path, provider: Loopback, caplog: pytest.LogCaptureFixture
):
    file = write_user(work, f"{provider.providers()}[delegate.budgets]\nday = {{ tokens = 10 }}\n")
    async with opened(work) as gateway:
        refused = await ask(gateway, "delegate.run", prompt="hi")
        assert json.loads(text(refused))["error_code"] == "OVER_BUDGET"
        assert provider.asked == []
        file.write_text(f"{provider.providers()}[delegate.budgets]\nalerts = [0.01]\nday = {{ tokens = 3000 }}\n")
        await gateway.adopt(load(Flags(), os.environ, work))
        assert text(await ask(gateway, "delegate.run", prompt="hi")) == "Hello there"
        assert "1% of the budget of this day is spent" in caplog.messages


@pytest.mark.requirement("S1:live")
async def test_other_settings_are_taken_over_and_what_left_is_gone(work: Path, provider: Loopback):
    async with opened(work) as gateway:
        await ask(gateway, "delegate.run", prompt="What is this?")
        before = gateway.delegating._source
        await gateway.adopt(load(Flags(), os.environ, work))
        await ask(gateway, "delegate.run", prompt="What is this?")
        assert gateway.delegating._source is before
        write_conf(work, {**MODELS, "aliases": {**MODELS["aliases"], "chat-default": "google:gemini-1.5-pro"}})
        await gateway.adopt(load(Flags(), os.environ, work))
        reply = await ask(gateway, "delegate.run", prompt="What is this?")
        assert said(reply)["decision"]["provider"] == "google"
        assert before is not None
        assert gateway.delegating._source is not None
        assert gateway.delegating._source.delegate.cooldowns is before.delegate.cooldowns
        for name in ("models", "policies"):
            (work / "conf" / f"{name}.json").unlink()
        write_user(work, "")
        await gateway.adopt(load(Flags(), os.environ, work))
        with pytest.raises(UnknownTool):
            await ask(gateway, "delegate.run", prompt="hi")


@pytest.mark.requirement("S4:lint", "S4:providers")
async def test_a_missing_key_and_what_is_odd_in_a_policy_are_said_once(
    work: Path, provider: Loopback, caplog: pytest.LogCaptureFixture
):
    async with opened(work) as gateway:
        gateway.warm_up()
        with anyio.fail_after(20):
            while not caplog.messages:
                await anyio.sleep(0.05)
        first = list(caplog.messages)
        await gateway.adopt(load(Flags(), os.environ, work))
        assert caplog.messages == first
    assert "provider `anthropic` is off: `ANTHROPIC_API_KEY` is not set" in first
    assert any("policies.json:1: for `pt` the first bucket's" in one for one in first)


@pytest.mark.requirement("S4:providers")
def test_why_a_provider_is_off_is_said_without_its_key(work: Path):
    write_conf(
        work, {"models": {"x:m": {"provider": "x", "model": "m"}, "o:m": {"provider": "openai", "model": "m"}}}, {}
    )
    settings = load(Flags(), {}, work).settings
    assert providers_off(settings, {"OPENAI_API_KEY": "hunter2\nhunter2"}) == (
        "provider `x` is off: the policy names it, and it is not configured",
        "provider `openai` is off: what `OPENAI_API_KEY` holds is no key",
    )


async def test_nothing_is_loaded_for_it_where_nobody_delegates(work: Path):
    code = (
        "import os, sys, anyio; from pathlib import Path; import ullage.cli.serve\n"
        "from ullage.app.build_gateway import open_gateway; from ullage.config import Flags, load\n"
        "async def main():\n"
        "    async with open_gateway(load(Flags(), os.environ, Path.cwd()), environment=os.environ) as gateway:\n"
        "        await gateway.flagged(None).source.tools()\n"
        "anyio.run(main); print(*(one for one in sys.modules if one in ('ullage.delegate', 'ullage.retrieve')))"
    )
    run = await anyio.run_process([sys.executable, "-c", code], env={**os.environ, "OPENAI_API_KEY": "sk-test"})
    assert run.stdout.split() == []


@pytest.mark.requirement("S4:budgets")
async def test_without_a_store_budgets_hold_for_this_process(work: Path, provider: Loopback):
    write_user(
        work,
        f'{provider.providers()}[store]\nurl = "sqlite:////proc/no/where.db"\n[delegate.budgets.day]\ntokens = 5000\n',
    )
    async with opened(work) as gateway:
        assert gateway.store_error is not None
        assert text(await ask(gateway, "delegate.run", prompt="hi")) == "Hello there"
        over = await ask(
            gateway, "delegate.run", prompt="hi", caps={"maxOutputTokens": 4096}, metadata={"tier": "enterprise"}
        )
        assert not over.is_error
    async with open_delegate(environment=os.environ) as delegate:
        question = Message(role="user", parts=(Text("hi " * 4000),))
        with pytest.raises(OverBudget):
            await delegate.run(Ask(messages=(question,)))


async def test_a_delegate_of_ones_own_writes_no_lines_for_operators(
    work: Path, provider: Loopback, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    log = logging.getLogger("ullage.delegate")
    monkeypatch.setattr(log, "handlers", [])
    # As in a program that set up no logging of its own.
    monkeypatch.setattr(log, "propagate", False)
    write_user(work, provider.providers())
    async with open_delegate(environment=os.environ) as delegate:
        delegate.providers = {}
        with pytest.raises(ProviderFailed):
            await delegate.run(Ask(messages=(Message(role="user", parts=(Text("hi"),)),)))
    assert capsys.readouterr().err == ""


class Clock:
    now = datetime(2026, 11, 15, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.mark.requirement("S4:budgets")
async def test_a_purse_in_memory_keeps_every_scope_apart():
    told: list[Alert] = []
    clock = Clock()
    by_scope: dict[Any, Ceiling] = {
        "call": Ceiling(tokens=90),
        "task": Ceiling(tokens=100),
        "session": Ceiling(tokens=150),
        "day": Ceiling(dollars=Decimal(4)),
        "month": Ceiling(dollars=Decimal(5)),
    }
    purse = LocalPurse(ceilings=lambda: Ceilings(by_scope=by_scope), alert=told.append, now=clock)

    async def spend(tokens: int, dollars: int = 0, who: Caller = ME, task: str | None = None) -> None:
        ticket = await purse.reserve(Spend(tokens=tokens, dollars=Decimal(dollars)), who, task)
        await purse.settle(ticket, Spend(tokens=tokens, dollars=Decimal(dollars)))

    await spend(80, task="a")
    assert [one.scope for one in told] == ["task", "session"]
    with pytest.raises(OverBudget, match="this task"):
        await spend(30, task="a")
    await spend(60, task="b")
    with pytest.raises(OverBudget, match="this session"):
        await spend(30)
    await spend(30, who=replace(ME, session="other"))
    await spend(30, who=replace(ME, principal="you"), task="a")
    with pytest.raises(OverBudget, match="this call"):
        await spend(91, who=replace(ME, session="third"))
    little, before = Spend(tokens=1, dollars=Decimal(0)), Spend(tokens=90, dollars=Decimal(0))
    with pytest.raises(OverBudget, match="this call"):
        await purse.reserve(little, replace(ME, session="third"), None, already=before)
    await spend(1, 3, who=replace(ME, session="third"))
    with pytest.raises(OverBudget, match="this day"):
        await spend(1, 2, who=replace(ME, session="third"))
    clock.now = datetime(2026, 11, 16, 12, tzinfo=UTC)
    await spend(1, 2, who=replace(ME, session="third"))
    with pytest.raises(OverBudget, match="this month"):
        await spend(1, 1, who=replace(ME, session="third"))
    clock.now = datetime(2026, 12, 1, tzinfo=UTC)
    await spend(1, 4, who=replace(ME, session="third"))
    open_one = await purse.reserve(Spend(tokens=80, dollars=Decimal(0)), replace(ME, session="fourth"), None)
    with pytest.raises(OverBudget):
        await spend(80, who=replace(ME, session="fourth"))
    await purse.settle(open_one, Spend(tokens=0, dollars=None))
    await spend(80, who=replace(ME, session="fourth"))


@pytest.mark.requirement("S4:route")
@pytest.mark.parametrize("present", [("openai",), ("anthropic",), ("google",), ("openai", "anthropic", "google")])
async def test_where_there_is_a_key_and_no_policy_present_models_are_asked_by_the_rules_of_the_contract(
    present: tuple[str, ...],
):
    policy = default_policy(present)
    assert {one.provider for one in policy.models.values()} == set(present)
    assert {"chat-default", "chat-premium", "reasoning", "long-context"} == set(policy.aliases)
    odd = [one.message for one in lint(policy, shipped(), date(2026, 11, 15))]
    assert [one for one in odd if "retire" in one or "not in the model table" in one or "no alias" in one] == []
    small, better = CHOSEN[present[0]]
    assert chosen(policy, 10, "en") == small
    assert chosen(policy, 10, "pt") == better
    assert chosen(policy, 2000, "en") == better


def chosen(policy: Policy, tokens: int, language: str) -> str:
    found = route(RouteRequest(prompt_tokens=tokens, language=language), policy, shipped())
    return found.candidates[0].entry.model


@pytest.mark.requirement("S4:providers")
async def test_with_nobody_to_ask_one_is_told_what_to_set(work: Path):
    with pytest.raises(BadConfiguration, match="no model is available") as caught:
        async with open_delegate(environment={}):
            pass
    assert "OPENAI_API_KEY" in caught.value.suggestion


@pytest.mark.requirement("S4:schema")
async def test_files_of_the_users_folders_are_sent_and_answers_continued_after_a_restart(
    work: Path, provider: Loopback
):
    (work / "notes.txt").write_text("forty-two", encoding="utf-8")
    write_conf(work)
    write_user(work, f"{provider.providers()}[delegate]\nfile_roots = ['{work}']\n")
    async with opened(work) as gateway:
        first = await ask(gateway, "delegate.run", prompt="What is in it?", files=["notes.txt"])
        assert not first.is_error, text(first)
        assert "forty-two" in json.dumps(provider.asked[-1])
        refused = await ask(gateway, "delegate.run", prompt="And this?", files=["/etc/hostname"])
        assert json.loads(text(refused))["error_code"] == "DENIED"
    async with opened(work) as gateway:
        handle = said(first)["handle"]
        again = await ask(gateway, "delegate.run", prompt="Are you sure?", **{"continue": handle})
        assert not again.is_error, text(again)
        sent = json.dumps(provider.asked[-1])
        assert "forty-two" in sent
        assert "Are you sure?" in sent
        shown = await ask(gateway, "delegate.run", prompt="Sum up", context=[handle])
        assert not shown.is_error, text(shown)
        other = await ask(gateway, "delegate.run", replace(ME, principal="you"), prompt="x", **{"continue": handle})
        assert json.loads(text(other))["error_code"] == "UNKNOWN_HANDLE"


@pytest.mark.requirement("S4:reply", "U:errors")
async def test_a_reply_that_failed_says_what_was_tried(work: Path, provider: Loopback):
    write_conf(work)
    write_user(work, provider.providers().replace("127.0.0.1", "127.0.0.2"))
    async with opened(work) as gateway:
        failed = await ask(gateway, "delegate.run", prompt="What is this?")
    assert failed.is_error
    assert said(failed)["meta"]["attempts"]
    assert "refused" in text(failed)
    assert json.loads(text(failed))["suggestion"]
