from dataclasses import replace
from json import dumps, loads

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.sessions import METER
from context.talks import PICTURE, Scale, assistant, call, entries_of, refusals, result, system, talks, tool, user
from ullage.context import Entry
from ullage.context.boundaries import requests_of
from ullage.context.token_weights import Scale as Weigher
from ullage.context.tool_pairs import lost_in
from ullage.context.truncate_messages import clamp, water_level, weight_of
from ullage.messages import Format, Media, Message, Text, Thinking, ToolCall, ToolResult, Unknown, write_messages
from ullage.tokens import drain

pytestmark = pytest.mark.requirement("S2:long", "S2:compact:valid")

NUMBERED = "".join(f"this is line number {n}\n" for n in range(2_000))


def result_of(entry: Entry) -> str:
    (part,) = entry.message.parts
    assert isinstance(part, ToolResult)
    return "".join(one.text for one in part.parts if isinstance(one, Text))


def clamped(*messages: Message, most: int = 500, recalls: bool = False, last_resort: bool = False):
    entries = entries_of([user("go"), assistant(call("1"), call("2")), *messages])
    change = clamp(entries, Scale(), most, recalls=recalls, last_resort=last_resort)
    assert change is not None
    return entries, change


@settings(max_examples=60, deadline=None)
@given(talks(most=4), st.integers(50, 3_000), st.data())
@pytest.mark.requirement("S2:compact:valid")
def test_clamping_keeps_a_history_valid_and_touches_giants_alone(
    messages: list[Message], most: int, data: st.DataObject
):
    pinned = data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=3))
    entries = entries_of(messages, pinned=pinned)
    change = clamp(entries, Scale(), most)
    if change is None:
        return
    assert refusals([entry.message for entry in change.entries], messages) == []
    spared = requests_of(entries).last | {*requests_of(entries).first} | pinned
    touched = [place for place, entry in enumerate(entries) if change.entries[place] is not entry]
    assert not spared.intersection(touched)
    for place in touched:
        assert entries[place].message.role in ("user", "tool")
        assert entries[place].weight.tokens > most
        assert change.entries[place].weight.tokens < entries[place].weight.tokens
    assert change.shed.tokens == weight_of(entries) - weight_of(change.entries)
    assert (change.shed.messages, change.shed.broke_at) == (len(touched), touched[0])
    assert clamp(change.entries, Scale(), most) is None


def test_a_giant_result_keeps_its_first_and_its_last_lines():
    entries, change = clamped(tool(result("1", NUMBERED)), tool(result("2", "small")))
    text = result_of(change.entries[2])
    head, _, rest = text.partition("[…")
    gap, _, tail = rest.partition("…]\n")
    assert NUMBERED.startswith(head)
    assert head.endswith("\n")
    assert NUMBERED.endswith(tail)
    assert tail.startswith("this is line number")
    assert "removed to make room" in gap
    assert 300 < Scale().count(text) <= 500
    assert change.entries[3] is entries[3]


def test_the_gap_says_how_much_is_missing_and_how_to_get_it_back():
    entries, change = clamped(tool(result("1", NUMBERED)), tool(result("2")), recalls=True)
    text = result_of(change.entries[2])
    assert 'recall("src/a.py") brings them back' in text
    kept = Scale().count(text)
    assert abs(lost_in(text) - (entries[2].weight.tokens - kept)) < 40


def test_a_text_clamped_twice_still_says_all_that_is_missing():
    entries, change = clamped(tool(result("1", NUMBERED)), tool(result("2")), most=2_000)
    harder = clamp(change.entries, Scale(), 300)
    assert harder is not None
    text = result_of(harder.entries[2])
    assert text.count("[…") == 1
    assert abs(lost_in(text) - (entries[2].weight.tokens - Scale().count(text))) < 60


def test_a_text_of_one_line_is_cut_where_it_must_be():
    _, change = clamped(tool(result("1", "x" * 40_000)), tool(result("2")))
    assert Scale().count(result_of(change.entries[2])) <= 500


def test_what_is_not_far_above_the_bound_is_no_giant():
    text = "word " * 480
    entries = entries_of([assistant(call("1")), tool(result("1", text)), user("go")])
    assert clamp(entries, Scale(), 500) is None
    assert clamp(entries, Scale(), 590) is None
    assert clamp(entries, Scale(), 450) is not None


def test_a_bound_below_the_words_of_a_gap_changes_nothing():
    assert clamp(entries_of([assistant(call("1")), tool(result("1", NUMBERED))]), Scale(), 3) is None


