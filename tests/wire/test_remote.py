import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types
import pytest
import uvicorn
from mcp.server.lowlevel import Server as SdkServer
from mcp.server.sse import SseServerTransport
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from ullage.errors import DeadlinePassed, ProtocolError, SignInNeeded, SourceFailed
from ullage.gateway import Server
from ullage.tool import Call, Caller, Change, JsonObject
from ullage.wire.supervise.health import Bounds, Patience
from ullage.wire.supervise.host import Host
from ullage.wire.upstream import Upstream, open_upstream
from ullage.wire.upstream.http_transport import Watching
from ullage.wire.upstream.rpc_peer import Unsent

QUICK = Bounds(patience=Patience(first_delay=0.02, longest_wait=0.5))
NOBODY = "http://127.0.0.1:9/mcp"
"""Where nothing listens."""
pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:aggregate", "S1:call")]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass
class Site:
    """A server of the SDK, and what came to it."""

    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    cancelled: int = 0
    open: int = 0
    refuse: Callable[[dict[str, str]], int | None] = lambda _: None
    sends_to: str | None = None
    """Where it redirects what is posted."""

    async def list_tools(self, _, __) -> Any:  # noqa: ANN401 - handlers may answer with plain mappings
        region: JsonObject = {"type": "string", "x-mcp-header": "Region"}
        broken: JsonObject = {"type": "object", "properties": {"a": {"type": "array", "x-mcp-header": "a b"}}}
        schemas: dict[str, Any] = {
            "echo": {"type": "object"},
            "regional": {"type": "object", "properties": {"region": region}},
            "broken": broken,
        }
        tools = [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]
        return {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}

    async def call_tool(self, context, params: mcp_types.CallToolRequestParams) -> Any:  # noqa: ANN401 - as above
        self.open += 1
        try:
            return {"resultType": "complete", "content": [{"type": "text", "text": await self.answer(context, params)}]}
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        finally:
            self.open -= 1

    async def answer(self, context, params: mcp_types.CallToolRequestParams) -> str:
        arguments = params.arguments or {}
        if params.name == "fail":
            raise MCPError(-32602, "Unknown tool", {"a": 1})
        if params.name == "wait":
            await anyio.sleep_forever()
        if params.name == "progress":
            for step in range(3):
                await context.session.report_progress(step, 3, "on it")
        if params.name == "ask":
            answer = await context.session.elicit_form(
                "sure?", {"type": "object", "properties": {}}, context.request_id
            )
            return str(answer.action)
        if params.name == "big":
            return "x" * int(arguments["size"])
        return str(arguments.get("text", ""))

    def server(self) -> SdkServer[Any]:
        return SdkServer(
            "site",
            version="3",
            instructions="be kind",
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_subscriptions_listen=ListenHandler(self.bus),
        )

    def watched(self, application: Asgi) -> Asgi:
        async def watch(scope, receive, send) -> None:
            if scope["type"] != "http":
                return await application(scope, receive, send)
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.headers.append(headers | {"method": scope["method"]})
            status = self.refuse(headers)
            if self.sends_to is not None and scope["method"] == "POST":
                moved = Response("", status_code=307, headers={"location": self.sends_to})
                return await moved(scope, receive, send)
            if status is not None:
                return await Response("no", status_code=status)(scope, receive, send)
            return await application(scope, receive, send)

        return watch


@dataclass
class Noted:
    """What a connection was told of."""

    told: list[str] = field(default_factory=list[str])

    def received(self, message: object) -> bool:
        raise AssertionError(f"nobody expected {message}")

    def lost(self, reason: str) -> None:
        self.told.append(reason)

    def paused(self) -> None: ...

    def unsent(self, number: object, reason: str) -> None:
        self.told.append(f"{number} {reason}")


@asynccontextmanager
async def listening(application: Asgi) -> AsyncIterator[str]:
    bound = socket.create_server(("127.0.0.1", 0))
    settings = uvicorn.Config(application, log_level="critical", lifespan="on", ws="none", timeout_graceful_shutdown=1)
    web = uvicorn.Server(settings)
    web.install_signal_handlers = lambda: None  # pyright: ignore[reportAttributeAccessIssue]
    with bound:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(web.serve, [bound])
            try:
                yield f"http://127.0.0.1:{bound.getsockname()[1]}"
            finally:
                web.should_exit = True


