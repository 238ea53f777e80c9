import pytest

from ullage.errors import InvalidArguments
from ullage.messages import Format, read_answer
from ullage.models import Usage
from ullage.tool import JsonObject

pytestmark = pytest.mark.requirement("S2:formats")

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ANSWERS: list[tuple[Format, JsonObject, list[JsonObject], Usage]] = [
    (
        Format.OPENAI_CHAT,
        {
            "choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
        },
        [{"role": "assistant", "content": None, "tool_calls": [CALL]}],
        Usage(input=9, output=4),
    ),
    (
        Format.OPENAI_RESPONSES,
        {
            "output": [{"type": "reasoning", "id": "r"}, {"type": "function_call", "call_id": "c"}],
            "usage": {"input_tokens": 9, "output_tokens": 4},
        },
        [{"type": "reasoning", "id": "r"}, {"type": "function_call", "call_id": "c"}],
        Usage(input=9, output=4),
    ),
    (
        Format.ANTHROPIC,
        {
            "content": [{"type": "text", "text": "hi"}],
            "usage": {"input_tokens": 1, "cache_read_input_tokens": 8, "output_tokens": 4},
        },
        [{"role": "assistant", "content": [{"type": "text", "text": "hi"}]}],
        Usage(input=9, output=4, cache_read=8),
    ),
    (
        Format.GEMINI,
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4},
        },
        [{"role": "model", "parts": [{"text": "hi"}]}],
        Usage(input=9, output=4),
    ),
]


@pytest.mark.parametrize(("wire", "response", "natives", "usage"), ANSWERS)
def test_an_answer_gives_what_goes_into_the_history_and_what_it_took(
    wire: Format, response: JsonObject, natives: list[JsonObject], usage: Usage
):
    answer = read_answer(response, wire)

    assert list(answer.natives) == natives
    assert answer.usage == usage


@pytest.mark.parametrize("wire", [one for one in Format if one != "ullage"])
def test_an_error_has_neither_message_nor_usage(wire: Format):
    answer = read_answer({"error": {"message": "no"}}, wire)

    assert answer.natives == ()
    assert answer.usage.input is None


def test_neutral_parts_are_no_providers_answer():
    with pytest.raises(InvalidArguments, match="neutral"):
        read_answer({}, Format.ULLAGE)


@pytest.mark.parametrize(
    ("wire", "response", "natives", "identity", "model"),
    [
        (
            Format.OPENAI_CHAT,
            {"id": "r", "model": "m", "choices": [3, {"message": {"role": "a"}}, {"message": {"role": "b"}}]},
            [{"role": "a"}], "r", "m",
        ),
        (Format.OPENAI_CHAT, {"choices": [{"message": {}}], "id": 3, "model": ""}, [], None, None),
        (Format.OPENAI_CHAT, {"choices": {"message": {"role": "a"}}}, [], None, None),
        (
            Format.OPENAI_RESPONSES, {"output": [{"type": "x"}, "y", {"type": "z"}]},
            [{"type": "x"}, {"type": "z"}], None, None,
        ),
        (Format.ANTHROPIC, {"content": [], "id": "r", "model": "m"}, [], "r", "m"),
        (Format.ANTHROPIC, {"content": "hi"}, [{"role": "assistant", "content": "hi"}], None, None),
        (
            Format.GEMINI,
            {
                "responseId": "r", "modelVersion": "m",
                "candidates": [{"content": {"parts": []}}, {"content": {"parts": [1]}}],
            },
            [], "r", "m",
        ),
        (
            Format.GEMINI,
            {"id": "i", "responseId": "r", "model": "n", "candidates": [{"content": {"parts": [{"text": "x"}]}}]},
            [{"parts": [{"text": "x"}]}], "i", "n",
        ),
    ],
)  # fmt: skip
def test_only_the_first_choice_is_the_answer(
    wire: Format, response: JsonObject, natives: list[JsonObject], identity: str | None, model: str | None
):
    answer = read_answer(response, wire)
    assert list(answer.natives) == natives
    assert (answer.id, answer.model or None) == (identity, model)
