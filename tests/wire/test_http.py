import json
import logging
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult, TextContent
from starlette.testclient import TestClient

from ullage.errors import InvalidArguments, Unavailable, UnknownResource
from ullage.ledger import AuditEvent
from ullage.testing import FakeSource
from ullage.tool import Call, Change, Reply, Tool
from ullage.wire import Address, Identity, Profile, Shutdown, Tokens, http_app, listen, serve_http, single
from ullage.wire.serve.asgi_app import _front, _names_of
from ullage.wire.serve.http_auth import AllowedHosts

ADAS, EVES = "a" * 20, "e" * 20
TOKENS = Tokens.read({"ULLAGE_TOKENS": f"ada:{ADAS},eve:{EVES}"})
IDENTITY = Identity(name="toy", version="1")
ERAS = ("legacy", "2026-07-28")


async def _whoami(call: Call) -> Reply:
    who = call.caller
    return Reply.text(json.dumps([who.principal, who.client, who.model, who.session_inferred, who.session]))


def toy(name: str = "toy", answer=_whoami) -> FakeSource:
    return FakeSource(offered=(Tool(name=name, description="a toy", input_schema={"type": "object"}),), answer=answer)


def profiles(name: str | None) -> Profile:
    """Each client has a tool of its own name."""
    if name not in (None, "codex", "claude"):
        raise UnknownResource(f"no client is called `{name}`", options=("codex", "claude"))
    return Profile(source=toy(name or "toy"), identity=IDENTITY, model="gpt-4o" if name else None)


PROFILES = single(Profile(source=toy(), identity=IDENTITY), "codex")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("8787", "http://127.0.0.1:8787/mcp"),
        (":80", "http://127.0.0.1:80/mcp"),
        ("localhost:9000", "http://localhost:9000/mcp"),
        ("[::1]:9000", "http://[::1]:9000/mcp"),
    ],
)
def test_an_address_is_a_port_or_a_host_and_a_port(text: str, url: str):
    assert Address.parse(text).url == url


@pytest.mark.parametrize("text", ["", "host", "1:2:x", "70000", "-1", "٣", "::1"])
def test_what_is_no_address_is_refused_with_how_to_write_one(text: str):
    with pytest.raises(InvalidArguments) as caught:
        Address.parse(text)
    assert "127.0.0.1:8787" in caught.value.suggestion


@pytest.mark.parametrize(
    ("host", "url", "is_own"),
    [
        ("127.0.0.1", "http://127.0.0.1:8787/mcp", True),
        ("127.0.0.1", "http://LOCALHOST:8787/mcp/codex?x=1", True),
        ("0.0.0.0", "http://[::1]:8787/mcp/", True),
        ("192.168.0.7", "http://192.168.0.7:8787/mcp", True),
        ("192.168.0.7", "http://localhost:8787/mcp", False),
        ("127.0.0.1", "http://127.0.0.1:8788/mcp", False),
        ("127.0.0.1", "http://127.0.0.1/mcp", False),
        ("127.0.0.1", "https://127.0.0.1:8787/other", False),
        ("127.0.0.1", "http://example.com:8787/mcp", False),
        ("127.0.0.1", "http://127.0.0.1:x/mcp", False),
    ],
)
def test_an_address_knows_the_urls_that_lead_to_it(host: str, url: str, is_own: object):
    assert Address(host, 8787).is_reached_by(url) is is_own


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "example.com", "::", "127.0.0.2"])
def test_beyond_loopback_nothing_is_served(host: str):
    with pytest.raises(InvalidArguments) as caught:
        listen(Address(host, 0))
    assert "127.0.0.1" in caught.value.options
    assert "ULLAGE_TOKENS" in caught.value.suggestion


def test_beyond_loopback_is_served_where_there_is_a_token():
    bound, _ = listen(Address("0.0.0.0", 0), tokens=TOKENS)
    with bound:
        assert bound.getsockname()[0] == "0.0.0.0"


@pytest.mark.anyio
async def test_a_socket_bound_elsewhere_is_not_served_without_a_token():
    with socket.create_server(("0.0.0.0", 0)) as bound, pytest.raises(InvalidArguments):
        await serve_http(PROFILES, bound)


