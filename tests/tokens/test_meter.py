import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import texts

from ullage import count, count_request, find_model
from ullage.errors import BadInput, InvalidArguments, UnsupportedModel
from ullage.messages import read_request
from ullage.models import shipped
from ullage.testing import FakeEngine
from ullage.tokens import Engine, Meter, Method, Steps, patiently
from ullage.tokens.bpe import default_engine

HELLO = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello, world!"}]}


ENGINE = default_engine()


@dataclass
class Watched:
    """An engine that notes what is counted."""

    inner: Engine
    counted: list[str]

    def available(self, vocabulary: str) -> bool:
        return self.inner.available(vocabulary)

    def adds_up(self, vocabulary: str) -> bool:
        return self.inner.adds_up(vocabulary)

    def counter(self, vocabulary: str) -> Callable[[str], int]:
        count = self.inner.counter(vocabulary)

        def note(text: str) -> int:
            self.counted.append(text)
            return count(text)

        return note

    def steps(self, vocabulary: str, text: str) -> Steps[int]:
        return self.inner.steps(vocabulary, text)


@pytest.fixture
def meter() -> Meter:
    return Meter(shipped())


@pytest.mark.requirement("S3:count", "S3:default-model")
def test_hello_world_is_four_tokens_to_gpt_4_which_is_the_default():
    assert count("Hello, world!", "gpt-4").tokens == 4
    assert count("Hello, world!") == count("Hello, world!", "gpt-4")


@pytest.mark.parametrize(
    ("model", "tokens"), [("gpt-4", 10), ("gpt-4-turbo", 10), ("gpt-3.5-turbo", 10), ("gpt-4o", 4), ("gpt-5", 4)]
)
@pytest.mark.requirement("S3:models")
def test_each_openai_model_counts_with_its_own_vocabulary(model: str, tokens: int):
    assert count("안녕하세요, 세계", model).tokens == tokens


@pytest.mark.parametrize(
    ("model", "method"),
    [
        ("claude", Method.CALIBRATED),
        ("claude-3-opus", Method.CALIBRATED),
        ("claude-sonnet-4-5", Method.CALIBRATED),
        ("claude-opus-5", Method.CALIBRATED),
        ("claude-next", Method.CALIBRATED),
        ("claude-next-9", Method.ESTIMATED),
    ],
)
@pytest.mark.requirement("S3:models", "S3:method", "S2:count")
def test_every_claude_is_counted_with_a_band_and_an_unknown_version_is_an_estimate(model: str, method: Method):
    counted = count("The quick brown fox jumps over the lazy dog. " * 10, model)
    assert counted.method is method
    assert counted.band is not None
    assert counted.low < counted.tokens < counted.high


@pytest.mark.requirement("S3:models")
def test_every_card_of_the_table_counts_by_its_id_and_every_alias(meter: Meter):
    for card in meter.models.cards():
        for name in (card.id, *card.aliases):
            assert meter.count("Hello there", name).tokens > 0, name


JOINTS = ('"', '","', "],[", "21", "21021", '{"name":"', " ", "\n")
PIECES = st.lists(st.one_of(texts, st.sampled_from(JOINTS)), max_size=8)
MODELS = (
    "gpt-4o",
    "gpt-4",
    "deepseek-v3.1",
    "llama-3.3-70b",
    "kimi-k2",
    "mistral-large",
    "qwen3-32b",
    "gemini-2.5-pro",
)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.requirement("S3:count")
@given(pieces=PIECES)
@settings(max_examples=60)
def test_joined_texts_weigh_what_their_join_weighs(model: str, pieces: list[str]):
    joined, whole = Meter(shipped(), engine=ENGINE), Meter(shipped(), engine=ENGINE)
    for some in (pieces, pieces[::-1], pieces):
        assert joined.count_joined(some, model) == whole.count("".join(some), model)


@pytest.mark.requirement("S3:count")
def test_a_text_joined_of_known_ones_is_counted_at_its_joints_alone(meter: Meter):
    pieces = [f'"tool_{number} reads the rows of a table, newest first, and returns each"' for number in range(9)]
    for piece in pieces:
        meter.count(piece, "gpt-4o")
    engine = default_engine()
    counted = list[str]()
    watched = Meter(shipped(), engine=Watched(engine, counted))
    for piece in pieces:
        watched.count(piece, "gpt-4o")
    counted.clear()
    text = ",".join(pieces)
    parts = [part for piece in pieces for part in (piece, ",")][:-1]
    assert watched.count_joined(parts, "gpt-4o") == meter.count(text, "gpt-4o")
    assert max(map(len, counted)) < 16
    counted.clear()
    assert watched.count_joined(parts, "gpt-4o").tokens > 0
    assert watched.count(text, "gpt-4o").tokens > 0
    assert counted == []


