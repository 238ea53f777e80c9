"""Histories from anywhere, said in every format: held against the rules of the providers."""

import json
from collections.abc import Iterator, Sequence
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    faults,
    read_message,
    write_messages,
)

pytestmark = pytest.mark.requirement("S2:formats")

SEALS = st.sampled_from([None, "signature", "redacted", "thought_signature", "encrypted"])
THOUGHT = st.builds(
    Thinking, text=st.sampled_from(["", "hm"]), signature=st.none() | st.just("c2VhbA=="), sealed_as=SEALS
)
IMAGE = Media(kind="image", media_type="image/png", data="AA==")
IDS = st.sampled_from([None, "", "x", "call_2", "functions.f:0", "call_1|fc_1", "c" * 80])
WIRES = [one for one in Format if one is not Format.ULLAGE]


@st.composite
def _histories(draw: st.DrawFn) -> list[Message]:
    """User, then steps of the assistant's: words, or calls with their results, in any of the ways they are written."""
    numbers = count()
    history = [Message(role="system", parts=(Text("Be brief."),))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        history.append(Message(role="user", parts=(Text(f"ask {next(numbers)}"),)))
        if draw(st.booleans()):
            history.append(Message(role="system", parts=(Text(f"mind {next(numbers)}"),)))
        for _ in range(draw(st.integers(0, 2))):
            history += _step(draw, numbers)
        if draw(st.booleans()):
            words: tuple[Part, ...] = (*draw(st.lists(THOUGHT, max_size=1)), Text(f"say {next(numbers)}"))
            history.append(Message(role="assistant", parts=words))
    return history


def _step(draw: st.DrawFn, numbers: Iterator[int]) -> list[Message]:
    calls = [
        ToolCall(name=f"f{number}", arguments=json.dumps({"number": number}), id=draw(IDS))
        for number, _ in zip(numbers, range(draw(st.integers(1, 3))), strict=False)
    ]
    results = [
        ToolResult(
            parts=(Text(f"of {call.name}"), *([IMAGE] if draw(st.booleans()) else [])),
            call_id=call.id,
            name=draw(st.sampled_from([None, call.name])),
        )
        for call in calls
    ]
    thoughts = draw(st.lists(THOUGHT, max_size=2))
    if draw(st.booleans()):
        asked = [Message(role="assistant", parts=(*thoughts, *calls))]
    else:
        asked = [Message(role="assistant", parts=(part,)) for part in (*thoughts, *calls)]
    if draw(st.booleans()):
        return [*asked, *(Message(role="tool", parts=(result,)) for result in results)]
    return [*asked, Message(role="user", parts=(Text(f"also {next(numbers)}"), *results))]


def _words(messages: Sequence[Message]) -> list[str]:
    """What is said, results and the system's opening apart."""
    said = [part.text for message in messages for part in message.parts if isinstance(part, Text) and part.text]
    return [text for text in said if text != "Be brief."]


@pytest.mark.requirement("S2:formats")
@pytest.mark.parametrize("format", WIRES)
@settings(max_examples=40)
@given(history=_histories())
def test_a_history_from_anywhere_is_taken_everywhere(format: Format, history: list[Message]):  # noqa: A002
    natives = write_messages(history, format)
    assert faults(natives, format) == ()
    back = [read_message(native, format) for native in natives]
    assert _words(back) == _words(history)
    calls = [part for message in back for part in message.parts if isinstance(part, ToolCall)]
    results = [part for message in back for part in message.parts if isinstance(part, ToolResult)]
    asked = [part.name for message in history for part in message.parts if isinstance(part, ToolCall)]
    assert [call.name for call in calls] == asked
    assert [str(result.parts).count(f"of {name}") for name, result in zip(asked, results, strict=True)] == [1] * len(
        asked
    )
    if format is not Format.GEMINI:
        assert [call.id for call in calls] == [result.call_id for result in results]
        assert len({call.id for call in calls}) == len(calls)


@pytest.mark.parametrize("format", [Format.ANTHROPIC, Format.GEMINI])
@settings(max_examples=40)
@given(history=_histories())
def test_where_sides_take_turns_no_two_of_one_side_stand_together(format: Format, history: list[Message]):  # noqa: A002
    roles = [native["role"] for native in write_messages(history, format)]
    assert all(one != after for one, after in pairwise(roles))
    assert roles[0] == "user"


@given(_histories())
def test_a_history_of_ours_stays_as_it_is(history: list[Message]):
    assert [read_message(native, Format.ULLAGE) for native in write_messages(history, Format.ULLAGE)] == history


PARALLEL = [
    Message(role="user", parts=(Text("Add."),)),
    Message(
        role="assistant",
        parts=(
            Thinking(text="", signature="c2Vh", sealed_as="thought_signature"),
            ToolCall(name="add", arguments='{"a":1}'),
            ToolCall(name="sub", arguments="1+"),
        ),
    ),
    Message(role="tool", parts=(ToolResult(parts=(Text("5"),), name="sub"),)),
    Message(role="tool", parts=(ToolResult(parts=(Text("7"), IMAGE), name="add", is_error=True),)),
    Message(role="user", parts=(Text("Well?"),)),
]


def test_parallel_calls_without_ids_find_their_results_by_name_in_a_chat():
    first = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    second = {"id": "call_2", "type": "function", "function": {"name": "sub", "arguments": "1+"}}
    assert write_messages(PARALLEL, Format.OPENAI_CHAT) == [
        {"role": "user", "content": "Add."},
        {"role": "assistant", "content": None, "tool_calls": [first, second]},
        {"role": "tool", "tool_call_id": "call_2", "content": "5", "name": "sub"},
        {"role": "tool", "tool_call_id": "call_1", "content": "7", "name": "add"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
        {"role": "user", "content": "Well?"},
    ]


def test_results_and_what_the_user_says_are_one_turn_to_anthropic():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    assert write_messages(PARALLEL, Format.ANTHROPIC)[1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1}},
                {"type": "tool_use", "id": "call_2", "name": "sub", "input": {"arguments": "1+"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_2", "content": "5"},
                {
                    "type": "tool_result",
                    "tool_use_id": "call_1",
                    "content": [{"type": "text", "text": "7"}, image],
                    "is_error": True,
                },
                {"type": "text", "text": "Well?"},
            ],
        },
    ]


