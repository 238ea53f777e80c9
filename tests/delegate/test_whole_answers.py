"""No whole answer is lost, none is doubled, and nothing that may have been billed is booked as free."""

import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import anyio
import httpx2
import pytest

from delegate.delegates import Both, FakePurse, delegate
from delegate.streams import ANSWERS, Scripted, events, provider
from delegate.virtual_time import run_in_virtual_time
from ullage.delegate import Ask, Completion, Event, Outgoing, Provider, ProviderFailed, Timeouts
from ullage.delegate.attempt import RawEvent, RepeatFilter, attempt
from ullage.messages import Format, Message, Text, read_usage
from ullage.models import Usage

pytestmark = pytest.mark.requirement("S4:stream")

ASKED = Outgoing(model="m", messages=(Message(role="user", parts=(Text("Hi"),)),))
ASK = Ask(messages=(Message(role="user", parts=(Text("Please write hello"),)),))
COMMENT, PING, EMPTY, RETRY = (
    b": keep-alive\n\n",
    b'event: ping\ndata: {"type": "ping"}\n\n',
    b"event: x\n\n",
    b"retry: 9\n\n",
)


@dataclass
class Body:
    """A response of these pieces; a number is a pause in seconds, an exception is raised."""

    pieces: list[bytes | float | Exception]
    requests: int = 0
    media_type: str = "text/event-stream"

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        return httpx2.Response(200, headers={"content-type": self.media_type}, content=self._stream())

    async def _stream(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, bytes):
                yield piece
            else:
                await anyio.sleep(piece)

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self))


def answer(body: Body, by: Provider, outgoing: Outgoing = ASKED, heard: list[Event] | None = None) -> Completion:
    hear: Callable[[Event], None] = (lambda _: None) if heard is None else heard.append

    async def ask() -> Completion:
        async with body.client() as client:
            return await attempt(client, by, outgoing, hear)

    return run_in_virtual_time(ask)


def after_pauses(wire: str, piece: bytes, times: int, pause: float) -> list[bytes | float | Exception]:
    first, *rest = events(ANSWERS[wire])
    waits = [part for _ in range(times) for part in (pause, piece)]
    return [first, *waits, *rest]


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", list(ANSWERS))
@pytest.mark.parametrize("piece", [COMMENT, PING, EMPTY, RETRY, b"\n"])
def test_keep_alives_count_as_activity(wire: str, piece: bytes):
    slow = Body(after_pauses(wire, piece, times=9, pause=11.0))
    assert answer(slow, provider(wire, idle=30)).text == "Hello there"


@pytest.mark.requirement("S4:stream")
def test_a_model_that_only_keeps_alive_is_given_up_in_the_end():
    dead = Body(after_pauses("chat", COMMENT, times=40, pause=11.0))
    with pytest.raises(ProviderFailed) as failed:
        answer(dead, provider("chat", idle=30))
    assert failed.value.kind == "idle"


@pytest.mark.requirement("S4:stream")
def test_models_that_reason_get_longer_limits():
    silent = Body([events(ANSWERS["chat"])[0], 100.0, *events(ANSWERS["chat"])[1:]])
    with pytest.raises(ProviderFailed):
        answer(silent, provider("chat"))
    assert answer(silent, provider("chat"), replace(ASKED, thinks=True)).text == "Hello there"
    with pytest.raises(ProviderFailed):
        answer(silent, provider("chat", idle=40), replace(ASKED, thinks=True))
    late = Body([200.0, *events(ANSWERS["chat"])])
    assert answer(late, provider("chat"), replace(ASKED, thinks=True)).text == "Hello there"
    thought = events([{"choices": [{"delta": {"reasoning_content": "hm"}}]}])
    assert answer(Body([*thought, 100.0, *events(ANSWERS["chat"])]), provider("chat")).text == "Hello there"


