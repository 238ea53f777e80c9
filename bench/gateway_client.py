"""How long does an answer take, and what does whoever stands between cost?

A raw client over a program's standard input and output, the same for all that are measured and of the standard library
alone, so that none of their own code is in the figures. The processor's time is the operating system's, of the program
and its helpers but not of the servers behind it.
"""

import json
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

Object = dict[str, Any]
Era = Literal["2025-11-25", "2026-07-28"]
MODERN: Era = "2026-07-28"
SERVERS = ("gateway_server.py", "gateway_sdk_server.py")
_PATIENCE = 60
_META = "io.modelcontextprotocol/"


class Failed(Exception):
    """The program answered with an error, or not at all."""


class Session:
    """One program, spoken to in one era."""

    def __init__(self, command: Sequence[str], era: Era, environment: Mapping[str, str], folder: Path) -> None:
        self.era = era
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "stderr.txt").open("ab"),
            env={**os.environ, **environment},
            cwd=folder,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._into: IO[bytes] = self.process.stdin
        self._out: IO[bytes] = self.process.stdout
        self._number = 0

    def greet(self) -> Object:
        """What the era begins with."""
        if self.era == MODERN:
            return self.ask("server/discover")
        client = {"name": "bench", "version": "1"}
        answer = self.ask("initialize", protocolVersion=self.era, capabilities={}, clientInfo=client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def ask(self, method: str, **params: object) -> Object:
        self._number += 1
        if self.era == MODERN:
            version = {f"{_META}protocolVersion": self.era, f"{_META}clientCapabilities": {}}
            params = {**params, "_meta": version}
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        for line in self._out:
            answer = json.loads(line)
            if answer.get("id") == self._number and "method" not in answer:
                return _result(answer)
        raise Failed(f"it ended instead of answering {method}")

    def call(self, name: str, arguments: Object) -> str:
        """The text that a tool answers with."""
        result = self.ask("tools/call", name=name, arguments=arguments)
        text = "".join(block.get("text", "") for block in result.get("content", ()))
        if result.get("isError"):
            raise Failed(text[:500])
        return text

    def _send(self, message: Object) -> None:
        self._into.write(json.dumps(message).encode() + b"\n")
        self._into.flush()

    def processor_seconds(self) -> float:
        """Spent by the program and its helpers so far."""
        return sum(_processor_seconds(process) for process in _family(self.process.pid) if not _is_server(process))

    def end(self) -> None:
        self._into.close()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._out.close()


def _result(answer: Object) -> Object:
    if "error" in answer:
        raise Failed(str(answer["error"])[:500])
    return answer["result"]


@contextmanager
def session(command: Sequence[str], era: Era, environment: Mapping[str, str], folder: Path) -> Iterator[Session]:
    """A session that has been greeted."""
    opened = Session(command, era, environment, folder)
    # A program that never answers would hold the whole benchmark.
    signal.signal(signal.SIGALRM, lambda *_: opened.process.kill())
    signal.alarm(_PATIENCE)
    try:
        opened.greet()
        signal.alarm(0)
        yield opened
    finally:
        signal.alarm(0)
        opened.end()


def _processor_seconds(process: int) -> float:
    """By the process's own clock, in nanoseconds and with threads that have ended; see clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0


def _family(process: int) -> Iterator[int]:
    yield process
    for child in _children(process):
        yield from _family(child)


def _children(process: int) -> list[int]:
    children = list[int]()
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children += map(int, task.read_text(encoding="ascii").split())
        except OSError:
            continue
    return children


def _is_server(process: int) -> bool:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    # Its own script alone: a gateway's command line may name its servers, too.
    return len(words) > 1 and Path(os.fsdecode(words[1])).name in SERVERS


def milliseconds(values: Sequence[float]) -> float:
    return statistics.median(values) * 1000