def legacy(headers: dict[str, str]) -> int | None:
    return 400 if headers.get("mcp-method") == "server/discover" else None


@asynccontextmanager
async def reached(site: Site, **more) -> AsyncIterator[Upstream]:
    application = site.server().streamable_http_app(streamable_http_path="/mcp")
    async with (
        listening(site.watched(application)) as url,
        open_upstream(Server(name="site", transport="http", url=f"{url}/mcp", **more), environment={}) as upstream,
    ):
        yield upstream


def sse_application(site: Site) -> Asgi:
    transport = SseServerTransport("/messages/")
    server = site.server()

    async def connect(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as streams:
            await server.run(*streams, server.create_initialization_options())
        return Response()

    return Starlette(routes=[Route("/sse", connect), Mount("/messages/", transport.handle_post_message)])


@asynccontextmanager
async def streamed(site: Site, **more) -> AsyncIterator[Upstream]:
    async with (
        listening(site.watched(sse_application(site))) as url,
        open_upstream(Server(name="site", transport="sse", url=f"{url}/sse", **more), environment={}) as upstream,
    ):
        yield upstream


async def text(upstream: Upstream, tool: str, /, **arguments) -> str:
    return str((await upstream.call(Call(tool=tool, arguments=arguments))).content[0]["text"])


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not true():
            await anyio.sleep(0.01)


WAYS = pytest.mark.parametrize(
    ("way", "site", "version"),
    [
        (reached, Site(), "2026-07-28"),
        (reached, Site(refuse=legacy), "2025-11-25"),
        (streamed, Site(), "2025-11-25"),
    ],
    ids=["modern", "legacy", "sse"],
)


@WAYS
async def test_a_server_elsewhere_answers_like_one_at_hand(way, site: Site, version: str):
    told: list[float] = []

    async def progress(done: float, *_: object) -> None:
        told.append(done)

    async with way(site, headers={"Authorization": "Bearer hush"}) as upstream:
        assert upstream.protocol_version == version
        assert (upstream.introduction().name, upstream.introduction().instructions) == ("site", "be kind")
        assert (upstream.process_id, upstream.stderr_tail()) == (None, "")
        assert "echo" in [tool.name for tool in (await upstream.tools()).tools]
        assert await text(upstream, "echo", text="hé") == "hé"
        size = 3_000_000 if way is reached else 1_000_000
        assert len(await text(upstream, "big", size=size)) == size
        with pytest.raises(ProtocolError, match="Unknown tool") as caught:
            await text(upstream, "fail")
        assert (caught.value.number, caught.value.data) == (-32602, {"a": 1})
        await upstream.call(Call(tool="progress", progress=progress))
        assert told == [0, 1, 2]
    assert all(one["authorization"] == "Bearer hush" for one in site.headers)


@WAYS
async def test_a_cancelled_call_is_cancelled_elsewhere_too(way, site: Site, version: str):
    del version
    site.cancelled = 0
    async with way(site, call_timeout=1) as upstream:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(text, upstream, "wait")
            await until(lambda: site.open == 1)
            tasks.cancel_scope.cancel()
        with pytest.raises(DeadlinePassed):
            await text(upstream, "wait")
        await until(lambda: site.cancelled == 2)
        assert await text(upstream, "echo", text="x") == "x"


@pytest.mark.parametrize(("way", "site"), [(reached, Site(refuse=legacy)), (streamed, Site())], ids=["legacy", "sse"])
async def test_a_question_from_elsewhere_is_put_to_the_client(way, site: Site):
    async def ask(method: str, params: JsonObject) -> JsonObject:
        assert (method, params["message"]) == ("elicitation/create", "sure?")
        return {"action": "decline"}

    async with way(site) as upstream:
        reply = await upstream.call(Call(tool="ask", ask=ask))
        assert reply.content[0]["text"] == "decline"


async def test_over_http_each_question_finds_its_own_call():
    """Though calls of several clients are open at once."""

    async def asked(upstream: Upstream, name: str) -> None:
        async def ask(method: str, params: JsonObject) -> JsonObject:
            del method, params
            await anyio.sleep(0.1)
            return {"action": name}

        caller = Caller(principal="u", session=name)
        replies[name] = (await upstream.call(Call(tool="ask", caller=caller, ask=ask))).content[0]["text"]

    replies: dict[str, Any] = {}
    async with reached(Site(refuse=legacy)) as upstream, anyio.create_task_group() as tasks:
        for name in ("accept", "decline", "cancel"):
            tasks.start_soon(asked, upstream, name)
    assert replies == {"accept": "accept", "decline": "decline", "cancel": "cancel"}


async def test_a_modern_request_says_in_its_headers_what_it_is():
    site = Site()
    async with reached(site) as upstream:
        await text(upstream, "échо", text="x")
        (sent,) = [one for one in site.headers if one.get("mcp-method") == "tools/call"]
        assert sent["mcp-protocol-version"] == "2026-07-28"
        assert sent["mcp-name"].startswith("=?base64?")


async def test_arguments_that_a_tool_wants_in_headers_are_put_there_though_it_was_never_listed():
    site = Site()
    async with reached(site) as upstream:
        assert await text(upstream, "regional", region="eu", text="x") == "x"
        assert site.headers[-1]["mcp-param-region"] == "eu"
        assert [one["mcp-method"] for one in site.headers].count("tools/list") == 1
        await text(upstream, "regional", region="us")
        assert site.headers[-1]["mcp-param-region"] == "us"
        assert [one["mcp-method"] for one in site.headers].count("tools/list") == 1


async def test_a_tool_with_impossible_headers_is_left_out_and_noted():
    async with reached(Site()) as upstream:
        assert [tool.name for tool in (await upstream.tools()).tools] == ["echo", "regional"]
        assert any("`broken`" in note for note in upstream.notes)


async def test_changes_elsewhere_are_heard_of():
    site, heard = Site(), list[Change]()
    async with reached(site) as upstream:
        upstream.watch(heard.append)
        await until(lambda: any(one.get("mcp-method") == "subscriptions/listen" for one in site.headers))

        async def publish() -> None:
            while not heard:
                await site.bus.publish(ToolsListChanged())
                await anyio.sleep(0.02)

        with anyio.fail_after(20):
            await publish()
    assert set(heard) == {Change("tools")}


@pytest.mark.parametrize(("transport", "path"), [("http", "mcp"), ("sse", "sse")])
async def test_a_server_that_wants_a_key_is_understood_and_the_url_is_not_told(transport, path: str):
    site = Site(refuse=lambda _: 401)
    async with listening(site.watched(sse_application(site))) as url:
        server = Server(name="site", transport=transport, url=f"{url}/{path}?key=hush")
        with pytest.raises(SourceFailed, match=r"`site` answered HTTP 401 \(Unauthorized\)") as caught:
            async with open_upstream(server, environment={}):
                pass
    assert "hush" not in str(caught.value.wire())


def unauthorized(challenge: str, *, has_metadata: bool) -> Starlette:
    """A server that wants a token for everything, and may publish where to get one."""

    async def metadata(request: Request) -> Response:
        document = {"resource": str(request.base_url), "authorization_servers": [f"{request.base_url}login"]}
        return JSONResponse(document) if has_metadata else Response("no", status_code=404)

    async def refuse(_: Request) -> Response:
        return Response("no", status_code=401, headers={"www-authenticate": challenge} if challenge else {})

    routes = [
        Route("/.well-known/oauth-protected-resource", metadata),
        Route("/{path:path}", refuse, methods=["GET", "POST", "DELETE"]),
    ]
    return Starlette(routes=routes)


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize(
    ("challenge", "has_metadata", "is_sign_in"),
    [
        ('Bearer resource_metadata="http://x/.well-known/oauth-protected-resource"', False, True),
        ("Bearer", True, True),
        ("", True, True),
        ("Bearer", False, False),
        ("Basic", False, False),
    ],
)
async def test_a_server_with_oauth_metadata_needs_a_sign_in(
    transport, challenge: str, *, has_metadata: bool, is_sign_in: bool
):
    async with listening(unauthorized(challenge, has_metadata=has_metadata)) as url:
        server = Server(name="site", transport=transport, url=f"{url}/mcp?key=hush")
        with pytest.raises(SourceFailed) as caught:
            async with open_upstream(server, environment={}):
                pass
    assert (type(caught.value) is SignInNeeded) == is_sign_in
    assert ("needs a sign-in" in caught.value.message) == is_sign_in
    assert "hush" not in str(caught.value.wire())


async def test_a_host_reports_the_sign_in_that_a_server_needs():
    async with listening(unauthorized("Bearer", has_metadata=True)) as url, Host(environment={}) as host:
        source = host.source(Server(name="site", transport="http", url=f"{url}/mcp"))
        with pytest.raises(SignInNeeded):
            await source.tools()


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_that_is_not_there_is_named(transport):
    server = Server(name="gone", transport=transport, url="http://127.0.0.1:9/x?key=hush")
    with pytest.raises(SourceFailed, match=r"`gone` cannot be") as caught:
        async with open_upstream(server, environment={}):
            pass
    assert "hush" not in str(caught.value.wire())


async def test_a_server_that_forgot_the_session_is_lost():
    site = Site(refuse=legacy)
    async with reached(site) as upstream:
        site.refuse = lambda headers: 404 if "mcp-session-id" in headers else None
        with pytest.raises(SourceFailed, match="forgotten the session"):
            await text(upstream, "echo")
        assert "forgotten" in await upstream.ended()


async def test_a_request_is_sent_again_to_a_server_that_forgot_the_session_and_only_then():
    site = Site(refuse=legacy)
    application = site.server().streamable_http_app(streamable_http_path="/mcp")
    async with listening(site.watched(application)) as url, Host(environment={}, bounds=QUICK) as keeper:
        source = keeper.source(Server(name="site", transport="http", url=f"{url}/mcp"))
        call = Call(tool="echo", arguments={"text": "x"}, caller=Caller(principal="u", session="s"))
        await source.call(call)
        (old,) = {headers["mcp-session-id"] for headers in site.headers if "mcp-session-id" in headers}
        site.refuse = lambda headers: 404 if headers.get("mcp-session-id") == old else legacy(headers)
        assert (await source.call(call)).content[0]["text"] == "x"
        assert keeper.health()[0].failures == 1
        site.refuse = lambda headers: 500 if "mcp-session-id" in headers else None
        with pytest.raises(ProtocolError):
            await source.call(call)


@pytest.mark.parametrize("method", ["tools/call", None])
async def test_only_the_request_that_could_not_be_sent_may_be_sent_again(method: str | None):
    heard = Noted()
    body = json.dumps({"jsonrpc": "2.0", "id": 7, **({"method": method} if method else {"result": {}})})
    async with Watching(Server(name="gone", transport="http", url=NOBODY), heard) as client:
        assert (await client.post(NOBODY, content=body)).status_code == 502
        assert (await client.get(NOBODY)).status_code == 502
    assert (
        heard.told == ["7 cannot be reached (ConnectError)"] * bool(method) + ["cannot be reached (ConnectError)"] * 2
    )


async def test_a_request_that_fails_costs_only_itself():
    site = Site()
    async with reached(site) as upstream, anyio.create_task_group() as tasks:
        tasks.start_soon(text, upstream, "wait")
        await until(lambda: site.open == 1)
        site.refuse = lambda _: 503
        with pytest.raises(ProtocolError):
            await text(upstream, "echo")
        site.refuse = lambda _: None
        assert await text(upstream, "echo", text="x") == "x"
        tasks.cancel_scope.cancel()


async def test_a_server_that_goes_away_is_lost():
    site = Site()
    async with anyio.create_task_group() as tasks:
        async with listening(site.watched(site.server().streamable_http_app(streamable_http_path="/mcp"))) as url:
            context = open_upstream(Server(name="site", transport="http", url=f"{url}/mcp"), environment={})
            upstream = await context.__aenter__()
        with pytest.raises(Unsent, match="`site`"):
            await text(upstream, "echo")
        assert "cannot be reached" in await upstream.ended()
        await context.__aexit__(None, None, None)
        tasks.cancel_scope.cancel()


async def test_a_connection_cut_in_a_call_costs_only_that_call():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                message = json.loads(await reader.readexactly(length))
                if message["params"].get("name") == "cut":
                    break
                result = {"supportedVersions": ["2026-07-28"], "content": []}
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                writer.write(b"content-length: %d\r\n\r\n" % len(body) + body)
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
    async with listener, open_upstream(Server(name="cut", transport="http", url=url), environment={}) as upstream:
        with pytest.raises(SourceFailed, match=r"`cut` cannot be reached \(RemoteProtocolError\)"):
            await upstream.call(Call(tool="cut"))
        assert (await upstream.call(Call(tool="whole"))).content == ()


SECRET_PLACE = "http://127.0.0.1:9/steal"
"""Where a server would send us."""


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize(("transport", "path"), [("http", "mcp"), ("sse", "sse")])
async def test_where_a_server_would_send_us_is_told_to_nobody(status: int, transport, path: str, caplog):
    async def elsewhere(scope, receive, send) -> None:
        if scope["type"] == "http":
            await Response("", status_code=status, headers={"location": SECRET_PLACE})(scope, receive, send)

    async with listening(Starlette(routes=[Mount("/", elsewhere)])) as url:
        server = Server(name="moved", transport=transport, url=f"{url}/{path}")
        with pytest.raises(SourceFailed, match=f"`moved` answered HTTP {status} and would send us") as caught:
            async with open_upstream(server, environment={}):
                pass
    assert "steal" not in str(caught.value.wire()) + caplog.text
    assert "`url`" in caught.value.message


@pytest.mark.parametrize("way", [reached, streamed])
async def test_a_call_that_would_be_sent_elsewhere_fails_and_says_so(way, caplog):
    site = Site(refuse=lambda _: None)
    async with way(site) as upstream:
        site.sends_to = SECRET_PLACE
        with pytest.raises(SourceFailed, match="would send us to another address") as caught:
            await text(upstream, "echo")
        site.sends_to = None
    assert "steal" not in str(caught.value.wire()) + caplog.text


async def test_a_slash_more_is_followed():
    site = Site()

    async def moved(_: Request) -> Response:
        return Response("", status_code=307, headers={"location": "/mcp"})

    application = site.server().streamable_http_app(streamable_http_path="/mcp")
    application.router.routes.insert(0, Route("/mcp/", moved, methods=["POST", "GET", "DELETE"]))
    async with (
        listening(site.watched(application)) as url,
        open_upstream(Server(name="site", transport="http", url=f"{url}/mcp/"), environment={}) as upstream,
    ):
        assert await text(upstream, "echo", text="x") == "x"


async def test_a_status_that_has_no_name_is_told_by_its_number():
    site = Site(refuse=lambda _: 499)
    async with listening(site.watched(sse_application(site))) as url:
        with pytest.raises(SourceFailed, match=r"answered HTTP 499 \(unknown\)"):
            async with open_upstream(Server(name="site", transport="http", url=url), environment={}):
                pass


async def test_an_event_that_the_older_transport_cannot_carry_is_named():
    async with streamed(Site()) as upstream:
        with pytest.raises(SourceFailed, match="an event of more than 1 MiB"):
            await text(upstream, "big", size=1_100_000)


async def test_a_stream_that_ends_loses_the_connection():
    site = Site()
    async with anyio.create_task_group() as tasks:
        async with listening(site.watched(sse_application(site))) as url:
            context = open_upstream(Server(name="site", transport="sse", url=f"{url}/sse"), environment={})
            upstream = await context.__aenter__()
            site.refuse = lambda _: 500
            with pytest.raises(SourceFailed, match="answered HTTP 500"):
                await text(upstream, "echo")
            await context.__aexit__(None, None, None)
        tasks.cancel_scope.cancel()
