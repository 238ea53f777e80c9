import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from context.sessions import ASKED, Summarising, talk
from ullage import Context, Session, compact, get_context_usage
from ullage.app.build_context import open_ledger
from ullage.errors import InvalidArguments
from ullage.ledger import Entry, read_entries, usage_report
from ullage.models import Usage
from ullage.processes import user_name
from ullage.store import Database

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("S2:usage", "S2:window")
def test_usage_is_told_of_messages_as_they_are():
    usage = get_context_usage(talk(3), model="gpt-4o")
    assert (usage.model, usage.context_window, usage.resolved) == ("gpt-4o", 128_000, True)
    assert usage.used == usage.system_prompt + usage.tool_definitions + usage.messages
    assert usage.free == 128_000 - usage.used
    said = usage.to_json()
    assert {"contextWindow", "systemPrompt", "toolDefinitions", "usagePercent", "compactThreshold"} <= said.keys()


@pytest.mark.requirement("S2:window", "S2:options")
def test_the_window_is_the_models_or_the_users_or_the_usual():
    hello = [{"role": "user", "content": "hello"}]
    assert get_context_usage(hello, model="anthropic/claude-3.5-sonnet").context_window == 200_000
    assert get_context_usage(hello, model="gpt-4o", contextWindow=9_000).context_window == 9_000
    unknown = get_context_usage(hello, model="nobody-knows-this-one")
    assert (unknown.context_window, unknown.resolved) == (128_000, False)


@pytest.mark.requirement("S2:formats")
async def test_messages_are_compacted_at_once_and_what_was_given_is_not_changed():
    messages = talk(60)
    before = json.dumps(messages)
    left = await compact(messages, model="gpt-4o", context_window=4_000, pinned={0})
    assert left.compacted
    assert left.status.usage_percent < 50
    assert any(one is messages[0] for one in left.messages)
    assert json.dumps(messages) == before


@pytest.mark.requirement("S2:compact:persist")
async def test_a_session_may_be_named_by_its_path(tmp_path: Path):
    path = tmp_path / "talks" / "one.jsonl"
    path.parent.mkdir()
    context = Context(model="gpt-4o", session=path, summarizer=Summarising(), context_window=4_000)
    context.add(*talk(60))
    assert (await context.prepare()).generation == 1
    assert ASKED in [record.message["content"] for record in Session.open(path).history(full=True)]


@pytest.mark.requirement("S2:formats")
def test_an_unknown_format_is_refused_with_those_there_are():
    with pytest.raises(InvalidArguments) as refused:
        Context(model="gpt-4o", format="morse")
    assert "anthropic" in refused.value.options


def test_importing_the_package_alone_loads_no_room():
    code = "import sys, ullage; print([name for name in sys.modules if name.startswith('ullage.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "Where it is"}}}
ABOUT = {"name": "read_file", "description": "Reads a file and gives its text."}
SPELLINGS = {
    "chat": {"type": "function", "function": {**ABOUT, "parameters": SCHEMA}},
    "responses": {"type": "function", **ABOUT, "parameters": SCHEMA},
    "anthropic": {**ABOUT, "input_schema": SCHEMA},
}


@pytest.mark.requirement("S2:formats")
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-4o"])
def test_tools_are_read_in_whichever_spelling_they_come(model: str):
    asked = [{"role": "user", "content": "Read it."}]
    found = [get_context_usage(asked, model=model, tools=[tool]) for tool in SPELLINGS.values()]
    assert {tool.name for usage in found for tool in usage.breakdown.tools} == {"read_file"}
    assert len({usage.tool_definitions for usage in found}) == 1


def recorded(path: Path) -> list[Entry]:
    recorder = open_ledger(path)
    assert recorder is not None
    assert recorder.flush()
    database = Database.open(path)
    try:
        return list(read_entries(database))
    finally:
        database.close()


@pytest.mark.requirement("U:ledger")
async def test_each_request_records_the_history_it_carries_and_a_compaction_what_it_saved(tmp_path: Path):
    store = tmp_path / "ledger.db"
    context = Context(
        model="gpt-4o", session=tmp_path / "one.jsonl", ledger=store, client="clerk", context_window=4_000
    )
    context.add(*talk(3))
    first = await context.prepare()
    assert not first.compacted
    context.add(*talk(60))
    second = await context.prepare()
    assert second.before is not None
    carried, compacted = recorded(store)
    assert carried.tokens == carried.baseline_tokens == first.status.messages
    assert carried.saved_tokens == 0
    assert (compacted.tokens, compacted.baseline_tokens) == (second.status.messages, second.before.messages)
    assert compacted.saved_tokens == second.before.messages - second.status.messages > 0
    assert compacted.method is second.status.method
    assert compacted.detail == {
        "used": second.status.used,
        "window": 4_000,
        "used_before": second.before.used,
        "compacted_by": ", ".join(shed.tier for shed in second.sheds),
        "messages": len(second.dropped),
        "generation": 1,
    }
    for entry in (carried, compacted):
        assert (entry.kind, entry.client, entry.model) == ("history", "clerk", "gpt-4o")
        assert entry.session == Session.open(tmp_path / "one.jsonl").id
        assert entry.principal == user_name()


