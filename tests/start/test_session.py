"""The first requests of a client, answered from an entry of the cache without anything else being loaded."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ullage.start import read_flags, read_status_flags
from ullage.start_cache import Entry
from ullage.start_session import StartSession

pytestmark = pytest.mark.requirement("U:start")

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ANSWERS = {
    "versions": ["2025-06-18", "2025-11-25"],
    "modern_versions": ["2026-07-28"],
    "initialize": {"protocolVersion": "", "serverInfo": {"name": "ullage"}},
    "discover": {"supportedVersions": ["2026-07-28"]},
    "tools": ['{"tools":', "}", "digest"],
    "tools_modern": ['{"tools":', ',"ttlMs":1}', "modern digest"],
}


def ask(number: Any, method: str, params: Any = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    message = {"jsonrpc": "2.0", "id": number, "method": method, **more}
    return message if params is None else {**message, "params": params}


LONG = b'["' + b"x" * 1_000_000 + b'"]'


class Client:
    """The other end of a session's two pipes."""

    def __init__(self, tools: bytes) -> None:
        reader, self.write_end = os.pipe()
        self.read_end, writer = os.pipe()
        self.session = StartSession(Entry({"answers": ANSWERS}, tools, tools), reader, writer)
        self.open = {reader, writer, self.write_end, self.read_end}

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        lines = (one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages)
        os.write(self.write_end, b"".join(line + b"\n" for line in lines))

    def end(self) -> None:
        self.open.discard(self.write_end)
        os.close(self.write_end)

    def answers(self) -> list[Any]:
        os.set_blocking(self.read_end, False)
        try:
            said = os.read(self.read_end, 1 << 20)
        except BlockingIOError:
            return []
        return [json.loads(line) for line in said.splitlines()]


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Generator[Client]:
    found = Client(getattr(request, "param", b'[{"name":"x"}]'))
    yield found
    for descriptor in found.open:
        os.close(descriptor)


