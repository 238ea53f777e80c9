"""Which result belongs to which call, and what of a history can only be dropped together."""

import json

import pytest

from context.talks import PICTURE, assistant, call, result, system, tool, user
from ullage.context.tool_pairs import groups, is_instruction, is_picture, leading, pair, speaks
from ullage.messages import Message, Thinking, ToolResult, Unknown

pytestmark = pytest.mark.requirement("S2:compact:valid", "S2:task")

X, Y, Z = call(None, "read"), call(None, "list"), call(None, "read", '{"path": "z"}')
DEVELOPER = Message(role="developer", parts=())


def named(name: str | None, identity: str | None = None) -> ToolResult:
    return ToolResult(parts=(), call_id=identity, name=name)


def pairs(*messages: Message, apart: tuple[int, ...] = ()) -> list[tuple[int, tuple[int, str] | None, int]]:
    """Of each result its place, the place and arguments of its call, and its number in its message."""
    found = pair(messages, apart).answered
    return [(one.place, one.call and (one.call.place, one.call.arguments), one.nth) for one in found]


def open_calls(*messages: Message) -> list[str | None]:
    return [one.id for one in pair(messages).unanswered]


def test_results_without_ids_answer_the_calls_of_the_latest_turn_in_order():
    once = assistant(X), tool(named(None))
    assert pairs(*once) == [(1, (0, X.arguments), 0)]
    again = *once, assistant(Z), tool(named(None))
    assert pairs(*again) == [(1, (0, X.arguments), 0), (3, (2, Z.arguments), 0)]
    forgotten = assistant(X), user("And?"), assistant(Z), tool(named(None))
    assert pairs(*forgotten) == [(3, (2, Z.arguments), 0)], "a new turn of the assistant's begins"
    one_turn = assistant(X), assistant(Z), tool(named(None), named(None))
    assert pairs(*one_turn) == [(2, (0, X.arguments), 0), (2, (1, Z.arguments), 1)]
    assert pairs(*one_turn, apart=(1,)) == [(2, (1, Z.arguments), 0), (2, None, 1)], "messages between were lost"


def test_a_result_without_an_id_answers_the_first_call_of_its_name_else_the_first():
    assert pairs(assistant(Y, X), tool(named("read"))) == [(1, (0, X.arguments), 0)]
    assert pairs(assistant(X, Y), tool(named("other"))) == [(1, (0, X.arguments), 0)]
    (found,) = pair((assistant(X, Y), tool(named("list")))).answered
    assert found.call is not None
    assert found.call.name == "list"


def test_a_result_with_an_id_answers_the_latest_open_call_with_it():
    twice = assistant(call("1", "read", "first")), tool(result("1")), assistant(call("1", "read", "second"))
    assert pairs(*twice, tool(result("1"))) == [(1, (0, "first"), 0), (3, (2, "second"), 0)]
    both = assistant(call("1", "read", "first")), assistant(call("1", "read", "second")), tool(result("1"), result("1"))
    assert pairs(*both) == [(2, (1, "second"), 0), (2, (0, "first"), 1)]


def test_a_result_whose_id_no_call_has_answers_only_a_call_without_an_id():
    assert pairs(assistant(call("1")), tool(named(None, "2"))) == [(1, None, 0)]
    assert pairs(assistant(call("1"), X), tool(named(None, "2"))) == [(1, (0, X.arguments), 0)]
    assert pairs(assistant(call("1", "read", "a")), tool(named(None))) == [(1, (0, "a"), 0)]


def test_a_call_is_answered_once_and_those_without_a_result_are_left():
    messages = assistant(call("1"), call("2"), call("3")), tool(result("2"), result("2"))
    assert open_calls(*messages) == ["1", "3"]
    assert [one.call is None for one in pair(messages).answered] == [False, True]
    assert open_calls() == []


