import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.messages import (
    Format,
    Message,
    Text,
    ToolCall,
    ToolResult,
    plain,
    read_message,
    results_of,
    with_arguments,
    with_results,
    with_texts,
)

pytestmark = pytest.mark.requirement("S2:formats")

CHAT, RESPONSES, ANTHROPIC, GEMINI, OURS = (
    Format.OPENAI_CHAT,
    Format.OPENAI_RESPONSES,
    Format.ANTHROPIC,
    Format.GEMINI,
    Format.ULLAGE,
)
MARK = {"type": "ephemeral"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
RESULTS: list[tuple[dict[str, Any], Format, dict[int, str], dict[str, Any]]] = [
    (
        {"role": "tool", "content": [{"type": "text", "text": "long"}], "tool_call_id": "1", "x": [1]},
        CHAT,
        {0: "short"},
        {"role": "tool", "content": "short", "tool_call_id": "1", "x": [1]},
    ),
    (
        {
            "type": "function_call_output",
            "id": "fco_1",
            "output": [{"type": "input_text", "text": "l"}],
            "call_id": "1",
        },
        RESPONSES,
        {0: "short"},
        {"type": "function_call_output", "id": "fco_1", "output": "short", "call_id": "1"},
    ),
    (
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "content": [{"type": "text", "text": "one"}, IMAGE], "tool_use_id": "1"},
                {"type": "tool_result", "tool_use_id": "2", "content": "two", "is_error": True, "cache_control": MARK},
                {"type": "text", "text": "And now?", "cache_control": MARK},
            ],
        },
        ANTHROPIC,
        {0: "ONE", 1: "TWO", 7: "nobody"},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "content": "ONE", "tool_use_id": "1"},
                {"type": "tool_result", "tool_use_id": "2", "content": "TWO", "is_error": True, "cache_control": MARK},
                {"type": "text", "text": "And now?", "cache_control": MARK},
            ],
        },
    ),
    (
        {"role": "user", "content": {"type": "tool_result", "tool_use_id": "1"}},
        ANTHROPIC,
        {0: "ONE"},
        {"role": "user", "content": {"type": "tool_result", "tool_use_id": "1", "content": "ONE"}},
    ),
    (
        {
            "role": "user",
            "parts": [
                {"text": "Here."},
                {"functionResponse": {"id": "1", "name": "f", "response": {"a": 1}, "parts": [{"inlineData": {}}]}},
                {"function_response": {"response": {"a": 2}, "name": "g", "scheduling": "SILENT"}, "partMetadata": {}},
            ],
        },
        GEMINI,
        {1: "TWO", 0: "ONE"},
        {
            "role": "user",
            "parts": [
                {"text": "Here."},
                {"functionResponse": {"id": "1", "name": "f", "response": {"output": "ONE"}}},
                {
                    "function_response": {"response": {"output": "TWO"}, "name": "g", "scheduling": "SILENT"},
                    "partMetadata": {},
                },
            ],
        },
    ),
    (
        {"functionResponse": {"name": "f", "response": {"a": 1}}},
        GEMINI,
        {0: "ONE"},
        {"functionResponse": {"name": "f", "response": {"output": "ONE"}}},
    ),
    (
        {
            "role": "tool",
            "parts": [{"type": "text", "text": "a"}, {"type": "tool_result", "parts": [], "call_id": "1"}],
        },
        OURS,
        {0: "ONE"},
        {
            "role": "tool",
            "parts": [
                {"type": "text", "text": "a"},
                {"type": "tool_result", "parts": [{"type": "text", "text": "ONE"}], "call_id": "1"},
            ],
        },
    ),
]


@pytest.mark.parametrize(("native", "format", "texts", "expected"), RESULTS)
def test_results_get_other_texts_and_all_else_stays_key_for_key(
    native: dict[str, Any],
    format: Format,  # noqa: A002
    texts: dict[int, str],
    expected: dict[str, Any],
):
    before = copy.deepcopy(native)
    made = with_results(native, format, texts)
    assert json.dumps(made) == json.dumps(expected)
    assert native == before
    assert with_results(made, format, texts) is made


@pytest.mark.parametrize(("native", "format", "texts", "expected"), RESULTS)
def test_nothing_named_leaves_the_very_same(native: object, format: Format, texts: object, expected: object):  # noqa: A002
    assert texts != expected
    assert with_results(native, format, {}) is native
    assert with_results(native, format, {99: "x"}) is native