def test_a_client_that_only_lists_is_done_without_anything_being_loaded(client: Client):
    client.send(ask(0, "initialize", CLIENT), INITIALIZED, ask("a", "tools/list"), ask(2, "ping"))
    client.end()
    assert not client.session.answer_first()
    assert client.answers() == [
        {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-06-18", "serverInfo": {"name": "ullage"}}},
        {"jsonrpc": "2.0", "id": "a", "result": {"tools": [{"name": "x"}]}},
        {"jsonrpc": "2.0", "id": 2, "result": {}},
    ]


def test_a_revision_that_is_not_known_is_answered_with_the_latest(client: Client):
    client.send(ask(0, "initialize", {**CLIENT, "protocolVersion": "2031-01-01"}))
    client.session.answer_first()
    assert client.answers()[0]["result"]["protocolVersion"] == "2025-11-25"
    assert client.session.hand_over().protocol_version == "2025-11-25"


@pytest.mark.parametrize("is_named", [True, False], ids=["named client", "unnamed client"])
def test_the_stateless_era_is_answered_too(client: Client, is_named: bool):  # noqa: FBT001
    meta = {key: value for key, value in MODERN.items() if is_named or not key.endswith("clientInfo")}
    client.send(ask(0, "server/discover", {"_meta": meta}), ask(1, "tools/list", {"_meta": meta}))
    assert client.session.answer_first()
    first, second = client.answers()
    assert first["result"] == {"supportedVersions": ["2026-07-28"]}
    assert second["result"] == {"tools": [{"name": "x"}], "ttlMs": 1}
    handover = client.session.hand_over()
    assert (handover.initialize, handover.protocol_version) == (None, "2026-07-28")
    assert handover.tools_digest == "modern digest"


def test_everything_else_is_handed_over_in_its_order(client: Client):
    call = ask(3, "tools/call", {"name": "x"})
    client.send(ask(0, "initialize", CLIENT), INITIALIZED, ask(1, "tools/list"), call, ask(4, "ping"))
    client.send(ask(5, "tools/list"), b"no JSON", ask(6, "resources/list"))
    os.write(client.write_end, b'{"half":')
    assert client.session.answer_first()
    client.session.answer_aside()
    handover = client.session.hand_over()
    assert [one["id"] for one in client.answers()] == [0, 1, 4]
    said = [json.dumps(one).encode() for one in (INITIALIZED, call, ask(5, "tools/list"), ask(6, "resources/list"))]
    assert handover.lines == [*said[:3], b"no JSON", said[3]]
    assert (handover.rest, handover.is_ended) == (b'{"half":', False)
    assert (handover.initialize, handover.tools_digest) == (CLIENT, "digest")


@pytest.mark.parametrize(
    "first",
    [
        ask(0, "tools/list"),
        ask(0, "initialize", {**CLIENT, "protocolVersion": 5}),
        ask(0, "initialize", {**CLIENT, "capabilities": {"roots": True}}),
        ask(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}}),
        ask(0, "initialize", ["2025-06-18"]),
        ask(0, "initialize", CLIENT, extra=1),
        ask(1.5, "initialize", CLIENT),
        ask("\u202e", "initialize", CLIENT),
        ask(0, "server/discover"),
        ask(0, "server/discover", {"_meta": {**MODERN, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}}),
        ask(0, "tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}),
        ask(0, "tools/list", {"_meta": MODERN, "cursor": "x"}),
        ask(0, "tools/list", {"_meta": {**MODERN, "io.modelcontextprotocol/clientInfo": "tests"}}),
        ask(0, "tools/list", {"_meta": {**MODERN, "io.modelcontextprotocol/logLevel": "loud"}}),
        ask(0, "tools/list", {"_meta": {**MODERN, "progressToken": []}}),
        {"id": 0, "method": "initialize", "params": CLIENT},
    ],
)
def test_what_is_unusual_and_all_after_it_is_the_servers(client: Client, first: dict[str, Any]):
    client.send(first, ask(8, "initialize", CLIENT), ask(9, "tools/list"))
    assert client.session.answer_first()
    assert client.answers() == []
    assert len(client.session.hand_over().lines) == 3


def test_a_cursor_a_second_handshake_and_the_other_era_are_the_servers(client: Client):
    client.send(ask(0, "initialize", CLIENT), ask(1, "tools/list", {"cursor": "x"}), ask(2, "initialize", CLIENT))
    client.send(ask(3, "tools/list", {"_meta": MODERN}))
    client.session.answer_first()
    client.session.answer_aside()
    assert len(client.session.hand_over().lines) == 3
    assert [one["id"] for one in client.answers()] == [0]


def test_a_request_that_waits_keeps_the_end_of_input_from_being_the_end(client: Client):
    client.send(ask(0, "initialize", CLIENT), ask(1, "tools/call", {"name": "x"}))
    client.end()
    assert client.session.answer_first()
    client.session.answer_aside()
    handover = client.session.hand_over()
    assert handover.is_ended
    assert len(handover.lines) == 1


def test_a_line_that_the_end_of_input_cuts_off_is_handed_over(client: Client):
    os.write(client.write_end, json.dumps(ask(0, "initialize", CLIENT)).encode())
    client.end()
    client.session.answer_first()
    assert client.answers() == []
    assert len(client.session.hand_over().lines) == 1


def test_answers_are_given_while_the_main_thread_is_busy(client: Client):
    client.session.answer_aside()
    client.send(ask(0, "initialize", CLIENT))
    assert json.loads(os.read(client.read_end, 4096))["id"] == 0
    client.send(ask(1, "tools/list"))
    assert json.loads(os.read(client.read_end, 4096))["id"] == 1
    client.session.hand_over()


