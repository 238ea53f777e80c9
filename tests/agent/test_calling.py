import json

import anyio
import pytest

from ullage.agent.function_tools import Calls, Offered, Returned, find_unanswered_calls, make_sendable, with_own_ids
from ullage.errors import InvalidArguments
from ullage.messages import Media, Message, Text, ToolCall, ToolResult
from ullage.testing import FakeSource
from ullage.tool import ANONYMOUS, Call, Needs, Reply, Tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats")]

TOOLS = tuple(Tool(name=name, input_schema={"type": "object"}) for name in ("slow", "quick", "broken", "a.b"))


async def answer(call: Call) -> Reply:
    match call.tool:
        case "slow":
            await anyio.sleep(0.02)
            return Reply.text("slow", meta={"took": 20})
        case "broken":
            raise RuntimeError("out of order")
        case _:
            return Reply.text(f"{call.tool} {json.dumps(dict(call.arguments))}")


async def stuck(call: Call) -> Reply:
    if call.tool == "slow":
        await anyio.sleep_forever()
    return await answer(call)


async def came_of(
    *calls: ToolCall, source: FakeSource | None = None, deadline: float | None = None
) -> tuple[list[ToolResult], list[Returned]]:
    offering = await Offered((source or FakeSource(offered=TOOLS, answer=answer),)).now()
    told = list[Returned]()
    work = Calls(calls=calls, offering=offering, caller=ANONYMOUS, deadline=deadline)
    await work.run(told.append)
    assert work.message.role == "tool"
    return [part for part in work.message.parts if isinstance(part, ToolResult)], told


def call(name: str, arguments: str = "{}", identity: str | None = "1") -> ToolCall:
    return ToolCall(name=name, arguments=arguments, id=identity)


def text(result: ToolResult) -> str:
    return "".join(part.text for part in result.parts if isinstance(part, Text))


async def test_calls_run_side_by_side_and_their_results_keep_the_order_of_the_calls():
    results, told = await came_of(call("slow", identity="1"), call("quick", '{"x": 1}', "2"))
    assert [(one.call_id, one.name, text(one)) for one in results] == [
        ("1", "slow", "slow"),
        ("2", "quick", 'quick {"x": 1}'),
    ]
    assert [one.id for one in told] == ["2", "1"], "each is told when it is there"
    assert told[1].meta == {"took": 20}
    assert told[1].to_json() == {
        "type": "tool_result",
        "id": "1",
        "tool": "slow",
        "text": "slow",
        "isError": False,
        "meta": {"took": 20},
    }


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (call("broken"), "The tool failed: RuntimeError: out of order"),
        (call("nobody"), "no tool is called `nobody`"),
        (call("quick", '{"x": '), "the arguments are not JSON"),
        (call("quick", "[1]"), "the arguments are not a JSON object"),
    ],
)
async def test_a_failure_is_a_result_that_the_model_can_read(asked: ToolCall, said: str):
    (result,), (told,) = await came_of(asked)
    assert result.is_error
    assert told.is_error
    assert said in text(result)


async def test_a_source_that_refuses_says_so_in_the_one_shape_of_errors():
    async def refuses(call: Call) -> Reply:
        raise InvalidArguments("`day` is no date", suggestion="write it as 2026-01-31")

    (result,), _ = await came_of(call("quick"), source=FakeSource(offered=TOOLS, answer=refuses))
    assert json.loads(text(result))["error_code"] == "INVALID_ARGUMENTS"


async def test_a_call_without_arguments_is_one_with_none():
    (result,), _ = await came_of(call("quick", ""))
    assert text(result) == "quick {}"


async def test_a_call_that_needs_an_answer_from_the_user_is_an_error_that_says_so():
    async def asks(call: Call) -> Reply:
        return Reply(needs=Needs(requests={"1": {"method": "elicitation/create"}}))

    (result,), _ = await came_of(call("quick"), source=FakeSource(offered=TOOLS, answer=asks))
    assert result.is_error
    assert "nobody can be asked" in text(result)


async def test_pictures_are_parts_of_the_result():
    async def shows(call: Call) -> Reply:
        return Reply(content=({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},))

    (result,), (told,) = await came_of(call("quick"), source=FakeSource(offered=TOOLS, answer=shows))
    assert isinstance(result.parts[0], Media)
    assert told.to_json()["media"] == 1


async def test_a_call_that_outlasts_the_deadline_has_a_result():
    source, deadline = FakeSource(offered=TOOLS, answer=stuck), anyio.current_time() + 0.5
    with anyio.fail_after(20):
        results, _ = await came_of(call("slow"), call("quick", identity="2"), source=source, deadline=deadline)
    assert [one.is_error for one in results] == [True, False]
    assert "had not answered when the deadline came" in text(results[0])


async def test_calls_that_were_given_up_have_results_that_say_so():
    offering = await Offered((FakeSource(offered=TOOLS, answer=stuck),)).now()
    work = Calls(calls=(call("slow"), call("quick", identity="2")), offering=offering, caller=ANONYMOUS, deadline=None)
    with anyio.CancelScope() as scope:
        await work.run(lambda _: scope.cancel())
    first, second = (part for part in work.message.parts if isinstance(part, ToolResult))
    assert (first.call_id, first.is_error) == ("1", True)
    assert "cut off" in text(first)
    assert text(second) == "quick {}"


def test_every_call_of_an_answer_gets_an_id_of_its_own():
    said = Message(role="assistant", parts=(Text("a"), call("quick"), call("slow"), call("slow", identity=None)))
    fresh = iter(("2", "3"))
    found = with_own_ids(said, lambda: next(fresh))
    assert [part.id for part in found.parts if isinstance(part, ToolCall)] == ["1", "2", "3"]
    assert found.parts[1] is said.parts[1]


def test_arguments_that_are_no_object_are_carried_back_in_one():
    said = Message(role="assistant", parts=(Text("a"), call("quick", '{"x": '), call("quick", '{"x": 1}', "2")))
    _, broken, whole = make_sendable(said).parts
    assert isinstance(broken, ToolCall)
    assert json.loads(broken.arguments) == {"malformed": '{"x": '}
    assert whole is said.parts[2]


def test_a_history_is_unanswered_where_it_ends_with_calls():
    asked = Message(role="assistant", parts=(Text("a"), call("quick")))
    assert find_unanswered_calls((asked,)) == (call("quick"),)
    assert find_unanswered_calls((asked, Message(role="tool", parts=()))) == ()
    assert find_unanswered_calls(()) == ()
