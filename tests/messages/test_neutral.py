import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.messages import (
    Media,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    from_json,
    to_json,
)
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:formats")

WORD = st.text(max_size=8)
MAYBE = st.none() | WORD
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORD,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORD, inner, max_size=2),
    max_leaves=4,
)
KINDS = st.sampled_from(["image", "audio", "video", "document"])
SEALS = st.sampled_from([None, "signature", "redacted", "thought_signature", "encrypted"])
FLAT = st.one_of(
    st.builds(Text, WORD),
    st.builds(Thinking, text=WORD, signature=MAYBE, sealed_as=SEALS),
    st.builds(Media, kind=KINDS, media_type=MAYBE, data=MAYBE, url=MAYBE, detail=MAYBE),
    st.builds(ToolCall, name=WORD, arguments=WORD, id=MAYBE),
    st.builds(Unknown, VALUE),
)
PARTS = st.recursive(
    FLAT,
    lambda inner: st.builds(
        ToolResult,
        parts=st.lists(inner, max_size=2).map(tuple),
        call_id=MAYBE,
        name=MAYBE,
        is_error=st.booleans(),
    ),
    max_leaves=4,
)
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool"])
MESSAGES = st.builds(Message, role=ROLES, parts=st.lists(PARTS, max_size=4).map(tuple), name=MAYBE)


def _seals(parts: tuple[Part, ...]) -> list[str | None]:
    return [part.sealed_as for part in parts if isinstance(part, Thinking)]


@given(MESSAGES)
def test_nothing_is_lost_on_the_way_to_json_and_back(message: Message):
    back = from_json(json.loads(json.dumps(to_json(message))))
    assert back == message
    assert _seals(back.parts) == _seals(message.parts)


def test_what_is_not_said_is_not_written():
    assert to_json(Message(role="user", parts=(Text("Hi"), ToolCall(name="f", arguments="{}")))) == {
        "role": "user",
        "parts": [{"type": "text", "text": "Hi"}, {"type": "tool_call", "name": "f", "arguments": "{}"}],
    }


@pytest.mark.parametrize("value", [None, 5, "Hi", [], {}, {"role": "prophet", "parts": []}, {"parts": []}])
def test_json_that_is_no_message_is_kept_raw(value: Json):
    assert from_json(value) == Message(role="user", parts=(Unknown(value),))


@pytest.mark.parametrize(
    "part",
    [
        "Hi",
        {"type": "novel"},
        {"type": "text", "text": 5},
        {"type": "thinking"},
        {"type": "media", "kind": "smell"},
        {"type": "tool_call", "name": "f"},
        {"type": "tool_call", "arguments": "{}"},
        {"type": ["text"]},
    ],
)
def test_a_part_of_another_shape_is_kept_raw(part: Json):
    assert from_json({"role": "user", "parts": [part]}).parts == (Unknown(part),)


def test_what_stands_beside_is_kept():
    value: Json = {"role": "user", "parts": [{"type": "text", "text": "Hi", "mark": 1}], "ts": 2}
    assert from_json(value).parts == (Text("Hi"), Unknown({"mark": 1}), Unknown({"ts": 2}))


def test_thoughts_are_equal_whoever_sealed_them():
    thought = Thinking(text="a", signature="s")
    assert replace(thought, sealed_as="redacted") == thought