@pytest.mark.parametrize(
    ("native", "format"),
    [
        ({"role": "user", "content": "Hi"}, CHAT),
        ({"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}, RESPONSES),
        ({"type": "computer_call_output", "call_id": "1", "output": {"type": "computer_screenshot"}}, RESPONSES),
        ({"role": "assistant", "content": [{"type": "web_search_tool_result", "content": []}]}, ANTHROPIC),
        ({"role": "user", "content": "Hi"}, ANTHROPIC),
        ({"role": "user", "parts": ["Hi", {"functionResponse": {"response": {}}}]}, GEMINI),
        ("Hi", GEMINI),
        ({"role": "user", "parts": ["Hi"]}, OURS),
        (Message(role="user", parts=(Text("Hi"),)), OURS),
    ],
)
def test_what_has_no_result_that_may_be_a_text_is_the_very_same(native: object, format: Format):  # noqa: A002
    assert with_results(native, format, {0: "x"}) is native


def test_a_neutral_message_gets_other_results_too():
    results = tuple(ToolResult(parts=(Text(text),), call_id=text, is_error=True) for text in "ab")
    message = Message(role="tool", parts=(Text("x"), *results))
    made = with_results(message, OURS, {1: "B"})
    assert isinstance(made, Message)
    assert made.parts == (Text("x"), results[0], ToolResult(parts=(Text("B"),), call_id="b", is_error=True))
    assert made.parts[1] is results[0]


def test_an_sdks_object_that_changes_becomes_a_dict_and_one_that_does_not_stays():
    class Result:
        def to_dict(self) -> dict[str, object]:
            return {"role": "tool", "tool_call_id": "1", "content": "long"}

    result = Result()
    assert with_results(result, CHAT, {0: "short"}) == {"role": "tool", "tool_call_id": "1", "content": "short"}
    assert with_results(result, CHAT, {1: "short"}) is result
    assert with_texts(result, CHAT, str.upper) is result


TEXTS: list[tuple[object, Format, object]] = [
    ({"role": "user", "content": "hi", "name": "bo"}, CHAT, {"role": "user", "content": "HI", "name": "bo"}),
    (
        {"role": "user", "content": ["a", {"type": "text", "text": "b", "cache_control": MARK}, {"type": "image_url"}]},
        CHAT,
        {"role": "user", "content": ["A", {"type": "text", "text": "B", "cache_control": MARK}, {"type": "image_url"}]},
    ),
    (
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        RESPONSES,
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "A"}]},
    ),
    ("hi", RESPONSES, "HI"),
    (
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"text": "b"}},
            ],
        },
        ANTHROPIC,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "A"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"text": "b"}},
            ],
        },
    ),
    (
        {
            "role": "model",
            "parts": [
                "a",
                {"text": "b"},
                {"text": "hm", "thought": True},
                {"text": "c", "thought_signature": "s"},
                {"functionCall": {"name": "f", "args": {"text": "d"}}},
            ],
        },
        GEMINI,
        {
            "role": "model",
            "parts": [
                "A",
                {"text": "B"},
                {"text": "hm", "thought": True},
                {"text": "c", "thought_signature": "s"},
                {"functionCall": {"name": "f", "args": {"text": "d"}}},
            ],
        },
    ),
    ({"text": "a"}, GEMINI, {"text": "A"}),
    (
        {"role": "user", "parts": [{"type": "text", "text": "a"}, {"type": "thinking", "text": "b"}]},
        OURS,
        {"role": "user", "parts": [{"type": "text", "text": "A"}, {"type": "thinking", "text": "b"}]},
    ),
    (
        Message(role="user", parts=(Text("a"), Text("B"))),
        OURS,
        Message(role="user", parts=(Text("A"), Text("B"))),
    ),
]


@pytest.mark.parametrize(("native", "format", "expected"), TEXTS)
def test_plain_texts_change_and_nothing_else_does(native: object, format: Format, expected: object):  # noqa: A002
    before = copy.deepcopy(native)
    assert with_texts(native, format, str.upper) == expected
    assert native == before
    assert with_texts(native, format, str) is native


@pytest.mark.parametrize(
    ("native", "format"),
    [
        ({"role": "tool", "tool_call_id": "1", "content": "a"}, CHAT),
        ("a", CHAT),
        ({"type": "function_call_output", "call_id": "1", "output": "a"}, RESPONSES),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}]}, RESPONSES),
        ({"role": "user", "content": [{"type": "tool_result", "content": "a"}, 5]}, ANTHROPIC),
        ({"functionResponse": {"name": "f", "response": {"text": "a"}}}, GEMINI),
        ({"role": "tool", "parts": [{"type": "tool_result", "parts": [{"type": "text", "text": "a"}]}]}, OURS),
        (Message(role="tool", parts=(ToolResult(parts=(Text("a"),)),)), OURS),
    ],
)
def test_what_has_no_plain_text_is_the_very_same(native: object, format: Format):  # noqa: A002
    assert with_texts(native, format, str.upper) is native


