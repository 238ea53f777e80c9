"""Our protocol core on pipes: it answers as the SDK's server does, loses nothing, and can take over a connection."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from mcp.shared import inbound
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import version as sdk_versions
from talking import ADA, ERAS, LEGACY, MODERN, PREFIX, Message, Served, linked_core, linked_sdk, read_messages
from test_announce import Rich, rich

from ullage.start_cache import digest_of_tools
from ullage.start_session import Handover
from ullage.testing import FakeSource
from ullage.tool import Call, Change, Reply, Tool
from ullage.wire import Identity, Presentation, Profile, Shutdown
from ullage.wire import jsonrpc as protocol
from ullage.wire.serve.stdio import serve_descriptors

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:start")]

IDENTITY = Identity(name="toy", version="1", instructions="Toys.")
ENVELOPE = {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": {}}
HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
TOY = Tool(name="toy", description="a toy", input_schema={"type": "object"}, output_schema={"type": "array"})


def served(source: Any = None) -> Served:  # noqa: ANN401
    return Served(source=source or rich(), identity=IDENTITY)


def asked(number: object, method: str, params: object = None) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}


def told(method: str, params: Message | None = None) -> Message:
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def modern(number: object, method: str, **params: object) -> Message:
    return asked(number, method, {"_meta": ENVELOPE, **params})


async def answers(link, messages: list[Message]) -> dict[object, Message]:
    """What each request is answered, sent one after the other."""
    found: dict[object, Message] = {}
    async with link(served()) as (send, received):
        for message in messages:
            await send(message)
            while "id" in message and message["id"] not in found:
                with anyio.fail_after(20):
                    answer = await anext(received)
                if "id" in answer:
                    found[answer["id"]] = answer
    return found


GREETED = [asked(0, "initialize", HELLO), told("notifications/initialized")]
PROMPT = {"type": "ref/prompt", "name": "greet"}
NAMED = {"name": "name", "value": "A"}
LEGACY_REQUESTS: list[tuple[str, Any]] = [
    ("ping", None),
    ("ping", {"_meta": {"progressToken": 1}}),
    ("tools/list", None),
    ("tools/list", {"cursor": None}),
    ("tools/list", {"cursor": 5}),
    ("tools/list", {"cursor": "x"}),
    ("tools/list", {"_meta": 5}),
    ("tools/list", {"_meta": {"progressToken": []}}),
    ("tools/call", {"name": "toy", "arguments": {"a": 1}}),
    ("tools/call", {"name": "toy", "arguments": None}),
    ("tools/call", {"name": "toy"}),
    ("tools/call", {"name": "nobody"}),
    ("tools/call", {"name": 5}),
    ("tools/call", {"name": "toy", "arguments": []}),
    ("tools/call", {}),
    ("tools/call", None),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "a:b"}),
    ("resources/read", {"uri": "no:thing"}),
    ("resources/read", {}),
    ("resources/subscribe", {"uri": "a:b"}),
    ("resources/subscribe", {"uri": "no:thing"}),
    ("resources/subscribe", {"uri": 7}),
    ("resources/unsubscribe", {"uri": "a:b"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
    ("prompts/get", {"name": "greet", "arguments": {"name": 5}}),
    ("prompts/get", {"name": "nobody"}),
    ("completion/complete", {"ref": PROMPT, "argument": NAMED}),
    ("completion/complete", {"ref": PROMPT, "argument": NAMED, "context": {"arguments": {"a": "b"}}}),
    ("completion/complete", {"ref": PROMPT, "argument": NAMED, "context": {"arguments": {"a": 5}}}),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": "a:b"}, "argument": NAMED}),
    ("completion/complete", {"ref": {"type": "ref/tool", "name": "t"}, "argument": NAMED}),
    ("completion/complete", {"ref": PROMPT, "argument": {"name": "n"}}),
    ("completion/complete", {"ref": PROMPT}),
    ("logging/setLevel", {"level": "error"}),
    ("logging/setLevel", {"level": "loud"}),
    ("logging/setLevel", None),
    ("server/discover", {}),
    ("subscriptions/listen", {"notifications": {}}),
    ("tasks/list", {}),
    ("tea/make", {}),
    ("tools/list", {"_meta": ENVELOPE}),
    ("initialize", HELLO),
    ("initialize", {**HELLO, "protocolVersion": "2024-11-05"}),
    ("initialize", {**HELLO, "protocolVersion": "1999-01-01"}),
    ("initialize", {**HELLO, "protocolVersion": MODERN}),
    ("initialize", {**HELLO, "capabilities": {"roots": []}}),
    ("initialize", {**HELLO, "capabilities": {"experimental": {"x": 5}}}),
    ("initialize", {**HELLO, "capabilities": {"sampling": None}}),
    ("initialize", {**HELLO, "clientInfo": {"name": "t"}}),
    ("initialize", {}),
]
MODERN_REQUESTS: list[tuple[str, Any]] = [
    ("server/discover", {}),
    ("tools/list", {}),
    ("tools/list", {"cursor": 5}),
    ("tools/list", {"_meta": {**ENVELOPE, "progressToken": {}}}),
    ("tools/call", {"name": "toy", "arguments": {"a": 1}}),
    ("tools/call", {"name": "nobody"}),
    ("tools/call", {"name": "toy", "requestState": 5}),
    ("tools/call", {"name": "toy", "inputResponses": {"a": {"action": "accept"}}}),
    ("tools/call", {"name": "toy", "inputResponses": {"a": {"roots": []}}}),
    ("tools/call", {"name": "toy", "inputResponses": {"a": 5}}),
    ("tools/call", {"name": "toy", "inputResponses": {"a": {"action": "shrug"}}}),
    ("tools/call", {"name": "toy", "inputResponses": []}),
    ("tools/call", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "a:b"}),
    ("resources/read", {"uri": "no:thing"}),
    ("resources/subscribe", {"uri": "a:b"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
    ("completion/complete", {"ref": PROMPT, "argument": NAMED}),
    ("logging/setLevel", {"level": "error"}),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": "often"}}),
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [5]}}),
    ("subscriptions/listen", {}),
    ("ping", {}),
    ("tea/make", {}),
    ("initialize", HELLO),
    ("initialize", {}),
    ("tools/list", {"_meta": {}}),
    ("tools/list", {"_meta": None}),
    ("tools/list", {"_meta": {f"{PREFIX}protocolVersion": MODERN}}),
    ("tools/list", {"_meta": {**ENVELOPE, f"{PREFIX}protocolVersion": 5}}),
    ("tools/list", {"_meta": {**ENVELOPE, f"{PREFIX}protocolVersion": "2030-01-01"}}),
    ("tools/list", {"_meta": {**ENVELOPE, f"{PREFIX}clientCapabilities": []}}),
    ("tools/list", {"_meta": {**ENVELOPE, f"{PREFIX}clientCapabilities": {"roots": 5}}}),
    ("tools/list", {"_meta": {**ENVELOPE, f"{PREFIX}clientInfo": {"name": "t", "version": "1"}}}),
    ("tools/list", {"_meta": {**ENVELOPE, f"{PREFIX}clientInfo": {"name": "t"}}}),
    ("tools/list", {"_meta": {**ENVELOPE, f"{PREFIX}logLevel": "debug"}}),
    ("tools/list", {"_meta": {**ENVELOPE, f"{PREFIX}logLevel": "loud"}}),
]
UNGREETED: list[tuple[str, Any]] = [
    ("ping", None),
    ("tools/list", None),
    ("tools/call", {"name": 5}),
    ("tea/make", None),
    ("initialize", {}),
    ("tools/list", None),
]


def numbered(requests: list[tuple[str, Any]], meta: Message | None = None) -> list[Message]:
    return [
        asked(at, method, params if meta is None or "_meta" in (params or {}) else {**params, "_meta": meta})
        for at, (method, params) in enumerate(requests, 1)
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [*GREETED, *numbered(LEGACY_REQUESTS)],
        [modern(0, "server/discover"), *numbered(MODERN_REQUESTS, ENVELOPE)],
        numbered(UNGREETED),
        [told("notifications/initialized"), *numbered([("tools/list", None)])],
        [told("notifications/initialized"), modern(1, "tools/list"), *numbered([("tools/list", None)])],
        [asked("a", "initialize", HELLO), asked("7", "tools/list"), asked(-3, "ping")],
    ],
    ids=["earlier era", "later era", "no greeting", "only initialized", "initialized and later", "odd ids"],
)
async def test_every_request_is_answered_as_the_sdk_answers_it(messages: list[Message]):
    ours, theirs = await answers(linked_core, messages), await answers(linked_sdk, messages)
    assert {str(number) for number in ours} == {str(one["id"]) for one in messages if "id" in one}
    for message in messages:
        if "id" in message:
            assert ours[message["id"]] == theirs[message["id"]], message


def test_the_constants_are_those_of_the_sdk():
    assert protocol.HANDSHAKE_VERSIONS == sdk_versions.HANDSHAKE_PROTOCOL_VERSIONS
    assert protocol.MODERN_VERSIONS == sdk_versions.MODERN_PROTOCOL_VERSIONS
    names = {
        "VERSION_KEY": mcp_types.PROTOCOL_VERSION_META_KEY,
        "CAPABILITIES_KEY": mcp_types.CLIENT_CAPABILITIES_META_KEY,
        "CLIENT_INFO_KEY": mcp_types.CLIENT_INFO_META_KEY,
        "SERVER_INFO_KEY": mcp_types.SERVER_INFO_META_KEY,
        "LOG_LEVEL_KEY": mcp_types.LOG_LEVEL_META_KEY,
        "SUBSCRIPTION_KEY": SUBSCRIPTION_ID_META_KEY,
        "VERSION_HEADER": inbound.MCP_PROTOCOL_VERSION_HEADER,
        "METHOD_HEADER": inbound.MCP_METHOD_HEADER,
        "NAME_HEADER": inbound.MCP_NAME_HEADER,
        "CONNECTION_CLOSED": mcp_types.CONNECTION_CLOSED,
        "HEADER_MISMATCH": mcp_types.HEADER_MISMATCH,
        "UNSUPPORTED_VERSION": mcp_types.UNSUPPORTED_PROTOCOL_VERSION,
    }
    assert {name: getattr(protocol, name) for name in names} == names


@dataclass
class Wire:
    """Two pipes to a core that is being served."""

    reading: int
    writing: int
    ended: anyio.Event = field(default_factory=anyio.Event)

    def send(self, *messages: Message) -> None:
        os.write(self.writing, b"".join(json.dumps(one).encode() + b"\n" for one in messages))

    def end_input(self) -> None:
        os.close(self.writing)

    async def receive(self) -> list[Message]:
        """All that comes until the server has ended."""
        found: list[Message] = []
        async for message in read_messages(self.reading):
            found.append(message)
        return found


@asynccontextmanager
async def wired(source: Any, **more) -> AsyncGenerator[Wire]:  # noqa: ANN401
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    wire = Wire(ours_in, ours_out)
    handover: dict[str, Any] = more.pop("handover", None) or {}
    if handover:
        more["handover"] = Handover(reader=theirs_in, writer=theirs_out, **handover)

    profile = more.pop("profile", None) or Profile(source=source, identity=IDENTITY)

    async def serve() -> None:
        await serve_descriptors(profile, lambda _: ADA, theirs_in, theirs_out, **more)
        os.close(theirs_out)
        os.close(theirs_in)
        wire.ended.set()

    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            yield wire
            await wire.ended.wait()
    os.close(wire.reading)


def slow(seconds: float) -> FakeSource:
    async def answer(call: Call) -> Reply:
        await anyio.sleep(seconds)
        return Reply.text(str(call.arguments.get("n")))

    return FakeSource(offered=(TOY,), answer=answer)


@pytest.mark.requirement("U:start")
async def test_at_the_end_of_the_input_every_request_is_answered_exactly_once():
    calls = [asked(n, "tools/call", {"name": "toy", "arguments": {"n": n}}) for n in range(1, 301)]
    async with wired(slow(0.2)) as wire:
        wire.send(*GREETED, *calls[:100])
        await anyio.sleep(0.05)
        wire.send(*calls[100:])
        wire.end_input()
        found = await wire.receive()
    assert sorted(one["id"] for one in found) == list(range(301))
    assert {one["id"]: one["result"]["content"][0]["text"] for one in found if one["id"]} == {
        n: str(n) for n in range(1, 301)
    }


async def test_a_last_line_without_its_end_is_answered_as_well():
    async with wired(slow(0)) as wire:
        wire.send(*GREETED)
        os.write(wire.writing, json.dumps(asked(1, "tools/list")).encode())
        wire.end_input()
        assert [one["id"] for one in await wire.receive()] == [0, 1]


async def test_a_long_line_keeps_its_place_among_the_others():
    text = "x" * 500_000
    call = asked(1, "tools/call", {"name": "toy", "arguments": {"n": text}})

    async def answer(call: Call) -> Reply:
        return Reply.text(str(len(str(call.arguments["n"]))))

    async with wired(FakeSource(offered=(TOY,), answer=answer)) as wire:

        def send() -> None:
            wire.send(*GREETED)
            line = json.dumps(call).encode() + b"\n" + json.dumps(asked(2, "ping")).encode() + b"\n"
            while line:
                line = line[os.write(wire.writing, line) :]
            wire.end_input()

        await anyio.to_thread.run_sync(send)
        found = {one["id"]: one for one in await wire.receive()}
    assert found[1]["result"]["content"][0]["text"] == "500000"
    assert set(found) == {0, 1, 2}


@pytest.mark.parametrize("number", [1, "1"])
async def test_what_a_client_takes_back_is_ended_and_not_answered(number: int | str):
    ended = anyio.Event()

    async def answer(_: Call) -> Reply:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    async with wired(FakeSource(offered=(TOY,), answer=answer)) as wire:
        wire.send(*GREETED, asked(1, "tools/call", {"name": "toy"}))
        await anyio.sleep(0.05)
        wire.send(told("notifications/cancelled", {"requestId": number}))
        wire.send(told("notifications/cancelled", {"requestId": number}), asked(2, "ping"))
        wire.end_input()
        assert [one["id"] for one in await wire.receive()] == [0, 2]
    assert ended.is_set()


async def test_odd_ids_and_instructions_that_fail_cost_no_more_than_their_request():
    def instructions() -> str:
        raise RuntimeError("no words")

    profile = Profile(source=slow(0), identity=Identity(name="toy", version="1", instructions=instructions))
    async with wired(slow(0), profile=profile) as wire:
        wire.send(
            *GREETED,
            told("notifications/initialized"),
            asked("9" * 5_000, "tools/list"),
            asked(1, "tools/call", {"name": "toy"}),
            told("notifications/cancelled", {"requestId": True}),
            told("notifications/cancelled", {"requestId": "8" * 5_000}),
        )
        wire.end_input()
        found = {one["id"]: one for one in await wire.receive()}
    assert found[0]["error"]["code"] == -32603
    assert found["9" * 5_000]["result"]["tools"]
    assert "result" in found[1]


async def test_what_is_asked_of_a_client_is_taken_back_with_the_call_and_refused_at_the_end_of_the_input():
    async def answer(call: Call) -> Reply:
        assert call.ask is not None
        return Reply.text(json.dumps(await call.ask("roots/list", {})))

    able = {**HELLO, "capabilities": {"roots": {"listChanged": None}}}
    async with wired(FakeSource(offered=(TOY,), answer=answer)) as wire:
        wire.send(asked(0, "initialize", able), asked(1, "tools/call", {"name": "toy"}))
        messages = read_messages(wire.reading)
        assert (await anext(messages))["id"] == 0
        assert await anext(messages) == asked(1, "roots/list")
        wire.send(told("notifications/cancelled", {"requestId": 1}))
        assert (await anext(messages))["method"] == "notifications/cancelled"
        wire.send(asked(2, "tools/call", {"name": "toy"}))
        assert await anext(messages) == asked(2, "roots/list")
        wire.end_input()
        error = (await anext(messages))["error"]
    assert error["code"] == -32000
    assert "closed its input" in error["message"]


async def test_a_stream_is_acknowledged_stamped_and_answered_when_the_server_ends():
    source = rich()
    wanted = {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["a:b"]}
    async with wired(source) as wire:
        wire.send(modern("s", "subscriptions/listen", notifications=wanted))
        messages = read_messages(wire.reading)
        stamp = {f"{PREFIX}subscriptionId": "s"}
        honored = {"toolsListChanged": True, "resourceSubscriptions": ["a:b"]}
        acknowledged = told("notifications/subscriptions/acknowledged", {"notifications": honored, "_meta": stamp})
        assert await anext(messages) == acknowledged
        for change in (Change("tools"), Change("prompts"), Change("resource", "a:b"), Change("resource", "c:d")):
            source.change(change)
        assert await anext(messages) == told("notifications/tools/list_changed", {"_meta": stamp})
        assert await anext(messages) == told("notifications/resources/updated", {"uri": "a:b", "_meta": stamp})
        wire.end_input()
        last = await anext(messages)
    assert last["id"] == "s"
    assert last["result"]["_meta"].items() >= stamp.items()
    assert source.followed == ["+a:b", "-a:b"]


async def test_a_client_that_does_not_read_costs_bounded_memory_and_holds_up_nobody():
    sent, other = [0], [0]

    async def answer(call: Call) -> Reply:
        if call.tool != "toy":
            raise AssertionError
        assert call.tell is not None
        for _ in range(2_000):
            await call.tell("notifications/message", {"level": "error", "data": "x" * 10_000})
            sent[0] += 1
        return Reply.text("done")

    async def elsewhere() -> None:
        for _ in range(20):
            await anyio.sleep(0.01)
            other[0] += 1

    async with wired(FakeSource(offered=(TOY,), answer=answer)) as wire:
        wire.send(*GREETED, asked(1, "tools/call", {"name": "toy"}))
        with anyio.fail_after(10):
            await elsewhere()
        assert other == [20]
        assert 50 < sent[0] < 300, "about a mebibyte is kept, and no more"
        wire.end_input()
        found = await wire.receive()
    assert [one.get("id") for one in found if "id" in one] == [0, 1]
    assert len(found) == 2_002


async def test_requests_wait_while_the_client_leaves_many_answers_unread(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ullage.wire.serve.stdio._MOST_UNWRITTEN", 500_000)
    called = [0]

    async def answer(_: Call) -> Reply:
        called[0] += 1
        return Reply.text("x" * 100_000)

    async with wired(FakeSource(offered=(TOY,), answer=answer)) as wire:
        wire.send(*GREETED)
        for number in range(1, 51):
            wire.send(asked(number, "tools/call", {"name": "toy"}))
            await anyio.sleep(0.01)
        assert called[0] < 12
        wire.end_input()
        found = await wire.receive()
    assert sorted(one["id"] for one in found) == list(range(51))
    assert called == [50]


async def test_when_nobody_reads_any_more_the_calls_are_ended():
    ended = anyio.Event()

    async def answer(_: Call) -> Reply:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    async with wired(FakeSource(offered=(TOY,), answer=answer), shutdown=Shutdown(grace=lambda: 0.1)) as wire:
        wire.send(*GREETED, asked(1, "tools/call", {"name": "toy"}))
        await anyio.sleep(0.1)
        wire.end_input()
        await anyio.sleep(0.3)
        assert not ended.is_set(), "somebody may still read the answer"
        os.close(wire.reading)
        with anyio.fail_after(10):
            await ended.wait()
        wire.reading = os.open(os.devnull, os.O_RDONLY)


async def listed(source: Rich, era: str) -> str:
    result = await Presentation(Profile(source=source, identity=IDENTITY)).tools_result(modern=era == MODERN)
    return digest_of_tools(result["tools"])


async def test_a_connection_is_taken_over_where_it_was_left():
    source = slow(0)
    line = json.dumps(asked(2, "tools/call", {"name": "toy", "arguments": {"n": 2}})).encode()
    handed = {
        "lines": [json.dumps(told("notifications/initialized")).encode(), json.dumps(asked(1, "ping")).encode()],
        "rest": line[:20],
        "outgoing": b'{"jsonrpc":"2.0","id":0,"result":{}}\n',
        "initialize": {**HELLO, "capabilities": {"roots": {}}},
        "protocol_version": LEGACY,
    }
    async with wired(source, handover=handed) as wire:
        os.write(wire.writing, line[20:] + b"\n")
        wire.end_input()
        found = await wire.receive()
    assert [one["id"] for one in found] == [0, 1, 2]
    assert source.calls[0].capabilities == {"roots": {}}


async def test_what_was_handed_over_after_the_input_ended_is_answered():
    lines = [json.dumps(one).encode() for one in (*GREETED, asked(1, "tools/call", {"name": "toy"}))]
    async with wired(slow(0.1), handover={"lines": lines, "rest": b"", "is_ended": True}) as wire:
        assert [one["id"] for one in await wire.receive()] == [0, 1]
        wire.end_input()


@pytest.mark.parametrize("is_true", [True, False], ids=["true", "untrue"])
async def test_tools_that_were_answered_before_are_corrected_on_the_session(*, is_true: bool):
    source = rich()
    handed = {
        "lines": [],
        "initialize": HELLO,
        "protocol_version": LEGACY,
        "tools_digest": await listed(source, LEGACY) if is_true else digest_of_tools([]),
    }
    async with wired(source, handover=handed) as wire:
        await anyio.sleep(0.3)
        wire.end_input()
        found = await wire.receive()
    assert found == ([] if is_true else [told("notifications/tools/list_changed")])


@pytest.mark.parametrize("is_listed", [True, False])
async def test_tools_that_were_answered_before_are_corrected_on_a_stream_that_is_opened_later(*, is_listed: bool):
    handed = {"lines": [], "protocol_version": MODERN, "tools_digest": digest_of_tools([])}
    async with wired(rich(), handover=handed) as wire:
        await anyio.sleep(0.2)
        if is_listed:
            wire.send(modern(1, "tools/list"))
            await anyio.sleep(0.1)
        wire.send(modern(2, "subscriptions/listen", notifications={"toolsListChanged": True}))
        await anyio.sleep(0.2)
        wire.end_input()
        found = await wire.receive()
    changed = [one["params"] for one in found if one.get("method") == "notifications/tools/list_changed"]
    assert changed == ([] if is_listed else [{"_meta": {f"{PREFIX}subscriptionId": 2}}])


@pytest.mark.parametrize("era", ERAS)
async def test_what_a_cache_is_given_is_what_a_client_is_sent(era: str):
    presentation = Presentation(Profile(source=FakeSource(offered=(TOY,)), identity=IDENTITY))
    if era == MODERN:
        messages = [modern(0, "server/discover"), modern(1, "tools/list")]
    else:
        messages = [*GREETED, asked(1, "tools/list")]
    async with wired(FakeSource(offered=(TOY,))) as wire:
        wire.send(*messages)
        wire.end_input()
        found = {one["id"]: one["result"] for one in await wire.receive()}
    assert found == {0: presentation.introduction(era), 1: await presentation.tools_result(modern=era == MODERN)}
    assert ("outputSchema" in found[1]["tools"][0]) == (era == MODERN)


async def test_a_result_that_cannot_be_written_is_an_error_of_its_request_alone():
    async def answer(call: Call) -> Reply:
        odd: Any = {"nan": float("nan"), "half": "\ud800"} if call.arguments["n"] == 1 else {1, 2}
        return Reply(content=({"type": "text", "text": "x", "odd": odd},))

    async with wired(FakeSource(offered=(TOY,), answer=answer)) as wire:
        wire.send(*GREETED, *(asked(n, "tools/call", {"name": "toy", "arguments": {"n": n}}) for n in (1, 2)))
        wire.end_input()
        found = {one["id"]: one for one in await wire.receive()}
    assert found[1]["result"]["content"][0]["odd"] == {"nan": None, "half": "\ufffd"}
    assert found[2]["error"]["code"] == -32603


SERVER = str(Path(__file__).parent / "toy_server.py")
SPIN = "import time\nend = time.monotonic() + 40\nwhile time.monotonic() < end: pass"


@pytest.mark.requirement("U:start")
def test_on_a_busy_machine_nothing_is_lost_at_the_end_of_the_input(tmp_path: Path):
    calls = [asked(n, "tools/call", {"name": "wait", "arguments": {"seconds": 0.05}}) for n in range(1, 41)]
    text = "".join(json.dumps(one) + "\n" for one in (*GREETED, *calls))
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(2)]
    try:
        command = [sys.executable, SERVER, str(tmp_path / "log")]
        for _ in range(3):
            run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=50, check=True)
            assert sorted(json.loads(line)["id"] for line in run.stdout.splitlines()) == list(range(41))
    finally:
        for process in spinning:
            process.kill()
            process.wait()


HEAVY = ("mcp", "mcp_types", "pydantic", "starlette", "uvicorn", "httpx", "httpx2", "jsonschema")
GATEWAY = f"""
import atexit, runpy, sys
heavy = {HEAVY!r}
atexit.register(lambda: print("loaded", sorted(name for name in heavy if name in sys.modules), file=sys.stderr))
sys.argv = ["ullage", "serve", "--config", sys.argv[1]]
runpy.run_module("ullage", run_name="__main__")
"""


def test_a_call_of_a_server_over_stdio_loads_neither_the_sdk_nor_what_it_needs(tmp_path: Path):
    settings = tmp_path / "ullage.toml"
    settings.write_text(
        f'[gateway]\nmode = "direct"\n[servers.toy]\nprefix = ""\ncommand = {json.dumps(sys.executable)}\n'
        f"args = {json.dumps([SERVER, str(tmp_path / 'log')])}\n",
        encoding="utf-8",
    )
    lines = [*GREETED, asked(1, "tools/list"), asked(2, "tools/call", {"name": "wait", "arguments": {}})]
    run = subprocess.run(
        [sys.executable, "-c", GATEWAY, str(settings)],
        input="".join(json.dumps(one) + "\n" for one in lines),
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
        env={**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
    )
    found = {one["id"]: one for one in map(json.loads, run.stdout.splitlines()) if "id" in one}
    assert found[2]["result"]["content"][0]["text"] == "done"
    assert "loaded []" in run.stderr
