"""Results in the user's own messages, as Anthropic and Google have them, to models whose makers have it otherwise."""

import pytest

from ullage.messages import Format, read_request
from ullage.models import shipped
from ullage.tokens import Count, Meter, Method

METER = Meter(shipped())
LONG = "The committee met on Tuesday to go through fourteen proposals. " * 30
MODELS = ("gpt-4o", "gpt-5", "qwen3-32b", "llama-3.3-70b", "deepseek-chat", "gemini-2.5-pro", "claude-sonnet-4-5")


def answered(model: str, *contents: object, beside: str = "") -> Count:
    """The weight of one message of the user's with so many results, and words beside them."""
    ids = [f"call_{place}" for place in range(len(contents))]
    calls = [{"type": "tool_use", "id": one, "name": "read", "input": {"path": "a.py"}} for one in ids]
    results = [
        {"type": "tool_result", "tool_use_id": one, "content": content}
        for one, content in zip(ids, contents, strict=True)
    ]
    words = [{"type": "text", "text": beside}] if beside else []
    messages = [{"role": "assistant", "content": calls}, {"role": "user", "content": [*results, *words]}]
    request = read_request({"model": model, "messages": messages}, Format.ANTHROPIC)
    return METER.weigh(request).messages[1]


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("model", MODELS)
def test_every_result_of_a_message_weighs(model: str):
    long = METER.count(LONG, model).tokens
    once, twice, three = (answered(model, *[LONG] * number).tokens for number in (1, 2, 3))
    assert long <= once <= 1.1 * long + 40
    assert 0.97 * long <= twice - once <= 1.1 * long + 60
    assert 0.97 * long <= three - twice <= 1.1 * long + 60


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("results", [1, 2])
@pytest.mark.parametrize("model", MODELS)
def test_words_beside_results_weigh_too(model: str, results: int):
    long = METER.count(LONG, model).tokens
    more = answered(model, *["done"] * results, beside=LONG).tokens - answered(model, *["done"] * results).tokens
    assert long <= more <= 1.05 * long + 20


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("model", ["qwen3-32b", "llama-3.3-70b"])
def test_an_image_and_a_part_of_no_known_kind_in_a_result_weigh_too(model: str):
    plain = answered(model, [{"type": "text", "text": "see"}]).tokens
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    assert answered(model, [{"type": "text", "text": "see"}, image]).tokens > plain + 100
    odd = answered(model, [{"type": "text", "text": "see"}, {"type": "hologram", "shows": LONG}]).tokens
    assert odd - plain >= METER.count(LONG, model).tokens


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("model", MODELS)
def test_an_image_alone_in_a_result_is_never_free_and_exact(model: str):
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAgAAAAIACAIAAAB7"}
    count = answered(model, [{"type": "image", "source": source}])
    bare = answered(model, [{"type": "text", "text": ""}])
    assert count.tokens >= bare.tokens + 200 or count.high >= bare.high + 200
    assert count.method is not Method.EXACT
