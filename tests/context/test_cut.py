import sys
from collections.abc import Collection, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.talks import (
    PICTURE,
    Scale,
    assistant,
    call,
    entries_of,
    refusals,
    result,
    system,
    talks,
    tool,
    user,
)
from ullage.context import Entry
from ullage.context.boundaries import Parting, assembled, bridges
from ullage.context.tool_pairs import groups, pair
from ullage.context.truncate_messages import weight_of
from ullage.messages import Message, Thinking, ToolCall, ToolResult, Unknown
from ullage.tokens import drain

pytestmark = pytest.mark.requirement("S2:compact:valid", "S2:compact:how")

THOUGHT = Thinking(text="hm", signature="sealed")


def seams(messages: Sequence[Message]) -> set[int]:
    """The places before which a tail may begin, and the end."""
    return {0, *(group.stop for group in groups(messages, pair(messages)))}


def cut(entries: Sequence[Entry], room: int) -> int:
    return Parting(entries).cut(room)


def stays(entries: Sequence[Entry], at: int) -> tuple[int, ...]:
    return Parting(entries).stays(at)


def summary() -> Entry:
    (made,) = drain(Scale().entries((user("<context_summary>\nearlier\n</context_summary>"),)))
    return made


def parted(entries: tuple[Entry, ...], at: int, told: Entry | None, carried: Collection[int] = ()) -> tuple[Entry, ...]:
    places = (*Parting(entries).stays(at, carried), *range(at, len(entries)))
    return assembled(told, entries, places, bridges(Scale()))


def last_question(entries: tuple[Entry, ...]) -> Entry:
    return next(one for one in reversed(entries) if one.message.role == "user" and "question" in str(one.message.parts))


@settings(max_examples=80, deadline=None)
@given(talks(), st.data())
@pytest.mark.requirement("S2:compact:valid")
def test_what_remains_of_a_valid_history_is_valid_wherever_it_is_cut(messages: list[Message], data: st.DataObject):
    assert refusals(messages, messages) == []
    pinned = data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=3))
    told = data.draw(st.sampled_from([summary(), None]))
    entries = entries_of(messages, pinned=pinned)
    for at in sorted(seams(messages) - {len(messages)}):
        left = parted(entries, at, told if at else None)
        assert refusals([entry.message for entry in left], messages) == []


@settings(max_examples=50, deadline=None)
@given(talks(), st.data())
@pytest.mark.requirement("S2:compact:valid")
def test_pinned_messages_and_the_users_last_words_are_the_same_objects_afterwards(
    messages: list[Message], data: st.DataObject
):
    pinned = data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=3))
    entries = entries_of(messages, pinned=pinned)
    at = cut(entries, data.draw(st.integers(0, weight_of(entries))))
    left = {id(entry) for entry in parted(entries, at, summary())}
    for entry in (last_question(entries), *(entries[place] for place in pinned), *entries[at:]):
        assert id(entry) in left


@settings(max_examples=50, deadline=None)
@given(talks(), st.data())
def test_what_remains_keeps_its_order(messages: list[Message], data: st.DataObject):
    entries = entries_of(messages, pinned=data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=3)))
    place_of = {id(entry): place for place, entry in enumerate(entries)}
    left = parted(entries, cut(entries, data.draw(st.integers(0, weight_of(entries)))), None)
    places = [place_of[id(entry)] for entry in left if id(entry) in place_of]
    assert places == sorted(set(places))


@settings(max_examples=50, deadline=None)
@given(talks(), st.integers(0, 20_000))
@pytest.mark.requirement("S2:compact:how")
def test_the_tail_is_the_longest_that_fits_or_else_the_last_group(messages: list[Message], room: int):
    entries = entries_of(messages)
    at, places = cut(entries, room), sorted(seams(messages))
    assert at in places[:-1]
    fitting = [place for place in places[:-1] if weight_of(entries[place:]) <= room]
    assert at == (fitting[0] if fitting else places[-2])


def test_a_history_that_fits_is_not_cut():
    assert cut(entries_of([user("hello"), assistant("hello")]), 1_000) == 0
    assert cut((), 0) == 0
    assert stays((), 0) == ()


def test_a_call_is_never_parted_from_its_result():
    messages = [user("a"), assistant(call("1"), call("2")), user(result("1"), result("2")), assistant("done")]
    assert seams(messages) == {0, 1, 3, 4}


def test_calls_made_at_once_in_items_of_their_own_hold_together():
    messages = [
        user("a"),
        assistant(THOUGHT),
        assistant("I look."),
        assistant(call("1")),
        assistant(call("2")),
        tool(result("1")),
        tool(result("2")),
        assistant(THOUGHT),
        assistant("done"),
    ]
    assert seams(messages) == {0, 1, 7, 9}