AFTERWARDS: list[bytes | float | Exception] = [
    httpx2.ReadError("reset"),
    httpx2.RemoteProtocolError("peer closed connection"),
    10_000.0,
    b"data: {broken\n\n",
    b'data: {"error": {"message": "overloaded"}}\n\n',
]


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", list(ANSWERS))
@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_what_breaks_after_the_answer_is_whole_does_not_lose_it(wire: str, afterwards: bytes | float | Exception):
    body = Body([*events(ANSWERS[wire]), afterwards, b": never read\n\n"])
    found = answer(body, provider(wire))
    assert (found.text, found.usage.input, found.usage.output) == ("Hello there", 39, 5)


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_a_chat_that_has_finished_needs_neither_usage_nor_end_marker(afterwards: bytes | float | Exception):
    assert answer(Body([*events(ANSWERS["chat"][:3]), afterwards]), provider("chat")).text == "Hello there"


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("afterwards", [b"", *AFTERWARDS])
def test_a_message_that_has_said_why_it_ended_needs_no_end_marker(afterwards: bytes | float | Exception):
    found = answer(Body([*events(ANSWERS["anthropic"][:-1]), afterwards]), provider("anthropic"))
    assert (found.text, found.usage.output) == ("Hello there", 5)
    with pytest.raises(ProviderFailed):
        answer(Body([*events(ANSWERS["anthropic"][:-2]), afterwards]), provider("anthropic"))


@pytest.mark.requirement("S4:stream", "S4:cost")
@pytest.mark.parametrize("wire", list(ANSWERS))
def test_an_open_socket_after_the_end_marker_costs_one_call(wire: str):
    body = Body([*events(ANSWERS[wire]), 10_000.0])

    async def run() -> int:
        async with body.client() as client:
            asking = delegate(client)
            asking = replace(asking, providers={"openai": provider(wire)})
            return len((await asking.run(replace(ASK, prompt_tokens=5, language="en"))).attempts)

    assert (run_in_virtual_time(run), body.requests) == (1, 1)


def with_ids(said: list[Any], name: str) -> list[Any]:
    return [{**one, "id": name, "responseId": name} if isinstance(one, dict) else one for one in said]


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", list(ANSWERS))
@pytest.mark.parametrize(
    "doubled",
    [
        lambda said: [*said, *said],
        lambda said: [*(one for one in said if one != "[DONE]"), *said],
        lambda said: [one for one in said for _ in range(2)],
        lambda said: [*with_ids(said, "a"), *with_ids(said, "b")],
        lambda said: [*(one for one in with_ids(said, "a") if one != "[DONE]"), *with_ids(said, "b")],
        lambda said: (
            [*with_ids(said, "a")[: -2 if len(said) < 5 else -3], *with_ids(said, "b")] if len(said) > 2 else said
        ),
    ],
    ids=["twice", "twice before the marker", "in pairs", "other ids", "other ids before the marker", "begun anew"],
)
def test_a_duplicated_stream_is_one_answer(wire: str, doubled: Callable[[list[Any]], list[Any]]):
    found = answer(Body([*events(doubled(ANSWERS[wire]))]), provider(wire))
    assert (found.text, found.message.parts) == ("Hello there", (Text("Hello there"),))


