"""A stream that holds several copies of one answer is one answer."""

from collections.abc import Callable
from itertools import chain, zip_longest
from typing import Any

import pytest

from delegate.streams import events, provider
from delegate.test_whole_answers import Body, answer
from ullage.delegate.attempt import single_copy

pytestmark = pytest.mark.requirement("S4:stream")

WORDS = ("The", " answer", " is", " the", " answer", " 42", ".")
TEXT = "".join(WORDS)


def chat(name: str) -> list[Any]:
    deltas = [{"role": "assistant", "content": ""}, *({"content": word} for word in WORDS), {}]
    reasons = [*[None] * (len(deltas) - 1), "stop"]
    return [
        {"id": name, "choices": [{"delta": delta, "finish_reason": reason}]}
        for delta, reason in zip(deltas, reasons, strict=True)
    ]


def responses(name: str) -> list[Any]:
    """With an empty list of output in its last event, so that the text is put together from its pieces."""
    pieces = [{"type": "response.output_text.delta", "item_id": name, "delta": word} for word in WORDS]
    created, completed = (
        {"type": f"response.{one}", "response": {"id": name, "output": []}} for one in ("created", "completed")
    )
    return [{**one, "sequence_number": number} for number, one in enumerate([created, *pieces, completed])]


def anthropic(name: str) -> list[Any]:
    return [
        {"type": "message_start", "message": {"id": name}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in WORDS),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]


def gemini(name: str) -> list[Any]:
    said = [
        {
            "responseId": name,
            "candidates": [{"content": {"parts": [{"text": word}]}}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": number},
        }
        for number, word in enumerate(WORDS)
    ]
    said[-1]["candidates"][0]["finishReason"] = "STOP"
    return said


STREAMS: dict[str, Callable[[str], list[Any]]] = {
    "chat": chat,
    "responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
}


def late(one: list[Any], other: list[Any], by: int) -> list[Any]:
    pairs = zip_longest([*one, *[None] * by], [*[None] * by, *other])
    return [event for event in chain.from_iterable(pairs) if event is not None]


COPIES: dict[str, Callable[[list[Any], list[Any]], list[Any]]] = {
    "behind": lambda one, other: one + other,
    "in turn": lambda one, other: late(one, other, 0),
    "late by one": lambda one, other: late(one, other, 1),
    "late by three": lambda one, other: late(one, other, 3),
    "begun anew": lambda one, other: one[: len(one) // 2] + other,
    "begun anew before the end": lambda one, other: one[:-1] + other,
    "three times": lambda one, other: [event for trio in zip(one, other, one, strict=True) for event in trio],
}


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", list(STREAMS))
@pytest.mark.parametrize("copies", list(COPIES))
@pytest.mark.parametrize("name", ["a", "b"])
def test_several_copies_of_an_answer_are_one_answer(wire: str, copies: str, name: str):
    sent = COPIES[copies](STREAMS[wire]("a"), STREAMS[wire](name))
    assert answer(Body([*events(sent)]), provider(wire)).text == TEXT


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", list(STREAMS))
@pytest.mark.parametrize("place", [1, 4, 6])
def test_events_that_are_sent_again_with_their_ids_are_read_once(wire: str, place: int):
    numbered = [b"id: %d\n%s" % (number, one) for number, one in enumerate(events(STREAMS[wire]("a")))]
    sent = [*numbered[: place + 2], *numbered[place:]]
    assert answer(Body([*sent]), provider(wire)).text == TEXT


def test_ids_that_different_events_share_say_nothing():
    said = [{"choices": [{"delta": {"content": word}}]} for word in ("no", " no", " no", " no", "!")]
    sent = [b"id: 7\n" + one for one in events([*said, chat("a")[-1], "[DONE]"])]
    assert answer(Body([*sent]), provider("chat")).text == "no no no no!"


@pytest.mark.parametrize("wire", list(STREAMS))
def test_one_copy_is_left_as_it_is(wire: str):
    assert single_copy([(None, one.decode()[6:].strip()) for one in events(STREAMS[wire]("a"))]) is None


def test_an_opening_that_comes_again_in_the_middle_of_an_answer_drops_nothing():
    opening, *rest = chat("a")
    assert answer(Body([*events([opening, *rest[:4], opening, *rest[4:], "[DONE]"])]), provider("chat")).text == TEXT
