"""How long one server's call waits while the gateway works for another, hostile server.

A real gateway over HTTP with two servers behind it: a quiet one that a process of its own calls in a loop, and a
hostile one (`hold_cases.py`). The delay of a case is the longest quiet call during its requests, less the median of
quiet calls while nothing else happens.
"""

import http.client
import json
import multiprocessing
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from hold_case import TOOL, Case, Object
from hold_cases import CASES

HERE = Path(__file__).parent
ERA = "2026-07-28"
MOST_DELAY = 50.0
"""Milliseconds that one server's call may be delayed by the work for another."""
TRIES = 4
PATIENCE = 90.0
SETTLE = 0.15
"""Seconds of quiet calls before and after a hostile request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The longest delay of a quiet call in milliseconds, and the request that caused it."""

    milliseconds: float
    request: str
    baseline: float


class Client:
    """A client of the gateway over one kept-alive connection."""

    def __init__(self, port: int, patience: float = PATIENCE) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
        self._connection.connect()
        # Headers and body leave in two packets: without this, the second waits 40 ms for an acknowledgement.
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number = 0

    def ask(self, method: str, **params: object) -> Object:
        self._number += 1
        prefix = "io.modelcontextprotocol/"
        meta = {f"{prefix}protocolVersion": ERA, f"{prefix}clientCapabilities": {}, f"{prefix}logLevel": "debug"}
        body = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": ERA,
            "Mcp-Method": method,
        }
        if "name" in params or "uri" in params:
            headers["Mcp-Name"] = str(params.get("name") or params["uri"])
        self._connection.request("POST", "/mcp", json.dumps(body), headers)
        return _answer(self._connection.getresponse().read())

    def call(self, name: str, arguments: Object) -> Object:
        return self.ask("tools/call", name=name, arguments=arguments)


def _answer(body: bytes) -> Object:
    text = body.decode("utf-8", "replace")
    if text[:1] != "{":
        text = next((line[5:] for line in text.split("\n") if line.startswith("data:") and '"id"' in line), "{}")
    return json.loads(text)


def text_of(answer: Object) -> str:
    blocks = (answer.get("result") or {}).get("content") or ()
    return "".join(block.get("text", "") for block in blocks[:100]) if blocks else json.dumps(answer.get("error"))


def _call_quiet(port: int, wire: Connection) -> None:
    """In a process of its own: calls the quiet server until told to stop, and sends when each call began and ended."""
    client, calls = Client(port), list[tuple[float, float]]()
    while not wire.poll():
        begun = time.monotonic()
        client.call("quiet__probe", {"text": "hello"})
        calls.append((begun, time.monotonic()))
    wire.send(calls)


def delays() -> Iterator[tuple[str, Delay]]:
    """Every case with its delay: the least of several tries, since whatever else the machine does only adds to it."""
    only = os.environ.get("CASE", "")
    for case in CASES:
        if only not in case.name:
            continue
        best = _survived(case)
        for _ in range(TRIES - 1):
            if best.milliseconds <= MOST_DELAY:
                break
            best = min(best, _survived(case), key=lambda one: one.milliseconds)
        yield case.name, best


def _survived(case: Case) -> Delay:
    """One try; a request that is never answered counts as a delay of as long as it was waited for."""
    try:
        return _try(case)
    except (OSError, http.client.HTTPException) as error:
        return Delay(milliseconds=PATIENCE * 1000, request=type(error).__name__, baseline=0.0)


def _try(case: Case) -> Delay:
    with tempfile.TemporaryDirectory() as name, _gateway(case, Path(name)) as (port, release):
        ours, theirs = multiprocessing.Pipe()
        client = Client(port)
        _warm_up(client)
        prober = multiprocessing.Process(target=_call_quiet, args=(port, theirs), daemon=True)
        prober.start()
        time.sleep(0.6)
        spans = [("nothing", time.monotonic() - 0.4, time.monotonic())]
        for label, answered in _requests(case, client, release):
            spans.append((label, answered[0], answered[1]))
            time.sleep(SETTLE)
        ours.send(None)
        calls: list[tuple[float, float]] = ours.recv()
        prober.join(5)
    _, begun, ended = spans[0]
    baseline = statistics.median(end - start for start, end in calls if start >= begun and end <= ended)
    worst, cause = 0.0, ""
    for label, begun, ended in spans[1:]:
        during = [end - start for start, end in calls if end >= begun and start <= ended]
        longest = max(during, default=0.0)
        if longest > worst:
            worst, cause = longest, label
    return Delay(milliseconds=max(0.0, worst - baseline) * 1000, request=cause, baseline=baseline * 1000)


def _warm_up(client: Client) -> None:
    """Has everything loaded that a gateway loads once: vocabularies, the search index, what validates."""
    for name, arguments in (
        ("quiet__probe", {"text": "warm"}),
        ("find_tool", {"tool_description": "quiet__probe"}),
        ("call_tool", {"tool_name": "quiet__probe", "parameters": {"text": "warm"}}),
        ("call_tool", {"tool_name": "quiet__probe", "parameters": {"text": 1, "other": "2"}}),
    ):
        client.call(name, arguments)
    time.sleep(1.0)


def _requests(case: Case, client: Client, release: Path) -> Iterator[tuple[str, tuple[float, float]]]:
    """Every request of a case, with when it began and ended."""

    def timed(label: str, name: str, arguments: Object) -> tuple[str, tuple[str, tuple[float, float]]]:
        begun = time.monotonic()
        said = text_of(client.call(name, arguments))
        return said, (label, (begun, time.monotonic()))

    release.touch()
    for number, (name, arguments) in enumerate(case.find):
        _, span = timed("list" if not number else name, name, arguments)
        yield span
    _, span = timed("find again", *case.find[0])
    yield span
    for method, params in case.asks:
        begun = time.monotonic()
        client.ask(method, **params)
        yield method, (begun, time.monotonic())
    said, span = timed("call", "call_tool", {"tool_name": f"hostile__{TOOL}", "parameters": case.arguments()})
    yield span
    if case.by_name:
        said, span = timed("call by name", f"hostile__{TOOL}", case.arguments())
        yield span
    for name, arguments in case.after(said):
        what = next(iter(arguments.keys() - {"handle"}))
        _, span = timed(f"{name} {what}", name, arguments)
        yield span


@contextmanager
def _gateway(case: Case, folder: Path) -> Iterator[tuple[int, Path]]:
    """A gateway with the two servers behind it: its port, and the file that lets the hostile one list its tools."""
    release, log = folder / "release", folder / "stderr.txt"
    server = [sys.executable, str(HERE / "hold_server.py")]
    hostile = [*server, "--case", case.name, "--after", str(release)]
    tables = ['[gateway]\nmode = "search"\n', f"[store]\nurl = {json.dumps(f'sqlite:///{folder}/store.db')}\n"]
    for name, (program, *arguments) in (("quiet", server), ("hostile", hostile)):
        tables.append(f"[servers.{name}]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\n")
    # Outside the working folder, or the settings would be a project's and wait for approval.
    work, settings = folder / "work", folder / "ullage.toml"
    work.mkdir()
    settings.write_text("\n".join(tables), encoding="utf-8")
    command = [sys.executable, "-m", "ullage", "serve", "--http", "0", "--config", str(settings)]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=work, start_new_session=True
        )
    try:
        yield _port(log, process), release
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _port(log: Path, process: "subprocess.Popen[bytes]") -> int:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/mcp", log.read_text(errors="replace")):
            return int(found[1])
        time.sleep(0.02)
    raise SystemExit(f"the gateway did not start: {log.read_text(errors='replace')[-2000:]}")
