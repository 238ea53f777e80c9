import pytest

from ullage.messages import Format, read_usage
from ullage.models import Usage
from ullage.tool import JsonObject

pytestmark = pytest.mark.requirement("S4:usage")

_XAI: JsonObject = {
    "prompt_tokens": 15,
    "completion_tokens": 8,
    "total_tokens": 246,
    "completion_tokens_details": {"reasoning_tokens": 223},
}
_SOUND: JsonObject = {
    "prompt_tokens": 11,
    "completion_tokens": 15,
    "total_tokens": 401,
    "prompt_audio_seconds": 5,
    "prompt_tokens_details": {"audio_tokens": 375, "cached_tokens": 9},
}


@pytest.mark.requirement("S4:usage")
@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}, Usage(input=9, output=3)),
        (_XAI, Usage(input=15, output=231, reasoning=223)),
        ({"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109}, Usage(input=35, output=74)),
        (_SOUND, Usage(input=386, output=15, cache_read=9)),
        ({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 5}, Usage(input=9, output=3)),
    ],
    ids=["all named", "thoughts beside", "thoughts unnamed", "a recording beside", "a total too small"],
)
def test_what_only_the_total_holds_was_used_too(said: JsonObject, usage: Usage):
    assert read_usage(said, Format.OPENAI_CHAT) == usage


def test_what_was_cached_is_found_where_each_puts_it():
    said: JsonObject = {"prompt_tokens": 64, "completion_tokens": 6, "num_cached_tokens": 32}
    assert read_usage(said, Format.OPENAI_CHAT) == Usage(input=64, output=6, cache_read=32)
    detailed: JsonObject = {**said, "prompt_tokens_details": {"cached_tokens": 0}}
    assert read_usage(detailed, Format.OPENAI_CHAT) == Usage(input=64, output=6, cache_read=0)


@pytest.mark.requirement("S4:usage")
def test_what_a_provider_does_not_say_stays_unknown():
    for form in (Format.OPENAI_CHAT, Format.OPENAI_RESPONSES, Format.ANTHROPIC, Format.GEMINI):
        assert read_usage({}, form) == Usage()
    assert read_usage({"prompt_tokens": 7, "total_tokens": 9}, Format.OPENAI_CHAT) == Usage(input=7)