def test_text_that_really_repeats_itself_is_kept():
    said = [{"choices": [{"delta": {"content": "ha"}}]} for _ in range(5)]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    for times in range(1, 6):
        assert answer(Body([*events([*said[:times], end, "[DONE]"])]), provider("chat")).text == "ha" * times


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        *(("a", "a"), ("aa", "aa"), ("aab", "aab"), ("abab", "abab"), ("aaaa", "aaaa"), ("abbc", "abbc")),
        *(("aabb", "ab"), ("aabbc", "abc"), ("aabbccdd", "abcd"), ("aabbbb", "abb"), ("aaabbb", "aaabbb")),
    ],
)
def test_only_a_stream_that_comes_in_pairs_from_its_beginning_is_taken_for_doubled(text: str, passed: str):
    kept, passing = list[RawEvent](), RepeatFilter()
    for letter in text:
        kept += passing.pass_on((None, letter), is_whole=False)
    kept += passing.take_held()
    assert "".join(letter for _, letter in kept) == passed


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (
            "chat",
            {
                "model": "m-1",
                "choices": [{"message": {"role": "assistant", "content": "Hello there"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 39, "completion_tokens": 5},
            },
        ),
        ("responses", {"object": "response", **ANSWERS["responses"][-1]["response"]}),
        (
            "anthropic",
            {
                "type": "message",
                "model": "m-1",
                "content": [{"type": "text", "text": "Hello there"}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 39, "output_tokens": 5},
            },
        ),
        ("gemini", ANSWERS["gemini"]),
    ],
)
def test_an_answer_of_a_provider_that_does_not_stream_is_an_answer(wire: str, body: object):
    found = answer(Body([json.dumps(body).encode()], media_type="application/json"), provider(wire))
    assert (found.text, found.usage.input, found.usage.output) == ("Hello there", 39, 5)


@pytest.mark.requirement("S4:usage")
@pytest.mark.parametrize("form", [form for form in Format if form is not Format.ULLAGE])
def test_a_bare_total_is_input_on_every_wire(form: Format):
    assert read_usage({"total_tokens": 44}, form) == Usage(input=44, output=0)
    assert read_usage({"totalTokenCount": 44}, form) == Usage(input=44, output=0)
    assert read_usage({"total_tokens": 44, "output_tokens_details": {"reasoning_tokens": 9}}, form).input == 44


ABSURD = [
    "1e30",
    "1e300",
    "-5",
    "1.5",
    "NaN",
    "Infinity",
    "-Infinity",
    '"many"',
    "true",
    "null",
    "[1]",
    "1" + "0" * 400,
]


@pytest.mark.requirement("S4:usage", "S4:cost")
@pytest.mark.parametrize("figure", ABSURD)
@pytest.mark.parametrize("wire", list(ANSWERS))
@pytest.mark.anyio
async def test_no_figure_that_a_provider_reports_loses_a_paid_answer(wire: str, figure: str):
    text = json.dumps(ANSWERS[wire])
    for number in ("39", "38", "5"):
        text = text.replace(f": {number}", f": {figure}")
    said = json.loads(text)
    if wire == "chat":
        said[3]["usage"]["cost"] = json.loads(figure)
    scripted, purse = Scripted([said]), FakePurse()
    async with scripted.client() as client:
        asking = delegate(client, purse)
        outcome = await replace(asking, providers={"openai": provider(wire)}).run(replace(ASK, language="en"))
    assert outcome.completion.text == "Hello there"
    assert outcome.usage_reported is ((wire, figure) == ("anthropic", "null"))
    assert 0 < purse.settled[0].tokens < 10_000
    assert 0 < (purse.settled[0].dollars or 0) < 2


@pytest.mark.requirement("S4:usage", "S4:cost")
@pytest.mark.parametrize("wire", list(ANSWERS))
@pytest.mark.anyio
async def test_a_report_that_nothing_was_used_makes_no_answer_free(wire: str):
    text = json.dumps(ANSWERS[wire])
    for number in ("39", "38", "5", "1"):
        text = text.replace(f": {number}", ": 0")
    said, purse = json.loads(text), FakePurse()
    if wire == "chat":
        said[3]["usage"]["cost"] = 0
    async with Scripted([said]).client() as client:
        asking = replace(delegate(client, purse), providers={"openai": provider(wire)})
        outcome = await asking.run(replace(ASK, language="en"))
    assert not outcome.usage_reported
    assert 0 < (purse.settled[0].dollars or 0) < 0.01


def test_whole_numbers_with_a_point_are_counts():
    assert read_usage({"prompt_tokens": 39.0, "completion_tokens": 5}, Format.OPENAI_CHAT) == Usage(input=39, output=5)


