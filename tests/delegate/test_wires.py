import json
from typing import Any

import pytest

from delegate.streams import WIRES
from ullage.delegate.exchange import Outgoing, Reader, ThinkingDelta
from ullage.messages import Media, Message, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from ullage.models import Usage

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = ToolDefinition(name="weather", description="Say the weather", schema=SCHEMA)
CALL = ToolCall(name="weather", arguments='{"city":"Rome"}', id="c1")
RESULT = ToolResult(parts=(Text("sunny"),), call_id="c1", name="weather")
TALK = Outgoing(
    model="m",
    messages=(
        Message(role="system", parts=(Text("Be brief."),)),
        Message(role="user", parts=(Text("Look:"), Media(kind="image", media_type="image/png", data="QQ=="))),
        Message(role="assistant", parts=(Thinking(text="hm", signature="sealed"), Text("One moment"), CALL)),
        Message(role="tool", parts=(RESULT,)),
        Message(role="user", parts=(Text("Thanks"),)),
    ),
    max_output_tokens=50,
    temperature=1.5,
    tools=(WEATHER,),
    output_schema=SCHEMA,
)


def body(wire: str, outgoing: Outgoing = TALK) -> Any:  # noqa: ANN401 - whatever JSON there is
    return WIRES[wire].write(outgoing).body


def test_chat_carries_calls_and_results_as_messages():
    written = body("chat")
    assert written["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
            ],
        },
        {
            "role": "assistant",
            "content": "One moment",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        {"role": "user", "content": "Thanks"},
    ]
    assert (written["max_tokens"], written["temperature"], written["stream"]) == (50, 1.5, True)
    assert written["tools"][0]["function"] == {
        "name": "weather",
        "description": "Say the weather",
        "parameters": SCHEMA,
    }
    assert written["response_format"]["json_schema"]["schema"] == SCHEMA


def test_responses_carries_calls_results_and_sealed_reasoning_as_items():
    written = body("responses")
    assert written["instructions"] == "Be brief."
    assert [item.get("type", item.get("role")) for item in written["input"]] == [
        "user",
        "reasoning",
        "assistant",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert written["input"][1]["encrypted_content"] == "sealed"
    assert written["input"][2]["content"] == [{"type": "output_text", "text": "One moment"}]
    assert (written["store"], written["max_output_tokens"]) == (False, 50)
    assert written["text"]["format"]["schema"] == SCHEMA


def test_anthropic_keeps_the_sides_alternating_and_thinking_with_its_signature():
    written = body("anthropic")
    assert [turn["role"] for turn in written["messages"]] == ["user", "assistant", "user"]
    assert written["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "sealed"}
    assert written["messages"][1]["content"][2]["input"] == {"city": "Rome"}
    assert [block["type"] for block in written["messages"][2]["content"]] == ["tool_result", "text"]
    assert (written["system"], written["max_tokens"], written["temperature"]) == ("Be brief.", 50, 1.0)
    assert written["tools"][0]["input_schema"] == SCHEMA


def test_gemini_puts_a_signature_on_the_part_that_follows_and_sends_no_thought():
    written = body("gemini")
    assert [turn["role"] for turn in written["contents"]] == ["user", "model", "user"]
    assert written["contents"][1]["parts"][0] == {"text": "One moment", "thoughtSignature": "sealed"}
    assert written["contents"][1]["parts"][1]["functionCall"]["args"] == {"city": "Rome"}
    assert written["contents"][2]["parts"][0]["functionResponse"] == {
        "name": "weather",
        "response": {"result": "sunny"},
    }
    assert written["generationConfig"]["maxOutputTokens"] == 50
    assert written["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == SCHEMA


@pytest.mark.parametrize("wire", WIRES)
def test_what_nobody_set_is_not_sent(wire: str):
    plain = body(wire, Outgoing(model="m", messages=(Message(role="user", parts=(Text("Hi"),)),)))
    text = json.dumps(plain)
    assert not any(word in text for word in ("temperature", "tools", "tool_choice", "schema", "generationConfig"))


@pytest.mark.parametrize("wire", WIRES)
def test_a_choice_of_tools_and_a_picture_by_its_address_are_passed_on(wire: str):
    message = Message(role="user", parts=(Media(kind="image", url="https://x.test/a.png"),))
    written = body(wire, Outgoing(model="m", messages=(message,), tool_choice={"mode": "any"}))
    assert "https://x.test/a.png" in json.dumps(written)
    assert {"mode": "any"} in written.values()


@pytest.mark.parametrize("wire", ["anthropic", "gemini"])
def test_arguments_that_are_no_json_are_not_lost(wire: str):
    message = Message(role="assistant", parts=(ToolCall(name="f", arguments="{oops", id="1"),))
    assert "{oops" in json.dumps(body(wire, Outgoing(model="m", messages=(message,))))


STREAMS: dict[str, list[Any]] = {
    "chat": [
        {"choices": [{"delta": {"reasoning_content": "hm"}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "weather"}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"Rome"}'}}]}}]},
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    ],
    "responses": [
        {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
        {
            "type": "response.completed",
            "response": {
                "output": [
                    {"type": "reasoning", "summary": [{"text": "hm"}], "encrypted_content": "sealed"},
                    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Rome"}'},
                ]
            },
        },
    ],
    "anthropic": [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sealed"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "c1", "name": "weather"},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"city":'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '"Rome"}'}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}}]},
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {
                                "functionCall": {"id": "c1", "name": "weather", "args": {"city": "Rome"}},
                                "thoughtSignature": "sealed",
                            }
                        ]
                    },
                    "finishReason": "STOP",
                }
            ]
        },
    ],
}


