"""What a session's file has lost: what is handed on is valid all the same, and says what it lacks."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings

from context.histories import FORMATS, TURNS, Native, Turn, natives
from context.session.crashing import Quick
from context.sessions import METER, talk
from ullage.context import Context, Options, Session
from ullage.context.history import is_broken
from ullage.messages import Format, Message, faults, plain, read_message
from ullage.tool import JsonObject

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:compact:valid")]

FIRST = Turn(who="user", text="Mend the export.")
LAST = Turn(who="user", text="And now?")
WORK = [
    FIRST,
    Turn(who="tools", text="I look.", thinking=True, calls=2),
    Turn(who="tools", text="Another.", calls=1),
    Turn(who="assistant", text="It is mended."),
    LAST,
]
MODELS = {Format.ANTHROPIC: "claude-sonnet-4-5", Format.GEMINI: "gemini-2.5-pro"}


def written(path: Path, messages: list[Any], format: Format) -> Session:  # noqa: A002
    session = Session.open(path, format=format, files=Quick())
    session.append([plain(message) for message in messages])
    return session


def lose(path: Path, *numbers: int) -> None:
    """Spoils the lines of those messages, the first one being 1."""
    lines = path.read_bytes().splitlines(keepends=True)
    for line in lines:
        if b'"type":"compaction"' not in line and json.loads(line)["seq"] in numbers:
            lines[lines.index(line)] = line[:20] + b"\x00" * 20 + b"\n"
    path.write_bytes(b"".join(lines))


def context(path: Path, format: Format = Format.OPENAI_CHAT, **options: Any) -> Context:  # noqa: A002, ANN401
    session = Session.open(path, files=Quick())
    return Context(model=MODELS.get(format, "gpt-4o"), meter=METER, session=session, options=Options(**options))


def refused(messages: tuple[object, ...], format: Format) -> tuple[str, ...]:  # noqa: A002
    """What is wrong with them, the first word included."""
    opening = next(one for one in (read_message(one, format) for one in messages) if one.role != "system")
    return (*faults(messages, format), *(["the assistant opens"] if opening.role == "assistant" else []))


@pytest.mark.requirement("S2:compact:valid", "S2:compact:persist")
@pytest.mark.parametrize("format", FORMATS)
async def test_whichever_line_is_lost_what_is_handed_on_is_valid(tmp_path: Path, format: Format):  # noqa: A002
    messages = natives(WORK, format)
    assert refused(tuple(messages), format) == ()
    for number in range(1, len(messages)):
        path = tmp_path / f"{number}.jsonl"
        written(path, messages, format)
        lose(path, number)
        made = context(path, format)
        kept = path.read_bytes()
        prepared = await made.prepare()
        assert refused(prepared.messages, format) == (), number
        assert path.read_bytes() == kept, "the session's bytes stay as they are"
        left = [one for place, one in enumerate(messages, start=1) if place != number]
        is_broken = refused(tuple(left), format) != ()
        assert (prepared.warning is not None) is is_broken
        assert not is_broken or f"message {number} of `{path}`" in str(prepared.warning)


@pytest.mark.requirement("S2:compact:valid")
@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=TURNS)
def test_any_two_lines_may_be_lost(tmp_path_factory: pytest.TempPathFactory, format: Format, turns: list[Turn]):  # noqa: A002
    messages = natives([FIRST, *turns, LAST], format)
    if refused(tuple(messages), format):
        return
    for first in range(1, len(messages) - 1, 2):
        path = tmp_path_factory.mktemp("lost") / "s.jsonl"
        written(path, messages, format)
        lose(path, first, min(first + 2, len(messages) - 1))
        assert refused(context(path, format).messages, format) == ()


async def test_a_result_without_its_call_is_kept_as_text(tmp_path: Path):
    messages = talk(2)
    written(tmp_path / "s.jsonl", messages, Format.OPENAI_CHAT)
    lose(tmp_path / "s.jsonl", 2)
    prepared = await context(tmp_path / "s.jsonl").prepare()
    told = cast("JsonObject", prepared.messages[1])
    assert told["role"] == "user"
    assert str(told["content"]).startswith("[The result of a call that was lost:]\n")
    assert str(messages[2]["content"]) in str(told["content"])
    event = cast("JsonObject", prepared.event["context"])
    assert str(event["warning"]).startswith(f"message 2 of `{tmp_path / 's.jsonl'}` can no longer be read")


async def test_a_call_without_its_result_has_one_that_says_so(tmp_path: Path):
    written(tmp_path / "s.jsonl", talk(2), Format.OPENAI_CHAT)
    lose(tmp_path / "s.jsonl", 3)
    prepared = await context(tmp_path / "s.jsonl").prepare()
    told = cast("JsonObject", prepared.messages[2])
    assert (told["role"], told["tool_call_id"]) == ("tool", "c0")
    assert "The result was lost" in str(told["content"])


async def test_what_a_tool_of_the_users_own_making_is_answered_with_has_its_own_kind(tmp_path: Path):
    messages: list[Native] = [
        {"role": "user", "content": "Mend it."},
        {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done."},
        {"role": "user", "content": "And now?"},
    ]
    written(tmp_path / "s.jsonl", messages, Format.OPENAI_RESPONSES)
    lose(tmp_path / "s.jsonl", 3)
    prepared = await context(tmp_path / "s.jsonl").prepare()
    assert [cast("JsonObject", one).get("type") for one in prepared.messages][1:3] == [
        "custom_tool_call",
        "custom_tool_call_output",
    ]


@pytest.mark.parametrize(("lost", "said"), [(2, "[The result of a call"), (3, "whose result was lost: computer(")])
async def test_items_that_no_reader_knows_are_told_as_text(tmp_path: Path, lost: int, said: str):
    messages: list[Native] = [
        {"role": "user", "content": "Click."},
        {"type": "computer_call", "call_id": "c1", "id": "cu_1", "action": {"type": "click"}},
        {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot", "file_id": "f"}},
        {"role": "user", "content": "And now?"},
    ]
    written(tmp_path / "s.jsonl", messages, Format.OPENAI_RESPONSES)
    lose(tmp_path / "s.jsonl", lost)
    prepared = await context(tmp_path / "s.jsonl").prepare()
    assert faults(prepared.messages, Format.OPENAI_RESPONSES) == ()
    assert said in json.dumps(prepared.messages)


async def test_a_call_that_waits_for_its_result_is_left_as_it_is(tmp_path: Path):
    messages = talk(3)[:6]
    written(tmp_path / "s.jsonl", messages, Format.OPENAI_CHAT)
    lose(tmp_path / "s.jsonl", 2)
    made = context(tmp_path / "s.jsonl")
    assert made.messages[-1] == messages[5]
    made.add({"role": "tool", "tool_call_id": "c2", "content": "So it is."})
    prepared = await made.prepare()
    assert faults(prepared.messages, Format.OPENAI_CHAT) == ()
    assert len(prepared.messages) == 6


async def test_a_history_that_was_given_so_is_handed_on_as_it_was_given(tmp_path: Path):
    """A provider may hold the calls itself, and be sent the outputs alone."""
    output: Native = {"type": "function_call_output", "call_id": "c1", "output": "Done."}
    made = Context(
        model="gpt-4o",
        meter=METER,
        format=Format.OPENAI_RESPONSES,
        session=Session.open(tmp_path / "s.jsonl", files=Quick()),
    )
    made.add(output)
    prepared = await made.prepare()
    assert prepared.messages == (output,)
    assert prepared.warning is None


async def test_what_another_process_spoils_meanwhile_is_told_too(tmp_path: Path):
    written(tmp_path / "s.jsonl", talk(3), Format.OPENAI_CHAT)
    made = context(tmp_path / "s.jsonl")
    assert (await made.prepare()).warning is None
    lose(tmp_path / "s.jsonl", 4)
    prepared = await made.prepare()
    assert faults(prepared.messages, Format.OPENAI_CHAT) == ()
    assert "message 4 of" in str(prepared.warning)
    again = await made.prepare()
    assert [id(one) for one in again.messages] == [id(one) for one in prepared.messages]


@pytest.mark.requirement("S2:compact:valid", "S2:compact:persist")
@pytest.mark.parametrize("lost", [20, 21, 118, 119, 1])
async def test_a_compaction_goes_by_what_is_sent_and_archives_what_was_written(tmp_path: Path, lost: int):
    path = tmp_path / "s.jsonl"
    lines = [record.line for record in written(path, talk(60), Format.OPENAI_CHAT).records]
    lose(path, lost)
    made = context(path, context_window=4_000)
    prepared = await made.prepare()
    assert prepared.compacted
    assert faults(prepared.messages, Format.OPENAI_CHAT) == ()
    assert [record.line for record in Session.open(path, files=Quick()).history(full=True)] == [
        line for number, line in enumerate(lines, start=1) if number != lost
    ]
    for again in (made, context(path, context_window=4_000)):
        after = await again.prepare()
        assert faults(after.messages, Format.OPENAI_CHAT) == ()
        assert [plain(one) for one in after.messages] == [plain(one) for one in prepared.messages]


async def test_neutral_messages_stay_neutral(tmp_path: Path):
    messages = natives(WORK, Format.ULLAGE)
    written(tmp_path / "s.jsonl", messages, Format.ULLAGE)
    lose(tmp_path / "s.jsonl", 2, 5)
    made = context(tmp_path / "s.jsonl", Format.ULLAGE)
    assert all(isinstance(one, Message) for one in made.messages)


def test_what_is_missing_because_it_was_let_go_is_not_lost(tmp_path: Path):
    path = tmp_path / "s.jsonl"
    for archive in (True, False):
        path.unlink(missing_ok=True)
        session = Session.open(path, files=Quick(), archive=archive)
        session.append(talk(4))
        session.replace(0, 6, [session.records[0]], snapshot=session.records)
        assert session.lost() == ()
        assert Session.open(path, files=Quick()).lost() == ()


def test_the_note_names_the_lines_that_were_lost(tmp_path: Path):
    written(tmp_path / "s.jsonl", talk(3), Format.OPENAI_CHAT)
    lose(tmp_path / "s.jsonl", 2, 4)
    (note,) = Session.open(tmp_path / "s.jsonl", files=Quick()).notes
    assert note.startswith("lines 3 and 5 cannot be read: the 82 bytes are set aside in `s.jsonl.corrupt-")


async def test_a_call_behind_the_last_gap_is_only_waiting_for_its_result():
    """Or every step of a tool loop would read all that was ever let go, on the loop."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    natives_of_it: list[JsonObject] = [{"role": "user", "content": "Go."}, cast("JsonObject", asked)]
    messages = [read_message(one, Format.OPENAI_CHAT) for one in natives_of_it]
    assert [is_broken(messages, gap) for gap in range(3)] == [False, False, True]
