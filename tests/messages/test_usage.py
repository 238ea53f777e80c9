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


_CHAT: JsonObject = {
    "prompt_tokens": 100,
    "completion_tokens": 40,
    "total_tokens": 140,
    "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
    "completion_tokens_details": {"reasoning_tokens": 10},
}
_RESPONSES: JsonObject = {
    "input_tokens": 100,
    "output_tokens": 40,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
    "output_tokens_details": {"reasoning_tokens": 10},
}
_ANTHROPIC: JsonObject = {
    "input_tokens": 10,
    "cache_read_input_tokens": 60,
    "cache_creation_input_tokens": 30,
    "output_tokens": 40,
    "output_tokens_details": {"thinking_tokens": 10},
}
_GEMINI: JsonObject = {
    "promptTokenCount": 90,
    "toolUsePromptTokenCount": 10,
    "candidatesTokenCount": 30,
    "thoughtsTokenCount": 10,
    "cachedContentTokenCount": 60,
}


@pytest.mark.parametrize(
    ("form", "said", "write"),
    [
        (Format.OPENAI_CHAT, _CHAT, 30),
        (Format.OPENAI_RESPONSES, _RESPONSES, 30),
        (Format.ANTHROPIC, _ANTHROPIC, 30),
        (Format.GEMINI, _GEMINI, None),
    ],
)
def test_the_same_use_is_the_same_usage_in_every_convention(form: Format, said: JsonObject, write: int | None):
    assert read_usage(said, form) == Usage(input=100, output=40, cache_read=60, cache_write=write, reasoning=10)


def test_gemini_counts_an_answer_without_a_word_and_one_without_a_prompt():
    assert read_usage({"promptTokenCount": 7}, Format.GEMINI) == Usage(input=7, output=0)
    assert read_usage({"candidatesTokenCount": 5}, Format.GEMINI) == Usage(output=5)


def test_parts_that_are_larger_than_their_whole_are_held_to_it():
    said: JsonObject = {**_CHAT, "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 50}}
    assert read_usage(said, Format.OPENAI_CHAT).cache_write == 40
    said = {**_CHAT, "prompt_tokens_details": {"cached_tokens": 160, "cache_write_tokens": 50}}
    found = read_usage({**said, "completion_tokens_details": {"reasoning_tokens": 50}}, Format.OPENAI_CHAT)
    assert (found.cache_read, found.cache_write, found.reasoning) == (100, 0, 40)


@pytest.mark.parametrize("form", [Format.OPENAI_CHAT, Format.OPENAI_RESPONSES, Format.ANTHROPIC, Format.GEMINI])
def test_a_bare_total_counts_as_input(form: Format):
    assert read_usage({"total_tokens": 9}, form) == Usage(input=9, output=0)
    assert read_usage({"totalTokenCount": 9}, form) == Usage(input=9, output=0)


CHAT, RESPONSES, ANTHROPIC, GEMINI = Format.OPENAI_CHAT, Format.OPENAI_RESPONSES, Format.ANTHROPIC, Format.GEMINI


@pytest.mark.requirement("S4:usage", "S2:formats")
@pytest.mark.parametrize(
    ("form", "said", "usage"),
    [
        (CHAT, {"prompt_tokens": 0, "completion_tokens": 0}, Usage(input=0, output=0)),
        (CHAT, {"prompt_tokens": 39.0, "completion_tokens": 1e9}, Usage(input=39, output=1_000_000_000)),
        (CHAT, {"prompt_tokens": 1.5, "completion_tokens": 1_000_000_001}, Usage()),
        (CHAT, {"prompt_tokens": -1, "completion_tokens": True}, Usage()),
        (CHAT, {"prompt_tokens": "9", "completion_tokens": None}, Usage()),
        (CHAT, {"prompt_tokens": 5, "completion_tokens": 5, "prompt_tokens_details": 3}, Usage(input=5, output=5)),
        (CHAT, {"prompt_tokens": 5, "total_tokens": 9}, Usage(input=5)),
        (CHAT, {"completion_tokens": 5, "total_tokens": 9}, Usage(output=5)),
        (CHAT, {"total_tokens": 9}, Usage(input=9, output=0)),
        (CHAT, {"totalTokenCount": 9}, Usage(input=9, output=0)),
        (CHAT, {"total_tokens": 0, "totalTokenCount": 9}, Usage(input=0, output=0)),
        (
            CHAT,
            {"total_tokens": 9, "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 5}},
            Usage(input=11, output=0, cache_read=6, cache_write=5),
        ),
        (
            CHAT,
            {"total_tokens": 20, "completion_tokens_details": {"reasoning_tokens": 6}},
            Usage(input=20, output=0),
        ),
        (
            CHAT,
            {
                "prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14,
                "prompt_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 9},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            Usage(input=10, output=4, cache_read=7, cache_write=3, reasoning=4),
        ),
        (
            CHAT,
            {"prompt_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 9}},
            Usage(cache_read=7, cache_write=9),
        ),
        (
            RESPONSES,
            {
                "input_tokens": 10, "output_tokens": 4,
                "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
                "output_tokens_details": {"reasoning_tokens": 1},
            },
            Usage(input=10, output=4, cache_read=3, cache_write=2, reasoning=1),
        ),
        (RESPONSES, {"total_tokens": 9}, Usage(input=9, output=0)),
        (
            ANTHROPIC,
            {
                "input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2,
                "output_tokens_details": {"thinking_tokens": 1},
            },
            Usage(input=15, output=4, cache_read=3, cache_write=2, reasoning=1),
        ),
        (ANTHROPIC, {"cache_read_input_tokens": 3}, Usage(cache_read=3)),
        (ANTHROPIC, {"input_tokens": 10, "output_tokens": 4}, Usage(input=10, output=4)),
        (
            GEMINI,
            {
                "promptTokenCount": 10, "toolUsePromptTokenCount": 5, "candidatesTokenCount": 4,
                "thoughtsTokenCount": 3, "cachedContentTokenCount": 6, "totalTokenCount": 22,
            },
            Usage(input=15, output=7, cache_read=6, reasoning=3),
        ),
        (GEMINI, {"promptTokenCount": 10}, Usage(input=10, output=0)),
        (GEMINI, {"candidatesTokenCount": 4}, Usage(output=4)),
        (GEMINI, {"toolUsePromptTokenCount": 4, "totalTokenCount": 9}, Usage(input=9, output=0)),
        (GEMINI, {"promptTokenCount": 10, "thoughtsTokenCount": 3}, Usage(input=10, output=3, reasoning=3)),
    ],
)  # fmt: skip
def test_each_convention_is_read_into_whole_buckets(form: Format, said: JsonObject, usage: Usage):
    assert read_usage(said, form) == usage