@pytest.mark.requirement("U:shutdown")
@pytest.mark.parametrize("client", [LONG], indirect=True)
def test_a_client_that_does_not_read_keeps_no_server_from_taking_over(client: Client):
    client.send(ask(0, "initialize", CLIENT), ask(1, "tools/list"))
    client.session.answer_first()
    client.session.answer_aside()
    handed = client.session.hand_over()
    client.session.refuse({"message": "not sent, because a server has taken over"})
    read = os.read(client.read_end, 1 << 20)
    assert read
    lines = (read + handed.outgoing).splitlines()
    assert len(lines) == 2
    assert len(json.loads(lines[1])["result"]["tools"][0]) == 1_000_000


@pytest.mark.requirement("U:shutdown")
@pytest.mark.parametrize("client", [LONG], indirect=True)
def test_a_client_that_does_not_read_keeps_no_process_from_ending(client: Client):
    client.send(ask(0, "initialize", CLIENT), ask(1, "tools/list"), ask(2, "tools/call", {"name": "x"}))
    client.session.answer_first()
    client.session.answer_aside()
    client.session.refuse({"message": "ended"})


def test_a_client_that_reads_nothing_any_more_ends_nothing(client: Client):
    client.open.discard(client.read_end)
    os.close(client.read_end)
    client.send(ask(0, "initialize", CLIENT), ask(1, "tools/list"))
    client.end()
    assert not client.session.answer_first()


def test_requests_that_wait_are_answered_with_the_error_where_nothing_can_be_loaded(client: Client):
    client.send(ask(0, "initialize", CLIENT), INITIALIZED, ask("c", "tools/call", {"name": "x"}), b"{", ask(2, "x/y"))
    client.session.answer_first()
    client.session.answer_aside()
    error = {"error_code": "BAD", "message": "it is broken", "suggestion": "mend it", "available_options": []}
    client.session.refuse(error, is_input=True)
    client.session.refuse(error)
    assert client.answers()[1:] == [
        {"jsonrpc": "2.0", "id": one, "error": {"code": -32602, "message": "it is broken", "data": error}}
        for one in ("c", 2)
    ]


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ([], {"include": []}),
        (["--client", "codex", "--mode=search"], {"include": [], "client": "codex", "mode": "search"}),
        (["--include", "a", "--include=b", "--sample"], {"include": ["a", "b"], "sample": True}),
        (["--http", "8787"], None),
        (["--help"], None),
        (["--mode", "other"], None),
        (["--client"], None),
        (["--client", "--sample"], None),
        (["--clie", "x"], None),
        (["--sample=1"], None),
        (["word"], None),
    ],
)
def test_flags_that_are_not_understood_are_left_to_the_parser(words: list[str], flags: object):
    assert read_flags(words) == flags


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ([], {}),
        (["--json"], {"json": ""}),
        (["--store", "a.db", "--json"], {"store": "a.db", "json": ""}),
        (["--store=postgresql://h/d?a=b"], {"store": "postgresql://h/d?a=b"}),
        (["--store"], None),
        (["--store="], None),
        (["--store", "--json"], None),
        (["--json=1"], None),
        (["--help"], None),
        (["word"], None),
    ],
)
def test_flags_of_the_status_line_that_are_not_understood_are_left_to_the_parser(words: list[str], flags: object):
    assert read_status_flags(words) == flags


def test_hardly_anything_is_imported_before_the_first_answer():
    code = (
        "import os, sys; before = set(sys.modules)\n"
        "import ullage.start, ullage.start_cache, ullage.start_session\n"
        "print(*sorted(one.partition('.')[0] for one in set(sys.modules) - before))"
    )
    source = str(Path(__file__).parent.parent.parent / "src")
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({source!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    light = {"json", "_json", "re", "enum", "types", "operator", "functools", "collections", "copyreg", "keyword"}
    light |= {"reprlib", "itertools", "select", "time", "_blake2", "_sre", "_collections", "_functools", "_operator"}
    assert set(run.stdout.split()) - light == {"ullage"}
