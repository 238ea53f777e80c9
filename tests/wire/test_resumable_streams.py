"""Clients come back over HTTP for answers whose streams ended before them."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
import mcp_types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server as SdkServer
from mcp.server.streamable_http import EventMessage, EventStore

from ullage.gateway import Server
from ullage.testing import FakeSource
from ullage.tool import Call, Reply, Tool
from ullage.wire import Address, Identity, Profile, Shutdown, listen, serve_http, single
from ullage.wire.serve.asgi_app import KeptMessages, SessionEvents
from ullage.wire.upstream import open_upstream
from wire.test_remote import listening, until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:call")]

LARGE = "ü" * 3_000_000
REVISION = "2025-11-25"
ACCEPT = {"Accept": "application/json, text/event-stream", "mcp-protocol-version": REVISION}


class Slow:
    """A source whose tool may end the client's stream, and answers when it is allowed to."""

    def __init__(self) -> None:
        self.allowed = anyio.Event()
        self.called = anyio.Event()
        self.ended = 0

    async def __call__(self, call: Call) -> Reply:
        assert call.tell is not None
        await call.tell("notifications/message", {"level": "error", "data": "before"})
        if call.arguments.get("pause"):
            assert call.pause is not None
            await call.pause()
            await call.pause()
        self.called.set()
        await self.allowed.wait()
        await call.tell("notifications/message", {"level": "error", "data": "after"})
        self.ended += 1
        return Reply.text(LARGE if call.arguments.get("large") else "done")


@asynccontextmanager
async def served(slow: Slow, **options: Any) -> AsyncGenerator[str]:  # noqa: ANN401
    source = FakeSource(offered=(Tool(name="slow", input_schema={"type": "object"}),), answer=slow)
    bound, address = listen(Address("127.0.0.1", 0))
    with bound:
        async with anyio.create_task_group() as tasks:
            profile = Profile(source=source, identity=Identity(name="toy", version="1"))
            tasks.start_soon(partial(serve_http, single(profile), bound, **options))
            yield address.url
            tasks.cancel_scope.cancel()


