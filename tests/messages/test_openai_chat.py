import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.messages import Format, Media, Message, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.messages.openai import read_chat, read_chat_message
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:formats")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_messages_keep_their_order_their_roles_and_their_names() -> None:
    request = read_chat(
        {
            "model": "gpt-4o",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "name": "ana", "content": "Hi"},
                {"role": "assistant", "content": "Hello."},
            ],
        }
    )
    assert request.format is Format.OPENAI_CHAT
    assert request.model == "gpt-4o"
    assert request.system == ()
    assert request.messages == (
        Message(role="system", parts=(Text("Be brief."),)),
        Message(role="user", parts=(Text("Hi"),), name="ana"),
        Message(role="assistant", parts=(Text("Hello."),)),
    )


def test_a_call_and_its_result_find_each_other_by_id() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"x": 1}'}}
    request = read_chat(
        {
            "messages": [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "2"},
            ]
        }
    )
    assert request.messages[0].parts == (ToolCall(name="add", arguments='{"x": 1}', id="c1"),)
    assert request.messages[1].parts == (ToolResult(parts=(Text("2"),), call_id="c1"),)


def test_arguments_that_are_an_object_become_compact_json() -> None:
    call: Json = {"function": {"name": "add", "arguments": {"x": 1, "city": "Évora"}}}
    request = read_chat({"messages": [{"role": "assistant", "tool_calls": [call]}]})
    assert request.messages[0].parts == (ToolCall(name="add", arguments='{"x":1,"city":"Évora"}'),)


def test_legacy_functions_are_tools_and_their_calls_are_calls() -> None:
    request = read_chat(
        {
            "functions": [{"name": "now", "parameters": {"type": "object", "properties": {}}}],
            "function_call": {"name": "now"},
            "messages": [
                {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}},
                {"role": "function", "name": "now", "content": "noon"},
            ],
        }
    )
    assert [tool.name for tool in request.tools] == ["now"]
    assert request.tool_choice == {"name": "now"}
    assert request.messages[0].parts == (ToolCall(name="now", arguments="{}"),)
    assert request.messages[1] == Message(role="tool", parts=(ToolResult(parts=(Text("noon"),), name="now"),))


def test_an_image_in_the_request_and_one_behind_an_address_are_told_apart() -> None:
    content: Json = [
        {"type": "text", "text": "Which is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.org/cat.jpg"},
    ]
    assert read_chat({"messages": [{"role": "user", "content": content}]}).messages[0].parts == (
        Text("Which is it?"),
        Media(kind="image", media_type="image/png", data="AAAA", detail="low"),
        Media(kind="image", url="https://example.org/cat.jpg"),
    )


def test_sounds_films_and_documents_are_media() -> None:
    content: Json = [
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}},
    ]
    assert read_chat({"messages": [{"role": "user", "content": content}]}).messages[0].parts == (
        Media(kind="audio", media_type="audio/wav", data="AAAA"),
        Media(kind="video", url="https://example.org/a.mp4"),
        Media(kind="document", media_type="application/pdf", data="AAAA"),
        Unknown({"filename": "a.pdf"}),
    )


@pytest.mark.parametrize(
    ("sound", "media"),
    [
        ("AAAA", Media(kind="audio", data="AAAA")),
        ("data:audio/mp3;base64,AAAA", Media(kind="audio", media_type="audio/mp3", data="AAAA")),
        ("https://example.org/a.mp3", Media(kind="audio", url="https://example.org/a.mp3")),
    ],
)
def test_a_sound_without_an_object_around_it_is_media_as_on_mistral(sound: str, media: Media) -> None:
    content: Json = [{"type": "input_audio", "input_audio": sound}]
    assert read_chat({"messages": [{"role": "user", "content": content}]}).messages[0].parts == (media,)


def test_reasoning_that_a_host_wants_back_is_thinking() -> None:
    message: Json = {"role": "assistant", "content": "4", "reasoning_content": "2 and 2"}
    assert read_chat({"messages": [message]}).messages[0].parts == (Thinking(text="2 and 2"), Text("4"))


@pytest.mark.parametrize(
    "content", [5, {"a": 1}, [7], [{"type": "hologram", "data": "x"}], [{"type": "text", "text": 1}]]
)
def test_content_of_no_known_shape_is_kept_raw(content: Json) -> None:
    (part,) = read_chat({"messages": [{"role": "user", "content": content}]}).messages[0].parts
    assert part == Unknown(content[0] if isinstance(content, list) else content)


@pytest.mark.parametrize("message", [3, "Hi", {"role": "prophet", "content": "Hi"}, {"content": "Hi"}])
def test_a_message_of_no_known_role_is_kept_raw(message: Json) -> None:
    assert read_chat({"messages": [message]}).messages == (Message(role="user", parts=(Unknown(message),)),)


def test_a_tool_the_provider_runs_keeps_its_definition() -> None:
    tool: Json = {"type": "web_search", "search_context_size": "low"}
    (found,) = read_chat({"messages": [], "tools": [tool]}).tools
    assert (found.name, found.hosted) == ("web_search", tool)


def test_every_other_key_is_a_setting() -> None:
    request = read_chat({"model": "m", "messages": [], "temperature": 0, "reasoning_effort": "low", "stream": True})
    assert request.settings == {"temperature": 0, "reasoning_effort": "low", "stream": True}


@pytest.mark.parametrize(("body", "texts"), [({"prompt": "Once"}, ["Once"]), ({"input": ["a", "b"]}, ["a", "b"])])
def test_completions_and_embeddings_are_bare_texts(body: dict[str, Json], texts: list[str]) -> None:
    assert [message.parts for message in read_chat(body).messages] == [(Text(text),) for text in texts]


@given(st.dictionaries(st.sampled_from(["messages", "tools", "model", "functions", "prompt"]), JSON))
def test_no_body_makes_the_reader_fail(body: dict[str, Json]) -> None:
    read_chat(body)


@given(JSON, st.sampled_from(["system", "user", "assistant", "tool", "function", "developer"]))
def test_no_text_of_a_message_is_lost(value: Json, role: str) -> None:
    request = read_chat(
        {"messages": [{"role": role, "content": value, "tool_calls": value, "name": "n", "extra": value}]}
    )
    seen = json.dumps(repr(request), ensure_ascii=False)
    assert all(json.dumps(repr(text), ensure_ascii=False)[2:-2] in seen for text in _texts(value))


def _texts(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    return [text for each in inner for text in _texts(each)]


def test_images_of_an_answer_are_media_in_both_forms() -> None:
    images: Json = ["AAAA", {"type": "image_url", "image_url": {"url": "data:image/png;base64,BBBB"}}]
    message = read_chat_message({"role": "assistant", "content": "So", "images": images})
    assert message.parts == (
        Text("So"),
        Media(kind="image", data="AAAA"),
        Media(kind="image", media_type="image/png", data="BBBB"),
    )
