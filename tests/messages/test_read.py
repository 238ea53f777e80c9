from typing import Any

import pytest

from ullage.errors import UnreadableRequest
from ullage.messages import Format, detect_format, read_request

pytestmark = pytest.mark.requirement("S2:formats")

USER = {"role": "user", "content": "Hi"}
SYSTEM = {"role": "system", "content": "x"}
BODIES: list[tuple[dict[str, Any], Format]] = [
    ({"contents": [{"parts": [{"text": "Hi"}]}]}, Format.GEMINI),
    ({"system_instruction": {"parts": []}, "messages": []}, Format.GEMINI),
    ({"input": "Hi"}, Format.OPENAI_RESPONSES),
    ({"instructions": "Be brief", "previous_response_id": "x"}, Format.OPENAI_RESPONSES),
    ({"messages": [USER]}, Format.OPENAI_CHAT),
    ({"messages": [USER], "model": "claude-sonnet-4-5"}, Format.ANTHROPIC),
    ({"messages": [{"role": "system", "content": "x"}, USER], "model": "anthropic/claude-opus-5"}, Format.OPENAI_CHAT),
    ({"messages": [USER], "system": "Be brief"}, Format.ANTHROPIC),
    ({"messages": [USER], "tools": [{"name": "f", "input_schema": {}}]}, Format.ANTHROPIC),
    ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}]}, Format.ANTHROPIC),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, Format.OPENAI_CHAT),
    ({"messages": [{"role": "assistant", "tool_calls": []}], "system": "x"}, Format.OPENAI_CHAT),
    ({"messages": [USER, SYSTEM, {"role": "user", "content": [{"type": "tool_result"}]}]}, Format.ANTHROPIC),
    ({"messages": [USER, SYSTEM], "system": "Be brief"}, Format.ANTHROPIC),
    ({"messages": [USER, SYSTEM]}, Format.OPENAI_CHAT),
    ({"messages": [USER, {"role": "developer", "content": "x"}], "stop_sequences": []}, Format.OPENAI_CHAT),
    ({"messages": [{"role": "user", "parts": [{"type": "text", "text": "Hi"}]}]}, Format.ULLAGE),
    ({"messages": "odd"}, Format.OPENAI_CHAT),
    ({"prompt": "Once upon"}, Format.OPENAI_CHAT),
]


@pytest.mark.parametrize(("body", "format"), BODIES, ids=lambda value: value if isinstance(value, str) else None)
def test_a_format_is_told_from_what_only_it_writes(body: dict[str, Any], format: Format):  # noqa: A002
    assert detect_format(body) is format
    assert read_request(body).format is format


def test_a_named_format_is_not_second_guessed():
    assert read_request({"messages": [USER]}, Format.ANTHROPIC).format is Format.ANTHROPIC


@pytest.mark.parametrize(
    ("key", "format"),
    [
        ("messages", Format.GEMINI),
        ("messages", Format.OPENAI_RESPONSES),
        ("input", Format.ANTHROPIC),
        ("contents", Format.OPENAI_CHAT),
        ("contents", Format.ULLAGE),
    ],
)
def test_a_body_in_another_format_than_named_is_not_read_as_empty(key: str, format: Format):  # noqa: A002
    with pytest.raises(UnreadableRequest, match=f"has `{key}` and is no `{format}` request"):
        read_request({"model": "gpt-4o", key: [USER]}, format)
    assert read_request({"model": "gpt-4o", "tools": []}, format).messages == ()


@pytest.mark.parametrize("body", [{}, {"model": "gpt-4o"}, None, [], "x"])
def test_a_body_of_no_known_shape_is_refused_with_the_formats(body: Any):  # noqa: ANN401
    with pytest.raises(UnreadableRequest) as caught:
        read_request(body)
    assert caught.value.options == tuple(Format)


def test_odd_roles_kinds_and_keys_are_no_error():
    for body in (
        {"messages": [{"role": ["x"], "content": [{"type": ["y"]}]}]},
        {"contents": [], 1: 2},
        {"messages": [{"role": "user", "content": 5}], "tools": [{"type": ["z"]}, None, 3]},
    ):
        assert read_request(body)  # pyright: ignore[reportArgumentType]