def test_gemini_gets_its_signature_back_on_the_call_and_no_ids_it_never_gave():
    media = [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]
    assert write_messages(PARALLEL, Format.GEMINI)[1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "add", "args": {"a": 1}}, "thoughtSignature": "c2Vh"},
                {"functionCall": {"name": "sub", "args": {"arguments": "1+"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "sub", "response": {"output": "5"}}},
                {"functionResponse": {"name": "add", "response": {"error": "7"}, "parts": media}},
                {"text": "Well?"},
            ],
        },
    ]


def test_calls_that_another_model_made_are_marked_for_gemini_on_the_first_of_a_turn():
    calls = (ToolCall(name="f", arguments="{}", id="1"), ToolCall(name="g", arguments="{}", id="2"))
    (content,) = write_messages([Message(role="assistant", parts=(Text("So."), *calls))], Format.GEMINI)
    assert content["parts"] == [
        {"text": "So."},
        {"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"},
        {"functionCall": {"id": "2", "name": "g", "args": {}}},
    ]


def test_reasoning_stands_before_what_it_led_to_and_alone_is_left_out():
    thought = Thinking(text="Sums", signature="gAAA", sealed_as="encrypted")
    history = [
        Message(role="assistant", parts=(thought,)),
        Message(role="assistant", parts=(ToolCall(name="f", arguments="{}", id="c1"),)),
        Message(role="tool", parts=(ToolResult(parts=(Text("2"), IMAGE), call_id="c1"),)),
        Message(role="assistant", parts=(thought,)),
    ]
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}
    assert write_messages(history, Format.OPENAI_RESPONSES) == [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Sums"}], "encrypted_content": "gAAA"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "2"}, image]},
    ]


def test_a_turn_that_only_thinks_is_no_turn_to_anthropic():
    thought = Message(role="assistant", parts=(Thinking(text="hm", signature="s", sealed_as="signature"),))
    said = [Message(role="user", parts=(Text(text),)) for text in ("One.", "Two.")]
    assert write_messages([said[0], thought, said[1]], Format.ANTHROPIC) == [
        {"role": "user", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]}
    ]


def test_what_the_model_goes_on_with_does_not_end_in_white_space():
    messages = [Message(role="user", parts=(Text("Go on. "),)), Message(role="assistant", parts=(Text("So "),))]
    assert write_messages(messages, Format.ANTHROPIC) == [
        {"role": "user", "content": "Go on. "},
        {"role": "assistant", "content": "So"},
    ]


@pytest.mark.parametrize("format", WIRES)
def test_of_nothing_nothing_is_written(format: Format):  # noqa: A002
    assert write_messages([Message(role="assistant", parts=(Unknown(5),))], format) == []
    assert write_messages([], format) == []


def test_a_result_without_a_call_keeps_what_it_has():
    orphan = Message(role="tool", parts=(ToolResult(parts=(Text("x"),), call_id="z"), ToolResult(parts=(Text("y"),))))
    assert write_messages([orphan], Format.OPENAI_CHAT) == [
        {"role": "tool", "tool_call_id": "z", "content": "x"},
        {"role": "tool", "tool_call_id": "call_", "content": "y"},
    ]
