"""`ullage serve` as a client meets it: started as a program, spoken to by the SDK's own client or in bare lines."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from inline_snapshot import snapshot
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitResult, TextContent

from ullage.cli import main
from ullage.cli.serve import _describe_sources
from ullage.config import Flags, load
from ullage.ledger import read_entries
from ullage.store import Database
from upstreams import scripted, settle_in, tool, unruly, users_file, write_json, write_toml

ERAS = ("legacy", "2026-07-28")
SECRET = "hunter2hunter2"
ADAS = "a" * 20
ULLAGE = (sys.executable, "-m", "ullage", "serve")
META = "dev.ullage/meta"

NOTES = scripted(
    tool("echo", "Says a text again.", annotations={"readOnlyHint": True}),
    tool("give", "Gives whatever result it is given.", inputSchema={"type": "object"}),
    tool("drop_all", "Deletes every note."),
    tool("die"),
    env={"API_TOKEN": SECRET},
)


def said(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


class Person:
    """Whoever sits before the client: says yes or no, and notices what the server announces."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.told: list[str] = []
        self.agrees = True

    async def elicit(self, context: object, params: Any) -> ElicitResult:  # noqa: ANN401
        del context
        self.asked.append(params.message)
        return ElicitResult(action="accept", content={"allow": True}) if self.agrees else ElicitResult(action="decline")

    async def hear(self, message: object) -> None:
        self.told.append(str(getattr(message, "method", "")))


@asynccontextmanager
async def client_of(era: str, log: Path, person: Person, *words: str) -> AsyncGenerator[Client]:
    program = StdioServerParameters(command=ULLAGE[0], args=[*ULLAGE[1:], *words], env=dict(os.environ))
    with log.open("w", encoding="utf-8") as errors:
        async with Client(
            stdio_client(program, errlog=errors),
            mode=era,
            elicitation_callback=person.elicit,
            message_handler=person.hear,
            cache=None,
        ) as client:
            yield client


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(20):
        while not condition():
            await anyio.sleep(0.02)


@asynccontextmanager
async def listening(client: Client, era: str) -> AsyncGenerator[None]:
    """A client of the newer protocol hears of changes while it asks to."""
    if era == "legacy":
        yield
        return
    async with client.listen(tools_list_changed=True):
        yield


def written_below(home: Path) -> set[str]:
    """The folders below the home folder that hold files."""
    return {str(path.parent.relative_to(home)) for path in home.rglob("*") if path.is_file()}


def check_log(log: Path) -> None:
    """Check that the log has one audit line for each approval and refusal, and nothing but the changed settings."""
    written = log.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in written if line.startswith("{")]
    assert [(one["event"], one["kind"], one["subject"], one["reason"]) for one in events] == snapshot(
        [
            ("audit", "approval", "give", "the user allowed this call"),
            ("audit", "refusal", "give", "DENIED"),
            ("audit", "refusal", "drop_all", "DENIED"),
        ]
    )
    others = [line for line in written if not line.startswith("{")]
    assert others == snapshot(["ullage: the settings were changed and taken over"])


