from collections.abc import Sequence
from json import dumps, loads
from pathlib import Path
from typing import cast

import pytest

import ullage.context.boundaries as reading
from context.sessions import METER, Summarising, steps
from context.talks import assistant, call, result, tool, user
from ullage.context import Context, Options, Session
from ullage.context.text_protocol import text_results
from ullage.context.tool_pairs import Answered
from ullage.messages import Format, Message, ToolCall, faults, read_message, write_messages
from ullage.tool import JsonObject

pytestmark = pytest.mark.anyio

WINDOW = 8_000


def said(role: str, number: int) -> JsonObject:
    return {"role": role, "content": f"word {number} " * 40}


@pytest.mark.requirement("S2:compact:when", "S2:money")
async def test_where_hardly_anything_may_be_let_go_it_is_not_done_before_every_call():
    """Each time, a provider must read anew all that stands behind."""
    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=WINDOW), summarizer=Summarising())
    made.add(*(said(("user", "assistant")[number % 2], number) for number in range(60)))
    made.add({"role": "user", "content": "paste " * int(0.7 * WINDOW)})
    compactions = 0
    for step in range(0, 60, 2):
        prepared = await made.prepare()
        assert prepared.status.used < WINDOW
        compactions += prepared.compacted
        made.add(*steps(30)[step : step + 2])
    assert compactions <= 8


@pytest.mark.requirement("S2:money", "S2:options")
async def test_what_wins_less_than_its_least_share_of_what_is_used_is_not_done():
    def context(least_gain: float) -> Context:
        options = Options(context_window=WINDOW, least_gain=least_gain)
        made = Context(model="gpt-4o", meter=METER, options=options, system="Mind the gap. " * 200)
        made.add({"role": "user", "content": "Mend the export."}, *steps(18, words=200))
        return made

    whole = await context(0.35).prepare()
    assert whole.before is not None
    assert 0.35 < 1 - whole.status.used / whole.before.used < 0.70
    assert not (await context(0.70).prepare()).compacted


@pytest.mark.parametrize("window", range(100, 1_000, 50))
async def test_what_wins_nothing_is_not_done(window: int):
    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=window))
    for number in range(12):
        made.add({"role": "user", "content": f"word {number} " * (number % 5 * 12 + 1)}, *steps(2, words=20))
        prepared = await made.prepare()
        assert prepared.before is None or prepared.status.used < prepared.before.used


@pytest.mark.parametrize("summarizer", [None, Summarising()])
@pytest.mark.parametrize("words", [60, 1_000, 12_000])
async def test_a_history_is_searched_for_results_once_in_a_compaction(
    monkeypatch: pytest.MonkeyPatch, summarizer: Summarising | None, words: int
):
    searched = list[tuple[int, ...]]()
    histories = list[Sequence[Message]]()

    def note(messages: Sequence[Message]) -> tuple[Answered, ...]:
        searched.append(tuple(map(id, messages)))
        histories.append(messages)  # or an id might be given to another message
        return text_results(messages)

    monkeypatch.setattr(reading, "text_results", note)
    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=WINDOW), summarizer=summarizer)
    made.add({"role": "user", "content": "Mend the export."}, *steps(12_000 // words + 4, words=words))
    prepared = await made.prepare()
    assert prepared.compacted
    assert searched
    assert len(searched) == len(set(searched))


@pytest.mark.requirement("S2:compact:after", "S2:task")
@pytest.mark.parametrize("form", [Format.OPENAI_CHAT, Format.OPENAI_RESPONSES, Format.ANTHROPIC, Format.GEMINI])
async def test_a_file_just_written_that_is_larger_than_the_window_loses_its_middle(form: Format, tmp_path: Path):
    body = "\n".join(
        f"line {number} of the new module, which has the word zebra{number} in it" for number in range(4_000)
    )
    written = call("w", "write_file", dumps({"path": "src/new.py", "content": body}))
    history = [user("Write the module."), assistant("I begin.", written), tool(result("w", "written"))]
    natives = write_messages(history, form)
    session = Session.open(tmp_path / "talk.jsonl", format=form)
    made = Context(model="gpt-4o", meter=METER, format=form, options=Options(context_window=32_000), session=session)
    made.add(*natives)
    prepared = await made.prepare()
    assert prepared.status.usage_percent <= 50
    assert faults(prepared.messages, form, original=natives) == ()
    calls = [part for one in prepared.messages for part in read_message(one, form).parts if isinstance(part, ToolCall)]
    arguments = loads(calls[0].arguments)
    assert arguments["path"] == "src/new.py"
    assert arguments["content"].startswith("line 0 of the new module")
    assert arguments["content"].endswith("zebra3999 in it")
    assert "removed to make room" in arguments["content"]
    assert [one.fate for one in prepared.dropped] == ["truncated"]
    assert any("zebra2000 " in str(record.message) for record in session.history(full=True))


@pytest.mark.requirement("S2:task")
async def test_the_request_is_whole_where_a_single_turn_fills_the_window():
    task = "Write the six modules, and never touch the seventh. " * 90
    calls = [
        call(f"w{one}", "write_file", dumps({"path": f"{one}.py", "content": "x = 1\n" * 900})) for one in range(6)
    ]
    results = [result(f"w{one}", "\n".join(f"{one} row {row}" for row in range(900))) for one in range(6)]
    history = [user(task), assistant(*calls), *map(tool, results)]
    made = Context(model="gpt-4o", meter=METER, format=Format.OPENAI_CHAT, options=Options(context_window=8_000))
    made.add(*write_messages(history, Format.OPENAI_CHAT))
    prepared = await made.prepare()
    assert prepared.messages[0] == write_messages(history, Format.OPENAI_CHAT)[0]
    assert prepared.status.used < 0.85 * 8_000


def called(name: str, arguments: JsonObject, output: str) -> list[JsonObject]:
    """A call and its result."""
    messages = [assistant(call("c", name, dumps(arguments))), tool(result("c", output))]
    return [cast("JsonObject", native) for native in write_messages(messages, Format.OPENAI_CHAT)]


@pytest.mark.requirement("S2:compact:after")
async def test_a_file_that_was_just_written_does_not_keep_more_than_half_of_the_window():
    text = "\n".join(f"value_{line} = compute_{line}(source_{line})" for line in range(700))
    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=16_000))
    made.add(
        {"role": "user", "content": "Mend the export."},
        *steps(30, words=200),
        *called("write", {"path": "src/made.py", "content": text}, "written"),
    )
    prepared = await made.prepare()
    assert prepared.before is not None
    assert prepared.before.used > 0.65 * 16_000
    assert prepared.status.usage_percent <= 50
    assert faults(prepared.messages, Format.OPENAI_CHAT) == ()


@pytest.mark.requirement("S2:compact:how")
async def test_identifiers_of_what_is_cut_in_the_tail_are_listed_with_those_of_the_head():
    rows = [f"invoice INV-{number:05} of customer_{number} is late" for number in range(1_500)]
    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=16_000))
    made.add(
        {"role": "user", "content": "Mend the export."},
        *steps(20, words=200),
        *called("late", {}, "\n".join(rows)),
    )
    prepared = await made.prepare()
    first, last = (str(prepared.messages[place]) for place in (0, -1))
    assert prepared.status.usage_percent <= 50
    assert "INV-00750" not in last
    listed = sum(f"INV-{number:05}" in first for number in range(1_500))
    assert listed > 100
    assert "src/module_19.py" in first