def test_a_text_that_the_user_pasted_is_cut_unless_it_is_the_last():
    entries = entries_of([user("go"), assistant("yes"), user("see:", NUMBERED), assistant("yes"), user(NUMBERED)])
    change = clamp(entries, Scale(), 500, recalls=True)
    assert change is not None
    first, second = change.entries[2].message.parts
    assert first == Text("see:")
    assert isinstance(second, Text)
    assert 'recall("this is line number 0 this is line' in second.text
    assert change.entries[3:] == entries[3:]
    harder = clamp(entries, Scale(), 500, said_most=1_000)
    assert harder is not None
    assert 500 < harder.entries[-1].weight.tokens <= 1_010


def test_a_message_of_many_parts_is_cut_as_a_whole():
    lines = "".join(f"line {n} of it\n" for n in range(100))
    results = [result(str(n), lines * (n + 1)) for n in range(1, 5)]
    calls = [call(str(n)) for n in range(1, 5)]
    entries = entries_of([user("go"), assistant(*calls), user(*results)])
    change = clamp(entries, Scale(), 10_000, tail=1, tail_most=2_000)
    assert change is not None
    assert 1_200 < change.entries[2].weight.tokens <= 2_010
    pasted = entries_of([user(*["word " * 1_000] * 5)])
    change = clamp(pasted, Scale(), 10_000, said_most=2_500)
    assert change is not None
    assert 1_500 < change.entries[0].weight.tokens <= 2_510


@pytest.mark.parametrize(
    ("sizes", "room", "level"), [((1, 2, 9), 9, 6), ((5, 5, 5), 9, 3), ((1, 2), 9, 6), ((), 4, 4), ((7,), -3, 1)]
)
def test_the_level_is_where_all_comes_to_the_room(sizes: tuple[int, ...], room: int, level: int):
    assert water_level(sizes, room) == level


def test_what_the_model_or_the_system_wrote_is_never_cut():
    long = NUMBERED * 2
    thinking = Thinking(text=long, signature="sealed")
    messages = [
        system(long),
        assistant(thinking, long, call("1", "write", f'{{"text": "{long}"}}')),
        tool(result("1")),
        assistant(call("s"), ToolResult(call_id="s", name="web_search_tool_result", parts=(Text(long),))),
    ]
    assert clamp(entries_of(messages), Scale(), 100) is None


def test_a_summary_and_what_is_pinned_are_never_cut():
    entries = entries_of([user(NUMBERED), user(NUMBERED), assistant("yes"), user("go")], pinned=[1])
    assert clamp((replace(entries[0], kind="summary"), *entries[1:]), Scale(), 100) is None


def test_several_texts_of_one_result_are_cut_as_one():
    _, change = clamped(tool(result("1", NUMBERED, "and", NUMBERED)), tool(result("2")))
    assert Scale().count(result_of(change.entries[2])) <= 500


def test_a_result_with_pictures_is_left_whole_unless_they_may_go_too():
    messages = [user("go"), assistant(call("1")), tool(result("1", NUMBERED, PICTURE)), assistant("yes")]
    entries = entries_of(messages)
    assert clamp(entries, Scale(), 500) is None
    change = clamp(entries, Scale(), 500, last_resort=True)
    assert change is not None
    assert " tokens and 1 image removed to make room" in result_of(change.entries[2])
    assert not any(isinstance(part, Media) for part in change.entries[2].message.parts[0].parts)  # type: ignore[union-attr]


def test_where_pictures_may_go_those_beside_a_few_words_go_too():
    entries = entries_of(
        [user("go"), assistant(call("1")), tool(result("1", "see", PICTURE, PICTURE)), assistant("ok")]
    )
    change = clamp(entries, Scale(), 500, last_resort=True)
    assert change is not None
    assert result_of(change.entries[2]) == "see\n[… 2 images removed to make room …]"
    assert clamp(change.entries, Scale(), 15, last_resort=True) is None


def test_as_a_last_resort_whatever_is_above_the_bound_is_cut():
    entries = entries_of([assistant(call("1")), tool(result("1", "word " * 480)), user("go")])
    assert clamp(entries, Scale(), 590, last_resort=True) is not None


def test_results_that_are_no_texts_to_anyone_are_left_alone():
    messages = [
        assistant(Unknown({"type": "computer_call", "call_id": "c"})),
        tool(ToolResult(call_id="c", parts=(Text(NUMBERED), PICTURE))),
        assistant(call("r"), Unknown({"type": "shell_call", "call_id": "o"})),
        tool(ToolResult(call_id="r", parts=(Text(NUMBERED), Unknown({"type": "tool_reference"})))),
        tool(Unknown({"type": "shell_call_output", "call_id": "o", "output": NUMBERED})),
    ]
    assert clamp(entries_of(messages), Scale(), 5, last_resort=True) is None


