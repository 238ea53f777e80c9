from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.messages import (
    Format,
    Media,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    join_texts,
    read_request,
)
from ullage.messages.gemini import read
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:formats")


def test_a_content_becomes_a_message_and_the_system_instruction_stands_apart() -> None:
    request = read(
        {
            "contents": [
                {"role": "user", "parts": [{"text": "Is it raining?"}]},
                {"role": "model", "parts": [{"text": "A little."}]},
            ],
            "systemInstruction": {"role": "model", "parts": [{"text": "Be brief."}]},
        }
    )
    assert request.format is Format.GEMINI
    assert request.system == (Message(role="system", parts=(Text("Be brief."),)),)
    assert [message.role for message in request.messages] == ["user", "assistant"]


@pytest.mark.parametrize("contents", ["Hello", ["Hello"], [{"text": "Hello"}], {"parts": {"text": "Hello"}}])
def test_contents_may_be_written_short(contents: Json) -> None:
    assert read({"contents": contents}).messages == (Message(role="user", parts=(Text("Hello"),)),)


def test_both_spellings_of_a_key_are_read() -> None:
    camel = read(
        {
            "contents": [
                {"role": "model", "parts": [{"functionCall": {"name": "add", "args": {"x": 1}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "add", "response": {"sum": 2}}}]},
            ],
            "systemInstruction": "Add.",
        }
    )
    snake = read(
        {
            "contents": [
                {"role": "model", "parts": [{"function_call": {"name": "add", "args": {"x": 1}}}]},
                {"role": "user", "parts": [{"function_response": {"name": "add", "response": {"sum": 2}}}]},
            ],
            "system_instruction": "Add.",
        }
    )
    assert camel == snake
    assert camel.messages[0].parts == (ToolCall(name="add", arguments='{"x":1}'),)
    assert camel.messages[1].parts == (ToolResult(name="add", parts=(Text('{"sum":2}'),)),)


def test_a_signature_on_a_call_stands_in_front_of_it_as_an_empty_thought() -> None:
    part: Json = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "c2VhbGVk"}
    parts = read({"contents": [{"role": "model", "parts": [part]}]}).messages[0].parts
    assert parts == (Thinking(text="", signature="c2VhbGVk"), ToolCall(name="look", arguments="{}"))


def test_a_thought_keeps_its_text_and_its_signature() -> None:
    part: Json = {"text": "Let me see.", "thought": True, "thoughtSignature": "c2VhbGVk"}
    parts = read({"contents": [{"role": "model", "parts": [part]}]}).messages[0].parts
    assert parts == (Thinking(text="Let me see.", signature="c2VhbGVk"),)


def test_text_that_is_said_not_to_be_a_thought_is_text() -> None:
    assert read({"contents": [{"parts": [{"text": "Yes", "thought": False}]}]}).messages[0].parts == (Text("Yes"),)


def test_media_keep_their_type_their_place_and_their_resolution() -> None:
    parts: list[Json] = [
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}},
        {"file_data": {"mime_type": "video/mp4", "file_uri": "files/one"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "aGk="}},
    ]
    assert read({"contents": [{"parts": parts}]}).messages[0].parts == (
        Media(kind="image", media_type="image/png", data="aGk=", detail="MEDIA_RESOLUTION_LOW"),
        Media(kind="video", media_type="video/mp4", url="files/one"),
        Media(kind="document", media_type="application/pdf", data="aGk="),
    )


def test_media_inside_a_response_follow_its_text() -> None:
    response: Json = {
        "name": "draw",
        "response": {"ok": True},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}],
    }
    (result,) = read({"contents": [{"parts": [{"functionResponse": response}]}]}).messages[0].parts
    assert isinstance(result, ToolResult)
    assert [type(part) for part in result.parts] == [Text, Media]


def test_a_part_nobody_knows_is_kept_whole() -> None:
    part: Json = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    assert read({"contents": [{"parts": [part]}]}).messages[0].parts == (Unknown(part),)