def failing(kind: str) -> Any:  # noqa: ANN401 - whatever a scripted provider answers with
    return {
        "refused": httpx2.ConnectError("no"),
        "503": httpx2.Response(503),
        "308": httpx2.Response(308, headers={"location": "https://elsewhere.test"}),
        "200 rejected": httpx2.Response(200, json={"error": {"type": "rate_limit_error", "message": "slow down"}}),
        "200 broken": httpx2.Response(200, json={"error": {"code": 500, "message": "boom"}}),
        "504": httpx2.Response(504),
        "524": httpx2.Response(524),
        "lost": httpx2.RemoteProtocolError("Server disconnected without sending a response."),
        "empty": [],
        "cut": [{"choices": [{"delta": {}}]}],
    }[kind]


@pytest.mark.requirement("S4:cost", "S4:budgets")
@pytest.mark.parametrize(
    ("kind", "output"),
    [
        *(("refused", 0), ("503", 0), ("504", 2048), ("524", 2048), ("lost", 2048), ("empty", 2048), ("cut", 2048)),
        *(("308", 0), ("200 rejected", 0), ("200 broken", 2048)),
    ],
)
@pytest.mark.anyio
async def test_a_call_that_may_have_been_billed_is_booked_at_its_estimate(kind: str, output: int):
    purse, both = FakePurse(), Both(Scripted([failing(kind)]))
    async with both.client() as client:
        outcome = await delegate(client, purse).run(ASK)
    failed = outcome.attempts[0]
    assert (failed.success, failed.usage_reported, failed.usage.output) == (False, not output, output)
    assert failed.cost is not None
    assert bool(failed.cost.total) == bool(output)
    assert (purse.settled[0].tokens > 2048) == bool(output)


@pytest.mark.requirement("S4:cost", "S4:budgets")
def test_a_call_that_is_given_up_while_nothing_came_is_booked_at_its_estimate():
    purse, body = FakePurse(), Body([COMMENT, 10_000.0])

    async def run() -> None:
        async with body.client() as client:
            asking = delegate(client, purse)
            provider_of = {"openai": replace(provider("chat"), timeouts=Timeouts(first_byte=1000))}
            with anyio.move_on_after(60):
                await replace(asking, providers=provider_of).run(replace(ASK, prompt_tokens=7, language="en"))

    run_in_virtual_time(run)
    assert purse.settled[0].tokens == 7 + 2048


def caused(error: Exception, by: Exception) -> Exception:
    error.__cause__ = by
    return error


@pytest.mark.requirement("S4:fallback")
@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (socket.gaierror(-2, "Name or service not known"), "DNS"),
        (ConnectionRefusedError(111, "refused"), "refused"),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), "TLS"),
        (ssl.SSLCertVerificationError(1, "CERTIFICATE_VERIFY_FAILED"), "certificate"),
        (TimeoutError(), "in time"),
        (ExceptionGroup("all", [ConnectionRefusedError(111, "refused")]), "refused"),
    ],
)
@pytest.mark.anyio
async def test_a_connection_error_says_of_which_kind_it_is(cause: Exception, said: str):
    error = caused(httpx2.ConnectError("at http://secret.test"), caused(OSError("all failed"), cause))
    async with Scripted([error]).client() as client:
        with pytest.raises(ProviderFailed) as failed:
            await attempt(client, provider("chat"), ASKED, lambda _: None)
    assert said in failed.value.message
    assert failed.value.suggestion
    assert "secret.test" not in failed.value.message


@pytest.mark.requirement("S4:cost", "S4:fallback")
@pytest.mark.parametrize("address", ["http://127.0.0.1:99999/v1", "ftp://127.0.0.1/v1", "http:///v1"])
@pytest.mark.anyio
async def test_an_address_that_cannot_be_is_a_failure_that_costs_nothing(address: str):
    async with httpx2.AsyncClient() as client:
        with pytest.raises(ProviderFailed) as failed:
            await attempt(client, replace(provider("chat"), base_url=address), ASKED, lambda _: None)
    assert not failed.value.may_be_billed
    assert "base_url" in failed.value.suggestion