@pytest.mark.parametrize(
    ("asked", "answered", "name", "arguments", "takes_text"),
    [
        ({"type": "shell_call", "call_id": "1", "action": {"a": 1}, "status": "x"}, {"type": "shell_call_output"},
         "shell", {"action": {"a": 1}}, True),
        ({"type": "computer_call", "call_id": "1", "id": "9"}, {"type": "computer_call_output"}, "computer", {}, False),
        ({"type": "apply_patch_call", "call_id": "1", "operation": 2, "arguments": 3}, {"type": "any_output"},
         "apply_patch", {"operation": 2, "arguments": 3}, True),
        ({"type": "mcp_approval_request", "id": "1", "call_id": "9"}, {"type": "mcp_approval_response"},
         "mcp_approval_request", {}, True),
    ],
)  # fmt: skip
def test_items_of_unknown_kinds_are_paired_by_their_ids(
    asked: dict[str, object], answered: dict[str, object], name: str, arguments: dict[str, object], *, takes_text: bool
):
    key = "approval_request_id" if name == "mcp_approval_request" else "call_id"
    messages = assistant(Unknown(asked)), tool(Unknown({**answered, key: "1"}))  # pyright: ignore[reportArgumentType]
    ((answer,), unanswered) = pair(messages).answered, pair(messages).unanswered
    assert unanswered == ()
    assert answer.call is not None
    assert (answer.place, answer.call.place, answer.call.id) == (1, 0, "1")
    assert (answer.call.name, json.loads(answer.call.arguments)) == (name, arguments)
    assert answer.call.takes_text is takes_text


@pytest.mark.parametrize("odd", [{"type": 3, "call_id": "1"}, {"call_id": "1"}, {"type": "x", "call_id": 1}, "x", None])
def test_items_without_a_kind_or_an_id_are_no_calls(odd: object):
    found = pair((assistant(Unknown(odd)),))  # pyright: ignore[reportArgumentType]
    assert (found.answered, found.unanswered) == ((), ())


def seams(*messages: Message) -> list[int]:
    return [group.start for group in groups(messages, pair(messages))]


THOUGHT = Thinking(text="hm", signature="sealed")


@pytest.mark.parametrize(
    ("messages", "starts"),
    [
        ((), []),
        ((user("a"), assistant("b"), user("c")), [0, 1, 2]),
        ((user("a"), assistant(call("1")), tool(result("1")), assistant("b")), [0, 1, 3]),
        ((assistant(call("1"), call("2")), tool(result("1")), user("x"), tool(result("2")), user("y")), [0, 4]),
        ((user("a"), tool(result("9")), user("b")), [0, 2]),
        ((tool(result("9")), user("b")), [0, 1]),
        ((assistant("a"), assistant("b"), user("c")), [0, 1, 2]),
        ((assistant(THOUGHT), assistant("b"), user("c")), [0, 2]),
        ((assistant("a"), assistant(call("1")), tool(result("1")), user("c")), [0, 3]),
        ((user("a"), user(PICTURE), user("b"), assistant("c")), [0, 1, 3]),
        ((user("a"), user(PICTURE), assistant("c")), [0, 2]),
        ((assistant("a"), user(PICTURE), assistant("c")), [0, 1, 2]),
        ((assistant(call("1")), tool(result("1")), user(PICTURE), assistant("c")), [0, 3]),
        ((user(PICTURE), assistant("c")), [0, 1]),
        ((user(PICTURE, "words"), user("b")), [0, 1]),
        ((system("s"), DEVELOPER, user("a"), system("n"), user("b")), [0, 1, 2, 4]),
        ((user("a"), DEVELOPER, user("b")), [0, 2]),
        ((system("s"), user("a")), [0, 1]),
    ],
)
def test_a_history_comes_apart_only_between_what_belongs_together(messages: tuple[Message, ...], starts: list[int]):
    assert seams(*messages) == starts


def test_leading_instructions_are_those_before_all_others():
    assert leading([system("s"), DEVELOPER, user("a"), system("n")]) == 2
    assert leading([user("a"), system("n")]) == 0
    assert leading([system("s"), system("t")]) == 2
    assert [is_instruction(one) for one in (system("s"), DEVELOPER, user("a"), tool())] == [True, True, False, False]


def test_a_turn_of_the_user_has_no_results_and_a_picture_no_words():
    assert speaks(user("a"))
    assert not speaks(user("a", result("1")))
    assert not speaks(assistant("a"))
    assert [is_picture(one) for one in (user(PICTURE), user(PICTURE, " \n"), user(PICTURE, "x"), user("x"))] == [
        *(True, True, False, False)
    ]
    assert not is_picture(assistant(PICTURE))
    assert not is_picture(user(PICTURE, result("1")))