def test_what_stands_beside_the_known_fields_is_kept() -> None:
    part: Json = {"fileData": {"fileUri": "files/one", "displayName": "A film"}, "videoMetadata": {"fps": 2}}
    assert read({"contents": [{"parts": [part]}]}).messages[0].parts == (
        Media(kind="document", url="files/one"),
        Unknown({"displayName": "A film"}),
        Unknown({"videoMetadata": {"fps": 2}}),
    )


def test_tools_are_told_apart_from_what_google_runs_itself() -> None:
    schema: Json = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}
    request = read(
        {
            "contents": "Hi",
            "tools": [
                {"functionDeclarations": [{"name": "rain", "description": "Will it rain?", "parameters": schema}]},
                {"googleSearch": {}, "codeExecution": None},
            ],
        }
    )
    assert [(tool.name, tool.hosted) for tool in request.tools] == [
        ("rain", None),
        ("googleSearch", {"googleSearch": {}}),
    ]
    assert request.tools[0].schema == schema


def test_it_is_remembered_under_which_key_a_schema_came() -> None:
    declared: Json = {"name": "rain", "parametersJsonSchema": {"type": "object"}, "response": {"type": "STRING"}}
    request = read({"contents": "Hi", "tools": [{"function_declarations": [declared]}]})
    assert request.tools[0].schema == {"type": "object"}
    assert request.tools[0].extra == {"parametersJsonSchema": {"type": "object"}, "response": {"type": "STRING"}}


def test_the_schema_of_the_answer_and_the_choice_of_tools_are_found() -> None:
    request = read(
        {
            "model": "gemini-2.5-flash",
            "contents": "Hi",
            "generation_config": {"response_schema": {"type": "STRING"}, "temperature": 0},
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        }
    )
    assert request.model == "gemini-2.5-flash"
    assert request.output_schema == {"type": "STRING"}
    assert request.tool_choice == {"functionCallingConfig": {"mode": "ANY"}}
    assert "generationConfig" in request.settings


def test_an_embedding_has_its_texts_as_messages() -> None:
    request = read({"requests": [{"content": {"parts": [{"text": "one"}]}}, {"content": {"parts": [{"text": "two"}]}}]})
    assert [message.parts for message in request.messages] == [(Text("one"),), (Text("two"),)]


_KEYS = st.sampled_from(
    ["text", "parts", "role", "functionCall", "function_response", "inlineData", "name", "args", "thought", "x"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["contents", "tools", "systemInstruction", "generationConfig", "y"]), _JSON))
def test_no_body_makes_it_fail(body: dict[str, Json]) -> None:
    read(body)


@given(st.lists(st.dictionaries(_KEYS, _JSON, max_size=4), max_size=4))
def test_no_text_of_a_conversation_is_lost(parts: list[dict[str, Json]]) -> None:
    request = read({"contents": [{"role": "user", "parts": cast("Json", parts)}]})
    written = repr(request).replace("\\\\", "\\")
    for leaf in _leaves(cast("Json", parts)):
        assert leaf in written or repr(leaf)[1:-1] in written or leaf.isspace()


def _leaves(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value] if value.isalnum() and value.isascii() else []
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [leaf for item in value.values() for leaf in _leaves(item)] if isinstance(value, dict) else []


def test_the_config_of_a_call_of_googles_sdk_is_read() -> None:
    config = {"system_instruction": "Be kind.", "tools": [{"function_declarations": [{"name": "f"}]}], "temperature": 0}
    request = read_request({"model": "gemini-2.5-pro", "contents": "Hi", "config": config})
    assert [join_texts(message.parts) for message in request.system] == ["Be kind."]
    assert [tool.name for tool in request.tools] == ["f"]
    assert request.settings["generationConfig"] == {"temperature": 0}


def test_the_request_inside_a_call_to_count_tokens_is_read() -> None:
    request = read_request({"generateContentRequest": {"model": "models/gemini-2.5-pro", "contents": "Hi"}})
    assert (request.model, len(request.messages)) == ("models/gemini-2.5-pro", 1)
