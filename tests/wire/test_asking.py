"""A client is asked in the middle of a request: over its session, or by an answer that needs something first."""

import json
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import ElicitResult, ErrorData, TextContent
from talking import ADA, LEGACY, MODERN, Refused, Served, talking, transport

from ullage.errors import ClientCannot, ProtocolError, UllageError
from ullage.testing import FakeSource
from ullage.tool import Call, Complete, Contents, JsonObject, Needs, PromptMessages, PromptRequest, Read, Reply, Tool
from ullage.wire.serve.client_request import can_be_asked, require
from ullage.wire.serve.notifications import Holding, Target, answers_to, is_ours, marked, unmarked
from ullage.wire.serve.request_handlers import Identity

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:call")]

__all__ = ["transport"]

IDENTITY = Identity(name="toy", version="1")
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
ALL = {"elicitation": {}, "sampling": {}, "roots": {}}
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


def toy(answer, **more) -> FakeSource:
    tools = tuple(Tool(name=name, description="a toy", input_schema={"type": "object"}) for name in ("toy", "other"))
    return FakeSource(offered=tools, answer=answer, **more)


def server_of(source, who_calls=lambda _: ADA):
    return Served(source=source, identity=IDENTITY, who_calls=who_calls)


async def asks(call: Call) -> Reply:
    assert call.ask is not None
    return Reply.text(json.dumps(await call.ask("elicitation/create", FORM)))


async def asks_twice(call: Call) -> Reply:
    assert call.ask is not None
    first = await call.ask("elicitation/create", FORM)
    second = await call.ask("roots/list", {})
    return Reply.text(json.dumps([first, second]))


async def asks_both_at_once(call: Call) -> Reply:
    assert call.ask is not None
    found: dict[str, JsonObject] = {}

    async def put(method: str, params: JsonObject) -> None:
        assert call.ask is not None
        found[method] = await call.ask(method, params)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(put, "elicitation/create", FORM)
        tasks.start_soon(put, "roots/list", {})
    return Reply.text(json.dumps(found))


def text_of(result: dict[str, Any]) -> Any:  # noqa: ANN401
    return json.loads(result["content"][0]["text"])


async def accept(method: str, params: dict[str, Any]) -> dict[str, Any]:
    assert params == (FORM if method == "elicitation/create" else {})
    return ACCEPTED if method == "elicitation/create" else {"roots": []}


async def test_an_earlier_client_is_asked_over_its_session_word_for_word():
    async with talking(server_of(toy(asks_twice)), LEGACY, capabilities=ALL, answer=accept) as talk:
        assert text_of(await talk.call("toy")) == [ACCEPTED, {"roots": []}]


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_client_without_the_ability_is_not_asked_and_the_error_names_it(era: str):
    for capabilities in ({}, {"sampling": {}}):
        async with talking(server_of(toy(asks)), era, capabilities=capabilities) as talk:
            result = await talk.call("toy")
        assert result["isError"]
        assert text_of(result)["error_code"] == "CLIENT_CANNOT"
        assert "`elicitation`" in text_of(result)["message"]


async def test_a_refusal_of_the_client_is_an_error_of_the_protocol():
    seen: list[UllageError] = []

    async def answer(call: Call) -> Reply:
        try:
            return await asks(call)
        except ProtocolError as error:
            seen.append(error)
            raise

    async def elicit(context: object, params: object):
        del context, params
        return ErrorData(code=-1, message="no", data={"why": 1})

    async with Client(server_of(toy(answer)).sdk(), mode="legacy", elicitation_callback=elicit) as client:
        with pytest.raises(Exception, match="no"):
            await client.call_tool("toy", {})
    assert isinstance(seen[0], ProtocolError)
    assert (seen[0].number, seen[0].data) == (-1, {"why": 1})


async def test_a_later_client_is_told_what_is_needed_and_the_call_goes_on_when_it_answers():
    source = toy(asks_twice)
    async with talking(server_of(source), MODERN, capabilities=ALL) as talk:
        first = await talk.call("toy", {"a": 1})
        assert first["resultType"] == "input_required"
        ((key, request),) = first["inputRequests"].items()
        assert request == {"method": "elicitation/create", "params": FORM}
        second = await talk.call("toy", {"a": 1}, requestState=first["requestState"], inputResponses={key: ACCEPTED})
        ((other, request),) = second["inputRequests"].items()
        assert request["method"] == "roots/list"
        assert second["requestState"] != first["requestState"]
        last = await talk.call("toy", requestState=second["requestState"], inputResponses={other: {"roots": []}})
    assert last["resultType"] == "complete"
    assert text_of(last) == [ACCEPTED, {"roots": []}]
    assert len(source.calls) == 1, "the call was run again"


