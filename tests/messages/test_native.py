"""SDKs' objects are stood in for by small classes that are made plain as theirs are."""

from collections import UserDict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar

import pydantic
import pytest
from pydantic.alias_generators import to_camel

from ullage.errors import UnreadableRequest
from ullage.messages import Format, Media, Message, Text, Thinking, ToolCall, ToolResult, plain, read_message

pytestmark = pytest.mark.requirement("S2:formats")

TWO = {"type": "text", "text": "2"}


class SetFields(pydantic.BaseModel):
    """As OpenAI's and Anthropic's: what was set is sent, even None."""

    role: str = "assistant"
    content: Any = None
    tool_calls: list[Any] | None = None
    refusal: str | None = None
    parsed: object = None
    __api_exclude__: ClassVar[set[str]] = {"parsed"}


class Block(pydantic.BaseModel):
    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: object = None


class Google(pydantic.BaseModel):
    """As google-genai's: camelCase on the wire, bytes as base64, None left out."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel, populate_by_name=True, ser_json_bytes="base64")

    role: str | None = None
    parts: list["Google"] | None = None
    text: str | None = None
    thought_signature: bytes | None = None
    inline_data: "Google | None" = None
    mime_type: str | None = None
    data: bytes | None = None
    function_call: dict[str, object] | None = None

    def to_json_dict(self) -> dict[str, object]:
        raise NotImplementedError


@dataclass
class Simple:
    role: str
    content: str
    name: str | None = None


class Old:
    def to_dict(self) -> dict[str, object]:
        return {"role": "user", "content": ("a", "b")}


class Role(StrEnum):
    USER = "user"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "Hi"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hi"}, {"type": "tool_result", "content": [{"a": [1.5]}]}],
        },
        {"role": "model", "parts": [{"functionCall": {"args": {"deep": [[], {}, None, True]}}}]},
    ],
)
def test_a_dict_that_is_json_is_given_back_itself(message: dict[str, object]):
    assert plain(message) is message


@pytest.mark.requirement("S2:formats")
def test_what_an_openai_object_sends_is_what_was_set_without_what_is_the_sdks_own():
    message = SetFields(content=None, tool_calls=[{"id": "1"}], parsed=object())
    assert plain(message) == {"content": None, "tool_calls": [{"id": "1"}]}


@pytest.mark.requirement("S2:formats")
def test_what_a_google_object_sends_is_camel_case_and_base64():
    signed = Google(function_call={"name": "f"}, thought_signature=b"\xff\xfe")
    content = Google(role="model", parts=[Google(text="x"), signed])
    assert plain(content) == {
        "role": "model",
        "parts": [{"text": "x"}, {"functionCall": {"name": "f"}, "thoughtSignature": "__4="}],
    }


@pytest.mark.requirement("S2:formats")
def test_objects_inside_a_dict_are_made_plain_and_the_dict_is_left_alone():
    blocks = [Block(type="text", text="Hi"), Block(type="tool_use", id="t1", name="add", input={"a": 1})]
    message = {"role": "assistant", "content": blocks}
    assert plain(message)["content"] == [
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
    ]
    assert message["content"] is blocks
    assert read_message(message, Format.ANTHROPIC) == Message(
        role="assistant", parts=(Text("Hi"), ToolCall(name="add", arguments='{"a":1}', id="t1"))
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Simple("user", "Hi"), {"role": "user", "content": "Hi"}),
        (Old(), {"role": "user", "content": ["a", "b"]}),
        (MappingProxyType({"role": Role.USER, "content": ("x",)}), {"role": "user", "content": ["x"]}),
        (UserDict({"data": b"\xfb\xff"}), {"data": "+/8="}),
        (Message(role="user", parts=(Text("Hi"),)), {"role": "user", "parts": [{"type": "text", "text": "Hi"}]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_can_be_made_plain_is(message: object, expected: Mapping[str, object]):
    assert plain(message) == expected


@pytest.mark.parametrize("message", [None, 5, "Hi", [], object(), Simple, SetFields, {"role": object()}, {"role": {1}}])
def test_what_cannot_be_made_plain_is_refused(message: object):
    with pytest.raises(UnreadableRequest):
        plain(message)


def test_a_message_nested_too_deeply_is_refused():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(UnreadableRequest):
        read_message({"role": "user", "content": deep}, Format.OPENAI_CHAT)


@pytest.mark.parametrize("format", list(Format))
def test_a_neutral_message_is_read_as_itself_in_any_format(format: Format):  # noqa: A002
    message = Message(role="user", parts=(Text("Hi"),))
    assert read_message(message, format) is message


@pytest.mark.requirement("S2:formats")
@pytest.mark.parametrize(
    ("native", "format"),
    [
        ({"role": "tool", "tool_call_id": "1", "content": "2"}, Format.OPENAI_CHAT),
        ({"type": "function_call_output", "call_id": "1", "output": "2"}, Format.OPENAI_RESPONSES),
        ({"role": "tool", "parts": [{"type": "tool_result", "call_id": "1", "parts": [TWO]}]}, Format.ULLAGE),
    ],
)
def test_one_result_reads_alike_in_formats_that_have_messages_for_it(native: object, format: Format):  # noqa: A002
    assert read_message(native, format) == Message(role="tool", parts=(ToolResult(parts=(Text("2"),), call_id="1"),))


@pytest.mark.parametrize("format", [Format.GEMINI, Format.OPENAI_RESPONSES])
def test_a_bare_text_is_the_users_where_the_format_has_such(format: Format):  # noqa: A002
    assert read_message("Hi", format) == Message(role="user", parts=(Text("Hi"),))


def test_bytes_in_googles_alphabet_are_read_in_everyones():
    image = {"role": "user", "parts": [Google(inline_data=Google(mime_type="image/png", data=b"\xfb\xff"))]}
    expected = Media(kind="image", media_type="image/png", data="+/8=")
    assert read_message(image, Format.GEMINI).parts == (expected,)


@pytest.mark.parametrize(
    ("native", "format", "seal"),
    [
        ({"type": "thinking", "thinking": "a", "signature": "s"}, Format.ANTHROPIC, "signature"),
        ({"type": "redacted_thinking", "data": "s"}, Format.ANTHROPIC, "redacted"),
        ({"type": "reasoning", "encrypted_content": "s"}, Format.OPENAI_RESPONSES, "encrypted"),
        ({"text": "a", "thought": True, "thoughtSignature": "s"}, Format.GEMINI, "thought_signature"),
        ({"text": "a", "thoughtSignature": "s"}, Format.GEMINI, "thought_signature"),
        ({"text": "a", "thought": True}, Format.GEMINI, None),
        ({"type": "thinking", "thinking": "a"}, Format.ANTHROPIC, None),
    ],
)
def test_thinking_says_whose_seal_it_bears(native: object, format: Format, seal: str | None):  # noqa: A002
    message = {"role": "assistant", "content": [native]} if format is Format.ANTHROPIC else native
    (thought, *_) = read_message(message, format).parts
    assert isinstance(thought, Thinking)
    assert thought.sealed_as == seal
