"""Requests written for Bedrock's Converse API, read by way of Anthropic's format."""

from base64 import b64encode
from json import dumps

import pytest

from ullage.messages import Format, Media, Text, Thinking, ToolCall, ToolResult, Unknown, read_request
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:formats")


def said(*blocks: Json, role: str = "user") -> dict[str, Json]:
    return {"role": role, "content": list(blocks)}


SPEC: dict[str, Json] = {
    "name": "look",
    "description": "Looks.",
    "inputSchema": {"json": {"type": "object", "properties": {"at": {"type": "string"}}}},
}


def test_tools_of_a_tool_config_are_definitions() -> None:
    config: Json = {"tools": [{"toolSpec": SPEC}, {"cachePoint": {"type": "default"}}], "toolChoice": {"any": {}}}
    request = read_request({"messages": [said({"text": "Hi"})], "toolConfig": config})
    assert request.format is Format.ANTHROPIC
    assert [(tool.name, tool.description, "at" in dumps(tool.schema)) for tool in request.tools] == [
        ("look", "Looks.", True)
    ]
    assert request.tool_choice == {"type": "any"}


def test_blocks_named_by_their_key_are_read_as_those_with_a_type() -> None:
    body: dict[str, Json] = {
        "system": [{"text": "Be kind."}, {"cachePoint": {"type": "default"}}],
        "messages": [
            said({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}}, {"text": "Wait."}),
            said({"toolUse": {"toolUseId": "1", "name": "look", "input": {"at": "it"}}}, role="assistant"),
            said({"toolResult": {"toolUseId": "1", "status": "error", "content": [{"json": {"seen": 1}}]}}),
        ],
    }
    request = read_request(body)
    assert request.system[0].parts == (Text("Be kind."),)
    assert request.messages[0].parts == (Thinking(text="Hm.", signature="s"), Text("Wait."))
    assert request.messages[1].parts == (ToolCall(name="look", arguments='{"at":"it"}', id="1"),)
    assert request.messages[2].parts == (ToolResult(parts=(Text('{"seen": 1}'),), call_id="1", is_error=True),)


def test_media_keep_their_bytes_and_a_text_document_is_its_text() -> None:
    text = b64encode(b"Once upon a time").decode()
    body: dict[str, Json] = {
        "messages": [
            said(
                {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
                {"document": {"format": "txt", "name": "tale", "source": {"bytes": text}}},
                {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://films/one"}}}},
            )
        ],
    }
    parts = read_request(body).messages[0].parts
    assert Media(kind="image", media_type="image/png", data="AAAA") in parts
    assert Text("Once upon a time") in parts
    assert Media(kind="video", url="s3://films/one") in parts


def test_what_a_structured_answer_must_look_like_is_read() -> None:
    wanted: Json = {"textFormat": {"structure": {"jsonSchema": {"schema": '{"type": "object"}'}}}}
    request = read_request({"messages": [said({"text": "Hi"})], "inferenceConfig": {}, "outputConfig": wanted})
    assert request.output_schema == {"type": "json_schema", "schema": {"type": "object"}}


def test_a_count_tokens_call_is_what_it_asks_about() -> None:
    inner: dict[str, Json] = {"messages": [said({"text": "Hi"})], "toolConfig": {"tools": [{"toolSpec": SPEC}]}}
    assert len(read_request({"input": {"converse": inner}}).tools) == 1
    invoked = b64encode(dumps({"anthropic_version": "x", "messages": [{"role": "user", "content": "Hi"}]}).encode())
    assert read_request({"input": {"invokeModel": {"body": invoked.decode()}}}).messages[0].parts == (Text("Hi"),)


def test_anthropics_own_requests_are_left_alone() -> None:
    blocks: list[Json] = [{"type": "text", "text": "Hi"}]
    request = read_request({"messages": [{"role": "user", "content": blocks}], "system": "Be kind.", "max_tokens": 5})
    assert request.messages[0].parts == (Text("Hi"),)
    assert request.settings == {"max_tokens": 5}


def test_guarded_images_chunked_documents_and_search_results_are_read() -> None:
    image: Json = {"format": "png", "source": {"bytes": b64encode(b"x").decode()}}
    document: Json = {"format": "txt", "name": "Report", "source": {"content": [{"text": "Rain."}]}}
    found: Json = {"source": "https://example.org", "title": "News", "content": [{"text": "Sun."}]}
    blocks: list[Json] = [{"guardContent": {"image": image}}, {"document": document}, {"searchResult": found}]
    message = read_request({"modelId": "m", "messages": [said(*blocks)], "toolConfig": {}}).messages[0]
    assert message.parts == (
        Media(kind="image", media_type="image/png", data=b64encode(b"x").decode()),
        Text("Rain."),
        Unknown({"document": {"title": "Report"}}),
        Unknown({"type": "search_result", **found}),
    )