@pytest.mark.parametrize("model", ["gpt-4", "claude", "gemini-2.5-pro", "grok-4", "davinci-002", "command-r"])
@pytest.mark.requirement("S3:empty")
def test_the_empty_text_is_nothing_to_any_model(model: str):
    assert count("", model).tokens == 0


@pytest.mark.requirement("S3:unsupported")
def test_an_unknown_model_is_an_error_with_names_to_choose_from():
    with pytest.raises(UnsupportedModel) as caught:
        count("x", "gpt-44")
    error = caught.value.wire()
    assert error["error_code"] == "UNSUPPORTED_MODEL"
    assert "`gpt-4`" in error["suggestion"]
    assert error["available_options"][:4] == ["gpt-4", "gpt-3.5-turbo", "gpt-4o", "claude"]
    assert len(error["available_options"]) <= 20


@given(st.text(min_size=1))
@pytest.mark.requirement("S2:count")
def test_any_text_that_is_not_empty_counts_for_something(text: str):
    assert all(count(text, model).tokens > 0 for model in ("gpt-4", "gpt-4o", "claude", "gemini-2.5-pro", "grok-4"))


def test_a_text_seen_before_is_not_counted_again():
    engine = FakeEngine()
    meter = Meter(shipped(), engine=engine)
    assert meter.count("a b c", "gpt-4o") == meter.count("a b c", "gpt-4o")
    assert meter.count("a b c", "gpt-4o-mini").tokens == 3, "another model with the same vocabulary"
    assert engine.asked == ["a b c"]


@pytest.mark.requirement("S3:method", "S3:light", "S2:count")
def test_a_vocabulary_that_is_not_to_be_had_is_estimated_and_says_so():
    meter = Meter(shipped(), engine=FakeEngine())
    for model in ("gemini-2.5-pro", "claude-sonnet-4-5", "command-r"):
        counted = meter.count("one two three", model)
        assert counted.method is Method.ESTIMATED
        assert counted.band is not None


LONG = [
    "The quick brown fox jumps over 13 lazy dogs.\n" * 12_000,
    "a" * 300_000,
    " " * 300_000,
    "🦊" * 60_000,
    "数字经济" * 40_000,
]


def run_and_count_pauses(steps: Steps[Any]) -> tuple[Any, int]:
    pauses = 0
    while True:
        try:
            next(steps)
            pauses += 1
        except StopIteration as stop:
            return stop.value, pauses


@pytest.mark.parametrize("text", LONG, ids=["prose", "one letter", "spaces", "emoji", "chinese"])
@pytest.mark.parametrize("model", ["gpt-4", "gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"])
@pytest.mark.requirement("S3:nonblocking")
def test_a_long_text_is_counted_in_many_steps_to_the_same_number(text: str, model: str):
    counted, pauses = run_and_count_pauses(Meter(shipped()).steps(text, model))
    assert pauses >= len(text) // 20_000
    assert counted == Meter(shipped()).count(text, model)


@pytest.mark.anyio
@pytest.mark.requirement("S3:nonblocking")
async def test_others_are_served_while_a_long_text_is_counted(meter: Meter):
    served = 0

    async def others() -> None:
        nonlocal served
        while True:
            served += 1
            await anyio.sleep(0)

    meter.count("warm", "gpt-4o")
    async with anyio.create_task_group() as group:
        group.start_soon(others)
        await patiently(meter.steps(LONG[0], "gpt-4o"))
        group.cancel_scope.cancel()
    assert served > 20


@pytest.mark.requirement("S3:nonblocking")
def test_a_small_text_is_counted_at_once(meter: Meter):
    steps = meter.steps("Hello, world!", "gpt-4")
    with pytest.raises(StopIteration) as stop:
        next(steps)
    assert stop.value.value.tokens == 4


