from dataclasses import replace

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegate.streams import ANSWERS, Scripted, provider
from ullage.delegate import Event, FailureKind, Outgoing, ProviderFailed, TextDelta
from ullage.delegate.attempt import attempt, remove_quotations
from ullage.delegate.providers import status_error
from ullage.delegate.providers.answer_stream import fail_in_band
from ullage.messages import Message, Text, ToolResult
from ullage.models import Usage
from ullage.tool import Json

ASKED = Outgoing(
    model="m",
    messages=(
        Message(role="system", parts=(Text("Be brief."),)),
        Message(role="user", parts=(Text("Hi"),)),
    ),
    max_output_tokens=10,
    temperature=0.5,
)
WIRES = list(ANSWERS)
GOOGLES_KEY = {
    "error": {
        "code": 400,
        "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
    }
}

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S4:stream", "S4:providers")]


async def failure(scripted: Scripted, wire: str = "chat", **timeouts: float) -> ProviderFailed:
    async with scripted.client() as client:
        with pytest.raises(ProviderFailed) as failed:
            await attempt(client, provider(wire, **timeouts), ASKED, lambda _: None)
    return failed.value


@pytest.mark.requirement("S4:providers", "S4:usage")
@pytest.mark.parametrize("wire", WIRES)
async def test_one_answer_is_the_same_on_every_wire(wire: str):
    heard = list[Event]()
    scripted = Scripted([ANSWERS[wire]])
    async with scripted.client() as client:
        answer = await attempt(client, provider(wire), ASKED, heard.append)
    assert (answer.text, answer.finish, answer.model) == ("Hello there", "stop", "m-1")
    assert answer.usage == Usage(input=39, output=5, cache_read=38, reasoning=answer.usage.reasoning)
    assert heard == [TextDelta("Hello"), TextDelta(" there")]
    assert answer.message == Message(role="assistant", parts=(Text("Hello there"),))


@pytest.mark.parametrize(
    ("wire", "path", "header"),
    [
        ("chat", "/chat/completions", ("authorization", "Bearer secret-key")),
        ("responses", "/responses", ("authorization", "Bearer secret-key")),
        ("anthropic", "/v1/messages", ("x-api-key", "secret-key")),
        ("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", ("x-goog-api-key", "secret-key")),
    ],
)
async def test_each_wire_has_its_path_and_its_way_to_carry_the_key(wire: str, path: str, header: tuple[str, str]):
    scripted = Scripted([ANSWERS[wire]])
    async with scripted.client() as client:
        await attempt(client, provider(wire), ASKED, lambda _: None)
    request = scripted.requests[0]
    assert str(request.url) == f"http://provider.test{path}"
    assert request.headers[header[0]] == header[1]


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_whose_end_never_came_is_never_handed_on(wire: str):
    for kept in range(len(ANSWERS[wire]) - (3 if wire == "chat" else 1)):
        assert (await failure(Scripted([ANSWERS[wire][:kept]]), wire)).kind == "truncated"


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_connection_that_breaks_is_a_failure_with_what_was_reported(wire: str):
    failed = await failure(Scripted([ANSWERS[wire]], cut_after=1), wire)
    assert failed.kind == "cut"
    assert failed.usage.input == (39 if wire == "anthropic" else None)


@pytest.mark.requirement("S4:stream")
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("nonsense", ["{broken", "[1]", "[" * 100_000])
async def test_what_is_not_json_is_malformed(wire: str, nonsense: str):
    assert (await failure(Scripted([[ANSWERS[wire][0], nonsense]]), wire)).kind == "malformed"


@pytest.mark.requirement("S4:stream")
async def test_a_stream_that_stalls_is_given_up():
    assert (await failure(Scripted([ANSWERS["chat"]], stall=5), idle=0.05)).kind == "idle"


@pytest.mark.requirement("S4:stream")
async def test_an_answer_that_does_not_begin_is_given_up():
    assert (await failure(Scripted([ANSWERS["chat"]], pause=5), first_byte=0.05)).kind == "first_byte"