def test_a_tool_that_the_provider_ran_keeps_its_result_in_the_next_message_of_the_same_turn():
    searched = ToolResult(call_id="s", name="web_search_tool_result", parts=())
    within = [user("a"), assistant(call("s"), searched, "found"), user("b")]
    across = [user("a"), assistant(call("s")), assistant(searched, "found"), user("b")]
    assert seams(within) == {0, 1, 2, 3}
    assert seams(across) == {0, 1, 3, 4}


def test_a_picture_stays_with_what_is_said_of_it():
    assert seams([user("a"), assistant("b"), user(PICTURE), user(PICTURE), user("what is this?")]) == {0, 1, 2, 5}
    assert seams([user("look"), user(PICTURE), assistant("b")]) == {0, 2, 3}
    assert seams([user("a"), assistant(call("1")), tool(result("1")), user(PICTURE), assistant("b")]) == {0, 1, 4, 5}
    assert seams([user(PICTURE), assistant("b"), user(PICTURE, "and this?")]) == {0, 1, 2, 3}


def test_what_the_system_says_on_the_way_stays_behind_the_turn_it_followed():
    assert seams([system("a"), system("b"), user("c"), system("d"), assistant("e")]) == {0, 1, 2, 4, 5}


def test_results_without_ids_answer_by_name_and_order():
    read, write = call(None, "read"), call(None, "write")
    messages = [
        user("a"),
        assistant(read, write, read),
        user(
            ToolResult(name="write", parts=()),
            ToolResult(name="read", parts=()),
            ToolResult(name="other", parts=()),
        ),
    ]
    calls = [one.call for one in pair(messages).answered]
    assert [one and one.name for one in calls] == ["write", "read", "read"]
    assert pair(messages).unanswered == ()
    assert seams(messages) == {0, 1, 3}


def test_a_result_whose_id_the_call_has_not_answers_a_call_without_one():
    assert seams([assistant(call(None)), user(result("given later"))]) == {0, 2}
    assert seams([assistant(call("1")), user(result(None))]) == {0, 2}


def test_an_id_that_comes_again_is_answered_from_the_latest_call():
    messages = [message for _ in range(3) for message in (assistant(call("0")), tool(result("0")))]
    assert seams(messages) == {0, 2, 4, 6}


def test_items_that_no_reader_knows_are_paired_by_their_call_id():
    def item(**fields: str) -> Message:
        return assistant(Unknown(dict(fields)))

    messages = [
        user("a"),
        item(type="shell_call", call_id="1"),
        item(type="shell_call_output", call_id="1"),
        item(type="mcp_approval_request", id="m"),
        item(type="mcp_approval_response", approval_request_id="m"),
        item(type="web_search_call", id="w"),
        assistant(Unknown("what?"), Unknown({"type": 3})),
    ]
    assert seams(messages) == {0, 1, 3, 5, 6, 7}


@pytest.mark.parametrize(
    "messages",
    [
        [tool(result("1")), assistant("b")],
        [user("a"), tool(result("1")), assistant("b")],
        [assistant(call("1")), user("never mind"), assistant(call("1")), tool(result("1")), tool(result("1"))],
        [user(), assistant(), Message(role="tool", parts=()), user()],
        [assistant(THOUGHT), user("a"), assistant(THOUGHT)],
        [user(result("x")), user(result("x")), user(result("x"))],
        [system("a")],
    ],
)
def test_a_broken_history_is_cut_without_making_it_worse(messages: list[Message]):
    entries = entries_of(messages)
    worst = _orphans(messages)
    for at in sorted(seams(messages) - {len(messages)}):
        left = [entry.message for entry in parted(entries, at, summary() if at else None)]
        assert _orphans(left) <= worst


def _orphans(messages: list[Message]) -> int:
    known, lost = list[str | None](), 0
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCall):
            known.append(part.id)
        elif isinstance(part, ToolResult):
            lost += part.call_id not in known
            known = [one for one in known if one != part.call_id]
    return lost


def test_no_tail_begins_with_a_result_even_where_its_call_is_missing():
    assert seams([user("a"), tool(result("?")), tool(result("??")), assistant("b")]) == {0, 3, 4}


def test_the_users_last_words_stay_however_long_the_loop_after_them():
    steps = [message for n in range(20) for message in (assistant(call(str(n))), tool(result(str(n))))]
    entries = entries_of([user("old"), assistant("yes"), user("do it"), *steps])
    at = cut(entries, 60)
    assert at > 30
    assert stays(entries, at) == (0, 2)
    assert Parting(entries).stays(at, carried={0, 2}) == ()


def test_words_that_a_program_put_into_the_users_turn_do_not_hide_what_a_person_typed():
    entries = entries_of(
        [
            user("do it"),
            assistant(call("1")),
            user(result("1"), "<reminder>be brief</reminder>"),
            user("<environment>\ncwd: /\n</environment>"),
            assistant(call("2")),
            tool(result("2")),
            user(PICTURE),
            assistant(call("3")),
            tool(result("3")),
        ]
    )
    assert stays(entries, 7) == (0, 4, 5, 6)