@pytest.mark.anyio
@pytest.mark.requirement("S1:aggregate", "S1:find", "S1:call", "S1:live", "S1:net", "U:own", "U:access")
@pytest.mark.parametrize("era", ERAS)
async def test_a_session_from_the_first_search_to_a_changed_setting(work: Path, era: str):
    gone = {"url": f"http://127.0.0.1:9/mcp?key={SECRET}", "headers": {"Authorization": SECRET}}
    write_json(users_file(work.parent).with_name("mcp.json"), dead=unruly("exits"), gone=gone)
    notes = {**NOTES, "ask": ["give"], "deny": ["drop_*"]}
    top = 'include = ["mcp.json"]\n[gateway]\nmode = "search"\n[clients.tests]\nmodel = "gpt-4"\n'
    settings, log, person = write_toml(users_file(work.parent), top, notes=notes), work.parent / "stderr", Person()
    given = {"tool_name": "notes__give", "parameters": {"result": {"content": [{"type": "text", "text": "given"}]}}}
    async with client_of(era, log, person, "--client", "tests", "--store", "sqlite:///kept.db") as client:
        listed = [one.name for one in (await client.list_tools()).tools]
        assert listed == ["find_tool", "call_tool", "call_tool_write", "count-tokens", "read_result"]

        result = await client.call_tool("find_tool", {"tool_description": "say a text again, delete every note"})
        found = json.loads(said(result))
        assert found["tools"][0]["name"] == "notes__echo"
        assert "drop_all" not in said(result)
        assert {one.split(":")[0] for one in found["missing"]} == {"dead", "gone"}
        assert result.meta is not None
        assert isinstance(result.meta["dev.ullage/savings"]["first_request"]["net_tokens"], int)

        result = await client.call_tool("call_tool", {"tool_name": "notes__echo", "parameters": {"text": "hello"}})
        assert said(result) == said(await client.call_tool("notes__echo", {"text": "hello"})) == "hello"
        assert result.meta is not None
        assert result.meta[META]["tokens"] == {"estimated": 1, "approximationMethod": "gpt-4"}

        result = await client.call_tool("call_tool", given)
        assert json.loads(said(result))["error_code"] == "INVALID_ARGUMENTS"
        assert person.asked == []
        assert said(await client.call_tool("call_tool_write", given)) == "given"
        person.agrees = False
        assert json.loads(said(await client.call_tool("notes__give", given["parameters"])))["error_code"] == "DENIED"
        assert len(person.asked) == 2
        assert "give of server notes" in person.asked[0]

        result = await client.call_tool("notes__drop_all", {})
        assert json.loads(said(result))["error_code"] == "DENIED"
        with pytest.raises(MCPError) as caught:
            await client.call_tool("notes__ecko", {})
        assert caught.value.error.code == -32602

        async with listening(client, era):
            person.told.clear()
            write_toml(settings, top, notes={**notes, "pinned": ["echo"]})
            await until(lambda: "notifications/tools/list_changed" in person.told)
            assert [one.name for one in (await client.list_tools()).tools] == [*listed, "notes__echo"]
        assert person.told.count("notifications/tools/list_changed") == 1
    check_log(log)
    database = Database.open(f"sqlite:///{work}/kept.db")
    entries = list(read_entries(database))
    database.close()
    assert {entry.kind for entry in entries} == {"definitions", "search", "result"}
    assert {entry.model for entry in entries} == {"gpt-4"}
    assert {entry.client for entry in entries} == {"tests"}
    assert len({entry.session for entry in entries if entry.kind != "definitions"}) == 1
    assert SECRET not in str(entries)
    # The answers for the next start; the database is where the settings say.
    assert written_below(work.parent / "home") == {"config/ullage", "state/ullage/start"}