async def test_a_real_later_client_answers_without_knowing_more_than_the_protocol():
    async def elicit(context: object, params: object):
        del context, params
        return ElicitResult(action="accept", content={"name": "Ada"})

    source = toy(asks)
    async with Client(server_of(source).sdk(), mode=MODERN, elicitation_callback=elicit) as client:
        result = await client.call_tool("toy", {})
    assert isinstance(result.content[0], TextContent)
    assert json.loads(result.content[0].text) == ACCEPTED
    assert len(source.calls) == 1


async def test_several_questions_at_once_are_gathered():
    async with talking(server_of(toy(asks_both_at_once)), MODERN, capabilities=ALL) as talk:
        first = await talk.call("toy")
        found = {key: one["method"] for key, one in first["inputRequests"].items()}
        assert sorted(found.values()) == ["elicitation/create", "roots/list"]
        half = {key: ACCEPTED for key, method in found.items() if method == "elicitation/create"}
        second = await talk.call("toy", requestState=first["requestState"], inputResponses=half)
        assert [one["method"] for one in second["inputRequests"].values()] == ["roots/list"]
        rest = {key: {"roots": []} for key in second["inputRequests"]}
        last = await talk.call("toy", requestState=second["requestState"], inputResponses=rest)
    assert text_of(last) == {"elicitation/create": ACCEPTED, "roots/list": {"roots": []}}


async def test_a_state_is_good_once_for_its_tool_and_its_principal():
    callers = [ADA]
    async with talking(server_of(toy(asks), lambda _: callers[0]), MODERN, capabilities=ALL) as talk:
        first = await talk.call("toy")
        state, answers = first["requestState"], dict.fromkeys(first["inputRequests"], ACCEPTED)
        for tool, caller, wrong in (
            ("other", ADA, state),
            ("toy", replace(ADA, principal="eve"), state),
            ("toy", ADA, state + "x"),
        ):
            callers[0] = caller
            with pytest.raises(Refused) as caught:
                await talk.call(tool, requestState=wrong, inputResponses=answers)
            assert (caught.value.code, caught.value.data["error_code"]) == (-32602, "INVALID_ARGUMENTS")
            assert "without requestState" in caught.value.data["suggestion"]
        callers[0] = ADA
        assert text_of(await talk.call("toy", requestState=state, inputResponses=answers)) == ACCEPTED
        with pytest.raises(Refused, match="answered already"):
            await talk.call("toy", requestState=state, inputResponses=answers)


async def test_a_held_call_reports_to_the_request_that_waits_for_it():
    async def answer(call: Call) -> Reply:
        assert call.ask is not None
        assert call.progress is not None
        assert call.tell is not None
        await call.progress(1, None, None)
        await call.ask("roots/list", {})
        await call.progress(2, None, None)
        await call.tell("notifications/message", {"level": "info", "data": "on"})
        return Reply.text("{}")

    params = {"name": "toy", "arguments": {}}
    async with talking(server_of(toy(answer)), MODERN, capabilities=ALL) as talk:
        first = await talk.request("tools/call", params, progressToken="a")
        again = {
            "requestState": first["requestState"],
            "inputResponses": {key: {"roots": []} for key in first["inputRequests"]},
        }
        level = {"io.modelcontextprotocol/logLevel": "debug"}
        await talk.request("tools/call", params | again, progressToken="b", **level)
    assert [(method, told.get("progressToken"), told.get("progress")) for method, told in talk.heard] == [
        ("notifications/progress", "a", 1),
        ("notifications/progress", "b", 2),
        ("notifications/message", None, None),
    ]


async def test_a_call_that_fails_after_its_answer_fails_as_any_other():
    async def answer(call: Call) -> Reply:
        await asks(call)
        raise ProtocolError("late", number=-5)

    async with talking(server_of(toy(answer)), MODERN, capabilities=ALL) as talk:
        first = await talk.call("toy")
        with pytest.raises(Refused, match="late"):
            await talk.call(
                "toy",
                requestState=first["requestState"],
                inputResponses=dict.fromkeys(first["inputRequests"], ACCEPTED),
            )