def test_a_picture_alone_may_be_what_a_person_said_last():
    entries = entries_of([user("a"), assistant("b"), user(PICTURE), assistant("c"), assistant("d")])
    assert stays(entries, 4) == (0, 2)
    assert stays(entries_of([user(PICTURE), assistant("c")]), 1) == (0,)


def test_of_the_system_stay_its_first_words_and_its_last():
    said = [system("a"), system("b"), user("c"), system("d"), assistant("e"), user("f"), system("g"), assistant("h")]
    entries = entries_of([*said, user("i"), assistant("j")])
    assert stays(entries, 8) == (0, 1, 2, 3, 5, 6)


def test_a_call_without_a_result_stays_while_it_is_the_last():
    pending = [user("a"), assistant(call("1"), call("2")), tool(result("1")), user("still there?"), user("hello?")]
    assert stays(entries_of(pending), 4) == (0, 1, 2)
    over = [*pending, assistant("yes")]
    assert stays(entries_of(over), 5) == (0, 4)
    items = [user("a"), assistant(call("1")), assistant(call("2")), tool(result("2")), user("hello?")]
    assert stays(entries_of(items), 4) == (0, 1, 2, 3)


def test_a_turn_that_goes_on_is_led_by_its_latest_thinking():
    steps = [assistant(THOUGHT, call("1")), user(result("1")), assistant(call("2")), user(result("2"))]
    again = [assistant(THOUGHT, call("3")), user(result("3")), assistant(call("4")), user(result("4"))]
    entries = entries_of([user("a"), *steps, *again])
    assert stays(entries, 3) == (0, 1, 2)
    assert stays(entries, 5) == (0,)
    assert stays(entries, 7) == (0, 5, 6)
    pinned = entries_of([user("a"), *steps, *again], pinned=[3])
    assert stays(pinned, 5) == (0, 1, 2, 3, 4)
    ended = entries_of([user("a"), *steps, assistant("b"), user("c"), assistant("d")])
    assert stays(ended, 3) == (0,)


def test_a_summary_stands_behind_the_system_and_a_bridge_before_the_next_words_of_the_user():
    entries = entries_of([system("s"), user("a"), assistant("b"), user("c"), assistant("d")])
    left = parted(entries, 3, told := summary(), carried={1})
    assert left[:2] == (entries[0], told)
    assert [entry.kind for entry in left] == ["message", "message", "bridge", "message", "message"]
    assert left[2].message.role == "assistant"
    assert left[3:] == entries[3:]


def test_no_bridge_is_put_before_a_tail_that_the_assistant_begins():
    entries = entries_of([user("a"), assistant("b"), user("c"), assistant("d"), user("e")])
    assert parted(entries, 3, told := summary(), carried={0}) == (told, *entries[3:])


def test_between_two_words_of_the_assistants_stands_one_of_the_users():
    entries = entries_of([user("a"), assistant("b"), user("c"), assistant("d"), user("e")], pinned=[1])
    left = parted(entries, 3, summary(), carried={0})
    assert [entry.message.role for entry in left] == ["user", "assistant", "user", "assistant", "user"]
    assert left[2].kind == "bridge"


def test_without_a_summary_the_user_keeps_the_first_word():
    entries = entries_of([user("a"), assistant("b"), user("c"), assistant("d")])
    left = assembled(None, entries, (1, 2, 3), bridges(Scale()))
    assert [entry.kind for entry in left] == ["bridge", "message", "message", "message"]
    assert left[0].message.role == "user"


def test_a_history_that_the_assistant_began_is_left_as_it_was():
    entries = entries_of([assistant("hello"), user("a"), user("b"), assistant("c")])
    assert assembled(None, entries, (0, 1, 2, 3), bridges(Scale())) == entries


def test_what_stood_side_by_side_from_the_first_is_left_so():
    entries = entries_of([user("a"), assistant("b"), user("c"), system("d"), user("e"), assistant("f")])
    assert parted(entries, 2, told := summary(), carried={0})[0] is told
    assert parted(entries, 2, told, carried={0})[2:] == entries[2:]


def test_a_bridge_of_an_earlier_time_is_used_again():
    scale = Scale()
    old = bridges(scale)("assistant")
    told, question, answer, latest = entries_of([user("summary"), user("a"), assistant("b"), user("c")])
    left = assembled(None, (told, old, question, answer, latest), (0, 4), bridges(scale))
    assert left == (told, old, latest)


def test_ten_times_the_messages_are_ten_times_the_work():
    def work(count: int) -> int:
        """Functions called while a session of so many messages is parted."""
        step = [user("a"), assistant(THOUGHT, call("1")), tool(result("1")), assistant("b")]
        entries, calls = entries_of(step * (count // 4)), list[str]()
        sys.setprofile(lambda frame, event, argument: calls.append(event))
        try:
            parting = Parting(entries)
            parting.stays(parting.cut(count))
        finally:
            sys.setprofile(None)
        return len(calls)

    assert work(4_000) < 12 * work(400)