def test_a_taken_port_is_said_to_be_taken_or_passed_over():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match="in use"):
            listen(Address("127.0.0.1", port))
        bound, address = listen(Address("127.0.0.1", port), next_free=True)
        with bound:
            assert address.port > port
            assert bound.getsockname()[1] == address.port


@asynccontextmanager
async def served(given=PROFILES, **options) -> AsyncGenerator[str]:
    bound, address = listen(Address("127.0.0.1", 0), tokens=options.get("tokens"))
    with bound:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_http, given, bound, **options))
            yield address.url
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def client_at(url: str, era: str, token: str | None = None, **options) -> AsyncGenerator[Client]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=10) as http,
        Client(streamable_http_client(url, http_client=http), mode=era, **options) as client,
    ):
        yield client


def text_of(result: Any) -> Any:  # noqa: ANN401
    assert isinstance(result.content[0], TextContent)
    return json.loads(result.content[0].text)


@pytest.mark.requirement("U:groups")
@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_the_path_says_which_client_it_is_and_what_it_sees(era: str):
    async with served(profiles, client="claude") as url:
        for path, name in (("", "claude"), ("/codex", "codex")):
            async with client_at(url + path, era) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == [name]
                principal, client_name, model, inferred, session = text_of(await client.call_tool(name, {}))
                assert (client_name, model) == (name, "gpt-4o")
                assert inferred == (era != "legacy")
                assert not inferred or session.startswith(f"{principal}/{name}@")


@pytest.mark.requirement("U:ledger")
@pytest.mark.anyio
async def test_later_requests_without_a_session_share_one_until_a_pause():
    now = [1000.0]
    async with served(clock=lambda: now[0]) as url, client_at(url, "2026-07-28") as client:
        first = text_of(await client.call_tool("toy", {}))[-1]
        now[0] += 1800
        assert text_of(await client.call_tool("toy", {}))[-1] == first
        now[0] += 1801
        assert text_of(await client.call_tool("toy", {}))[-1] != first


@pytest.mark.requirement("U:ledger")
@pytest.mark.anyio
async def test_nobody_names_the_session_of_another_where_the_protocol_has_none():
    async with (
        served(tokens=TOKENS) as url,
        client_at(url, "legacy", ADAS) as ada,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {EVES}", "mcp-session-id": "-"}, timeout=10) as http,
        Client(streamable_http_client(url, http_client=http), mode="2026-07-28") as eve,
    ):
        http.headers["mcp-session-id"] = text_of(await ada.call_tool("toy", {}))[-1]
        principal, _, _, inferred, session = text_of(await eve.call_tool("toy", {}))
        assert (principal, inferred) == ("eve", True)
        assert session.startswith("eve/")


@pytest.mark.requirement("U:ledger")
@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_the_principal_is_the_name_of_the_token(era: str):
    async with served(tokens=TOKENS) as url:
        for token, name in ((ADAS, "ada"), (EVES, "eve")):
            async with client_at(url, era, token) as client:
                assert text_of(await client.call_tool("toy", {}))[0] == name


@pytest.mark.requirement("S1:call")
@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_asked_over_http_in_both_eras(era: str):
    async def answer(call: Call) -> Reply:
        assert call.ask is not None
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        return Reply.text(json.dumps(await call.ask("elicitation/create", {"message": "?", "requestedSchema": schema})))

    async def elicit(context: object, params: object):
        del context, params
        return ElicitResult(action="accept", content={"name": "Ada"})

    asking = single(Profile(source=toy(answer=answer), identity=IDENTITY))
    async with served(asking) as url, client_at(url, era, elicitation_callback=elicit) as client:
        assert text_of(await client.call_tool("toy", {"x": 1})) == {"action": "accept", "content": {"name": "Ada"}}


@pytest.mark.requirement("S1:live")
@pytest.mark.anyio
async def test_a_changed_list_is_told_over_http_in_both_eras():
    source = toy()
    heard = anyio.Event()

    async def hear(message: Any) -> None:  # noqa: ANN401
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    with anyio.fail_after(20):
        async with served(single(Profile(source=source, identity=IDENTITY))) as url:
            async with client_at(url, "legacy", message_handler=hear) as client:
                await client.list_tools()
                while not heard.is_set():
                    # The stream for it is opened after the handshake, and nobody is told when.
                    source.change(Change("tools"))
                    await anyio.sleep(0.1)
            async with (
                client_at(url, "2026-07-28") as client,
                client.listen(tools_list_changed=True) as events,
            ):
                source.change(Change("tools"))
                async for event in events:
                    assert type(event).__name__ == "ToolsListChanged"
                    break


