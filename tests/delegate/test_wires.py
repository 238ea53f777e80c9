import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from delegate.streams import WIRES
from ullage.delegate import Outgoing, ProviderFailed, ThinkingDelta
from ullage.delegate.model_call import Reader
from ullage.messages import Media, Message, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from ullage.models import Usage

pytestmark = pytest.mark.requirement("S4:providers")

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
        {"role": "tool", "tool_call_id": "c1", "content": "sunny", "name": "weather"},
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
    assert [item.get("role", item["type"]) for item in written["input"]] == [
        "user",
        "reasoning",
        "assistant",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert written["input"][1]["encrypted_content"] == "sealed"
    assert written["input"][2]["content"] == [{"type": "output_text", "text": "One moment", "annotations": []}]
    assert (written["store"], written["max_output_tokens"]) == (False, 50)
    assert written["text"]["format"]["schema"] == SCHEMA


def test_responses_asks_for_sealed_reasoning_only_of_who_thinks_and_may_call_a_tool():
    assert "include" not in body("responses", replace(TALK, thinks=False))
    assert "include" not in body("responses", replace(TALK, thinks=True, tools=()))
    assert body("responses", replace(TALK, thinks=True))["include"] == ["reasoning.encrypted_content"]


def test_anthropic_keeps_the_sides_alternating_and_thinking_with_its_signature():
    written = body("anthropic")
    assert [turn["role"] for turn in written["messages"]] == ["user", "assistant", "user"]
    assert written["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "sealed"}
    assert written["messages"][1]["content"][2]["input"] == {"city": "Rome"}
    assert [block["type"] for block in written["messages"][2]["content"]] == ["tool_result", "text"]
    assert (written["system"], written["max_tokens"], written["temperature"]) == ("Be brief.", 50, 1.0)
    assert written["tools"][0]["input_schema"] == SCHEMA


def test_gemini_keeps_the_sides_alternating_and_results_with_the_names_of_their_calls():
    written = body("gemini")
    assert [turn["role"] for turn in written["contents"]] == ["user", "model", "user"]
    assert written["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert written["contents"][1]["parts"][:2] == [
        {"text": "hm", "thought": True, "thoughtSignature": "sealed"},
        {"text": "One moment"},
    ]
    assert written["contents"][1]["parts"][2]["functionCall"]["args"] == {"city": "Rome"}
    assert written["contents"][2]["parts"][0]["functionResponse"] == {
        "id": "c1",
        "name": "weather",
        "response": {"output": "sunny"},
    }
    assert written["generationConfig"]["maxOutputTokens"] == 50
    assert written["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == SCHEMA


@pytest.mark.parametrize("wire", WIRES)
def test_unset_parameters_are_not_sent(wire: str):
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


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", WIRES)
def test_a_call_comes_out_whole_with_the_thought_before_it(wire: str):
    reader, heard = fed(wire, STREAMS[wire])
    answer = reader.finish()
    assert heard == [ThinkingDelta("hm")]
    assert answer.finish == "tool_calls"
    (call,) = answer.tool_calls
    assert (call.name, call.id, json.loads(call.arguments)) == ("weather", "c1", {"city": "Rome"})
    *thoughts, carried = answer.message.parts
    sealed = [(one.text, one.signature) for one in thoughts if isinstance(one, Thinking)]
    assert sealed == {"chat": [("hm", None)], "gemini": [("hm", None), ("", "sealed")]}.get(wire, [("hm", "sealed")])
    assert carried == call


BLOCKS: list[Any] = [
    {"type": "thinking", "thinking": "first", "signature": "s1"},
    {"type": "redacted_thinking", "data": "hidden"},
    {"type": "text", "text": "Let me look."},
    {"type": "thinking", "thinking": "second", "signature": "s2"},
    {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}},
    {"type": "tool_use", "id": "c2", "name": "weather", "input": {"city": "Bari"}},
]


def streamed(place: int, block: dict[str, Any]) -> Iterator[Any]:
    """A block as Anthropic streams it."""
    empty = {"thinking": "", "text": "", "signature": "", "input": {}}
    yield {
        "type": "content_block_start",
        "index": place,
        "content_block": {**block, **{k: empty[k] for k in empty.keys() & block}},
    }
    for key, kind in {"thinking": "thinking", "signature": "signature", "text": "text", "input": "input_json"}.items():
        if key in block:
            said = {"partial_json": json.dumps(block[key])} if key == "input" else {key: block[key]}
            yield {"type": "content_block_delta", "index": place, "delta": {"type": f"{kind}_delta", **said}}
    yield {"type": "content_block_stop", "index": place}


ITEMS: list[Any] = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "first"}], "encrypted_content": "s1"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
    },
    {"type": "reasoning", "summary": [], "encrypted_content": "s2"},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Rome"}'},
    {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": '{"city":"Bari"}'},
]
PARTS: list[Any] = [
    {"text": "first", "thought": True},
    {"text": "Let me look."},
    {"functionCall": {"name": "weather", "args": {"city": "Rome"}}, "thoughtSignature": "s1"},
    {"functionCall": {"name": "weather", "args": {"city": "Bari"}}},
]
STEPS: dict[str, tuple[list[Any], Callable[[Any], Any], list[Any]]] = {
    "anthropic": (
        [
            *(event for place, block in enumerate(BLOCKS) for event in streamed(place, block)),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ],
        lambda body: body["messages"][1]["content"],
        BLOCKS,
    ),
    "responses": (
        [{"type": "response.completed", "response": {"status": "completed", "output": ITEMS}}],
        lambda body: body["input"][1:-2],
        ITEMS,
    ),
    "gemini": (
        [
            *({"candidates": [{"content": {"parts": [part]}}]} for part in PARTS),
            {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]},
        ],
        lambda body: body["contents"][1]["parts"],
        PARTS,
    ),
}