def fed(wire: str, said: list[Any]) -> tuple[Reader, list[Any]]:
    reader = WIRES[wire].reader()
    heard = [event for one in said for event in reader.feed(None, one if isinstance(one, str) else json.dumps(one))]
    return reader, heard


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_comes_out_whole_with_the_thought_before_it(wire: str):
    reader, heard = fed(wire, STREAMS[wire])
    answer = reader.finish()
    assert heard == [ThinkingDelta("hm")]
    assert answer.finish == "tool_calls"
    (call,) = answer.tool_calls
    assert (call.name, call.id, json.loads(call.arguments)) == ("weather", "c1", {"city": "Rome"})
    thought, carried = answer.message.parts
    assert isinstance(thought, Thinking)
    assert (thought.text, thought.signature) == ("hm", None if wire == "chat" else "sealed")
    assert carried == call


@pytest.mark.parametrize(
    ("wire", "said", "finish"),
    [
        ("chat", [{"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}], "length"),
        ("chat", [{"choices": [{"delta": {"refusal": "no"}, "finish_reason": "content_filter"}]}], "refusal"),
        ("chat", [{"choices": [{"delta": {}, "finish_reason": "eos"}]}], "other"),
        (
            "responses",
            [{"type": "response.incomplete", "response": {"status": "incomplete", "output": []}}],
            "length",
        ),
        (
            "responses",
            [
                {
                    "type": "response.incomplete",
                    "response": {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
                }
            ],
            "refusal",
        ),
        (
            "anthropic",
            [{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, {"type": "message_stop"}],
            "length",
        ),
        (
            "anthropic",
            [{"type": "message_delta", "delta": {"stop_reason": "refusal"}}, {"type": "message_stop"}],
            "refusal",
        ),
        ("gemini", [{"candidates": [{"finishReason": "MAX_TOKENS"}]}], "length"),
        ("gemini", [{"candidates": [{"finishReason": "SAFETY"}]}], "refusal"),
        ("gemini", [{"promptFeedback": {"blockReason": "SAFETY"}}], "refusal"),
    ],
)
def test_why_an_answer_ended_is_said_in_one_way(wire: str, said: list[Any], finish: str):
    assert fed(wire, said)[0].finish().finish == finish


def test_what_streamed_stands_where_the_last_event_holds_nothing():
    said = [{"type": "response.output_text.delta", "delta": "Hi"}, {"type": "response.completed", "response": {}}]
    said = [said[0], {"type": "response.completed", "response": {"status": "completed"}}]
    assert fed("responses", said)[0].finish().text == "Hi"


@pytest.mark.requirement("S4:usage")
@pytest.mark.parametrize(
    ("wire", "usage", "expected"),
    [
        ("chat", {"total_tokens": 7}, Usage(input=7, output=0)),
        (
            "chat",
            {"prompt_tokens": 10, "completion_tokens": 6, "completion_tokens_details": {"reasoning_tokens": 4}},
            Usage(input=10, output=6, reasoning=4),
        ),
        (
            "chat",
            {"prompt_tokens": 10, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": 99}},
            Usage(input=10, output=6, cache_read=10),
        ),
        ("chat", {"prompt_tokens": -1, "completion_tokens": True}, Usage()),
        (
            "anthropic",
            {
                "input_tokens": 3,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 20,
                "output_tokens": 5,
            },
            Usage(input=123, output=5, cache_read=100, cache_write=20),
        ),
        (
            "gemini",
            {"promptTokenCount": 10, "toolUsePromptTokenCount": 2, "candidatesTokenCount": 3, "thoughtsTokenCount": 4},
            Usage(input=12, output=7, reasoning=4),
        ),
        ("gemini", {"promptTokenCount": 10}, Usage(input=10, output=0)),
        ("gemini", {"trafficType": "x"}, Usage()),
    ],
)
def test_usage_is_one_thing_however_it_is_reported(wire: str, usage: dict[str, Any], expected: Usage):
    said: dict[str, Any] = {
        "chat": {"choices": [], "usage": usage},
        "anthropic": {"type": "message_start", "message": {"usage": usage}},
        "gemini": {"usageMetadata": usage},
    }[wire]
    assert fed(wire, [said])[0].so_far() == expected
