import json
from typing import Any, cast

import pytest

from ullage.errors import InvalidArguments, UnknownTool, UnsupportedModel
from ullage.models import shipped
from ullage.testing import check_source
from ullage.tokens import CountSource, Meter
from ullage.tool import Call

pytestmark = pytest.mark.anyio


@pytest.fixture
def source() -> CountSource:
    return CountSource(Meter(shipped()))


async def answer(source: CountSource, **arguments: object) -> dict[str, Any]:
    reply = await source.call(Call(tool="count-tokens", arguments=arguments))  # pyright: ignore[reportArgumentType]
    return json.loads(str(reply.content[0]["text"]))


async def detail(source: CountSource, **arguments: str) -> dict[str, Any]:
    reply = await source.call(Call(tool="count-tokens", arguments=arguments))  # pyright: ignore[reportArgumentType]
    return cast("dict[str, Any]", reply.meta["dev.ullage/count"])


@pytest.mark.requirement("S3:count")
async def test_it_is_a_source_like_any_other(source: CountSource):
    reply = await check_source(source, Call(tool="count_tokens", arguments={"text": "hi"}))
    assert not reply.is_error
    assert reply.structured is None


@pytest.mark.requirement("S3:count", "S3:default-model", "S3:echo-model", "S3:method")
async def test_it_answers_with_count_model_and_method(source: CountSource):
    assert await answer(source, text="Hello, world!") == {"token_count": 4, "model": "gpt-4", "method": "exact"}
    assert await detail(source, text="Hello, world!") == {
        "resolved": "gpt-4",
        "method": "exact",
        "exact": True,
        "error_band": None,
    }


@pytest.mark.requirement("S3:count")
@pytest.mark.parametrize("model", ["gpt-4", "gpt-3.5-turbo", "gpt-4o", "claude", "claude-sonnet-4"])
async def test_a_reply_takes_twenty_tokens(source: CountSource, model: str):
    reply = await source.call(Call(tool="count-tokens", arguments={"text": "Hello, world! " * 40, "model": model}))
    assert source.meter.count(str(reply.content[0]["text"]), "gpt-4o").tokens <= 22


@pytest.mark.requirement("S3:echo-model")
async def test_the_model_is_echoed_as_it_was_written(source: CountSource):
    found = await answer(source, text="Hello", model="anthropic/claude-3.5-sonnet")
    assert found["model"] == "anthropic/claude-3.5-sonnet"
    assert found["method"] == "calibrated"
    known = await detail(source, text="Hello", model="anthropic/claude-3.5-sonnet")
    assert known["resolved"] == "claude-3-5-sonnet"
    assert (known["method"], known["exact"]) == ("calibrated", False)
    counted = source.meter.count("Hello", "claude-3-5-sonnet")
    assert known["error_band"] == {"low": counted.low, "high": counted.high}
    assert known["error_band"]["low"] <= found["token_count"] <= known["error_band"]["high"]


@pytest.mark.requirement("S3:method", "S3:models")
async def test_a_version_without_a_card_is_an_estimate_that_names_what_it_was_counted_as(source: CountSource):
    text = "The committee met on Tuesday to go through fourteen proposals. " * 20
    found = await answer(source, text=text, model="claude-sonnet-6")
    assert (found["model"], found["resolved"], found["method"]) == ("claude-sonnet-6", "claude-sonnet-5-5", "estimated")
    assert "claude-sonnet-6" in found["warning"]
    known, band = (
        await answer(source, text=text, model="claude-sonnet-5-5"),
        await detail(source, text=text, model="claude-sonnet-6"),
    )
    assert found["token_count"] == known["token_count"]
    assert "warning" not in known
    assert not band["exact"]
    assert band["error_band"]["low"] <= 0.7 * found["token_count"]
    assert band["error_band"]["high"] >= 1.3 * found["token_count"]


@pytest.mark.requirement("S3:models")
async def test_a_variant_of_a_known_version_is_counted_with_its_tokenizer_and_says_so(source: CountSource):
    found = await answer(source, text="Hello, world!", model="azure/gpt-4o-prod")
    assert (found["token_count"], found["method"], found["resolved"]) == (4, "exact", "gpt-4o")
    assert "counted as `gpt-4o`" in found["warning"]


@pytest.mark.requirement("S3:default-model", "S3:echo-model")
@pytest.mark.parametrize("model", [None, ""])
async def test_a_model_that_is_left_empty_is_the_default(source: CountSource, model: str | None):
    assert await answer(source, text="안녕하세요", model=model) == await answer(
        source, text="안녕하세요", model="gpt-4"
    )


@pytest.mark.requirement("S3:empty")
@pytest.mark.parametrize("model", ["gpt-4", "gpt-4o", "claude"])
async def test_the_empty_text_is_zero(source: CountSource, model: str):
    found = await answer(source, text="", model=model)
    assert (found["token_count"], found["model"]) == (0, model)
    assert (await answer(source, text=" ", model=model))["token_count"] > 0


@pytest.mark.requirement("S3:empty")
async def test_a_text_that_is_left_out_is_not_the_empty_one(source: CountSource):
    for arguments in ({}, {"text": None}, {"model": "gpt-4"}):
        with pytest.raises(InvalidArguments, match="`text`"):
            await answer(source, **arguments)


@pytest.mark.requirement("S3:unsupported")
async def test_an_unknown_model_is_refused(source: CountSource):
    with pytest.raises(UnsupportedModel):
        await answer(source, text="x", model="gpt-44")


@pytest.mark.requirement("S3:count")
@pytest.mark.parametrize("arguments", [{}, {"text": 5}, {"text": None}, {"text": "x", "model": 4}, {"txt": "x"}])
async def test_arguments_that_do_not_fit_are_refused_with_what_would(source: CountSource, arguments: dict[str, object]):
    with pytest.raises(InvalidArguments) as caught:
        await answer(source, **arguments)
    assert caught.value.options == ("text", "model")
    assert caught.value.suggestion


@pytest.mark.requirement("S3:count")
async def test_no_other_tool_is_here(source: CountSource):
    with pytest.raises(UnknownTool):
        await source.call(Call(tool="count"))


@pytest.mark.requirement("S3:count")
async def test_its_definition_is_small(source: CountSource):
    (tool,) = (await source.tools()).tools
    definition = json.dumps({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema})
    assert source.meter.count(definition, "gpt-4o").tokens < 150
