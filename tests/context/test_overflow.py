import pytest

from ullage.context.window_usage import learnt_window

pytestmark = pytest.mark.requirement("S2:long")

SAID = {
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 128103 tokens.": 128_000,
    "This endpoint's maximum context length is 128,000 tokens. However, you requested about 140001 tokens": 128_000,
    "prompt is too long: 210000 tokens > 200000 maximum": 200_000,
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length": 200_000,
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).": 1_048_576,
    "the input token count is 32825 but model only supports up to 32768. Reduce the input": 32_768,
    '{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":4096}}': 4_096,
    "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it": 4_096,
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.": 8_192,
    "maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt": 262_144,
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length": 32_768,
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.": 131_072,
    "Your request exceeded model token limit: 262144 (requested: 291351)": 262_144,
    "Range of input length should be [1, 98304]": 98_304,
    "prompt token count of 130000 exceeds the limit of 128000": 128_000,
    "The model is loaded with context length of only 4096 tokens, which is not enough.": 4_096,
    "Requested tokens (516) exceed context window of 512": 512,
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).": 8_192,
    "Input length (265330) exceeds model's maximum context length (262144).": 262_144,
    "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.": 131_040,
    "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens": 4_097,
    "Please reduce the length of the messages. Current length is 9000 while limit is 8192": 8_192,
    "Prompt too long: 5152 tokens exceeds max_seq_len 2048": 2_048,
    "total number of tokens in the prompt cannot exceed 4081 - received 5000": 4_081,
    "The prompt is too long: 40000, model maximum context length: 32767": 32_767,
    "prompt has 300,000 tokens, but the configured context size is 131,072 tokens": 131_072,
}
SILENT = [
    "Input is too long for requested model.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "input length exceeds the context length",
    "invalid params, context window exceeds limit (2013)",
    "prompt too long; exceeded max context length by 4096 tokens",
    "max_tokens is too large: 5000. This model supports at most 4096 completion tokens",
    "max_tokens exceeds the limit of 8192",
    "The maximum tokens you requested exceeds the model limit of 4096.",
    "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000",
    "Rate limit: maximum context length is 8000 tokens per minute",
    "Request payload size exceeds the limit: 20971520 bytes.",
    "maximum context length is 12 tokens",
    "",
]


@pytest.mark.parametrize(("said", "window"), SAID.items())
def test_the_window_that_a_provider_names_is_learnt(said: str, window: int):
    assert learnt_window(said) == window
    assert learnt_window(f'Error code: 400 - {{"error": {{"message": "{said}"}}}}') == window


@pytest.mark.parametrize("said", SILENT)
def test_what_names_no_window_or_another_limit_teaches_none(said: str):
    assert learnt_window(said) is None


def test_what_a_message_echoes_of_a_long_prompt_is_not_looked_at():
    assert learnt_window("x" * 30_000 + "maximum context length is 128000 tokens") is None