async def test_a_cancelled_request_cancels_the_call_that_runs_for_it():
    began, ended = anyio.Event(), anyio.Event()

    async def answer(_: Call) -> Reply:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    async with talking(server_of(toy(answer)), MODERN, capabilities=ALL) as talk:
        number = await talk.ask("tools/call", {"name": "toy", "arguments": {}})
        with anyio.fail_after(20):
            await began.wait()
            await talk.tell("notifications/cancelled", {"requestId": number})
            await ended.wait()


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_what_a_source_needs_is_asked_and_the_source_called_again(era: str):
    states: list[str | None] = []

    async def answer(call: Call) -> Reply:
        states.append(call.state)
        if call.state is None:
            return Reply(needs=Needs({"who": {"method": "elicitation/create", "params": FORM}}, state="sealed"))
        return Reply.text(json.dumps(call.answers))

    async with talking(server_of(toy(answer)), era, capabilities=ALL, answer=accept) as talk:
        result = await talk.call("toy")
        if era == MODERN:
            assert result["requestState"] == "sealed", "a source's own state was touched"
            result = await talk.call("toy", requestState="sealed", inputResponses={"who": ACCEPTED})
    assert text_of(result) == {"who": ACCEPTED}
    assert states == [None, "sealed"]


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_need_that_the_client_cannot_meet_is_an_error_that_names_it(era: str):
    async def answer(_: Call) -> Reply:
        return Reply(needs=Needs({"who": {"method": "elicitation/create", "params": FORM}}))

    async with talking(server_of(toy(answer)), era) as talk:
        result = await talk.call("toy")
    assert text_of(result)["error_code"] == "CLIENT_CANNOT"


async def test_one_refusal_ends_the_asking_for_the_rest():
    both = {"who": {"method": "elicitation/create", "params": FORM}, "r": {"method": "roots/list"}, "odd": 7}

    async def ask(method: str, _: JsonObject) -> JsonObject:
        if method == "roots/list":
            raise ProtocolError("no roots for you", number=-1)
        await anyio.sleep_forever()
        raise AssertionError

    with pytest.raises(ProtocolError, match="no roots for you"):
        await answers_to(Needs(both), Call(tool="toy", capabilities=ALL, ask=ask))


async def test_a_source_that_never_has_enough_is_given_up():
    async def answer(_: Call) -> Reply:
        return Reply(needs=Needs({"who": {"method": "elicitation/create", "params": FORM}}))

    source = toy(answer)
    async with talking(server_of(source), LEGACY, capabilities=ALL, answer=accept) as talk:
        result = await talk.call("toy")
    assert text_of(result)["error_code"] == "UNAVAILABLE"
    assert len(source.calls) == 9


async def test_a_source_that_only_hands_out_a_state_is_asked_again():
    async def answer(call: Call) -> Reply:
        return Reply.text('"done"') if call.state == "later" else Reply(needs=Needs({}, state="later"))

    async with talking(server_of(toy(answer)), LEGACY) as talk:
        assert text_of(await talk.call("toy")) == "done"


class Curious(FakeSource):
    """Needs the roots before it reads, and asks for them in the middle of a prompt."""

    async def read(self, read: Read) -> Contents:
        if read.state is None:
            return Contents(needs=Needs({"r": {"method": "roots/list"}}, state="s"))
        return Contents(contents=({"uri": read.uri, "text": json.dumps(read.answers)},))

    async def prompt(self, request: PromptRequest) -> PromptMessages:
        assert request.ask is not None
        roots = await request.ask("roots/list", {})
        return PromptMessages(messages=({"role": "user", "content": json.dumps(roots)},))


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_reading_and_prompts_ask_as_calls_do(era: str):
    async with talking(server_of(Curious()), era, capabilities=ALL, answer=accept) as talk:
        for method, params in (("resources/read", {"uri": "a:b"}), ("prompts/get", {"name": "p"})):
            result = await talk.request(method, params)
            if era == MODERN:
                assert "ttlMs" not in result
                answers = {key: {"roots": []} for key in result["inputRequests"]}
                again = {"requestState": result["requestState"], "inputResponses": answers}
                result = await talk.request(method, params | again)
            assert "roots" in json.dumps(result)


class Completing(FakeSource):
    """Asks where the later protocol knows no asking."""

    async def complete(self, request: Complete) -> JsonObject:
        assert request.ask is not None
        return {"values": [json.dumps(await request.ask("roots/list", {}))]}


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_where_the_protocol_has_no_way_to_ask_the_error_says_so(era: str):
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "n", "value": ""}}
    async with talking(server_of(Completing()), era, capabilities=ALL, answer=accept) as talk:
        if era == LEGACY:
            found = await talk.request("completion/complete", params)
            assert found["completion"]["values"] == ['{"roots": []}']
            return
        with pytest.raises(Refused) as caught:
            await talk.request("completion/complete", params)
    assert caught.value.data["error_code"] == "CLIENT_CANNOT"