WRITTEN = '{"path": "a.py", "lines": ["B", {"c": "D"}], "size": 3}'
LOUD = {"path": "A.PY", "lines": ["B", {"c": "D"}], "size": 3}
CALLS: list[tuple[Any, Format, Any]] = [
    (
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"arguments": WRITTEN}}]},
        CHAT,
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "type": "function", "function": {"arguments": json.dumps(LOUD)}}],
        },
    ),
    (
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": WRITTEN},
        RESPONSES,
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": json.dumps(LOUD)},
    ),
    (
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "a", "signature": "s"},
                {"type": "tool_use", "id": "1", "name": "f", "input": json.loads(WRITTEN)},
                {"type": "server_tool_use", "id": "2", "name": "web_search", "input": {"query": "a"}},
            ],
        },
        ANTHROPIC,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "a", "signature": "s"},
                {"type": "tool_use", "id": "1", "name": "f", "input": LOUD},
                {"type": "server_tool_use", "id": "2", "name": "web_search", "input": {"query": "a"}},
            ],
        },
    ),
    (
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "f", "args": {"a": "b"}}},
                {"function_call": {"name": "f", "args": {"a": "b"}}, "thoughtSignature": "s"},
            ],
        },
        GEMINI,
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "f", "args": {"a": "B"}}},
                {
                    "function_call": {"name": "f", "args": {"a": "B"}},
                    "thoughtSignature": "skip_thought_signature_validator",
                },
            ],
        },
    ),
    (
        {"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "arguments": WRITTEN}]},
        OURS,
        {"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "arguments": json.dumps(LOUD)}]},
    ),
    (
        Message(role="assistant", parts=(Text("a"), ToolCall(name="f", arguments=WRITTEN, id="1"))),
        OURS,
        Message(role="assistant", parts=(Text("a"), ToolCall(name="f", arguments=json.dumps(LOUD), id="1"))),
    ),
]


@pytest.mark.parametrize(("native", "format", "expected"), CALLS)
def test_the_texts_within_arguments_change_and_nothing_else_does(native: object, format: Format, expected: object):  # noqa: A002
    before = copy.deepcopy(native)
    assert with_arguments(native, format, str.upper) == expected
    assert native == before
    assert with_arguments(native, format, str) is native


@pytest.mark.parametrize(
    ("native", "format"),
    [
        ({"role": "user", "content": "a"}, CHAT),
        ("a", RESPONSES),
        ({"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "no JSON"}}]}, CHAT),
        ({"type": "custom_tool_call", "call_id": "1", "input": "a"}, RESPONSES),
        ({"type": "function_call_output", "call_id": "1", "output": "a"}, RESPONSES),
    ],
)
def test_what_has_no_arguments_in_json_is_the_very_same(native: object, format: Format):  # noqa: A002
    assert with_arguments(native, format, str.upper) is native


BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=5)),
    st.builds(
        lambda kind, content: {"type": kind, "tool_use_id": "1", "content": content},
        st.sampled_from(["tool_result", "mcp_tool_result", "web_search_tool_result"]),
        st.text(max_size=5) | st.just([{"type": "text", "text": "x"}]),
    ),
    st.just(
        {"type": "document", "source": {"type": "content", "content": [{"type": "tool_result", "content": "odd"}]}}
    ),
    st.integers(),
)
RESPONSE = st.fixed_dictionaries(
    {"name": st.text(max_size=3) | st.none(), "response": st.just({"a": 1})}, optional={"id": st.just("1")}
)
PIECES = st.one_of(
    st.builds(lambda text: {"text": text}, st.text(max_size=5)),
    st.builds(lambda key, value: {key: value}, st.sampled_from(["functionResponse", "function_response"]), RESPONSE),
    st.builds(lambda value: {"functionCall": {"name": "f"}, "functionResponse": value}, RESPONSE),
    st.just("bare"),
)
NATIVES = st.builds(lambda blocks: ({"role": "user", "content": blocks}, ANTHROPIC), st.lists(BLOCKS, max_size=5)) | (
    st.builds(lambda pieces: ({"role": "user", "parts": pieces}, GEMINI), st.lists(PIECES, max_size=5))
)


@given(NATIVES, st.integers(0, 4))
def test_results_are_numbered_as_they_are_read(given_native: tuple[dict[str, Any], Format], number: int):
    native, format = given_native  # noqa: A001
    before, made = results_of(native, format), with_results(native, format, {number: "new"})
    after = results_of(made, format)
    assert len(after) == len(before)
    assert [new for place, new in enumerate(after) if place != number] == [
        old for place, old in enumerate(before) if place != number
    ]
    if made is not native:
        assert "new" in str(after[number].parts)
        others = [part for part in read_message(made, format).parts if not isinstance(part, ToolResult)]
        assert others == [part for part in read_message(native, format).parts if not isinstance(part, ToolResult)]
        assert plain(made) is made