TWICE = {"choices": [{"delta": {"content": "ha"}}]}
ENDED = {"choices": [{"delta": {"content": "!"}, "finish_reason": "stop"}]}


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_an_end_that_is_held_back_for_its_twin_is_read_when_the_stream_breaks(afterwards: bytes | float | Exception):
    """A stream that begins with the same piece twice may be a doubled one, and its end that of a pair."""
    assert answer(Body([*events([TWICE, TWICE, ENDED]), afterwards]), provider("chat")).text == "haha!"


@pytest.mark.requirement("S4:stream")
def test_keep_alives_behind_a_whole_answer_are_not_waited_through():
    body, began = Body([*events(ANSWERS["chat"][:3]), *[1.0, COMMENT] * 1_000]), list[float]()

    async def ask() -> float:
        began.append(anyio.current_time())
        async with body.client() as client:
            assert (await attempt(client, provider("chat"), ASKED, lambda _: None)).text == "Hello there"
        return anyio.current_time() - began[0]

    assert run_in_virtual_time(ask) < 10


WHOLE = {
    "chat": {"choices": [{"message": {"content": "Hello there"}, "finish_reason": "stop"}], "usage": {}},
    "anthropic": {"type": "message", "content": [{"type": "text", "text": "Hello there"}], "stop_reason": "end_turn"},
    "gemini": [{"candidates": [{"content": {"parts": [{"text": "Hello there"}]}, "finishReason": "STOP"}]}],
}


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", list(WHOLE))
@pytest.mark.parametrize(
    "afterwards", [httpx2.ReadError("reset"), httpx2.RemoteProtocolError("no last chunk"), 10_000.0]
)
def test_a_whole_answer_that_was_not_streamed_outlives_a_connection_that_breaks(
    wire: str, afterwards: float | Exception
):
    body = Body([json.dumps(WHOLE[wire]).encode(), afterwards], media_type="application/json")
    assert answer(body, provider(wire)).text == "Hello there"
    half = Body([json.dumps(WHOLE[wire]).encode()[:-20], afterwards], media_type="application/json")
    with pytest.raises(ProviderFailed) as failed:
        answer(half, provider(wire))
    assert failed.value.kind in ("cut", "first_byte")


ODD = [
    b"\xff\xfe\x00 no text at all\n\n",
    b"data: \xff\xfe\n\n",
    b"data: [DONE]\n\ndata: [DONE]\n\n",
    b"data: null\n\n",
    b'data: "[DONE]"\n\n',
    b"data: " + b"9" * 5_000 + b"\n\n",
    b'data: {"usage": {"prompt_tokens": ' + b"9" * 5_000 + b"}}\n\n",
    b"data: " + b"[" * 100_000 + b"\n\n",
]


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", list(ANSWERS))
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_odd_bytes_are_a_failure_before_the_end_and_nothing_behind_it(wire: str, odd: bytes):
    assert answer(Body([*events(ANSWERS[wire]), odd]), provider(wire)).text == "Hello there"
    assert answer(Body([b"".join([*events(ANSWERS[wire]), odd])]), provider(wire)).text == "Hello there"
    first, *_ = events(ANSWERS[wire])
    with pytest.raises(ProviderFailed):
        answer(Body([first, odd]), provider(wire))


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize(
    "text", ["[DONE]", "data: [DONE]\n\n", 'event: message_stop\ndata: {"type": "message_stop"}\n\n']
)
def test_an_end_marker_within_a_text_ends_nothing(text: str):
    said = json.loads(json.dumps(ANSWERS).replace('"Hello"', json.dumps(f"Hello {text}")))
    for wire in ("chat", "anthropic", "gemini"):
        assert answer(Body([*events(said[wire])]), provider(wire)).text == f"Hello {text} there"


