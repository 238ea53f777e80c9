import json
import logging
import socket
import time
from functools import partial

import anyio
import anyio.abc
import httpx2
import pytest

from ullage.testing import FakeSource
from ullage.tool import Call, Reply, Tool
from ullage.wire import Address, Identity, Profile, Shutdown, listen, serve_http, single
from ullage.wire.serve import asgi_app as listening

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:shutdown")]

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


async def _slow(call: Call) -> Reply:
    await anyio.sleep(60)
    return Reply.text(call.tool)


TOY = FakeSource(offered=(Tool(name="toy", description="a toy", input_schema={"type": "object"}),), answer=_slow)
PROFILES = single(Profile(source=TOY, identity=Identity(name="toy", version="1")))


async def ended(connection: socket.socket) -> bool:
    """Whether the other end closes it, within some seconds."""
    connection.setblocking(False)
    with anyio.move_on_after(20):
        while True:
            await anyio.wait_readable(connection)
            if not connection.recv(1000):
                return True
    return False


async def test_a_connection_on_which_no_request_comes_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listening._TimedProtocol, "request_within", 0.3)
    bound, address = listen(Address("127.0.0.1", 0))
    with bound:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_http, PROFILES, bound))
            async with httpx2.AsyncClient(timeout=10) as client:
                assert (await client.post(address.url, json=HELLO, headers=ACCEPT)).status_code == 200
                for said in (b"", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"):
                    with socket.create_connection(("127.0.0.1", address.port)) as silent:
                        silent.send(said)
                        assert await ended(silent)
                with socket.create_connection(("127.0.0.1", address.port)) as slow:
                    # Whoever has had an answer is not let dawdle over the next request either.
                    slow.send(b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    await anyio.sleep(0.1)
                    slow.send(b"GET /now")
                    assert await ended(slow)
            tasks.cancel_scope.cancel()


HEAD = "POST {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n{more}\r\n"
ANY = "Accept: application/json, text/event-stream\r\n"


async def trickled(stream: anyio.abc.SocketStream, piece: bytes) -> bytes:
    """What is answered before the connection is closed while a piece is sent every now and then."""
    answer = bytearray()

    async def send() -> None:
        try:
            while True:
                await stream.send(piece)
                await anyio.sleep(0.05)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            try:
                async for chunk in stream:
                    answer += chunk
            except anyio.BrokenResourceError:
                pass
            tasks.cancel_scope.cancel()
    return bytes(answer)


@pytest.mark.requirement("U:shutdown")
@pytest.mark.parametrize(
    ("more", "target", "first", "piece", "status"),
    [
        (f"{ANY}Content-Length: 100000\r\n", "/mcp", b'{"jsonrpc"', b" ", b"408"),
        (f"{ANY}Content-Length: 100000\r\n", "/mcp", b"", b"", b"408"),
        (f"{ANY}Transfer-Encoding: chunked\r\n", "/mcp", b"1\r\n{\r\n", b"1\r\n \r\n", b"408"),
        (f"{ANY}Transfer-Encoding: chunked\r\n", "/mcp", b"ffff\r\n", b" ", b"408"),
        ("Content-Length: 100000\r\n", "/nowhere", b"{", b" ", b"404"),
        ("Content-Length: 100000\r\nOrigin: null\r\n", "/mcp", b"{", b" ", b"403"),
    ],
)
async def test_a_request_body_that_trickles_is_closed(  # noqa: PLR0917
    more: str,
    target: str,
    first: bytes,
    piece: bytes,
    status: bytes,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(listening._TimedProtocol, "request_within", 0.5)
    answer = b""
    bound, address = listen(Address("127.0.0.1", 0))
    with bound:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_http, PROFILES, bound))
            async with await anyio.connect_tcp("127.0.0.1", address.port) as stream:
                await stream.send(HEAD.format(target=target, port=address.port, more=more).encode() + first)
                answer = await trickled(stream, piece)
            tasks.cancel_scope.cancel()
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert [one.getMessage() for one in caplog.records if one.name.startswith(("uvicorn", "asyncio", "ullage"))] == []


@pytest.mark.requirement("U:shutdown")
async def test_a_large_body_may_take_longer_while_it_keeps_flowing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listening._TimedProtocol, "request_within", 0.5)
    bound, address = listen(Address("127.0.0.1", 0))
    body = json.dumps(HELLO).encode() + b" " * 100_000
    with bound:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_http, PROFILES, bound))
            async with await anyio.connect_tcp("127.0.0.1", address.port) as stream:
                more = f"{ANY}Content-Length: {len(body)}\r\n"
                await stream.send(HEAD.format(target="/mcp", port=address.port, more=more).encode())
                began = time.monotonic()
                for start in range(0, len(body), 8_192):
                    await stream.send(body[start : start + 8_192])
                    await anyio.sleep(0.1)
                assert time.monotonic() - began > 2 * 0.5
                with anyio.fail_after(20):
                    assert (await stream.receive()).startswith(b"HTTP/1.1 200 ")
                # And the next request on the connection has its own time.
                await stream.send(HEAD.format(target="/mcp", port=address.port, more=more).encode() + body)
                with anyio.fail_after(20):
                    answer = await stream.receive()
                    while b"HTTP/1.1 200 " not in answer:
                        answer += await stream.receive()
            tasks.cancel_scope.cancel()