@pytest.mark.parametrize("wire", STEPS)
def test_the_second_step_of_a_tool_loop_carries_the_first_answer_back_as_it_came(wire: str):
    said, carried, expected = STEPS[wire]
    answer = fed(wire, said)[0].finish()
    assert (answer.text, len(answer.tool_calls)) == ("Let me look.", 2)
    results = tuple(ToolResult(parts=(Text("sunny"),), call_id=call.id, name=call.name) for call in answer.tool_calls)
    messages = (TALK.messages[1], answer.message, Message(role="tool", parts=results))
    assert carried(body(wire, Outgoing(model="m", messages=messages))) == expected


@pytest.mark.parametrize(("wire", "other"), [(one, two) for one in STEPS for two in WIRES if one != two])
def test_what_one_provider_sealed_is_not_shown_to_another(wire: str, other: str):
    answer = fed(wire, STEPS[wire][0])[0].finish()
    results = tuple(ToolResult(parts=(Text(""),), call_id=call.id) for call in answer.tool_calls)
    messages = (TALK.messages[1], answer.message, Message(role="tool", parts=results))
    written = json.dumps(body(other, Outgoing(model="m", messages=messages)))
    assert '"s1"' not in written
    assert '"s2"' not in written
    assert '"text": ""' not in written
    assert "null" not in written.replace('"content": null', "")


@pytest.mark.requirement("S4:stream")
def test_calls_with_one_index_are_distinguished_by_their_ids():
    pieces = [("a", "f", '{"x":'), (None, None, "1}"), ("b", "g", "{}"), ("c", None, "")]
    said = [
        {
            "choices": [
                {"delta": {"tool_calls": [{"index": 0, "id": one, "function": {"name": name, "arguments": text}}]}}
            ]
        }
        for one, name, text in pieces
    ]
    calls = fed("chat", [*said, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}])[0].finish().tool_calls
    assert [(call.id, call.name, call.arguments) for call in calls] == [("a", "f", '{"x":1}'), ("b", "g", "{}")]


def test_several_texts_of_one_message_are_one_text_on_the_wire_that_many_copied():
    message = Message(role="user", parts=(Text("one"), Text("two")))
    assert body("chat", Outgoing(model="m", messages=(message,)))["messages"][0]["content"] == "one\ntwo"


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize(
    ("wire", "said"),
    [
        *(
            ("chat", {"choices": [{"delta": {"content": "Half an"}, "finish_reason": reason}]})
            for reason in ("error", "abort", "insufficient_system_resource")
        ),
        *(
            ("gemini", {"candidates": [{"content": {"parts": [{"text": "Half an"}]}, "finishReason": reason}]})
            for reason in ("OTHER", "MALFORMED_FUNCTION_CALL")
        ),
    ],
)
def test_an_answer_that_its_provider_broke_off_is_not_accepted(wire: str, said: Any):  # noqa: ANN401
    with pytest.raises(ProviderFailed, match="broke off") as failed:
        fed(wire, [said])[0].finish()
    assert failed.value.kind == "truncated"


def test_a_cost_that_is_no_number_is_not_believed():
    said = {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": {"cost": float("nan")}}
    assert fed("chat", [said])[0].finish().reported_cost is None


@pytest.mark.requirement("S4:stream")
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


@pytest.mark.requirement("S4:stream")
def test_the_streamed_text_is_kept_if_the_last_event_is_empty():
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