async def test_a_call_that_waits_for_its_client_tells_nobody_anything():
    told: list[str] = []

    async def answer(call: Call) -> Reply:
        assert call.ask is not None
        assert call.tell is not None
        assert call.progress is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asks, call)
            await anyio.sleep(0.05)
            await call.tell("notifications/message", {"level": "error", "data": "anyone?"})
            await call.progress(1, None, None)
            told.append("nobody")
        return Reply.text("{}")

    async with talking(server_of(toy(answer)), MODERN, capabilities=ALL) as talk:
        params = {"name": "toy", "arguments": {}}
        await talk.request("tools/call", params, progressToken=1, **{"io.modelcontextprotocol/logLevel": "debug"})
        with anyio.fail_after(20):
            while not told:
                await anyio.sleep(0.01)
    assert talk.heard == []


class _Line:
    """As much of a client as a held call looks at."""

    capabilities = ALL
    request: Any = None


async def _begun(holding: Holding, principal: str = "ada", work: Any = None) -> Any:  # noqa: ANN401
    async def asking(ask: Any) -> dict[str, Any]:  # noqa: ANN401
        return {"said": await ask("roots/list", {})}

    return await holding.begin(Target(principal, "tools/call", "toy"), _Line(), work or asking)  # pyright: ignore[reportArgumentType]


async def test_a_call_is_not_held_for_ever():
    async with anyio.create_task_group() as tasks:
        holding = Holding(tasks, longest=0.05)
        result = await _begun(holding)
        assert is_ours(result["requestState"])
        assert len(holding) == 1
        with anyio.fail_after(20):
            while len(holding):
                await anyio.sleep(0.01)


async def test_one_principal_holds_so_many_calls_and_no_other_suffers():
    async with anyio.create_task_group() as tasks:
        holding = Holding(tasks, most=2)
        await _begun(holding)
        await _begun(holding)
        with pytest.raises(UllageError, match="2 calls of `ada`"):
            await _begun(holding)
        await _begun(holding, "eve")
        assert len(holding) == 3
        tasks.cancel_scope.cancel()


async def test_what_ends_while_its_client_is_asked_waits_for_the_client():
    async def impatient(ask: Any) -> dict[str, Any]:  # noqa: ANN401
        with anyio.move_on_after(0.02):
            await ask("roots/list", {})
        return {"said": "too late"}

    async with anyio.create_task_group() as tasks:
        holding = Holding(tasks)
        result = await _begun(holding, work=impatient)
        await anyio.sleep(0.05)
        target = Target("ada", "tools/call", "toy")
        assert await holding.resume(result["requestState"], target, None, {}) == {"said": "too late"}  # pyright: ignore[reportArgumentType]
        assert len(holding) == 0


async def test_a_call_that_gives_itself_up_is_said_to_have():
    async def quitting(_: Any) -> dict[str, Any]:  # noqa: ANN401
        inner.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    async with anyio.create_task_group() as tasks:
        inner = tasks.cancel_scope
        with pytest.raises(UllageError, match="given up"), anyio.CancelScope(shield=True):
            await _begun(Holding(tasks), work=quitting)


def test_states_of_another_ullage_behind_this_one_are_told_apart():
    theirs = "ullage.held.abc"
    assert is_ours(theirs)
    assert not is_ours(marked(theirs))
    assert unmarked(marked(theirs)) == theirs
    assert marked("plain") == "plain"
    assert unmarked(None) is None
    assert unmarked("plain") == "plain"


URL = {"mode": "url", "message": "m", "url": "u"}


@pytest.mark.parametrize(
    ("capabilities", "method", "params", "missing"),
    [
        ({}, "roots/list", {}, "roots"),
        ({"elicitation": {}}, "elicitation/create", URL, "elicitation.url"),
        ({"elicitation": {"url": {}}}, "elicitation/create", FORM, "elicitation.form"),
        ({"sampling": {}}, "sampling/createMessage", {"tools": [{}]}, "sampling.tools"),
        ({"sampling": None}, "sampling/createMessage", {}, "sampling"),
        (ALL, "tea/make", {}, "tea/make"),
        ({"elicitation": {"url": {}}}, "elicitation/create", URL, None),
        ({"elicitation": {"form": {}, "url": {}}}, "elicitation/create", FORM, None),
        ({"sampling": {"tools": {}}}, "sampling/createMessage", {"tools": [{}]}, None),
        (ALL, "sampling/createMessage", {}, None),
    ],
)
def test_an_ability_has_parts(capabilities, method: str, params, missing: str | None):
    if missing is None:
        return require(capabilities, method, params)
    with pytest.raises(ClientCannot, match=f"`{missing}`"):
        require(capabilities, method, params)
    return None


def test_a_client_with_no_such_ability_cannot_be_asked_anything():
    assert can_be_asked(ALL)
    assert not can_be_asked({"experimental": {}})
