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