@pytest.mark.requirement("S4:usage", "S4:stream")
@pytest.mark.parametrize("wire", list(ANSWERS))
def test_a_number_of_any_length_loses_no_answer(wire: str):
    """Python reads no whole number of more than 4,300 digits."""
    text = json.dumps(ANSWERS[wire])
    for number in ("39", "38", "5"):
        text = text.replace(f": {number}", f': "{number} digits"')
    long = [
        one.replace(b'"39 digits"', b"9" * 5_000).replace(b'"5 digits"', b"9" * 5_000)
        for one in events(json.loads(text))
    ]
    assert b"9" * 5_000 in b"".join(long)
    assert answer(Body([*long]), provider(wire)).text == "Hello there"


@pytest.mark.parametrize("wire", ANSWERS)
def test_neither_a_byte_order_mark_nor_a_missing_last_newline_costs_a_part_of_the_answer(wire: str):
    whole = b"\xef\xbb\xbf" + b"".join(events(ANSWERS[wire])).rstrip(b"\n")
    for pieces in ([whole], [whole[:2], whole[2:4], whole[4:]]):
        completion = answer(Body([*pieces], media_type="text/event-stream; charset=iso-8859-1"), provider(wire))
        assert (completion.text, completion.usage.input, completion.usage.output) == ("Hello there", 39, 5)


@pytest.mark.parametrize("wire", ANSWERS)
def test_a_stream_that_ends_anywhere_is_whole_or_truncated(wire: str):
    whole, found = b"".join(events(ANSWERS[wire])), list[str]()
    for length in range(0, len(whole), 7):
        try:
            found.append(answer(Body([whole[:length]]), provider(wire)).text)
        except ProviderFailed as failed:
            found.append(failed.kind)
    lost = found.count("truncated")
    assert found == ["truncated"] * lost + ["Hello there"] * (len(found) - lost)
    assert lost > len(found) / 2


WHOLE_DOCUMENTS: dict[str, Any] = {
    "chat": {"choices": [{"message": {"content": "Hello there"}, "finish_reason": "stop"}]},
    "responses": {"output": [{"type": "message", "content": [{"type": "output_text", "text": "Hello there"}]}]},
    "anthropic": {
        "type": "message",
        "content": [{"type": "text", "text": "Hello there"}],
        "stop_reason": "end_turn",
    },
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Hello there"}]}, "finishReason": "STOP"}]},
}
MEDIA_TYPES = ("text/event-stream", "application/json", "text/plain", "application/octet-stream", "text/html", "")


@pytest.mark.parametrize("wire", list(ANSWERS))
@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_an_answer_is_read_with_any_media_type(wire: str, media_type: str):
    document = json.dumps(WHOLE_DOCUMENTS[wire]).encode()
    mark = b"\xef\xbb\xbf"
    for pieces in (
        events(ANSWERS[wire]),
        [b"\n\n", *events(ANSWERS[wire])],
        [document],
        [mark[:1], mark[1:], b" \n", document[:1], document[1:]],
        [document, 10_000.0],
    ):
        assert answer(Body(list(pieces), media_type=media_type), provider(wire)).text == "Hello there"
    for nothing in (b"<html>Bad gateway</html>", b'{"unexpected": 1}', b"[]"):
        with pytest.raises(ProviderFailed) as failed:
            answer(Body([nothing], media_type=media_type), provider(wire))
        assert failed.value.kind in ("malformed", "truncated")


def test_an_answer_of_one_json_value_per_line_is_read():
    lines: list[bytes | float | Exception] = [json.dumps(one).encode() + b"\n" for one in ANSWERS["chat"][:-1]]
    assert answer(Body(lines, media_type="application/x-ndjson"), provider("chat")).text == "Hello there"


@pytest.mark.parametrize("wire", list(ANSWERS))
def test_an_event_of_null_is_no_content(wire: str):
    first, *rest = events(ANSWERS[wire])
    assert answer(Body([first, b"data: null\n\n", *rest]), provider(wire)).text == "Hello there"


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"delta": {"content": [{"type": "text", "text": "Hello"}]}}, "Hello"),
        ({"text": "Hello"}, "Hello"),
        ({"index": 1, "delta": {"content": "another answer"}}, ""),
        (
            {"delta": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}},
            "",
        ),
    ],
)
def test_content_in_parts_and_further_choices(choice: dict[str, Any], text: str):
    said = [{"choices": [choice]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}, "[DONE]"]
    assert answer(Body(list(events(said))), provider("chat")).text == text