async def opened(http: httpx2.AsyncClient, url: str, revision: str = REVISION) -> dict[str, str]:
    """The headers of a new session."""
    info = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}
    answer = await http.post(url, json=hello, headers=ACCEPT | {"mcp-protocol-version": revision})
    headers = ACCEPT | {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": revision}
    await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    return headers


async def events_of(response: httpx2.Response) -> AsyncIterator[dict[str, str]]:
    event: dict[str, str] = {}
    async for line in response.aiter_lines():
        name, _, value = line.partition(":")
        if line and name:
            event[name] = value.strip()
        elif not line and event:
            yield event
            event = {}


def call(**arguments: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "a/1 é", "method": "tools/call", "params": {"name": "slow", "arguments": arguments}}


def told(events: list[dict[str, str]]) -> list[object]:
    """What a client learns from the events."""
    messages = [json.loads(event["data"]) for event in events if event.get("data")]
    return [
        one["params"]["data"] if "method" in one else one.get("error") or one["result"]["content"][0]["text"]
        for one in messages
    ]


async def test_a_stream_that_is_ended_early_is_resumed_with_all_that_came_since():
    slow = Slow()
    async with served(slow) as url, httpx2.AsyncClient(timeout=20) as http:
        headers = await opened(http, url)
        async with http.stream("POST", url, json=call(pause=True), headers=headers) as response:
            first = [event async for event in events_of(response)]
        assert (first[0]["data"], first[0]["retry"]) == ("", "500")
        back = headers | {"last-event-id": first[-1]["id"]}
        async with http.stream("GET", url, headers=back) as response:
            slow.allowed.set()
            rest = [event async for event in events_of(response)]
        assert told([*first, *rest]) == ["before", "after", "done"]
        assert told(rest)[-2:] == ["after", "done"]
        # After the answer, and from the beginning.
        async with http.stream("GET", url, headers=headers | {"last-event-id": first[0]["id"]}) as response:
            assert told([event async for event in events_of(response)]) == ["before", "after", "done"]


async def test_the_answer_to_a_client_that_was_cut_off_is_kept():
    slow = Slow()
    async with served(slow) as url, httpx2.AsyncClient(timeout=20) as http:
        headers = await opened(http, url)
        async with http.stream("POST", url, json=call(), headers=headers) as response:
            event = await anext(events_of(response))
        slow.allowed.set()
        await until(lambda: slow.ended == 1)
        async with http.stream("GET", url, headers=headers | {"last-event-id": event["id"]}) as response:
            assert told([one async for one in events_of(response)]) == ["before", "after", "done"]


@pytest.mark.parametrize("pause", [True, False])
async def test_a_large_answer_is_kept_only_for_a_client_that_was_sent_away(*, pause: bool):
    slow = Slow()
    async with served(slow) as url, httpx2.AsyncClient(timeout=20) as http:
        headers = await opened(http, url)
        async with http.stream("POST", url, json=call(pause=pause, large=True), headers=headers) as response:
            event = await anext(events_of(response))
        await slow.called.wait()
        slow.allowed.set()
        await until(lambda: slow.ended == 1)
        async with http.stream("GET", url, headers=headers | {"last-event-id": event["id"]}) as response:
            found = told([one async for one in events_of(response)])
        if pause:
            assert found == ["before", "after", LARGE]
        else:
            assert "no longer kept" in str(found[-1])


async def test_no_session_receives_the_messages_of_another():
    slow = Slow()
    slow.allowed.set()
    async with served(slow) as url, httpx2.AsyncClient(timeout=20) as http:
        mine, others = await opened(http, url), await opened(http, url)
        async with http.stream("POST", url, json=call(pause=True), headers=mine) as response:
            first = [event async for event in events_of(response)]
        for last in (first[0]["id"], "1.2.3", "", first[0]["id"].partition(".")[0]):
            with anyio.move_on_after(0.5):
                async with http.stream("GET", url, headers=others | {"last-event-id": last}) as response:
                    assert told([one async for one in events_of(response)]) == []


async def test_an_earlier_client_keeps_its_stream():
    slow = Slow()
    slow.allowed.set()
    async with served(slow) as url, httpx2.AsyncClient(timeout=20) as http:
        headers = await opened(http, url, "2025-06-18")
        async with http.stream("POST", url, json=call(pause=True), headers=headers) as response:
            events = [event async for event in events_of(response)]
        assert told(events) == ["before", "after", "done"]
        assert events[0]["data"]


@pytest.mark.parametrize("large", [True, False])
async def test_the_sdks_client_notices_nothing(*, large: bool):
    slow = Slow()
    async with (
        served(slow) as url,
        httpx2.AsyncClient(timeout=20) as http,
        Client(streamable_http_client(url, http_client=http, max_sse_event_size=2**26), mode="legacy") as client,
        anyio.create_task_group() as tasks,
    ):

        async def allow() -> None:
            await slow.called.wait()
            await anyio.sleep(0.1)
            slow.allowed.set()

        tasks.start_soon(allow)
        result = await client.call_tool("slow", {"pause": True, "large": large})
        assert isinstance(result.content[0], mcp_types.TextContent)
        assert result.content[0].text == (LARGE if large else "done")


async def test_a_shutdown_waits_for_a_request_whose_client_was_sent_away():
    slow, shutdown = Slow(), Shutdown()
    async with served(slow, shutdown=shutdown) as url, httpx2.AsyncClient(timeout=20) as http:
        headers = await opened(http, url)
        async with http.stream("POST", url, json=call(pause=True), headers=headers) as response:
            assert [event async for event in events_of(response)]
        shutdown.told.set()
        await anyio.sleep(0.2)
        assert slow.ended == 0
        slow.allowed.set()
        await until(lambda: slow.ended == 1)


async def test_the_stream_that_a_server_behind_ends_is_ended_for_its_client_too():
    paused = list[bool]()

    async def list_tools(context: object, params: object) -> Any:  # noqa: ANN401
        del context, params
        return mcp_types.ListToolsResult(tools=[mcp_types.Tool(name="poll", input_schema={"type": "object"})])

    async def call_tool(context: Any, params: mcp_types.CallToolRequestParams) -> Any:  # noqa: ANN401
        if params.arguments:
            await context.close_sse_stream()
            await anyio.sleep(0.3)
        return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=str(bool(paused)))])

    async def pause() -> None:
        paused.append(True)

    server: SdkServer[Any] = SdkServer("site", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    application = server.streamable_http_app(event_store=Stored(), retry_interval=50)
    async with (
        listening(application) as url,
        open_upstream(Server(name="site", transport="http", url=f"{url}/mcp"), environment={}, era="handshake") as up,
    ):
        for arguments, expected in (({}, "False"), ({"end": True}, "True"), ({}, "True")):
            reply = await up.call(Call(tool="poll", arguments=arguments, pause=pause, era="handshake"))
            assert reply.content[0]["text"] == expected
        assert paused == [True]


class Stored(EventStore):
    """Every event of one session."""

    def __init__(self) -> None:
        self.events = list[tuple[str, Any]]()

    async def store_event(self, stream_id: str, message: Any) -> str:  # noqa: ANN401
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str:  # noqa: ANN401
        stream = self.events[int(last_event_id) - 1][0]
        for number, (one, message) in enumerate(self.events, 1):
            if number > int(last_event_id) and one == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def answer(number: int, text: str = "x") -> mcp_types.JSONRPCResponse:
    return mcp_types.JSONRPCResponse(jsonrpc="2.0", id=number, result={"text": text})


async def replayed(events: SessionEvents, last: str) -> list[Any]:
    found: list[Any] = []

    async def send(event: EventMessage) -> None:
        found.append(event.message)

    with anyio.move_on_after(0.2):
        await events.replay_events_after(last, send)
    return found


async def test_messages_are_kept_within_limits_and_lost_answers_are_said_to_be_lost():
    now = [0.0]
    kept = KeptMessages(lambda: now[0], lambda content: content == {"mark": 1})
    events = SessionEvents(kept)
    first = [await events.store_event(str(number), None) for number in range(400)]
    for number in range(220):
        await events.store_event(str(number), answer(number))
    for number in range(220, 240):
        await events.store_event(str(number), answer(number, "y" * 30_000))
    await events.store_event("240", mcp_types.JSONRPCResponse(jsonrpc="2.0", id=240, result={"mark": 1}))

    async def is_kept(number: int) -> bool:
        (found,) = await replayed(events, first[number])
        assert found.id == number
        return isinstance(found, mcp_types.JSONRPCResponse)

    assert [await is_kept(number) for number in (0, 30, 31, 219, 229, 230, 239, 240)] == [
        *(False, False, True, True, False, True, True, False)
    ]
    now[0] += 301
    await events.store_event("241", answer(241))
    assert [await is_kept(number) for number in (31, 239, 241)] == [False, False, True]
    assert await replayed(events, first[300]) == []
