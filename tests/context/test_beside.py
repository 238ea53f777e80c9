"""Which messages must be weighed beside others, and into which categories a message falls."""

import pytest

from context.talks import PICTURE, assistant, call, result, system, tool, user
from ullage.context.token_weights import _server_of as server_of
from ullage.context.token_weights import apportioned, behind, beside, kind_of, parted, seam, unsettled
from ullage.messages import Message, Text, Thinking, ToolResult, Unknown

pytestmark = pytest.mark.requirement("S2:usage", "S2:count")

THOUGHT = Thinking(text="hm", signature="sealed")


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("github__search", "github"),
        ("mcp__github__search", "github"),
        ("mcp__github__a__b", "github"),
        ("search", None),
        ("__search", None),
        ("github__", None),
        ("mcp__search", None),
    ],
)
def test_the_server_of_a_tool_is_told_by_its_name(name: str, server: str | None):
    assert server_of(name) == server


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (user("<context_summary>x"), "summary"),
        (user(" \n<context_summary>x", "y"), "summary"),
        (user("x <context_summary>"), "message"),
        (user("x", "<context_summary>"), "message"),
        (user(PICTURE, "<context_summary>"), "message"),
        (assistant("<context_summary>x"), "message"),
        (user(), "message"),
    ],
)
def test_a_summary_is_a_message_of_the_user_that_begins_so(message: Message, kind: str):
    assert kind_of(message) == kind


ODD = Unknown({"x": 1})


@pytest.mark.parametrize(
    ("message", "categories"),
    [
        (user("a"), {"user": 1}),
        (user("a", PICTURE, ODD), {"user": 1, "images": 2}),
        (user(ODD, "a"), {"user": 2}),
        (assistant("a", THOUGHT, ODD, call("1")), {"assistant": 1, "thinking": 2, "tool_calls": 1}),
        (tool(result("1"), result("2")), {"tool_results": 2}),
        (user("a", result("1")), {"user": 1, "tool_results": 1}),
        (tool(ToolResult(parts=(Text("x"), PICTURE, PICTURE), call_id="1")), {"tool_results": 1, "images": 2}),
        (tool(ODD), {"tool_results": 1}),
        (system("s"), {"system": 1}),
        (Message(role="developer", parts=(Text("x"), PICTURE)), {"system": 2}),
        (user(), {"user": 0}),
        (assistant(), {"assistant": 0}),
        (tool(), {"tool_results": 0}),
    ],
)
def test_a_message_is_divided_by_its_parts(message: Message, categories: dict[str, int]):
    found = parted(message, "message")
    assert {category: len(one.parts) for category, one in found.items()} == categories
    assert {one.role for one in found.values()} == {message.role}
    assert list(parted(message, "summary")) == ["summary"]


def test_a_result_is_divided_into_its_words_and_its_pictures():
    found = parted(tool(ToolResult(parts=(PICTURE, Text("x")), call_id="1")), "message")
    assert found["images"].parts == (PICTURE,)
    assert found["tool_results"].parts == (ToolResult(parts=(Text("x"),), call_id="1"),)
    whole = result("1")
    assert parted(tool(whole), "message")["tool_results"].parts[0] is whole


@pytest.mark.parametrize(
    ("total", "parts", "shares"),
    [
        (10, (1, 1), (5, 5)),
        (10, (3, 1), (8, 2)),
        (10, (1, 3), (3, 7)),
        (10, (1, 1, 1), (3, 4, 3)),
        (10, (0, 0), (5, 5)),
        (3, (0, 0), (2, 1)),
        (0, (3, 4), (0, 0)),
        (7, (0, 5), (0, 7)),
        (7, (), ()),
        (1, (1, 1), (1, 0)),
    ],
)
def test_a_total_is_divided_in_the_ratio_of_its_parts(total: int, parts: tuple[int, ...], shares: tuple[int, ...]):
    assert apportioned(total, parts) == shares


A, B = assistant(call("1"), call("2")), tool(result("1"))
C, D = tool(result("2")), assistant("done")
ASK, THINK = user("Go on."), assistant(THOUGHT, call("1"))
IN_USER = user(result("1"))


@pytest.mark.parametrize(
    ("messages", "since", "first"),
    [
        ([ASK, A, B, C, D], 4, 4),
        ([ASK, A, B, C], 3, 1),
        ([ASK, A, B], 2, 1),
        ([ASK, D, A], 2, 2),
        ([ASK, A, A, B], 3, 1),
        ([ASK, A, D, B], 3, 3),
        ([A, B, C], 3, 3),
        ([], 0, 0),
        # Thinking of a turn that the user ends.
        ([ASK, THINK, B, D, ASK], 4, 1),
        ([ASK, THINK, B, ASK, THINK, B, D, ASK], 7, 4),
        ([ASK, THINK, IN_USER, THINK, IN_USER], 4, 3),
        ([ASK, THINK, IN_USER, THINK, D, ASK], 5, 1),
        ([ASK, D, ASK], 2, 2),
        ([ASK, THINK, B, D], 3, 3),
        ([ASK, THINK, user(result("1"), "and words"), D, ASK], 4, 1),
        ([ASK, THINK, user(), D, ASK], 4, 1),
    ],
)
def test_weights_may_change_from_the_calls_and_the_thinking_on_that_are_continued(
    messages: list[Message], since: int, first: int
):
    assert unsettled(messages, since) == first


@pytest.mark.parametrize(
    ("messages", "start", "places"),
    [
        ([ASK, A, B, C, D], 0, []),
        ([ASK, A, B, C, D], 1, [0]),
        ([ASK, A, B, C, D], 3, [1, 2]),
        ([ASK, A, B, C, D], 4, [3]),
        ([ASK, A, B, D, C], 4, [1, 3]),
        ([ASK, A, B, D, ASK], 5, [4]),
        ([ASK, ASK, ASK, ASK], 3, [0, 1, 2]),
        ([D, ASK, ASK, D], 3, [2]),
        ([A, D, ASK, tool(result("9"))], 3, [2]),
        ([assistant(call("1")), D, assistant(call("1")), ASK, B], 4, [2, 3]),
    ],
)
def test_what_a_message_is_weighed_beside(messages: list[Message], start: int, places: list[int]):
    found = beside(messages, start)
    assert [id(one) for one in found] == [id(messages[place]) for place in places]


@pytest.mark.parametrize(
    ("messages", "end", "places"),
    [
        ([ASK, A, B, C, D], 2, [2]),
        ([ASK, A, B], 3, []),
        ([ASK, D, ASK, D, ASK], 1, [1, 4]),
        ([ASK, D, ASK, D, IN_USER], 1, [1, 2, 4]),
        ([ASK, D, user("x"), D, user("y"), IN_USER], 1, [1, 4, 5]),
        ([ASK, D, user(), D, IN_USER], 1, [1, 2, 4]),
        ([ASK, D, user(PICTURE), D], 1, [1, 2]),
    ],
)
def test_what_follows_a_seam_tells_that_the_user_has_spoken_since(messages: list[Message], end: int, places: list[int]):
    found = behind(messages, end)
    assert [id(one) for one in found] == [id(messages[place]) for place in places]


def test_a_seam_is_where_no_calls_and_results_continue():
    messages = [ASK, A, B, C, D, ASK]
    assert [seam(messages, start) for start in range(8)] == [0, 1, 4, 4, 4, 5, 6, 6]