@pytest.mark.requirement("S4:stream")
async def test_headers_alone_do_not_count_as_a_first_byte():
    assert (await failure(Scripted([ANSWERS["chat"]], late=5), first_byte=0.05)).kind == "first_byte"
    async with Scripted([ANSWERS["chat"]], late=1.2).client() as client:
        answer = await attempt(client, provider("chat", first_byte=20, idle=1), ASKED, lambda _: None)
    assert answer.text == "Hello there"


async def test_an_event_may_hold_a_very_long_answer():
    long = "word " * 400_000
    last = {"choices": [{"delta": {"content": long}, "finish_reason": "stop"}]}
    async with Scripted([[last]]).client() as client:
        answer = await attempt(client, provider("chat"), ASKED, lambda _: None)
    assert answer.text == long


async def test_an_answer_that_is_no_stream_is_malformed():
    plain = httpx2.Response(200, json={"choices": []})
    assert (await failure(Scripted([plain]))).kind == "malformed"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx2.ConnectError("no"), "connect"),
        (httpx2.ConnectTimeout("no"), "connect"),
        (httpx2.RemoteProtocolError("no"), "connect"),
        (httpx2.UnsupportedProtocol("no"), "malformed"),
    ],
)
async def test_an_unreachable_provider_is_reported_without_its_address(error: Exception, kind: FailureKind):
    failed = await failure(Scripted([error]))
    assert failed.kind == kind
    assert "provider.test" not in failed.message


@pytest.mark.requirement("S4:retry")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"message": "no such parameter", "type": "invalid_request_error"}}, "bad_request"),
        (400, {"error": {"code": "context_length_exceeded", "message": "x"}}, "context_length"),
        (400, {"error": {"message": "12031 tokens exceeds the available context size (2048)"}}, "context_length"),
        (400, {"type": "error", "error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}, "context_length"),
        (400, [{"error": {"message": "input token count of 9", "status": "INVALID_ARGUMENT"}}], "context_length"),
        (400, {"error": {"message": "API key not valid", "code": "invalid_api_key"}}, "unauthorized"),
        (401, "", "unauthorized"),
        (403, {"error": "no"}, "unauthorized"),
        (404, {"detail": "no model"}, "not_found"),
        (413, "", "context_length"),
        (422, {"detail": [{"loc": 1}]}, "bad_request"),
        (400, GOOGLES_KEY, "unauthorized"),
        (400, {"error": {"message": "x", "code": "invalid_encrypted_content"}}, "sealed"),
        (400, {"error": {"message": "Encrypted content is not supported with this model.", "code": None}}, "sealed"),
        (400, {"error": {"message": "The encrypted content gAAA could not be verified.", "code": None}}, "sealed"),
        (400, {"error": {"message": "The encrypted content gAAA\ncould not be verified.", "code": None}}, "sealed"),
        (402, {"error": {"message": "Insufficient credits", "code": 402}}, "exhausted"),
        (410, {}, "refused"),
        (418, 3, "refused"),
        (429, {"error": {"message": "slow down"}}, "rate_limited"),
        (500, "<html>", "server"),
        (503, {}, "server"),
        (529, {"error": {"type": "overloaded_error"}}, "overloaded"),
    ],
)  # fmt: skip
async def test_a_status_says_what_went_wrong(status: int, body: object, kind: FailureKind):
    assert (await failure(Scripted([httpx2.Response(status, json=body)]))).kind == kind


TOO_LONG = (
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 290123 tokens.",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
    "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "`inputs` must have less than 4096 tokens. Given: 5000",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
    "Invalid request: Your request exceeded model token limit: 8192",
    "Prompt exceeds max length",
    "prompt token count of 130000 exceeds the limit of 128000",
    "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
    "Total tokens of image and text exceed max message tokens",
    "max_prompt_tokens exceeded",
)
OTHERWISE_WRONG = (
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
    "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-5",
    "Image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    "Invalid 'tools[0].function.name': string does not match pattern.",
    "Unknown parameter: 'max_length'.",
)


