import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from app.loopback import Loopback, loopback
from approving import approve
from context.sessions import talk
from delegate.policies import MODELS, POLICIES
from ullage import Context, Session, run_agent
from ullage.agent import ContextStatus, End
from ullage.config import Flags, load
from ullage.errors import InvalidArguments
from ullage.ledger import read_entries
from ullage.processes import user_name
from ullage.store import Database

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats")]


@pytest.fixture
def provider(work: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Loopback]:
    """All three makers on loopback, and keys for two of them."""
    for name in ("GOOGLE_API_KEY", "ORCH_LOG_LEVEL", "ORCH_COST_ALERT_USD", "ORCH_USAGE_EXPORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    with loopback() as found:
        file = work.parent / "home" / "config" / "ullage" / "ullage.toml"
        file.parent.mkdir(parents=True)
        file.write_text(found.providers(), encoding="utf-8")
        yield found


@pytest.mark.requirement("S2:status", "S2:formats")
@pytest.mark.parametrize(
    ("model", "path"),
    [("gpt-4o", "/v1/responses"), ("openai:gpt-4o", "/v1/responses"), ("claude-sonnet-4-5", "/v1/messages")],
)
async def test_a_prompt_and_any_model_with_a_key_are_enough(provider: Loopback, model: str, path: str):
    events = [event async for event in run_agent("Say hello.", model=model)]
    assert isinstance(events[0], ContextStatus)
    last = events[-1]
    assert isinstance(last, End)
    assert (last.reason, last.text) == ("stop", "Hello there")
    assert [asked[0] for asked in provider.asked] == [path]


@pytest.mark.requirement("S2:compact:how")
async def test_a_context_summarises_with_a_models_name(provider: Loopback):
    provider.text = "Decisions: round half up. Next steps: look at April, module 7."
    made = Context(model="gpt-4o", summarizer="claude-sonnet-4-5", context_window=4_000)
    made.add(*talk(30))
    prepared = await made.prepare()
    assert provider.text in str(prepared.messages[0])
    (asked,) = provider.asked
    assert (asked[0], asked[2]["model"]) == ("/v1/messages", "claude-sonnet-4-5")


async def test_a_name_that_nobody_can_be_asked_for_is_a_warning(provider: Loopback):
    made = Context(model="gpt-4o", summarizer="nobody-has-heard-of-it", context_window=5_200)
    made.add(*talk(30))
    prepared = await made.prepare()
    assert "nobody-has-heard-of-it" in str(prepared.warning)
    assert provider.asked == []


async def test_a_model_of_the_policy_is_asked_by_its_alias(provider: Loopback, work: Path):
    (work / "conf").mkdir()
    (work / "conf" / "models.json").write_text(json.dumps(MODELS), encoding="utf-8")
    (work / "conf" / "policies.json").write_text(json.dumps(POLICIES), encoding="utf-8")
    approve(work / "conf")
    events = [event async for event in run_agent("Say hello.", model="chat-premium")]
    assert isinstance(events[-1], End)
    assert provider.asked[0][2]["model"] == "gpt-4o"


async def test_a_session_is_gone_on_with(provider: Loopback, work: Path):
    path = work / "talk.jsonl"
    async for _ in run_agent("Say hello.", model="gpt-4o", session=path):
        pass
    async for _ in run_agent("And again.", model="gpt-4o", session=path, system="Be brief."):
        pass
    assert len(Session.open(path).records) == 4
    assert "Say hello." in provider.prompts[-1]
    assert "Be brief." in provider.prompts[-1]


@pytest.mark.usefixtures("provider")
async def test_a_model_that_nobody_can_be_asked_for_is_refused_with_those_who_can():
    with pytest.raises(InvalidArguments) as refused:
        async for _ in run_agent("Say hello.", model="gemini-2.5-pro"):
            pass
    assert "openai" in refused.value.options


@pytest.mark.requirement("U:ledger")
async def test_a_run_records_its_model_calls_and_histories_under_one_session(provider: Loopback, work: Path):
    async for _ in run_agent("Say hello.", model="gpt-4o", session=work / "talk.jsonl", client="clerk"):
        pass
    summary = "Decisions: round half up. Next steps: look at April, module 7."
    provider.text = summary
    session = Session.open(work / "talk.jsonl")
    session.append(talk(60))
    async for _ in run_agent("Again.", model="gpt-4o", session=session, client="clerk", context_window=4_000):
        pass
    database = Database.open(load(Flags(), os.environ, work).settings.store)
    entries = list(read_entries(database))
    database.close()
    assert {(one.session, one.client, one.principal) for one in entries} == {(session.id, "clerk", user_name())}
    first, second = (one for one in entries if one.kind == "history")
    assert first.saved_tokens == 0
    assert second.saved_tokens is not None
    assert second.saved_tokens == (second.baseline_tokens or 0) - second.tokens > 0
    assert sorted(str(one.tool) for one in entries if one.kind == "model") == ["None", "None", "delegate.summary"]
