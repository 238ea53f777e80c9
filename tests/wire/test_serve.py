"""A real MCP client against our server, both eras, in the same process, over stdio and over HTTP."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CallToolResult, ElicitResult, TextContent

from ullage.errors import SourceFailed
from ullage.testing import FakeSource
from ullage.tool import Call, Caller, Needs, Reply, Structured, Tool
from ullage.wire.serve.request_handlers import Identity, Profile
from ullage.wire.serve.sdk_server import build_server

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:call")]

ERAS = ("legacy", "2026-07-28")
IDENTITY = Identity(name="toy", version="1", instructions="Toys.")
ADA = Caller(principal="ada", session="s")


def client_of(source: FakeSource, era: str) -> Client:
    return Client(build_server(Profile(source=source, identity=IDENTITY), lambda _: ADA), mode=era)


def text_of(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def toy(answer=None) -> FakeSource:
    tool = Tool(name="toy", description="a toy", input_schema={"type": "object"}, annotations={"readOnlyHint": True})
    return FakeSource(offered=(tool,), **({"answer": answer} if answer else {}))


@pytest.mark.parametrize("era", ERAS)
async def test_a_source_is_listed_and_called_in_both_eras(era: str):
    source = toy()
    async with client_of(source, era) as client:
        listed = await client.list_tools()
        result = await client.call_tool("toy", {"a": 1})
    assert [tool.name for tool in listed.tools] == ["toy"]
    assert listed.tools[0].annotations is not None
    assert listed.tools[0].annotations.read_only_hint is True
    assert text_of(result) == "toy: {'a': 1}"
    assert source.calls[0].caller == ADA


async def test_a_list_says_how_long_it_is_fresh_and_for_whom():
    async with client_of(toy(), "2026-07-28") as client:
        listed = await client.list_tools()
    assert listed.ttl_ms == 0
    assert listed.cache_scope == "private"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("U:errors")
async def test_an_error_is_a_result_of_one_shape(era: str):
    async def answer(_: Call) -> Reply:
        raise SourceFailed("the toy broke", suggestion="mend it", options=("glue",))

    async with client_of(toy(answer), era) as client:
        result = await client.call_tool("toy", {})
    assert result.is_error
    assert json.loads(text_of(result)) == {
        "error_code": "SOURCE_FAILED",
        "message": "the toy broke",
        "suggestion": "mend it",
        "available_options": ["glue"],
    }


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("U:errors")
async def test_an_unknown_tool_is_a_protocol_error(era: str):
    async with client_of(toy(), era) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nothing", {})
    assert caught.value.code == -32602
    assert "`nothing`" in caught.value.message


async def test_structured_content_metadata_and_progress_reach_the_client():
    async def answer(call: Call) -> Reply:
        assert call.progress is not None
        await call.progress(1, 2, "half")
        return Reply(content=(), structured=Structured({"n": 1}), meta={"dev.ullage/x": 1})

    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with client_of(toy(answer), "legacy") as client:
        result = await client.call_tool("toy", {}, progress_callback=listen)
    assert result.structured_content == {"n": 1}
    assert (result.meta or {})["dev.ullage/x"] == 1
    assert heard == [(1, 2, "half")]


async def test_what_a_call_needs_is_asked_of_a_modern_client_and_answered():
    async def answer(call: Call) -> Reply:
        if not call.answers:
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            question = {"mode": "form", "message": "Who?", "requestedSchema": schema}
            return Reply(needs=Needs({"who": {"method": "elicitation/create", "params": question}}, state="sealed"))
        assert call.state == "sealed"
        return Reply.text(json.dumps(call.answers))

    async def elicit(context: object, params: object):
        del context, params
        return ElicitResult(action="accept", content={"name": "Ada"})

    server = build_server(Profile(source=toy(answer), identity=IDENTITY), lambda _: ADA)
    async with Client(server, mode="2026-07-28", elicitation_callback=elicit) as client:
        result = await client.call_tool("toy", {})
    assert json.loads(text_of(result))["who"]["content"] == {"name": "Ada"}


COMMAND = [sys.executable, "-m", "ullage", "serve"]


async def _count(client: Client, **arguments: str) -> CallToolResult:
    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == ["count-tokens", "read_result"]
    return await client.call_tool("count-tokens", dict(arguments))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("S3:count", "S3:echo-model")
async def test_a_real_client_counts_over_stdio(era: str):
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=dict(os.environ))
    async with Client(server, mode=era) as client:
        result = await _count(client, text="Hello, world!", model="gpt-4")
        unsupported = await client.call_tool("count_tokens", {"text": "x", "model": "gpt-44"})
    answer = json.loads(text_of(result))
    assert (answer["token_count"], answer["model"], answer["method"]) == (4, "gpt-4", "exact")
    assert unsupported.is_error
    assert json.loads(text_of(unsupported))["error_code"] == "UNSUPPORTED_MODEL"


@contextmanager
def served_over_http() -> Iterator[str]:
    process = subprocess.Popen([*COMMAND, "--http", "0"], stderr=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stderr is not None
    lines: list[str] = []
    url = None
    for line in process.stderr:
        lines.append(line)
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp$", line.strip())
        if found and url is None:
            url = found[0]
        if "Ctrl-C" in line:
            break
    assert url, lines
    rest = threading.Thread(target=lambda: lines.extend(process.stderr or ()))
    rest.start()
    try:
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0, "".join(lines)
        rest.join()
        process.stderr.close()
    assert "Traceback" not in "".join(lines)


async def _reachable(url: str, era: str) -> CallToolResult:
    for attempt in range(50):
        try:
            async with Client(url, mode=era) as client:
                return await _count(client, text="Hello, world!")
        except (ExceptionGroup, OSError, MCPError):
            if attempt == 49:
                raise
            await anyio.sleep(0.1)
    raise AssertionError


@pytest.mark.requirement("S3:default-model")
async def test_a_real_client_counts_over_http_in_both_eras_and_an_interrupt_ends_it_cleanly():
    with served_over_http() as url:
        for era in ERAS:
            answer = json.loads(text_of(await _reachable(url, era)))
            assert (answer["token_count"], answer["model"]) == (4, "gpt-4")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
@pytest.mark.parametrize(("keys", "code"), [(b"\x03", 130), (b"\x04", 0)], ids=["Ctrl-C", "Ctrl-D"])
def test_serving_on_a_terminal_explains_itself_and_ends_at_once_on_a_key(keys: bytes, code: int):
    import pty

    ours, theirs = pty.openpty()
    # Tests that run in a shell's background ignore the signal, and so would what they start.
    reset = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", reset, *COMMAND]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    os.close(theirs)
    assert process.stderr is not None
    assert process.stdout is not None
    first = process.stderr.readline()
    assert b"a client program starts it" in first
    while b"Ctrl-D" not in first:
        first = process.stderr.readline()
    if keys == b"\x03":
        process.send_signal(signal.SIGINT)
    else:
        os.write(ours, keys)
    # Interrupted inside an `exec` of text, such as a dataclass's, Python ends by the signal whatever it was told.
    assert process.wait(10) in (code, -signal.SIGINT if code else 0)
    assert process.stdout.read() == b""
    for stream in (process.stdout, process.stderr):
        stream.close()
    os.close(ours)


def _piped(*requests: str) -> list[dict[str, Any]]:
    """The answers of a server whose input is written at once and closed."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        *requests,
    ]
    run = subprocess.run(COMMAND, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def _request(number: int, text: str) -> str:
    arguments = {"name": "count-tokens", "arguments": {"text": text}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": arguments})


@pytest.mark.requirement("S3:nonblocking")
def test_everything_asked_before_the_input_ends_is_answered_however_long_or_odd():
    answers = _piped(_request(2, "hello " * 2_000_000), _request(3, "\ud800"), _request(4, "Hello, world!"))
    found = {answer["id"]: answer.get("result", answer) for answer in answers}
    counts = {number: json.loads(found[number]["content"][0]["text"])["token_count"] for number in (2, 3, 4)}
    assert counts == {2: 2_000_001, 3: 1, 4: 4}


async def test_a_large_text_is_taken_over_http():
    with served_over_http() as url:
        await _reachable(url, "legacy")
        async with Client(url, mode="2026-07-28") as client:
            result = await client.call_tool("count-tokens", {"text": "hello " * 1_500_000})
    assert json.loads(text_of(result))["token_count"] > 1_000_000