@pytest.mark.anyio
async def test_tools_are_not_listed_again_for_every_call():
    class Counting(FakeSource):
        listed = 0

        async def tools(self):
            Counting.listed += 1
            return await super().tools()

    source = Counting(offered=toy().offered, answer=_whoami)
    given = single(Profile(source=source, identity=IDENTITY))
    async with served(given) as url, client_at(url, "2026-07-28") as client:
        for number in range(3):
            await client.call_tool("toy", {"n": number})
        await client.list_tools()
        before = Counting.listed
        await client.call_tool("toy", {"n": 1})
        assert Counting.listed == before
        source.change(Change("tools"))
        await client.call_tool("toy", {"n": 1})
        assert Counting.listed == before + 1


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def posted(application, path: str = "/mcp", host: str = "127.0.0.1:8787", **headers: str):
    with TestClient(application, base_url=f"http://{host}") as client:
        return client.post(path, json=HELLO, headers=ACCEPT | headers)


def test_without_a_known_token_nobody_comes_in_and_no_token_is_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    for headers in ({}, {"Authorization": "Bearer wrong-wrong-wrong"}, {"Authorization": f"Basic {ADAS}"}):
        answer = posted(http_app(PROFILES, tokens=TOKENS), **headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["error_code"] == "DENIED"
    assert posted(http_app(PROFILES, tokens=TOKENS), Authorization=f"Bearer {ADAS}").status_code == 200
    assert "wrong-wrong" not in caplog.text
    assert ADAS not in caplog.text


@pytest.mark.requirement("U:ledger")
def test_requests_refused_for_host_origin_and_token_are_audited_once_a_minute_each():
    found, now = list[AuditEvent](), [1_795_000_000.0]
    application = http_app(PROFILES, tokens=TOKENS, audit=found.append, clock=lambda: now[0])
    wrong = {"Authorization": "Bearer wrong-wrong-wrong"}
    with TestClient(application, base_url="http://localhost") as client:

        def post(path: str, **headers: str) -> int:
            return client.post(path, json=HELLO, headers=ACCEPT | headers).status_code

        assert post("/mcp", Authorization=f"Bearer {ADAS}") == 200
        assert found == []
        assert [post("/mcp/codex", **wrong) for _ in range(3)] == [401] * 3
        assert post("/mcp", Host="evil.example" + "x" * 500, **wrong) == 421
        assert post("/mcp", Origin="https://evil.example", **wrong) == 403
        now[0] += 61
        assert post("/mcp/%1b", **wrong) == 401
    assert {(one.kind, one.principal, one.client, one.session) for one in found} == {
        ("refusal", "anonymous", None, None)
    }
    told = [(one.subject, one.reason.partition(", from")) for one in found]
    assert told[0] == ("POST /mcp/codex", ("HTTP 401: no token or sign-in that is known", ", from", " testclient"))
    assert told[1][1][0].startswith("HTTP 421: the Host header is not of this server: `evil.example")
    assert len(told[1][1][0]) < 200
    assert told[2][1][0] == "HTTP 403: the Origin header is not of this server: `https://evil.example`"
    assert told[3][1][2] == " testclient; 2 more since the last event"
    assert "wrong-wrong" not in str(found)


def test_a_session_belongs_to_the_token_that_opened_it():
    with TestClient(http_app(PROFILES, tokens=TOKENS), base_url="http://localhost") as client:
        opened = client.post("/mcp", json=HELLO, headers=ACCEPT | {"Authorization": f"Bearer {ADAS}"})
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        for token, status in ((EVES, 404), (ADAS, 200)):
            headers = ACCEPT | session | {"Authorization": f"Bearer {token}"}
            assert client.post("/mcp", json=ping, headers=headers).status_code == status


@pytest.mark.requirement("U:groups")
def test_a_client_nobody_configured_is_not_found_and_told_who_is():
    answer = posted(http_app(profiles), "/mcp/nobody")
    assert answer.status_code == 404
    assert answer.json()["available_options"] == ["codex", "claude"]
    assert posted(http_app(PROFILES), "/mcp/nobody").json()["available_options"] == ["codex"]


def test_there_is_an_end_to_how_many_clients_are_served():
    everyone = http_app(lambda name: Profile(source=toy(), identity=IDENTITY))
    with TestClient(everyone, base_url="http://localhost") as client:
        answers = [client.post(f"/mcp/c{number}", json=HELLO, headers=ACCEPT) for number in range(65)]
    assert [answer.status_code for answer in answers] == [200] * 64 + [503]


OURS = "127.0.0.1:{port}"


@pytest.mark.anyio
@pytest.mark.requirement("U:shutdown")
@pytest.mark.parametrize(
    ("hosts", "origins", "status"),
    [
        ([OURS], [], 200),
        (["localhost:{port}"], ["http://localhost:{port}"], 200),
        (["LocalHost:{port}"], ["HTTP://LOCALHOST:{port}"], 200),
        (["[::1]:{port}"], ["https://[::1]:{port}"], 200),
        (["[0:0:0:0:0:0:0:1]:{port}"], [], 200),
        (["127.0.0.1:9"], [], 421),
        (["127.0.0.1"], [], 421),
        (["localhost"], [], 421),
        (["user@127.0.0.1:{port}"], [], 421),
        (["user:password@127.0.0.1:{port}"], [], 421),
        (["127.0.0.1:{port}@evil.example"], [], 421),
        (["127.0.0.1:{port}/path"], [], 421),
        (["127.0.0.1:{port}.evil.example"], [], 421),
        (["localhost:{port}, evil.example"], [], 421),
        (["localhost.:{port}"], [], 421),
        (["127.1:{port}"], [], 421),
        (["2130706433:{port}"], [], 421),
        (["0.0.0.0:{port}"], [], 421),
        (["[::1%25lo]:{port}"], [], 421),
        (["::1:{port}"], [], 421),
        (["localhost:0{port}0"], [], 421),
        (["localhost:-{port}"], [], 421),
        (["localhost:"], [], 421),
        ([""], [], 421),
        (["evil.example:{port}"], [], 421),
        ([OURS, "evil.example"], [], 400),
        ([], [], 400),
        ([OURS], ["http://localhost:6274"], 403),
        ([OURS], ["http://localhost"], 403),
        ([OURS], ["https://localhost"], 403),
        ([OURS], ["http://user@localhost:{port}"], 403),
        ([OURS], ["http://localhost:{port}@evil.example"], 403),
        ([OURS], ["http://localhost:{port}/"], 403),
        ([OURS], ["http://localhost:{port}#x"], 403),
        ([OURS], ["http://evil.example:{port}"], 403),
        ([OURS], ["http://localhost:{port}", "http://evil.example"], 403),
        ([OURS], ["http://localhost:{port} http://evil.example"], 403),
        ([OURS], ["null"], 403),
        ([OURS], ["file://"], 403),
        ([OURS], ["ftp://localhost:{port}"], 403),
        ([OURS], ["chrome-extension://localhost:{port}"], 403),
        ([OURS], [""], 403),
    ],
)
async def test_a_host_or_origin_that_is_not_exactly_ours_is_refused(hosts: list[str], origins: list[str], status: int):
    async with served() as url:
        port = urlsplit(url).port or 0
        headers = [("Host", one) for one in hosts] + [("Origin", one) for one in origins]
        answer = await sent(port, "/mcp", [(name, value.format(port=port)) for name, value in headers])
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    if status in {421, 403}:
        shape = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert shape["error_code"] == "DENIED"
        assert "--allow-host" in shape["suggestion"]


async def sent(port: int, target: str, headers: list[tuple[str, str]]) -> bytes:
    """What is answered to a request whose headers are written as they are."""
    body = json.dumps(HELLO)
    fixed = [("Accept", ACCEPT["Accept"]), ("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    lines = [f"{name}: {value}" for name, value in [*headers, *fixed, ("Connection", "close")]]
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send("\r\n".join([f"POST {target} HTTP/1.1", *lines, "", body]).encode())
        answer = b""
        with anyio.fail_after(20):
            async for chunk in stream:
                answer += chunk
    return answer


@pytest.mark.anyio
@pytest.mark.parametrize("target", ["http://evil.example/mcp", "http://127.0.0.1:{port}/mcp", "//evil.example/mcp"])
async def test_a_target_that_names_a_server_is_not_answered(target: str):
    async with served() as url:
        port = urlsplit(url).port or 0
        answer = await sent(port, target.format(port=port), [("Host", f"127.0.0.1:{port}")])
    assert answer.startswith(b"HTTP/1.1 404 ")


@pytest.mark.anyio
@pytest.mark.requirement("U:shutdown")
async def test_an_allowed_name_has_the_default_ports_ours_or_the_one_it_is_given():
    async with served(allow_hosts=("box.lan", "gate.lan:9000", "gate.lan:9001", "fd00::1")) as url:
        port = urlsplit(url).port or 0
        for host, origin, status in (
            ("box.lan", "https://box.lan", 200),
            ("box.lan:443", "http://box.lan", 200),
            ("BOX.lan", "http://box.lan:{port}", 200),
            ("box.lan:{port}", None, 200),
            ("box.lan:9000", None, 421),
            ("box.lan", "http://box.lan:3000", 403),
            ("gate.lan:9000", "http://gate.lan:9001", 200),
            ("gate.lan", None, 421),
            ("gate.lan:{port}", None, 421),
            ("[fd00::1]", "http://[fd00:0::1]", 200),
            ("127.0.0.1:{port}", "https://box.lan", 200),
        ):
            headers = [("Host", host), *([("Origin", origin)] if origin else [])]
            answer = await sent(port, "/mcp", [(name, value.format(port=port)) for name, value in headers])
            assert answer.startswith(f"HTTP/1.1 {status} ".encode()), (host, origin)


@pytest.mark.parametrize(
    "name", ["user@box", "http://box", "box:port", "box:0", "box:99999", "box/path", "", "a b", "[x]"]
)
def test_a_name_that_nobody_could_be_reached_under_is_not_allowed(name: str):
    with pytest.raises(InvalidArguments, match="is not a name"):
        AllowedHosts.build((), (name,))


def test_other_names_are_let_in_where_allowed():
    application = http_app(PROFILES, hosts=("box.lan", "fd00::1"))
    assert posted(application, host="box.lan:8787", Origin="https://box.lan").status_code == 200
    assert posted(http_app(PROFILES), host="localhost:8787", Origin="http://localhost:8787").status_code == 200
    assert posted(http_app(PROFILES), host="localhost:8787", Origin="http://localhost:8788").status_code == 403
    assert posted(http_app(PROFILES, hosts=("fd00::1",)), host="[fd00::1]:80").status_code == 200
    assert posted(http_app(PROFILES, hosts=("box.lan",)), host="localhost").status_code == 421


def test_a_bound_address_is_reached_under_its_own_names(monkeypatch: pytest.MonkeyPatch):
    assert _names_of("127.0.0.1") == ("127.0.0.1", "::1", "localhost")
    assert _names_of("192.168.0.7") == ("192.168.0.7",)
    assert socket.gethostname() in _names_of("0.0.0.0")
    monkeypatch.setattr(socket, "gethostname", lambda: "no such host")
    assert _names_of("::") == ("127.0.0.1", "::1", "localhost", "no such host")


@pytest.mark.requirement("U:shutdown")
@pytest.mark.requirement("U:shutdown")
def test_a_request_to_a_server_that_was_told_to_end_is_refused():
    front = _front(PROFILES, None, None, AllowedHosts.build(("localhost",)), None, time.time, None)
    assert posted(front.application(), host="localhost").status_code == 200
    anyio.run(front.finish, Shutdown())
    answer = posted(front.application(), host="localhost")
    assert answer.status_code == 503
    assert answer.headers["connection"] == "close"
    assert answer.json()["error_code"] == "UNAVAILABLE"


@pytest.mark.anyio
async def test_what_is_refused_before_the_protocol_begins_fails_a_real_client():
    async with served(tokens=TOKENS) as url:
        with pytest.raises((ExceptionGroup, MCPError)):
            async with client_at(url, "legacy", "wrong"):
                pass
