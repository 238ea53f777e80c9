from typing import Any

import pytest

from ullage.errors import UnreadableRequest
from ullage.messages import Format, Message, Text, detect_format, detect_messages, read_request

pytestmark = pytest.mark.requirement("S2:formats")

USER = {"role": "user", "content": "Hi"}
BLOCK = {"type": "text", "text": "Hi"}


def _made_by(module: str) -> object:
    """An object of a class that says it is of some SDK."""
    fields = {"to_dict": lambda _self: dict(BLOCK), "__module__": module}
    return type("Block", (), fields)()


@pytest.mark.requirement("S2:formats")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "tool", "tool_call_id": "1", "content": "x"}, Format.OPENAI_CHAT),
        ({"role": "assistant", "content": None, "tool_calls": []}, Format.OPENAI_CHAT),
        ({"role": "assistant", "function_call": {"name": "f"}}, Format.OPENAI_CHAT),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, Format.OPENAI_CHAT),
        ({"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}, Format.OPENAI_RESPONSES),
        ({"type": "reasoning", "summary": []}, Format.OPENAI_RESPONSES),
        ({"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, Format.OPENAI_RESPONSES),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}, Format.ANTHROPIC),
        ({"role": "assistant", "content": [{"type": "server_tool_use", "id": "1"}]}, Format.ANTHROPIC),
        ({"role": "user", "content": [{"type": "mcp_tool_result", "tool_use_id": "1"}]}, Format.ANTHROPIC),
        ({"type": "message", "role": "assistant", "content": [BLOCK], "stop_reason": None}, Format.ANTHROPIC),
        ({"role": "user", "parts": [{"text": "Hi"}]}, Format.GEMINI),
        ({"role": "model", "parts": []}, Format.GEMINI),
        ({"functionResponse": {"name": "f"}}, Format.GEMINI),
        ({"role": "user", "parts": [BLOCK]}, Format.ULLAGE),
        ({"role": "assistant", "parts": []}, Format.ULLAGE),
        (Message(role="user", parts=(Text("Hi"),)), Format.ULLAGE),
        (_made_by("google.genai.types"), Format.GEMINI),
        ({"role": "assistant", "content": [_made_by("anthropic.types.text_block")]}, Format.ANTHROPIC),
        ({"role": "assistant", "content": [_made_by("openai.types.chat.x")]}, Format.OPENAI_CHAT),
        (_made_by("openai.types.responses.x"), Format.OPENAI_RESPONSES),
    ],
)
def test_messages_are_told_by_what_only_one_format_writes(message: object, expected: Format):
    for model in ("claude-sonnet-4-5", "gpt-4o", "gemini-2.5-pro", None):
        assert detect_messages([USER, message], model=model) is expected


@pytest.mark.parametrize(
    ("messages", "model", "expected"),
    [
        ([USER], None, Format.OPENAI_CHAT),
        ([USER], "gemini-2.5-pro", Format.OPENAI_CHAT),
        ([USER, {"role": "assistant", "content": [BLOCK]}], "claude-sonnet-4-5", Format.ANTHROPIC),
        ([{"role": "system", "content": "x"}, USER], "anthropic/claude-opus-5", Format.OPENAI_CHAT),
        (["Hi"], "gpt-4o", Format.OPENAI_CHAT),
        ([], "gemini-2.5-pro", Format.GEMINI),
        ([], "claude-sonnet-4-5", Format.ANTHROPIC),
        ([], None, Format.OPENAI_CHAT),
        ([{"content": "Hi"}], None, Format.OPENAI_CHAT),
        (["Hi", USER], "claude-sonnet-4-5", Format.ANTHROPIC),
        ([USER, "Hi"], "gemini-2.5-pro", Format.OPENAI_CHAT),
        ([{"role": "developer", "content": "x"}], "claude-sonnet-4-5", Format.OPENAI_CHAT),
    ],
)
def test_messages_that_two_formats_write_alike_are_told_by_the_model(messages: Any, model: Any, expected: Format):  # noqa: ANN401
    assert detect_messages(messages, model=model) is expected


def test_what_is_no_message_has_no_format():
    with pytest.raises(UnreadableRequest):
        detect_messages([5])


def test_a_body_of_neutral_messages_is_known_and_read():
    messages = [{"role": "user", "parts": [BLOCK]}]
    tools = [
        {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}, "strict": True, "title": "Add"},
        {"type": "odd"},
    ]
    body = {"model": "gpt-4o", "system": ["Be brief.", messages[0]], "messages": messages, "tools": tools, "top_p": 1}
    assert detect_format(body) is Format.ULLAGE
    request = read_request(body)
    said = Message(role="user", parts=(Text("Hi"),))
    assert (request.model, request.messages, request.settings) == ("gpt-4o", (said,), {"top_p": 1})
    assert request.system == (Message(role="system", parts=(Text("Be brief."),)), said)
    add, odd = request.tools
    assert (add.name, add.description, add.schema, add.strict) == ("add", "Adds.", {"type": "object"}, True)
    assert (add.extra, odd.hosted) == ({"title": "Add"}, {"tool": {"type": "odd"}})


@pytest.mark.parametrize("key", ["function_call", "refusal", "images", "audio", "reasoning", "reasoning_details"])
def test_a_message_with_a_key_of_chats_is_a_chats_even_for_claude(key: str):
    body: dict[str, Any] = {"model": "claude-sonnet-4-5", "messages": [USER, {"role": "assistant", key: None}]}
    assert detect_format(body) is Format.OPENAI_CHAT


def test_a_prompt_template_belongs_to_the_responses_api():
    assert detect_format({"model": "gpt-5", "prompt": {"id": "pmpt_1"}}) is Format.OPENAI_RESPONSES
    assert detect_format({"model": "davinci-002", "prompt": "Once"}) is Format.OPENAI_CHAT