@pytest.mark.requirement("S4:retry")
@pytest.mark.parametrize("message", [*TOO_LONG, *OTHERWISE_WRONG])
def test_a_prompt_that_is_too_long_is_recognised_in_each_provider_s_words(message: str):
    kind = "context_length" if message in TOO_LONG else "bad_request"
    error: Json = {"message": message, "type": "invalid_request_error"}
    assert status_error(400, {"error": error}, None).kind == kind
    with pytest.raises(ProviderFailed) as failed:
        fail_in_band(error)
    assert failed.value.kind == kind


def anthropics(message: str, type: str = "invalid_request_error", **details: str) -> object:  # noqa: A002
    return {"type": "error", "error": {"type": type, "message": message, "details": details}}


def quota(*names: str) -> object:
    """As Google says which of them were used up, with a wait that it names for every one."""
    violations = [{"quotaMetric": "generativelanguage.googleapis.com/x", "quotaId": name} for name in names]
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"},
    ]
    return {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}}


@pytest.mark.requirement("S4:retry", "S4:fallback")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "x"}}, "exhausted"),
        (429, {"error": {"type": "insufficient_quota", "code": None, "message": "x"}}, "exhausted"),
        (429, {"error": {"type": "x", "code": "billing_not_active", "message": "x"}}, "exhausted"),
        (400, {"error": {"type": "invalid_request_error", "code": "billing_hard_limit_reached"}}, "exhausted"),
        (429, {"error": {"type": "exceeded_current_quota_error", "message": "suspended"}}, "exhausted"),
        (400, anthropics("Your credit balance is too low to access the Anthropic API."), "exhausted"),
        (400, anthropics("You have reached your specified API usage limits. You will regain access"), "exhausted"),
        (400, anthropics("You have reached your specified workspace API usage limits."), "exhausted"),
        (400, anthropics("messages.0: `your credit balance is too low` is no role"), "bad_request"),
        (429, anthropics("x", "rate_limit_error", error_code="enforced_spend_limit_reached"), "exhausted"),
        (429, anthropics("x", "rate_limit_error", error_code="another"), "rate_limited"),
        (402, anthropics("x", "billing_error"), "exhausted"),
        (429, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), "exhausted"),
        (429, [quota("GenerateRequestsPerMinutePerProjectPerModel", "GenerateRequestsPerDayPerProjectPerModel")],
         "exhausted"),
        (429, quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"), "rate_limited"),
        (429, {"error": {"message": "Rate limit exceeded: free-models-per-day. Add", "code": 429}}, "exhausted"),
        (429, {"error": {"message": "Limit 3 requests per min", "code": "rate_limit_exceeded"}}, "rate_limited"),
    ],
)  # fmt: skip
async def test_an_exhausted_account_is_distinguished_from_a_short_rate_limit(
    status: int, body: object, kind: FailureKind
):
    assert (await failure(Scripted([httpx2.Response(status, json=body)]))).kind == kind


@pytest.mark.requirement("S4:retry")
async def test_a_limit_of_a_day_that_says_how_soon_to_come_back_is_believed():
    body = {"error": {"message": "Rate limit reached on requests per day (RPD)", "code": "rate_limit_exceeded"}}
    answer = httpx2.Response(429, json=body, headers={"retry-after": "1"})
    failed = await failure(Scripted([answer]))
    assert (failed.kind, failed.retry_after) == ("rate_limited", 1.0)


@pytest.mark.requirement("S4:retry")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "0.5", "retry-after-ms": "20"}, 0.02),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, float("inf")),
        ({"retry-after": "nan"}, 0.0),
        ({}, None),
    ],
)
async def test_how_long_to_wait_is_read_however_it_is_put(headers: dict[str, str], seconds: float | None):
    assert (await failure(Scripted([httpx2.Response(429, headers=headers)]))).retry_after == seconds


@pytest.mark.requirement("S4:retry")
@pytest.mark.parametrize(("said", "seconds"), [("31s", 31.0), ("0.25s", 0.25), ("soon", None), (31, None)])
async def test_google_says_in_the_body_how_long_to_wait(said: object, seconds: float | None):
    body = {"error": {"code": 429, "details": [{"@type": "RetryInfo", "retryDelay": said}]}}
    assert (await failure(Scripted([httpx2.Response(429, json=body)]))).retry_after == seconds
    assert (await failure(Scripted([httpx2.Response(429, json=[body])]))).retry_after == seconds