@pytest.mark.requirement("U:ledger")
async def test_histories_are_part_of_what_usage_reports_as_saved(tmp_path: Path):
    store = tmp_path / "ledger.db"
    left = await compact(talk(60), model="gpt-4o", context_window=4_000, ledger=store, client="clerk")
    assert left.before is not None
    assert len(recorded(store)) == 1
    database = Database.open(store)
    try:
        report = usage_report(database, by="client", prices=lambda _: None)
    finally:
        database.close()
    assert report.total.saved.history == left.before.messages - left.status.messages
    assert [line.key for line in report.lines] == ["clerk"]


ANSWERED = {
    "id": "chatcmpl-7Qx0dTsPq1",
    "model": "gpt-4o-2024-08-06",
    "choices": [{"message": {"role": "assistant", "content": "Two are late."}}],
    "usage": {
        "prompt_tokens": 1_000,
        "completion_tokens": 200,
        "total_tokens": 1_200,
        "prompt_tokens_details": {"cached_tokens": 400},
    },
}


@pytest.mark.requirement("U:ledger", "U:usage")
async def test_answer_that_a_context_is_told_of_is_a_model_call_with_its_cost(tmp_path: Path):
    store = tmp_path / "ledger.db"
    context = Context(model="gpt-4o", session=tmp_path / "one.jsonl", ledger=store, client="clerk")
    context.add({"role": "user", "content": "Which orders are late?"})
    await context.prepare()
    context.observe(ANSWERED)
    again = Context(model="gpt-4o", ledger=store, client="clerk")
    again.observe(ANSWERED)  # the same response, by its id
    (called,) = [one for one in recorded(store) if one.kind == "model"]
    assert (called.client, called.model, called.principal) == ("clerk", "gpt-4o-2024-08-06", user_name())
    assert called.session == Session.open(tmp_path / "one.jsonl").id
    assert called.use is not None
    assert called.use.usage == Usage(input=1_000, output=200, cache_read=400, cache_write=None, reasoning=None)
    assert called.use.dollars == (600 * Decimal("2.5") + 400 * Decimal("1.25") + 200 * 10) / 1_000_000


@pytest.mark.requirement("U:ledger")
async def test_answer_without_usage_or_that_the_ledger_has_already_is_no_second_model_call(tmp_path: Path):
    store = tmp_path / "ledger.db"
    context = Context(model="gpt-4o", ledger=store)
    context.observe({**ANSWERED, "usage": {}})
    context.observe(usage=Usage(input=10, output=1), is_recorded=True)
    context.observe(answer=[{"role": "assistant", "content": "Yes."}])
    assert [one for one in recorded(store) if one.kind == "model"] == []


@pytest.mark.requirement("U:ledger")
async def test_a_compact_that_removes_nothing_records_nothing(tmp_path: Path):
    await compact(talk(0)[:1], model="gpt-4o", ledger=tmp_path / "ledger.db")
    await compact(talk(60), model="gpt-4o", context_window=4_000)
    assert recorded(tmp_path / "ledger.db") == []


async def test_a_ledger_that_cannot_be_opened_costs_a_warning_and_no_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "broken.db").write_bytes(b"no database, but long enough to be read as one" * 40)
    left = await compact(talk(60), model="gpt-4o", context_window=4_000, ledger=tmp_path / "broken.db")
    assert left.compacted
    assert "histories are not recorded" in caplog.text


@pytest.mark.requirement("U:ledger")
def test_what_is_queued_at_the_end_of_a_process_is_written(tmp_path: Path):
    code = (
        "import anyio, sys; from ullage import Context\n"
        "context = Context(model='gpt-4o', ledger=sys.argv[1])\n"
        "context.add({'role': 'user', 'content': 'hello'}); anyio.run(context.prepare)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "ledger.db")], check=True)
    (entry,) = recorded(tmp_path / "ledger.db")
    assert (entry.kind, entry.model) == ("history", "gpt-4o")
    assert entry.tokens > 0
