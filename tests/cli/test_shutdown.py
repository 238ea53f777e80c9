"""`ullage serve` is told to end, or its input ends, while calls are in flight."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from approving import approve
from upstreams import write_toml

pytestmark = pytest.mark.requirement("U:shutdown")

ULLAGE = (sys.executable, "-m", "ullage", "serve")
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
ERAS = ("legacy", "2026-07-28")
SLOW = """
import json, sys, threading, time
from pathlib import Path

def answer(request):
    method, result = request["method"], {}
    if method == "initialize":
        info = {"name": "slow", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        arguments = request["params"]["arguments"]
        Path(sys.argv[1], arguments["name"]).touch()
        while not Path(sys.argv[1], arguments["until"]).exists():
            time.sleep(0.02)
        result = {"content": [{"type": "text", "text": arguments["name"]}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\\n")
    sys.stdout.flush()

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        threading.Thread(target=answer, args=(message,), daemon=True).start()
"""


@pytest.fixture
def flags(work: Path) -> Path:
    """The folder in which a call leaves a file when it runs, and looks for one to end at."""
    (work / "flags").mkdir()
    return work / "flags"


def configure(work: Path, grace: float) -> None:
    slow = {"command": sys.executable, "args": ["-c", SLOW, str(work / "flags")]}
    write_toml(work / "ullage.toml", f'[gateway]\nmode = "direct"\nshutdown_grace = {grace}\n', slow=slow)


@contextmanager
def serving(*words: str) -> Generator["subprocess.Popen[bytes]"]:
    pipe = subprocess.PIPE
    with subprocess.Popen([*ULLAGE, *words], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def request(era: str, number: int, method: str, **params: object) -> bytes:
    meta = {} if era == "legacy" else {"_meta": META}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params | meta}).encode() + b"\n"


def call(era: str, number: int, name: str, until: str) -> bytes:
    return request(era, number, "tools/call", name="slow__wait", arguments={"name": name, "until": until})


def begin(process: "subprocess.Popen[bytes]", era: str) -> None:
    if era == "legacy":
        say(process, request(era, 0, "initialize", **HELLO))
        assert hear(process)["id"] == 0
        say(process, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')


def say(process: "subprocess.Popen[bytes]", *lines: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(b"".join(lines))
    process.stdin.flush()


def hear(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the output has ended"
    return json.loads(line)


def wait_for(path: Path) -> None:
    ends = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < ends, path
        time.sleep(0.02)


def text(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal_calls_in_flight_finish_and_new_ones_are_refused(
    work: Path, flags: Path, era: str, told: signal.Signals
):
    configure(work, grace=60)
    with serving() as process:
        begin(process, era)
        say(process, call(era, 1, "first", "go"), call(era, 2, "second", "go"))
        wait_for(flags / "first")
        wait_for(flags / "second")
        process.send_signal(told)
        refused: dict[str, Any] = {}
        for number in range(10, 1000):
            # Until the signal has arrived, a call is still taken.
            say(process, request(era, number, "tools/call", name="count-tokens", arguments={"text": "x"}))
            refused = hear(process)
            if "error" in refused:
                break
        assert refused["error"]["data"]["error_code"] == "UNAVAILABLE"
        assert process.poll() is None
        (flags / "go").touch()
        assert sorted(text(hear(process)) for _ in range(2)) == ["first", "second"]
        assert process.wait(20) == 0


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("grace", [0, 0.3])
def test_a_call_that_outlasts_the_grace_is_answered_with_an_error(work: Path, flags: Path, era: str, grace: float):
    configure(work, grace)
    with serving() as process:
        begin(process, era)
        say(process, call(era, 1, "first", "never"))
        wait_for(flags / "first")
        process.send_signal(signal.SIGTERM)
        answer = hear(process)
        assert answer["id"] == 1
        assert answer["result"]["isError"] is True
        shape = json.loads(text(answer))
        assert shape["error_code"] == "UNAVAILABLE"
        assert "shutting down" in shape["message"]
        assert {"tokens", "performance"} <= answer["result"]["_meta"]["dev.ullage/meta"].keys()
        assert process.wait(20) == 0


def test_with_nothing_in_flight_it_ends_without_waiting_for_the_grace(work: Path, flags: Path):
    configure(work, grace=600)
    with serving() as process:
        begin(process, "legacy")
        say(process, request("legacy", 1, "tools/list"))
        hear(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_second_signal_ends_it_at_once(work: Path, flags: Path):
    configure(work, grace=600)
    with serving() as process:
        say(process, call("2026-07-28", 1, "first", "never"))
        wait_for(flags / "first")
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGTERM)
        assert hear(process)["id"] == 1
        process.wait(20)


def test_a_signal_before_anything_was_asked_ends_it(work: Path, flags: Path):
    (work / "ullage.toml").write_text("", encoding="utf-8")
    with serving() as process:
        say(process, request("2026-07-28", 1, "tools/list"))
        hear(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.parametrize("era", ERAS)
def test_every_request_is_answered_after_the_end_of_the_input(work: Path, flags: Path, era: str):
    configure(work, grace=0)
    with serving() as process:
        begin(process, era)
        say(process, *(call(era, number, f"n{number}", "go") for number in range(1, 51)))
        assert process.stdin is not None
        process.stdin.close()
        for number in range(1, 51):
            wait_for(flags / f"n{number}")
        # Longer than the loop that waits, whatever its pause is.
        time.sleep(0.3)
        (flags / "go").touch()
        assert {text(hear(process)) for _ in range(50)} == {f"n{number}" for number in range(1, 51)}
        assert process.wait(20) == 0


def test_requests_are_answered_although_the_input_ended_before_they_were_begun(work: Path):
    (work / "ullage.toml").write_text("", encoding="utf-8")
    many = [request("2026-07-28", 0, "tools/list")]
    many += [
        request("2026-07-28", number, "tools/call", name="count-tokens", arguments={"text": "word " * 2_000})
        for number in range(1, 300)
    ]
    run = subprocess.run(ULLAGE, input=b"".join(many), capture_output=True, timeout=120, check=True)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers) == list(range(300))
    assert all("result" in answer for answer in answers)


def test_a_client_that_is_gone_for_good_keeps_nothing_running_beyond_the_grace(work: Path, flags: Path):
    configure(work, grace=0.3)
    with serving() as process:
        say(process, call("2026-07-28", 1, "first", "never"))
        wait_for(flags / "first")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        assert process.wait(20) == 0


def test_a_question_to_a_client_whose_input_has_ended_is_given_up(work: Path, flags: Path):
    configure(work, grace=60)
    settings = (work / "ullage.toml").read_text(encoding="utf-8")
    (work / "ullage.toml").write_text(settings + 'ask = ["wait"]\n', encoding="utf-8")
    approve(work / "ullage.toml")
    with serving() as process:
        say(process, request("legacy", 0, "initialize", **{**HELLO, "capabilities": {"elicitation": {}}}))
        hear(process)
        say(process, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n', call("legacy", 1, "first", "go"))
        assert hear(process)["method"] == "elicitation/create"
        assert process.stdin is not None
        process.stdin.close()
        answer = hear(process)
        assert answer["id"] == 1
        assert "result" in answer or "error" in answer
        assert process.wait(20) == 0


@contextmanager
def serving_http(grace: float, work: Path) -> Generator[tuple["subprocess.Popen[bytes]", str]]:
    configure(work, grace)
    with serving("--http", "0") as process:
        assert process.stderr is not None
        url = process.stderr.readline().decode().split("serves MCP at ")[1].split(". ")[0]
        ends = time.monotonic() + 30
        while True:
            try:
                httpx2.get(url, timeout=10)
            except httpx2.ConnectError:
                assert time.monotonic() < ends
                time.sleep(0.05)
            else:
                break
        yield process, url


async def posted(client: httpx2.AsyncClient, url: str, number: int, name: str, until: str) -> httpx2.Response:
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "slow__wait",
        "Content-Type": "application/json",
    }
    return await client.post(url, content=call("2026-07-28", number, name, until), headers=headers)


def result_of(answer: httpx2.Response) -> dict[str, Any]:
    body = answer.text
    return json.loads(body.split("data: ", 1)[1].splitlines()[0] if body.startswith(("event", "data", ":")) else body)


@pytest.mark.anyio
async def test_over_http_calls_in_flight_finish_and_new_ones_are_refused(work: Path, flags: Path):
    answers: list[httpx2.Response] = []
    with serving_http(60, work) as (process, url):
        async with httpx2.AsyncClient(timeout=60) as client, httpx2.AsyncClient(timeout=60) as other:

            async def ask() -> None:
                answers.append(await posted(client, url, 1, "first", "go"))

            # A connection that is open already; a new one is refused by the system.
            (flags / "now").touch()
            assert (await posted(other, url, 9, "ninth", "now")).status_code == 200
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await anyio.to_thread.run_sync(wait_for, flags / "first")
                process.send_signal(signal.SIGTERM)
                with anyio.fail_after(20):
                    while True:
                        try:
                            late = await posted(other, url, 2, "second", "now")
                        except (httpx2.ConnectError, httpx2.RemoteProtocolError, httpx2.ReadError):
                            break
                        if late.status_code == 503:
                            assert late.json()["error_code"] == "UNAVAILABLE"
                            break
                assert process.poll() is None
                (flags / "go").touch()
        assert text(result_of(answers[0])) == "first"
        assert process.wait(20) == 0


@pytest.mark.anyio
@pytest.mark.parametrize("grace", [0, 0.3])
async def test_over_http_a_call_that_outlasts_the_grace_is_answered_with_an_error(
    work: Path, flags: Path, grace: float
):
    answers: list[httpx2.Response] = []
    with serving_http(grace, work) as (process, url):
        async with httpx2.AsyncClient(timeout=60) as client:

            async def ask() -> None:
                answers.append(await posted(client, url, 1, "first", "never"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await anyio.to_thread.run_sync(wait_for, flags / "first")
                process.send_signal(signal.SIGTERM)
        result = result_of(answers[0])["result"]
        assert result["isError"] is True
        assert json.loads(result["content"][0]["text"])["error_code"] == "UNAVAILABLE"
        assert "dev.ullage/meta" in result["_meta"]
        assert process.wait(20) == 0


def test_over_http_a_second_signal_ends_it_at_once(work: Path, flags: Path):
    with serving_http(600, work) as (process, url):
        with httpx2.Client() as client, pytest.raises(httpx2.ReadTimeout):
            client.post(
                url,
                content=call("2026-07-28", 1, "first", "never"),
                headers={
                    "Accept": "application/json, text/event-stream",
                    "MCP-Protocol-Version": "2026-07-28",
                    "Mcp-Method": "tools/call",
                    "Mcp-Name": "slow__wait",
                    "Content-Type": "application/json",
                },
                timeout=2,
            )
        process.send_signal(signal.SIGTERM)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(20) == 0