@pytest.mark.requirement("S4:telemetry")
async def test_what_a_provider_quotes_of_the_request_is_not_handed_on():
    secret = "The merger with Initech is planned for the ninth of May"
    outgoing = replace(ASKED, messages=(Message(role="user", parts=(Text(f"Summarise:\n\n{secret}."),)),))
    body = {
        "error": {"message": f"cannot read 'Summarise:\n\n{secret}.' for key `secret-key` of x-tenant-9876, try again"}
    }
    named = replace(provider(), headers={"x-tenant": "x-tenant-9876"})
    async with Scripted([httpx2.Response(400, json=body)]).client() as client:
        with pytest.raises(ProviderFailed) as failed:
            await attempt(client, named, outgoing, lambda _: None)
    assert str(failed.value) == failed.value.message == "answered 400: cannot read '…' for key `***` of ***, try again"


@given(
    prompt=st.text("ab ", min_size=20, max_size=40), before=st.text("xy", max_size=30), after=st.text("xy", max_size=30)
)
def test_no_quotation_is_left_at_any_position(prompt: str, before: str, after: str):
    plain = " ".join(prompt.split())
    told = remove_quotations(
        f"{before}{plain}{after}", [Message(role="tool", parts=(ToolResult(parts=(Text(prompt),)),))], ()
    )
    assert told == (f"{before}…{after}" if len(plain) >= 20 else f"{before}{plain}{after}")


@pytest.mark.parametrize(("secret", "said"), [("s3cr3t", "no ***"), ("s3cr3", "no s3cr3"), ("", "no "), (None, "no ")])
def test_a_secret_of_six_characters_is_left_out_and_a_shorter_one_is_a_word(secret: str | None, said: str):
    assert remove_quotations(f"no {secret or ''}", (), (secret,)) == said


async def test_a_providers_words_are_short_and_hold_no_key():
    body = {"error": {"message": "Incorrect API key provided: sk-proj-abc123def456 " + "x" * 5000}}
    said = (await failure(Scripted([httpx2.Response(401, json=body)]))).message
    assert "abc123" not in said
    assert len(said) < 300


async def test_a_body_of_an_error_that_does_not_end_is_not_read_to_its_end():
    async def endless():
        while True:
            yield b"x" * 10_000

    assert (await failure(Scripted([httpx2.Response(500, content=endless())]))).kind == "server"


@pytest.mark.parametrize(
    ("wire", "said", "kind"),
    [
        ("chat", {"error": {"message": "boom", "code": 500}}, "server"),
        ("chat", {"error": {"message": "maximum context is 8", "type": "invalid_request_error"}}, "context_length"),
        ("responses", {"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, "rate_limited"),
        ("responses", {"type": "error", "code": "insufficient_quota", "message": "x"}, "exhausted"),
        ("anthropic", {"type": "error", "error": {"type": "billing_error", "message": "x"}}, "exhausted"),
        ("responses", {"error": {"type": "rate_limit_error", "message": "slow"}}, "rate_limited"),
        ("responses", {"error": "boom"}, "server"),
        ("responses", {"type": "response.failed", "response": {"error": {"code": "server_error"}}}, "server"),
        ("responses", {"type": "response.failed", "response": {}}, "server"),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "overloaded"),
        ("anthropic", {"type": "error"}, "server"),
        ("gemini", {"error": {"code": 503, "status": "UNAVAILABLE", "message": "x"}}, "overloaded"),
        ("chat", {"error": {"code": 429, "message": "x"}, "choices": []}, "rate_limited"),
        ("chat", {"error": {"code": 400, "message": "x"}, "choices": []}, "bad_request"),
        ("chat", {"error": {"code": 7, "message": "x"}, "choices": []}, "server"),
    ],
)  # fmt: skip
async def test_an_error_in_the_middle_of_a_stream_is_one(wire: str, said: object, kind: FailureKind):
    assert (await failure(Scripted([[ANSWERS[wire][0], said]]), wire)).kind == kind