def test_threads_counting_together_agree(meter: Meter):
    texts = [f"text number {n} " * 50 for n in range(200)]
    results: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: results.append([meter.count(text, "gpt-4o").tokens for text in texts]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(result == results[0] for result in results)


@pytest.mark.requirement("S3:overheads")
def test_a_request_weighs_its_text_and_its_framing():
    assert count_request(HELLO).total == count_request(HELLO, "gpt-4o").total
    assert count_request(HELLO).total.tokens == count("Hello, world!", "gpt-4o").tokens + 7
    assert count_request(HELLO).total.method is Method.EXACT


@pytest.mark.requirement("S3:overheads")
def test_a_request_without_a_model_must_be_told_one():
    body = {"messages": [{"role": "user", "content": "hi"}]}
    with pytest.raises(InvalidArguments):
        count_request(body)
    assert count_request(body, "gpt-4o").total.tokens > 0


@pytest.mark.requirement("S3:nonblocking")
@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "qwen3-32b"])
def test_weighing_in_steps_gives_the_same_weight_with_pauses(meter: Meter, model: str):
    call = {"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    messages: Any = [
        {"role": "user", "content": LONG[0]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": LONG[0][1:]},
    ]
    request = read_request({"messages": messages})
    weight, pauses = run_and_count_pauses(Meter(shipped()).weigh_steps(request, model))
    assert weight == meter.weigh(request, model)
    assert pauses >= 2 * len(LONG[0]) // 20_000


@pytest.mark.requirement("S3:nonblocking")
def test_a_request_of_many_short_messages_is_weighed_in_steps_too():
    turns = [{"role": ("user", "assistant")[place % 2], "content": f"{place} words " * 200} for place in range(100)]
    request = read_request({"model": "gpt-4o", "messages": turns})
    meter = Meter(shipped())
    weight, pauses = run_and_count_pauses(meter.weigh_steps(request))
    assert weight == Meter(shipped()).weigh(request)
    assert pauses > 20
    assert run_and_count_pauses(meter.weigh_steps(request)) == (weight, 0), "what is known holds nobody up"


@pytest.mark.requirement("S2:window")
def test_a_model_is_found_with_its_window():
    assert find_model("anthropic/claude-3.5-sonnet").window == 200_000
    assert find_model("openai/gpt-4o").window == 128_000
    table = shipped()
    assert (table.window("no such model").tokens, table.window("no such model").resolved) == (128_000, False)
    assert table.window("no such model", override=5).tokens == 5


@pytest.mark.requirement("S3:overheads")
def test_a_request_nobody_can_read_is_an_error_of_ours():
    nested: Any = "x"
    for _ in range(5_000):
        nested = {"a": nested}
    for body, named in (
        ({"contents": [{"parts": [{"functionCall": {"name": "f", "args": nested}}]}]}, None),
        ({}, "odd"),
    ):
        with pytest.raises(BadInput):
            count_request(body, "gemini-2.5-pro", named)


@pytest.mark.requirement("S3:method", "S2:count")
def test_a_younger_vocabulary_is_counted_by_its_elders_within_a_band(meter: Meter):
    english, chinese = "The ferries to Gotland left at nine.", "今天的会议改到下午三点。"
    for text in (english, chinese):
        elder, younger = meter.count(text, "qwen3-32b"), meter.count(text, "qwen3.5-9b")
        assert (elder.method, younger.method) == (Method.EXACT, Method.CALIBRATED)
        assert younger.tokens == elder.tokens
        assert younger.low < elder.tokens < younger.high
    assert meter.count(chinese * 100, "qwen3.5-9b").low < 0.7 * meter.count(chinese * 100, "qwen3-32b").tokens


@pytest.mark.requirement("S3:method")
def test_reports_for_a_version_without_a_card_correct_no_other_model() -> None:
    meter = Meter(shipped())
    body = {"messages": [{"role": "user", "content": "The committee met on Tuesday. " * 100}], "max_tokens": 9}
    known, unlisted = ({**body, "model": model} for model in ("claude-sonnet-5-5", "claude-sonnet-6"))
    before = meter.weigh(read_request(known)).total
    guess = meter.weigh(read_request(unlisted)).total
    assert guess.method is Method.ESTIMATED
    assert guess.low <= 0.71 * guess.tokens
    assert guess.high >= 1.29 * guess.tokens
    meter.observe(read_request(unlisted), round(1.5 * guess.tokens))
    assert meter.weigh(read_request(known)).total == before
    assert meter.weigh(read_request(unlisted)).total.tokens > 1.4 * guess.tokens