COUNTED = {"prompt_tokens": 39, "completion_tokens": 5}
NOT_COUNTED = [one for one in ANSWERS["chat"] if isinstance(one, dict) and "usage" not in one]
RESPONSES_COUNTED = {"input_tokens": 39, "output_tokens": 5}
CREATED, *DELTAS, _ = ANSWERS["responses"]
COMPLETED: dict[str, Any] = {"type": "response.completed", "response": {"status": "completed", "output": []}}
IN_PROGRESS = {"type": "response.in_progress", "response": {"usage": RESPONSES_COUNTED}}
*MESSAGE, MESSAGE_DELTA, MESSAGE_STOP = ANSWERS["anthropic"]
ZEROS = {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}


@pytest.mark.requirement("S4:cost")
@pytest.mark.parametrize(
    ("wire", "said"),
    [
        ("chat", [*NOT_COUNTED[:-1], {"choices": [{**NOT_COUNTED[-1]["choices"][0], "usage": COUNTED}]}, "[DONE]"]),
        ("chat", [*NOT_COUNTED[:-1], {**NOT_COUNTED[-1], "x_groq": {"usage": COUNTED}}, "[DONE]"]),
        ("chat", [*NOT_COUNTED, "[DONE]", {"choices": [], "usage": COUNTED}]),
        ("chat", [{"choices": [], "usage": COUNTED}, *NOT_COUNTED, "[DONE]"]),
        ("chat", [*NOT_COUNTED, {"usage": COUNTED}, {"usage": dict.fromkeys(COUNTED, 0)}, "[DONE]"]),
        ("chat", [*NOT_COUNTED, {"usage": RESPONSES_COUNTED}, "[DONE]"]),
        ("responses", [CREATED, *DELTAS, {**COMPLETED, "usage": RESPONSES_COUNTED}]),
        ("responses", [CREATED, *DELTAS, {**COMPLETED, "response": {"status": "completed", "usage": COUNTED}}]),
        ("responses", [CREATED, IN_PROGRESS, *DELTAS, COMPLETED]),
        ("anthropic", [*MESSAGE, {**MESSAGE_DELTA, "usage": ZEROS}, MESSAGE_STOP]),
    ],
)
def test_usage_is_found_wherever_a_server_puts_it(wire: str, said: list[Any]):
    read = answer(Body(list(events(said))), provider(wire))
    assert (read.text, read.usage.input, read.usage.output) == ("Hello there", 39, 5)


@pytest.mark.parametrize("wire", list(ANSWERS))
def test_events_without_an_empty_line_between_them_are_read_one_by_one(wire: str):
    joined = b"".join(event.removesuffix(b"\n") for event in events(ANSWERS[wire]))
    assert answer(Body([joined]), provider(wire)).text == "Hello there"


@pytest.mark.parametrize("wire", list(ANSWERS))
def test_an_event_written_over_several_lines_is_one_event(wire: str):
    written = [one if isinstance(one, str) else json.dumps(one, indent=1) for one in ANSWERS[wire]]
    pieces = ["".join(f"data: {line}\n" for line in one.splitlines()) + "\n" for one in written]
    assert answer(Body([piece.encode() for piece in pieces]), provider(wire)).text == "Hello there"


@pytest.mark.parametrize("reason", ["", "null", "None", None])
def test_a_reason_that_says_nothing_ends_no_answer(reason: str | None):
    first, second, *rest = ANSWERS["chat"]
    begun = {"choices": [{**first["choices"][0], "finish_reason": reason}]}
    assert answer(Body(list(events([begun, second, *rest]))), provider("chat")).text == "Hello there"
