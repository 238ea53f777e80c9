"""`ullage context` as a person meets it: a session's file in, what weighs there out."""

import io
import json
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from cli.talks import answered, asked, chat, compaction, result, session, turns, words
from ullage.cli import main
from ullage.cli.context import chart
from ullage.cli.session_stats import (
    FoundConversation,
    Piece,
    by_tool,
    calls_carried,
    find_repeated_calls,
    losses,
    pieces,
    weigh,
)
from ullage.clients import Call, Compaction, Conversation, Turn
from ullage.context import DEFAULTS
from ullage.messages import Format, Message, Text
from ullage.models import Usage

pytestmark = [pytest.mark.requirement("S2:formats")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["context", *words]) == 0
    return capsys.readouterr().out.splitlines()


def figures(capsys: pytest.CaptureFixture[str], *words: str):
    assert main(["context", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def long(folder: Path) -> Path:
    before, after = turns(8), turns(6, start=20, size=500)
    return session(folder / "long.jsonl", asked("Read all of it."), *before, compaction(9_000), asked("On."), *after)


def test_a_report_has_the_picture_the_waterline_the_tools_and_what_was_carried(
    long: Path, capsys: pytest.CaptureFixture[str]
):
    lines = said(capsys, "long.jsonl")
    assert lines[:3] == snapshot(
        [
            "long.jsonl",
            "pi · 31 messages (14 in the window) · 14 calls · compacted once",
            "2026-11-15 10:01–10:25",
        ]
    )
    assert any(line.startswith("Waterline  input tokens of each call, as the provider") for line in lines)
    assert "↓ compacted: 9k → 3k" in lines
    (tool,) = [line.split() for line in lines if line.startswith("read ") and "×" not in line]
    assert tool[1] == "14"
    carried = [line for line in lines if "×" in line]
    assert carried[0].startswith("read notes/")
    assert any(line.endswith("gone") for line in carried)


def test_no_line_is_wider_than_a_terminal(long: Path, capsys: pytest.CaptureFixture[str]):
    assert max(map(len, said(capsys, "long.jsonl"))) <= 80


def test_json_has_every_figure(long: Path, capsys: pytest.CaptureFixture[str]):
    found = figures(capsys, "long.jsonl")
    assert (found["program"], found["session"], found["model"]) == ("pi", "s1", "gpt-4o")
    assert (found["messages"], found["inWindow"], found["calls"], found["compactions"]) == (31, 14, 14, 1)
    assert found["usage"]["contextWindow"] == 128_000
    assert found["usage"]["method"] == "anchored"
    assert [level["reported"] for level in found["waterline"]] == [True] * 14
    assert found["compactedBefore"] == [9]
    (tool,) = found["byTool"]
    assert (tool["tool"], tool["calls"]) == ("read", 14)
    assert found["carriedLongest"][0]["carried"] == max(piece["carried"] for piece in found["carriedLongest"])
    assert found["tokensRead"] == sum(level["tokens"] for level in found["waterline"])
    assert float(found["dollars"]) > 0


def test_what_is_used_is_the_last_report_and_what_came_since(folder: Path, capsys: pytest.CaptureFixture[str]):
    session(folder / "s.jsonl", asked("Hi."), answered(1, prompt=5_000), asked(words(100)))
    used = figures(capsys, "s.jsonl")["usage"]["used"]
    assert 5_005 < used < 5_600


def test_the_unseen_part_is_derived_from_the_smallest_report(folder: Path, capsys: pytest.CaptureFixture[str]):
    session(folder / "s.jsonl", asked("Hi."), answered(1, prompt=5_000), asked("And?"), answered(2, prompt=5_020))
    lines = said(capsys, "s.jsonl")
    assert "The system prompt and the tools are not in this file; the reported usage implies" in lines
    assert any("System prompt: 5k tokens" in line for line in lines)


def test_calls_without_a_report_are_weighed_and_that_is_said(folder: Path, capsys: pytest.CaptureFixture[str]):
    session(folder / "s.jsonl", asked("Read."), *turns(3, reported=False))
    lines = said(capsys, "s.jsonl")
    assert any(line.endswith("input tokens of each call, as counted") for line in lines)
    assert any(line.startswith("known.") or "is not known." in line for line in lines)
    session(folder / "s.jsonl", asked("Read."), *turns(2), *turns(1, start=9, reported=False))
    assert any(line.endswith("2 of them reported") for line in said(capsys, "s.jsonl"))


def test_a_list_of_messages_and_standard_input_will_do(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    text = json.dumps(chat(4))
    (folder / "m.json").write_text(text, encoding="utf-8")
    lines = said(capsys, "m.json")
    assert "The file names no model, so tokens are counted for gpt-4o; --model sets another." in lines
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert figures(capsys, "-")["messages"] == 10


def test_a_body_is_whole_and_needs_no_notes(folder: Path, capsys: pytest.CaptureFixture[str]):
    tools = [{"type": "function", "function": {"name": "gh__read", "description": words(3_000), "parameters": {}}}]
    body = {"model": "gpt-4o", "messages": chat(2), "tools": tools}
    (folder / "b.json").write_text(json.dumps(body), encoding="utf-8")
    lines = said(capsys, "b.json")
    assert not any("not in this file" in line for line in lines)
    assert any(line.startswith("• 1 tool definition take") or "tool definition" in line for line in lines)
    assert figures(capsys, "b.json")["toolsInFile"] is True


@pytest.mark.requirement("S2:window")
def test_a_model_and_a_window_can_be_named_and_an_unknown_model_is_no_error(
    long: Path, capsys: pytest.CaptureFixture[str]
):
    assert figures(capsys, "long.jsonl", "--window", "20k")["usage"]["contextWindow"] == 20_000
    assert figures(capsys, "long.jsonl", "--window", "1M", "-m", "claude")["weighedAs"] == "claude"
    lines = said(capsys, "long.jsonl", "--model", "nobody-knows-this")
    assert "The window of nobody-knows-this is not known; set it with --window." in lines
    for word in ("0", "much", "-5", ""):
        with pytest.raises(SystemExit):
            main(["context", "long.jsonl", "--window", word])


def test_several_sessions_are_a_line_each(long: Path, folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "no.json").write_text("{}", encoding="utf-8")
    (folder / "m.json").write_text(json.dumps(chat(1)), encoding="utf-8")
    assert main(["context", "long.jsonl", "no.json", "m.json"]) == 0
    out, err = capsys.readouterr()
    rows = out.splitlines()
    assert rows[1].split()[:4] == ["long.jsonl", "2026-11-15", "pi", "gpt-4o"]
    assert rows[1].endswith("↓1")
    assert rows[2].split()[:2] == ["m.json", "messages"]
    assert rows[3].startswith("2 sessions, 15 calls, $")
    assert rows[4] == "Name one file to see what fills it."
    assert err == "ullage: `no.json` contains no session and no messages in a known format\n"
    assert [one["calls"] for one in figures(capsys, "long.jsonl", "m.json")] == [14, 1]


def test_of_a_file_that_holds_several_one_is_named_by_its_id(folder: Path, capsys: pytest.CaptureFixture[str]):
    with closing(sqlite3.connect("opencode.db")) as database:
        database.executescript(
            """
            create table session (id text, title text, time_updated integer);
            create table message (id text, session_id text, time_created integer, data text);
            create table part (id text, message_id text, data text);
            insert into session values ('ses_1', 'Early', 1), ('ses_2', 'Late', 2);
            """
        )
    assert said(capsys, "opencode.db")[-2:] == ["  --session ses_1", "  --session ses_2"]
    assert said(capsys, "opencode.db", "--session", "ses_1")[0] == "Early"
    assert main(["context", "opencode.db", "--session", "ses_3", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["available_options"] == ["ses_1", "ses_2"]


@pytest.mark.requirement("U:errors")
@pytest.mark.parametrize("text", [None, "", "{}", "no JSON"])
def test_a_bad_file_gives_the_one_error_shape(text: str | None, folder: Path, capsys: pytest.CaptureFixture[str]):
    if text is not None:
        (folder / "x.json").write_text(text, encoding="utf-8")
    assert main(["context", "x.json", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["error_code"] == "UNREADABLE_FILE"


def test_advice_follows_from_figures(folder: Path, capsys: pytest.CaptureFixture[str]):
    again = [answered(40, prompt=90_000, cached=89_000, call="notes/1.txt"), result(40, words(300))]
    lines = [
        asked("Read all of it."),
        *turns(12, size=800),
        *again,
        answered(60, prompt=91_000, cached=0),
        answered(61, prompt=91_500, cached=91_000),
        answered(62, prompt=92_000, cached=100),
        asked(words(9_000, "medlar")),
    ]
    session(folder / "s.jsonl", *lines)
    found = figures(capsys, "s.jsonl", "--window", "90k")
    advice = [one["finding"] for one in found["advice"]]
    assert [one["reason"] for one in found["cacheLosses"]] == ["pause", "change"]
    assert any("of the window is used, and the threshold is 65%" in one for one in advice)
    assert any(one.startswith("`read` takes ") for one in advice)
    assert any(one.startswith("`user: medlar-0 medlar-1") and "of the window." in one for one in advice)
    assert any("`read notes/1.txt` is in the window 2 times" in one for one in advice)
    assert any("expired in 1 pause" in one for one in advice)
    assert any("broke 1 time without a pause, first at call 16" in one for one in advice)


def test_compactions_one_after_the_other_and_changed_models_are_spoken_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    lines = [asked("Read all of it.")]
    for start in (1, 20, 40):
        lines += [*turns(2, start=start), compaction(5_000)]
    lines += [answered(50, prompt=9_000, cached=8_000), answered(51, prompt=9_500, cached=0, model="gpt-5")]
    session(folder / "s.jsonl", *lines)
    advice = [one["finding"] for one in figures(capsys, "s.jsonl")["advice"]]
    assert "The session was compacted again within 5 calls, 2 times." in advice
    assert any(one.startswith("The model changed 1 time") for one in advice)


def test_where_nothing_stands_out_that_is_said(folder: Path, capsys: pytest.CaptureFixture[str]):
    session(folder / "s.jsonl", asked("Hi."), answered(1, prompt=100))
    assert said(capsys, "s.jsonl")[-1] == "Nothing stands out."


def test_an_empty_conversation_is_shown_too(folder: Path, capsys: pytest.CaptureFixture[str]):
    session(folder / "s.jsonl")
    assert said(capsys, "s.jsonl")[1] == "pi · 0 messages · 0 calls"


def test_the_waterline_is_drawn_to_scale_and_marked():
    levels = [*range(20_000, 150_000, 10_000), *range(30_000, 120_000, 15_000)]
    assert "\n".join(chart(levels, [13], window=200_000, threshold=130_000)) == snapshot("""\
200k ┤
     │
     │           ▂▅
130k ┤┄┄┄┄┄┄┄┄┄▃▆██┄┄┄┄┄▂
     │      ▂▅█████    ▅█
     │    ▃▆███████  ▃███
     │ ▂▅██████████▂▆████
     │▆██████████████████
   0 └─────────────↓─────
      call 1           19\
""")


@given(
    st.lists(st.integers(0, 3_000_000), max_size=400),
    st.lists(st.integers(0, 400), max_size=5),
    st.integers(1_000, 2_000_000),
)
def test_a_waterline_fits_any_levels(levels: list[int], marks: list[int], window: int):
    lines = chart(levels, marks, window=window, threshold=int(0.65 * window))
    assert all(len(line) <= 80 for line in lines)
    assert len(lines) == (10 if levels else 0)


def talk(places: list[int], marks: list[Compaction], count: int) -> Conversation:
    turns = tuple(Turn(Message(role="user", parts=(Text(words(number + 1)),))) for number in range(count))
    calls = tuple(Call(place=place) for place in places)
    return Conversation(
        program="messages", format=Format.ULLAGE, model="gpt-4o", turns=turns, calls=calls, compactions=tuple(marks)
    )


@st.composite
def talks(draw: st.DrawFn) -> Conversation:
    count = draw(st.integers(1, 12))
    places = sorted(draw(st.sets(st.integers(0, count - 1))))
    marks = [
        Compaction(place=place, left=tuple(draw(st.lists(st.integers(0, place - 1), unique=True))))
        for place in sorted(draw(st.sets(st.integers(1, count), max_size=3)))
    ]
    return talk(places, marks, count)


@given(talks())
def test_what_is_carried_is_what_stood_before_each_call(one: Conversation):
    standing = [one.turns_in_window(call.place) for call in one.calls]
    assert calls_carried(one) == [sum(turn in each for each in standing) for turn in range(len(one.turns))]


@given(talks())
def test_an_unreported_level_is_the_count_of_the_window(one: Conversation):
    found = weigh(FoundConversation("x", one), DEFAULTS)
    for level in found.levels:
        own = [found.turns[place].weight.tokens for place in one.turns_in_window(level.call.place)]
        assert level.tokens == found.fixed.total.tokens + sum(own)


def test_results_that_share_a_message_are_weighed_apart(folder: Path):
    blocks = [{"type": "tool_use", "id": name, "name": "read", "input": {"path": name}} for name in ("a", "b")]
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": words(10)},
        {"type": "tool_result", "tool_use_id": "b", "content": words(100)},
    ]
    natives = [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    one = Conversation(program="messages", format=Format.ANTHROPIC, model="claude", turns=tuple(map(Turn, natives)))
    found = weigh(FoundConversation("x", one), DEFAULTS)
    first, second = [each for each in pieces(one, found.turns, found.scale.count) if each.category == "tool_results"]
    assert (first.label, second.label) == ("read a", "read b")
    assert second.tokens > 5 * first.tokens
    assert abs(first.tokens + second.tokens - found.turns[1].shares["tool_results"]) <= 1
    assert [(burden.name, burden.calls) for burden in by_tool([first, second])] == [("read", 0)]


def test_labels_say_the_tool_and_its_most_telling_argument(folder: Path):
    asked_for = {
        "a": '{"n": 1, "path": "/a/very/long/path/that/goes/on/and/on/until/it/ends/in/a/file.py"}',
        "b": "no JSON at all",
        "c": '["x"]',
        "d": '{"query": "  which of\\n these is it, and why is that so hard to say in a few words? "}',
    }
    calls = [
        {"type": "function_call", "name": "read", "arguments": each, "call_id": name}
        for name, each in asked_for.items()
    ]
    image = {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_image", "image_url": "data:,"}]}
    orphan = {"type": "function_call_output", "call_id": "gone", "output": "much"}
    one = Conversation(
        program="messages",
        format=Format.OPENAI_RESPONSES,
        model="gpt-4o",
        turns=tuple(map(Turn, [*calls, image, orphan])),
    )
    found = weigh(FoundConversation("x", one), DEFAULTS)
    labels = [each.label for each in pieces(one, found.turns, found.scale.count)]
    assert labels[:4] == [
        "read …/goes/on/and/on/until/it/ends/in/a/file.py",
        "read no JSON at all",
        "read",
        "read which of these is it, and why is that so h…",
    ]
    assert max(map(len, labels)) <= 48
    assert labels[-1] == "unknown"


def test_of_many_tools_the_heaviest_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]):
    names = [f"tool_{number}" for number in range(11)]
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": name, "content": words(9)} for name in names),
    ]
    (folder / "m.json").write_text(json.dumps(messages), encoding="utf-8")
    assert any(line.startswith("and 3 tools more with ") for line in said(capsys, "m.json"))


def piece(place: int, asked: str, *, standing: bool = True) -> Piece:
    about = {"category": "tool_results", "tool": "read", "label": "read", "calls": 1}
    return Piece(place=place, tokens=100 + place, standing=standing, asked=asked, **about)  # type: ignore[arg-type]


def test_only_calls_in_the_window_count_as_repeated():
    found = [piece(1, "a"), piece(2, "b"), piece(3, "a", standing=False), piece(4, "a"), piece(5, "a")]
    ((last, times, tokens),) = find_repeated_calls(found)
    assert (last.place, times, tokens) == (5, 3, 205)


def call(place: int, minute: float, *, prompt: int = 50_000, cached: int | None = 49_000, model: str = "m") -> Call:
    at = datetime(2026, 11, 15, tzinfo=UTC) + timedelta(minutes=minute)
    return Call(place=place, model=model, at=at, usage=Usage(input=prompt, output=1, cache_read=cached))


def test_a_cache_is_lost_in_a_pause_at_a_compaction_with_another_model_or_by_a_change():
    calls = (
        call(1, 0),
        call(2, 1),
        call(3, 20, cached=0),
        call(5, 21, prompt=9_000, cached=0),
        call(6, 22),
        call(7, 23, cached=1_000, model="other"),
        call(8, 24, model="other"),
        call(9, 25, cached=None, model="other"),
        call(10, 26, model="other"),
        call(11, 27, cached=10, model="other"),
        Call(place=12),
    )
    one = Conversation(
        program="messages", format=Format.ULLAGE, calls=calls, compactions=(Compaction(place=4, left=(3,)),)
    )
    assert [(loss.call, loss.reason, loss.tokens) for loss in losses(one)] == [
        (3, "pause", 50_000),
        (6, "model", 49_000),
        (10, "change", 49_990),
    ]