def lines(*requests: tuple[str, dict[str, Any]]) -> str:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    sent = (
        {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
        for number, (method, params) in enumerate(requests)
    )
    return "".join(json.dumps(one) + "\n" for one in sent)


def test_nothing_but_protocol_is_on_standard_output_whatever_a_server_writes_to_its_own(work: Path):
    write_json(work / "mcp.json", loud=unruly("babbles"), broken={"command": "x", "env": {"KEY": "${NOBODY_SET_IT}"}})
    said = {"name": "loud__echo", "arguments": {}}
    run = subprocess.run(
        [*ULLAGE, "--include", "mcp.json", "--mode", "direct"],
        input=lines(("server/discover", {}), ("tools/list", {}), ("tools/call", said)),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert [answer["jsonrpc"] for answer in answers] == ["2.0"] * 3
    by_number = {answer["id"]: answer["result"] for answer in answers}
    assert by_number[0]["instructions"]
    assert "loud__echo" in [one["name"] for one in by_number[1]["tools"]]
    assert by_number[2]["content"][0]["text"] == "hello"
    assert "NOBODY_SET_IT" in run.stderr


@contextmanager
def serving(log: Path, *words: str) -> Generator[str]:
    """The address of a gateway that serves over HTTP until it is interrupted, as a person would."""
    with log.open("w", encoding="utf-8") as errors, socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = subprocess.Popen(
            [*ULLAGE, "--http", port, "--next-free", *words], stderr=errors, stdin=subprocess.DEVNULL
        )
        try:
            ends = time.monotonic() + 60
            while "Ctrl-C" not in log.read_text(encoding="utf-8"):
                assert process.poll() is None, log.read_text(encoding="utf-8")
                assert time.monotonic() < ends
                time.sleep(0.02)
            written = log.read_text(encoding="utf-8")
            assert written.startswith(f"Port {port} is taken; using ")
            yield written.split("serves MCP at ")[1].split(". ")[0]
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()


@asynccontextmanager
async def client_at(url: str, era: str, person: Person) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {ADAS}"}, timeout=20) as http,
        Client(streamable_http_client(url, http_client=http), mode=era, elicitation_callback=person.elicit) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def gateway_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("http")
    with pytest.MonkeyPatch.context() as patch:
        settle_in(folder, patch)
        patch.setenv("ADAS_TOKEN", ADAS)
        top = """
            [gateway]
            mode = "direct"
            [http.tokens.ada]
            env = "ADAS_TOKEN"
            [clients.exact]
            model = "gpt-4o"
            underscore_names = true
        """
        write_toml(users_file(folder), top, notes={**NOTES, "ask": ["give"]})
        with serving(folder / "stderr") as url:
            yield url, folder
    written = (folder / "stderr").read_text(encoding="utf-8")
    assert ADAS not in written
    assert SECRET not in written
    assert written.endswith("Ended.\n")


@pytest.mark.anyio
@pytest.mark.requirement("U:reference", "U:access")
@pytest.mark.parametrize("era", ERAS)
async def test_over_http_the_path_names_the_client_and_a_person_is_asked(gateway_url: tuple[str, Path], era: str):
    url, person = gateway_url[0], Person()
    async with client_at(url, era, person) as client, client_at(f"{url}/exact", era, person) as exact:
        assert "count-tokens" in [one.name for one in (await client.list_tools()).tools]
        assert "count_tokens" in [one.name for one in (await exact.list_tools()).tools]
        for one, label in ((client, "o200k_base"), (exact, "gpt-4o")):
            result = await one.call_tool("notes__echo", {"text": "hello"})
            assert result.meta is not None
            tokens = result.meta[META]["tokens"]
            assert tokens["approximationMethod"] == label
            assert ("warning" in tokens) == (one is client)
        assert not (await client.call_tool("notes__give", {"result": {"content": []}})).is_error
        person.agrees = False
        assert (await client.call_tool("notes__give", {"result": {"content": []}})).is_error
    assert len(person.asked) == 2


def test_over_http_a_token_and_a_known_host_name_are_required(gateway_url: tuple[str, Path]):
    url, folder = gateway_url
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream"}
    assert httpx2.post(url, json=body, headers=accept).status_code == 401
    assert httpx2.post(url, json=body, headers={**accept, "Authorization": "Bearer wrong"}).status_code == 401
    found = httpx2.post(f"{url}/nobody", json=body, headers={**accept, "Authorization": f"Bearer {ADAS}"})
    assert found.status_code == 404
    assert found.json()["available_options"] == ["exact"]
    assert f"claude mcp add --transport http ullage {url}" in (folder / "stderr").read_text(encoding="utf-8")


@pytest.mark.requirement("S1:aggregate")
def test_a_server_over_http_is_behind_ullage_too(
    gateway_url: tuple[str, Path], work: Path, capsys: pytest.CaptureFixture[str]
):
    entry = {"type": "http", "url": gateway_url[0], "headers": {"Authorization": f"Bearer {ADAS}"}}
    write_json(work / "mcp.json", far=entry)
    assert main(["call", "far__notes__echo", '{"text": "from afar"}', "--include", "mcp.json"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "from afar\n"
    assert ADAS not in captured.err


def test_whoever_starts_it_by_hand_is_told_what_it_is_and_how_to_end_it(work: Path):
    write_json(work / "mcp.json", **{f"server{number:02}": {"command": "no-such-program"} for number in range(11)})
    person, terminal = pty.openpty()
    with subprocess.Popen([*ULLAGE, "--include", "mcp.json"], stdin=terminal, stderr=subprocess.PIPE) as process:
        os.close(terminal)
        assert process.stderr is not None
        shown = b"".join(process.stderr.readline() for _ in range(4)).decode()
        os.write(person, b"\x04")
        assert process.wait(30) == 0
        assert process.stderr.read() == b""
    os.close(person)
    assert shown == snapshot("""\
Ullage speaks MCP here, on standard input and output: a client program starts it, for example with
  claude mcp add ullage -- ullage serve
Behind it: server00, server01, server02, server03, server04, server05, server06, server07 and 3 more.
To have a look yourself: ullage tools, or ullage serve --http 8787. Ctrl-D ends this.
""")


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("S0:sql:query", "S0:meta")
async def test_the_sample_shop_can_be_asked_at_once(work: Path, era: str):
    async with client_of(era, work.parent / "stderr", Person(), "--sample") as client:
        assert "query" in [one.name for one in (await client.list_tools()).tools]
        sql = "SELECT count(*) AS orders FROM orders"
        result = await client.call_tool("query", {"sql": sql})
        assert said(result).startswith("orders=")
        meta = result.meta
        assert meta is not None
        assert meta[META]["data"] == {"rowCount": 1, "columnCount": 1, "truncated": False, "maxRowsLimit": 1000}
        assert meta[META]["performance"]["cachedResult"] is False


def test_whoever_serves_a_database_is_told_what_to_ask(work: Path):
    write_toml(work / "ullage.toml", '[sources.stock]\ndatabase = "stock.db"\n')
    for flags, question in (([], "What is in the database stock?"), (["--sample"], "What is in the database stock?")):
        assert question in "\n".join(_describe_sources(load(Flags(sample=bool(flags)), {}, work)))
    (work / "ullage.toml").unlink()
    first, second = _describe_sources(load(Flags(sample=True), {}, work))
    assert first == "Behind it: database shop."
    assert second.startswith("  ask a model:  Which three products of the shop")


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_over_http_a_second_signal_to_end_is_ignored_quietly(work: Path, told: signal.Signals):
    with subprocess.Popen([*ULLAGE, "--http", "0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split("serves MCP at ")[1].split(". ")[0]
        entry = f'{{"mcpServers": {{"ullage": {{"type": "http", "url": "{url}"}}}}}}'
        greeting = "".join(process.stderr.readline() for _ in range(4))
        assert entry in greeting
        assert "dashboard:" in greeting
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        ends = time.monotonic() + 20
        while time.monotonic() < ends:
            try:
                httpx2.post(url, json=body)
                break
            except httpx2.ConnectError:
                time.sleep(0.05)
        process.send_signal(told)
        process.send_signal(told)
        assert process.wait(20) == 0
        assert process.stderr.read() == "\nEnded.\n"


@pytest.mark.parametrize("flags", [["--next-free"], ["--tokens", "file"], ["--allow-host", "box"]])
def test_flags_for_http_are_refused_without_it(work: Path, capsys: pytest.CaptureFixture[str], flags: list[str]):
    assert main(["serve", *flags]) == 2
    assert f"{flags[0]} works only with --http" in capsys.readouterr().err


def test_a_port_that_is_taken_is_not_taken_again(work: Path, capsys: pytest.CaptureFixture[str]):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--http", str(taken.getsockname()[1])]) == 2
    assert "is in use" in capsys.readouterr().err


def test_beyond_this_machine_it_is_not_served_without_a_token(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["serve", "--http", "0.0.0.0:0"]) == 2
    assert "to serve on `0.0.0.0`, Ullage needs a bearer token" in capsys.readouterr().err
    assert main(["serve", "--http", "nowhere"]) == 2
    assert "is not an address to listen on" in capsys.readouterr().err


def test_unusable_settings_are_reported_before_anything_is_served(work: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(work / "ullage.toml", '[gateway]\nmood = "auto"\n[serverz.x]\n')
    assert main(["serve"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.replace(str(work), "") == snapshot("""\
error: the settings have 2 errors:
  /ullage.toml:3: unknown key `serverz` before the first table (did you mean `servers`?)
  /ullage.toml:2: unknown key `mood` in `[gateway]` (did you mean `mode` or `model`?)
  fix them all, then start again
  options: servers, mode, model
""")
