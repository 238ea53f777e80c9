from collections.abc import Callable
from typing import Any

import pytest

import ullage
from ullage import count, count_request, find_model
from ullage.app import count_text as counting
from ullage.app import meter_for
from ullage.errors import InvalidArguments, UnreadableRequest

pytestmark = pytest.mark.requirement("S3:count")


def weigh_for(model: Any) -> object:  # noqa: ANN401
    return count_request({"messages": []}, 5 if model is None else model)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("value", [None, b"", b"text", 5, (), ["text"], {}])
@pytest.mark.parametrize(
    "ask",
    [
        count,
        lambda value: count("text", value),
        find_model,
        weigh_for,
    ],
)
def test_what_is_no_string_is_told_so(ask: Callable[[Any], object], value: object):
    with pytest.raises(InvalidArguments, match="must be a string, not") as caught:
        ask(value)
    assert caught.value.suggestion


@pytest.mark.requirement("S3:default-model", "S3:empty")
def test_the_empty_text_is_nothing_and_what_is_no_text_is_not_taken_for_it():
    assert count("").tokens == 0
    assert count("", "claude").tokens == 0
    for value in (None, b"", [], ()):
        with pytest.raises(InvalidArguments, match=r"^`text` must be a string, not "):
            count(value)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArguments, match=r"^`model` must be a string, not NoneType"):
        count("", None)  # pyright: ignore[reportArgumentType]


@pytest.mark.requirement("S3:default-model")
@pytest.mark.parametrize("text", ["Hello, world!", "Olá, mundo! Fim da tradução.", "안녕하세요"])
def test_without_a_model_gpt_4_is_counted_for(text: str):
    assert count(text) == count(text, "gpt-4")
    assert count("안녕하세요") != count("안녕하세요", "gpt-4o")


@pytest.mark.parametrize("value", [b"Hi", object()])
def test_a_body_that_is_no_json_is_told_so(value: object):
    with pytest.raises(UnreadableRequest, match="is not JSON: Object of type") as caught:
        count_request({"model": "gpt-4o", "messages": [{"role": "user", "content": value}]})
    assert caught.value.suggestion


def test_a_prompt_completes_the_names_that_can_be_imported():
    assert {"count", "count_request", "find_model"} <= set(dir(ullage))


def test_a_process_that_counts_much_and_ends_begins_with_the_engine(monkeypatch: pytest.MonkeyPatch):
    made: list[bool] = []

    def engine(*, begins_short: bool) -> None:
        made.append(begins_short)

    monkeypatch.setattr(counting, "default_engine", engine)
    meter_for(1_000)
    meter_for(1_000_000)
    assert made == [True, False]


@pytest.mark.requirement("S3:count", "S3:empty", "U:errors")
@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [(b"", "bytes", "decode bytes first"), (None, "NoneType", "give `text` as str"), (3, "int", "give `text` as str")],
)
def test_what_is_no_text_is_refused_and_not_counted_as_nothing(text: Any, kind: str, hint: str):  # noqa: ANN401
    with pytest.raises(InvalidArguments, match=f"`text` must be a string, not {kind}") as caught:
        count(text)
    assert hint in caught.value.suggestion
