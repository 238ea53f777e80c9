"""Large requests and answers over HTTP, in both eras, beside the SDK."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from ullage.testing import FakeSource
from ullage.tool import Call, Reply, Structured, Tool
from ullage.wire import Address, Identity, Profile, http_app, listen, serve_http, single

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:bounded")]

ERAS = ("legacy", "2026-07-28")
LARGE = 'ü\u2028"\\\n' * 200_000
ROWS: list[Any] = [{"id": at, "text": "ü" * 20} for at in range(30_000)]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/logLevel": "debug",
}


async def answer(call: Call) -> Reply:
    if call.tell is not None and call.arguments.get("tell"):
        await call.tell("notifications/message", {"level": "error", "data": "first"})
    if call.arguments.get("grow"):
        return Reply(content=({"type": "text", "text": LARGE},), structured=Structured({"rows": ROWS}))
    return Reply.text(json.dumps(call.arguments))


def profile() -> Profile:
    source = FakeSource(offered=(Tool(name="echo", input_schema={"type": "object"}),), answer=answer)
    return Profile(source=source, identity=Identity(name="toy", version="1"))


@asynccontextmanager
async def client(era: str) -> AsyncGenerator[Client]:
    bound, address = listen(Address("127.0.0.1", 0))
    with bound:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_http, single(profile()), bound))
            async with (
                httpx2.AsyncClient(timeout=60) as http,
                Client(
                    streamable_http_client(address.url, http_client=http, max_sse_event_size=2**26), mode=era
                ) as one,
            ):
                yield one
            tasks.cancel_scope.cancel()


def text_of(result: Any) -> str:  # noqa: ANN401
    return result.content[0].text


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("tell", [False, True])
async def test_a_large_result_arrives_as_it_is(era: str, *, tell: bool):
    async with client(era) as one:
        result = await one.call_tool("echo", {"grow": True, "tell": tell})
        assert text_of(result) == LARGE
        assert result.structured_content == {"rows": ROWS}
        after = await one.call_tool("echo", {"a": 1})
    assert json.loads(text_of(after)) == {"a": 1}


@pytest.mark.parametrize("era", ERAS)
async def test_large_arguments_arrive_as_they_are(era: str):
    given = {"text": LARGE, "rows": ROWS, "small": 1}
    async with client(era) as one:
        result = await one.call_tool("echo", given)
    assert json.loads(text_of(result)) == given


async def posted(
    params: object, *, chunk: int = 2**30, declared: bool = True
) -> tuple[int, dict[str, str], list[bytes]]:
    """Status, headers and body parts of the answer to one request that comes in chunks."""
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()
    headers = {
        "host": "127.0.0.1:80",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "echo",
        **({"content-length": str(len(body))} if declared else {}),
    }
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 80),
    }
    parts = [body[at : at + chunk] for at in range(0, len(body), chunk)]
    sent: list[Any] = []

    async def receive() -> Any:  # noqa: ANN401
        if not parts:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: Any) -> None:  # noqa: ANN401
        sent.append(message)

    application = http_app(single(profile()))
    async with application.router.lifespan_context(application):
        await application(scope, receive, send)
    start, *rest = sent
    assert [bool(one.get("more_body")) for one in rest] == [True] * (len(rest) - 1) + [False]
    answered = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], answered, [one.get("body", b"") for one in rest]


async def test_a_large_answer_is_sent_in_small_parts_of_the_length_that_it_declares():
    params = {"name": "echo", "arguments": {"grow": True}, "_meta": META}
    status, headers, parts = await posted(params)
    assert status == 200
    assert max(map(len, parts)) < 1_000_000
    assert int(headers["content-length"]) == sum(map(len, parts))
    result = json.loads(b"".join(parts))["result"]
    assert result["content"][0]["text"] == LARGE
    assert result["structuredContent"] == {"rows": ROWS}


@pytest.mark.parametrize("declared", [True, False])
async def test_a_large_request_is_taken_in_any_number_of_parts(monkeypatch: pytest.MonkeyPatch, *, declared: bool):
    seen: list[int] = []
    loads = json.loads
    monkeypatch.setattr("json.loads", lambda text, **more: seen.append(len(text)) or loads(text, **more))
    params = {"name": "echo", "arguments": {"a": LARGE, "b": 2}, "_meta": META}
    status, _, parts = await posted(params, chunk=100_000, declared=declared)
    monkeypatch.undo()
    assert status == 200
    assert max(seen) < 100_000, "no parser sees the whole request"
    assert json.loads(json.loads(b"".join(parts))["result"]["content"][0]["text"]) == {"a": LARGE, "b": 2}


async def test_a_request_that_is_large_elsewhere_is_refused():
    status, _, parts = await posted({"name": "echo", "arguments": {}, "_meta": {**META, "x": LARGE}})
    error = json.loads(b"".join(parts))
    assert status == 413
    assert error["id"] == 7
    assert "`arguments`" in error["error"]["message"]


async def test_large_arguments_of_the_wrong_kind_are_refused():
    status, _, parts = await posted({"name": "echo", "arguments": LARGE, "_meta": META})
    assert status in (200, 400)
    assert json.loads(b"".join(parts))["error"]["code"] == -32602