def test_a_result_without_a_call_can_be_found_by_its_own_words():
    entries = entries_of([user("go"), tool(result("orphan", NUMBERED)), assistant("yes")])
    change = clamp(entries, Scale(), 500, recalls=True)
    assert change is not None
    assert 'recall("this is line number 0' in result_of(change.entries[1])


def test_the_text_within_an_object_of_gemini_is_cut_at_its_lines():
    called = {"functionCall": {"name": "read", "args": {}}}
    answered = {"functionResponse": {"name": "read", "response": {"output": NUMBERED}}}
    table = {"functionResponse": {"name": "read", "response": {"rows": [NUMBERED], "more": 3}}}
    natives = [
        {"role": "model", "parts": [called, called]},
        {"role": "user", "parts": [answered, table]},
    ]
    scale = Scale(Format.GEMINI)
    change = clamp(drain(scale.entries(natives)), scale, 500)
    assert change is not None
    first, second = (part["functionResponse"]["response"]["output"] for part in change.entries[1].native["parts"])  # type: ignore[index]
    assert first.startswith("this is line number 0\nthis is line number 1\n")
    assert second.startswith('{"rows":["this is')
    assert change.shed.tokens > 15_000


def test_a_change_that_weighs_no_less_is_not_made():
    class Odd(Scale):
        def remade(self, entry: Entry, native: object) -> Entry:
            return (
                replace(super().remade(entry, native), weight=entry.weight)
                if entry.native
                else super().remade(entry, native)
            )

    entries = entries_of([user("go"), assistant(call("1")), tool(result("1", NUMBERED))])
    assert clamp(entries, Odd(), 500) is None


@pytest.mark.requirement("S2:compact:after")
@pytest.mark.parametrize("number", [1, 4])
def test_a_message_comes_to_its_bound_where_its_provider_weighs_more_than_the_text(number: int):
    """Google weighs a line break within a result as two tokens."""
    scale = Weigher(METER, "gemini-2.5-flash", Format.GEMINI)
    body = "".join(f"{row * 7919:x}\n" for row in range(6_000 // number))
    calls = [call(None, f"f{one}") for one in range(number)]
    results = [replace(result(None, body), name=f"f{one}") for one in range(number)]
    natives = write_messages([user("Look."), assistant(*calls), tool(*results)], Format.GEMINI)
    entries = drain(scale.entries(natives))
    change = clamp(entries, scale, 5_000, exactly=True, tail=1, tail_most=5_000)
    assert change is not None
    assert 3_500 < change.entries[-1].weight.tokens <= 5_000


@pytest.mark.requirement("S2:compact:after")
def test_what_the_model_wrote_is_cut_in_the_tail_alone_and_only_where_asked():
    written = assistant(call("1", "write", dumps({"path": "a.py", "content": NUMBERED})))
    entries = entries_of([user("go"), written, tool(result("1")), written, tool(result("1"))])
    assert clamp(entries, Scale(), 500, exactly=True, tail=3, tail_most=500) is None
    change = clamp(entries, Scale(), 500, exactly=True, written=True, tail=3, tail_most=500)
    assert change is not None
    assert [new is old for new, old in zip(change.entries, entries, strict=True)] == [True, True, True, False, True]
    (part,) = change.entries[3].message.parts
    assert isinstance(part, ToolCall)
    left = loads(part.arguments)
    assert left["path"] == "a.py"
    assert left["content"].startswith("this is line number 0\n")
    assert left["content"].endswith("this is line number 1999\n")
    assert change.entries[3].weight.tokens < 520


@pytest.mark.requirement("S2:compact:how")
def test_a_listing_keeps_what_belongs_together_though_one_description_is_most_of_it():
    listed = "matched_tools:\n" + "".join(
        f'- server_name: server-{number}\n  tool_name: get_{number}\n  tool_description: "{"It looks far. " * size}"\n'
        for number, size in enumerate((60, 12, 12, 20))
    )
    log = dumps({"stdout": "one line after another\n" * 120, "exit_code": 0, "path": "a.log"})
    _, change = clamped(tool(result("1", listed)), tool(result("2", log)), most=250)
    assert all(f"server-{number}, get_{number}" in result_of(change.entries[2]) for number in range(4))
    assert result_of(change.entries[3]).count("one line after another") > 20
