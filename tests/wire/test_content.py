"""What goes out as the protocol's JSON, and what is changed on the way."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from talking import ERAS, LEGACY, MODERN, Refused, Served, talking, transport

from ullage.errors import ProtocolError, SourceFailed, UnknownTool
from ullage.testing import FakeSource
from ullage.tool import Call, Contents, PromptMessages, Read, Reply, Structured, Tool
from ullage.wire.serve.mcp_content import (
    Envelope,
    block_to_wire,
    contents_to_wire,
    prompt_to_wire,
    reply_to_wire,
    tool_to_wire,
)
from ullage.wire.serve.request_handlers import Identity, Profile
from ullage.wire.serve.sdk_server import _Results

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:call")]

__all__ = ["transport"]

IDENTITY = Identity(name="toy", version="1", instructions="Toys.")


def toy(answer=None, **tool) -> FakeSource:
    offered = Tool(name="toy", description="a toy", **{"input_schema": {"type": "object"}, **tool})
    return FakeSource(offered=(offered,), **({"answer": answer} if answer else {}))


def replying(reply: Reply) -> FakeSource:
    async def answer(_: Call) -> Reply:
        return reply

    return toy(answer)


def server_of(source):
    return Served(source=source, identity=IDENTITY)


KNOWN = (
    {"type": "text", "text": "hi", "x-new": {"deep": None}},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "a:b", "name": "b"},
    {"type": "resource", "resource": {"uri": "a:b", "text": "hi"}},
)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("S1:call")
async def test_every_known_kind_of_block_passes_with_all_its_keys(era: str):
    meta = {"dev.ullage/x": None}
    reply = Reply(content=KNOWN, structured=Structured({"n": None}), meta=meta)
    async with talking(server_of(replying(reply)), era) as talk:
        result = await talk.call("toy")
    assert result["content"] == list(KNOWN)
    assert result["structuredContent"] == {"n": None}
    assert result["_meta"].items() >= meta.items()
    assert ("resultType" in result) == (era == MODERN)


async def test_a_result_says_whose_server_this_is_whatever_the_one_behind_said():
    key = "io.modelcontextprotocol/serverInfo"
    async with talking(
        server_of(replying(Reply.text("hi", meta={key: {"name": "behind", "version": "9"}}))), MODERN
    ) as talk:
        assert (await talk.call("toy"))["_meta"] == {key: {"name": "toy", "version": "1"}}


@pytest.mark.parametrize("era", ERAS)
async def test_a_block_of_an_unknown_kind_goes_out_as_text_with_a_note(era: str):
    chart = {"type": "chart", "points": [1, 2]}
    async with talking(server_of(replying(Reply(content=(chart,)))), era) as talk:
        (block,) = (await talk.call("toy"))["content"]
    assert block["type"] == "text"
    assert "unknown kind `chart`" in block["text"]
    assert json.dumps(chart) in block["text"]


def test_the_data_of_an_unknown_kind_is_not_written_out_for_the_model():
    block = block_to_wire({"type": "3d scene", "data": "aGk=", "mimeType": "model/gltf"})
    resource = {"uri": "urn:ullage:block:3d%20scene", "mimeType": "model/gltf", "blob": "aGk="}
    assert block == {"type": "resource", "resource": resource}


@pytest.mark.parametrize("block", [{"type": "text"}, {"type": "resource", "resource": {"uri": "a:b"}}, {"type": 7}])
def test_a_block_that_lacks_what_its_kind_must_have_is_told_as_text(block):
    assert block_to_wire(block)["type"] == "text"


@pytest.mark.parametrize(("era", "kept"), [(LEGACY, False), (MODERN, True)])
async def test_structured_content_that_is_no_object_is_left_out_only_where_it_cannot_be_said(era: str, kept):
    async with talking(server_of(replying(Reply(structured=Structured([1, 2])))), era) as talk:
        result = await talk.call("toy")
    assert ("structuredContent" in result) == kept
    assert kept or result["content"] == [{"type": "text", "text": "[1, 2]"}]


def test_text_stands_for_structured_content_that_cannot_be_said():
    result = reply_to_wire(Reply(content=KNOWN[:1], structured=Structured(7)), modern=False)
    assert result["content"] == [KNOWN[0]]


@pytest.mark.parametrize("modern", [True, False])
def test_an_output_schema_of_another_type_spoils_no_earlier_list(modern):
    tool = Tool(name="t", input_schema={}, output_schema={"type": "array"})
    assert ("outputSchema" in tool_to_wire(tool, modern=modern)) == modern


@pytest.mark.parametrize("era", ERAS)
async def test_a_definition_keeps_keys_that_nobody_here_knows(era: str):
    source = toy(extra={"execution": {"taskSupport": "optional"}, "x-new": 1}, annotations={"readOnlyHint": "maybe"})
    async with talking(server_of(source), era) as talk:
        (tool,) = (await talk.request("tools/list"))["tools"]
    assert tool["x-new"] == 1
    assert tool["execution"] == {"taskSupport": "optional"}
    assert tool["annotations"] == {"readOnlyHint": "maybe"}


def test_a_resource_without_text_or_data_is_told_as_json():
    result = contents_to_wire(Contents(contents=({"uri": "a:b", "rows": 1}, {"uri": "a:c", "blob": ""})), "a:b")
    assert result["contents"] == [
        {"uri": "a:b", "mimeType": "application/json", "text": '{"uri": "a:b", "rows": 1}'},
        {"uri": "a:c", "blob": ""},
    ]


@pytest.mark.parametrize(
    ("content", "text"), [("hi", "hi"), ({"type": "odd"}, "unknown kind `odd`"), ([{"type": "text"}], '[{"type"')]
)
def test_a_prompt_message_holds_one_known_block(content, text: str):
    result = prompt_to_wire(PromptMessages(messages=({"role": "user", "content": content},), description="d"))
    assert result["description"] == "d"
    (message,) = cast("list[Any]", result["messages"])
    assert text in message["content"]["text"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("U:errors")
async def test_an_error_of_the_protocol_is_handed_on_unchanged(era: str):
    async def answer(_: Call) -> Reply:
        raise ProtocolError("pay first", number=-31999, data={"price": None})

    async with talking(server_of(toy(answer)), era) as talk:
        with pytest.raises(Refused) as caught:
            await talk.call("toy")
    assert (caught.value.code, caught.value.message, caught.value.data) == (-31999, "pay first", {"price": None})


@pytest.mark.parametrize("era", ERAS)
async def test_what_nobody_foresaw_is_an_internal_error_without_its_details(era: str, caplog: pytest.LogCaptureFixture):
    async def answer(_: Call) -> Reply:
        raise ZeroDivisionError("secret")

    async with talking(server_of(toy(answer)), era) as talk:
        with pytest.raises(Refused) as caught:
            await talk.call("toy")
    assert caught.value.code == -32603
    assert "secret" not in caught.value.message
    assert "tools/call" in caplog.text


class Refusing(FakeSource):
    """Neither lists nor reads."""

    async def tools(self):
        raise SourceFailed("gone", suggestion="wait")

    async def read(self, read: Read) -> Contents:
        raise UnknownTool(f"no {read.uri}")


@pytest.mark.parametrize("era", ERAS)
async def test_a_request_without_a_place_for_errors_gets_the_shape_as_data(era: str):
    async with talking(server_of(Refusing()), era) as talk:
        with pytest.raises(Refused) as caught:
            await talk.request("tools/list")
        with pytest.raises(Refused) as missing:
            await talk.request("resources/read", {"uri": "a:b"})
    assert (caught.value.code, caught.value.data["error_code"]) == (-32603, "SOURCE_FAILED")
    assert missing.value.code == -32602


async def test_a_result_is_not_lost_where_the_sdk_would_pass_another_context():
    async def handler(request: object, live: object) -> dict[str, Any]:
        del request, live
        return {"content": [], "isError": False}

    results = _Results(
        Envelope("toy", "1", lambda: None, dict),
        Profile(source=FakeSource(), identity=Identity(name="toy", version="1")),
    )
    connection = SimpleNamespace(state={}, notify=None, exit_stack=None, client_capabilities=None)
    session = SimpleNamespace(_connection=connection, _request_outbound=None)
    context = SimpleNamespace(
        protocol_version=LEGACY,
        method="tools/call",
        params={},
        request_id=1,
        request=None,
        close_sse_stream=None,
        session=session,
        lifespan_context=None,
    )
    assert await results.adapt(handler)(cast("Any", context), None) == {"content": [], "isError": False}