async def test_a_body_beyond_the_limit_is_refused_before_it_is_read():
    bound, address = listen(Address("127.0.0.1", 0))
    with bound:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_http, PROFILES, bound))
            async with await anyio.connect_tcp("127.0.0.1", address.port) as stream:
                more = f"{ANY}Content-Length: {1 << 40}\r\n"
                await stream.send(HEAD.format(target="/mcp", port=address.port, more=more).encode())
                with anyio.fail_after(20):
                    assert (await stream.receive()).startswith(b"HTTP/1.1 413 ")
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("way", ["told", "cancelled"])
async def test_streams_and_calls_that_are_open_end_with_the_server_and_nothing_is_complained_of(
    way: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    caplog.set_level(logging.WARNING)
    bound, address = listen(Address("127.0.0.1", 0))
    told, statuses, began = anyio.Event(), list[object](), time.monotonic()

    async def stream(client: httpx2.AsyncClient, method: str, session: dict[str, str], body: object) -> None:
        async with client.stream(method, address.url, headers=ACCEPT | session, json=body) as answer:
            statuses.append(answer.status_code)
            await answer.aread()
            statuses.append("ended")

    with bound:
        async with (
            httpx2.AsyncClient(timeout=20) as client,
            anyio.create_task_group() as outer,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(partial(serve_http, PROFILES, bound, shutdown=Shutdown(told=told, grace=lambda: 0.2)))
            opened = await client.post(address.url, json=HELLO, headers=ACCEPT)
            session = {"mcp-session-id": opened.headers["mcp-session-id"]}
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "toy", "arguments": {}}}
            outer.start_soon(stream, client, "GET", session, None)
            outer.start_soon(stream, client, "POST", session, call)
            while len(statuses) < 2:
                await anyio.sleep(0.02)
            if way == "told":
                told.set()
            else:
                tasks.cancel_scope.cancel()
    assert statuses == [200, 200, "ended", "ended"]
    assert time.monotonic() - began < 15, "the call would go on for a minute"
    assert [one.getMessage() for one in caplog.records if one.name.startswith(("uvicorn", "asyncio", "ullage"))] == []


async def test_whoever_ends_a_session_of_the_earlier_era_ends_what_was_open_for_it():
    over: list[tuple[str, str]] = []
    said = session = ""
    answering = FakeSource(offered=TOY.offered, answer=_said)
    profiles = single(Profile(source=answering, identity=Identity(name="toy", version="1")))
    bound, address = listen(Address("127.0.0.1", 0))
    with bound:
        async with anyio.create_task_group() as tasks:
            serve = partial(serve_http, profiles, bound, on_session_end=lambda *session: over.append(session))
            tasks.start_soon(serve)
            async with httpx2.AsyncClient(timeout=10) as client:
                opened = await client.post(address.url, json=HELLO, headers=ACCEPT)
                session = opened.headers["mcp-session-id"]
                headers = ACCEPT | {"mcp-session-id": session}
                call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "toy", "arguments": {}}}
                for _ in range(2):
                    said = (await client.post(address.url, json=call, headers=headers)).text
                assert json.loads(said.split("data: ")[1])["result"]["content"][0]["text"] == session
                assert over == []
                await client.delete(address.url, headers=headers)
                with anyio.fail_after(20):
                    while not over:
                        await anyio.sleep(0.02)
            tasks.cancel_scope.cancel()
    assert [one[1] for one in over] == [session]


async def _said(call: Call) -> Reply:
    return Reply.text(call.caller.session)
