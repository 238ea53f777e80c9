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
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

Object = dict[str, Any]
Era = Literal["2025-11-25", "2026-07-28"]
MODERN: Era = "2026-07-28"
SERVERS = ("gateway_server.py", "gateway_sdk_server.py")
_PATIENCE = 60
_META = "io.modelcontextprotocol/"
_CLIENT = {"name": "bench", "version": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Megabytes (2^20 bytes) that processes hold."""

    resident: float
    """RSS."""
    share: float
    """PSS: a page that several processes map counts in part for each."""


class Failed(Exception):
    """The program answered with an error, or not at all."""


def private_environment(folder: Path) -> dict[str, str]:
    """This process's environment with the user's folders below `folder` and no settings of the product in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ULLAGE_", "ORCH_"))}
    places = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"}
    places["XDG_CACHE_HOME"] = ".cache"
    home = folder / "home"
    return {**kept, "HOME": str(home), **{name: str(home / place) for name, place in places.items()}}


def working_folder(folder: Path) -> Path:
    """An empty folder below `folder`: settings found in a working folder would be a project's and need approval."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return work


class Session:
    """One program, spoken to in one era, with its user's folders below `folder`."""

    def __init__(
        self,
        command: Sequence[str],
        era: Era,
        environment: Mapping[str, str],
        folder: Path,
        work: Path | None = None,
    ) -> None:
        self.era = era
        with (folder / "stderr.txt").open("ab") as errors:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**private_environment(folder), **environment},
                cwd=work or working_folder(folder),
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
        answer = self.ask("initialize", protocolVersion=self.era, capabilities={}, clientInfo=_CLIENT)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def ask(self, method: str, **params: object) -> Object:
        number = self.send_request(method, **params)
        for line in self._out:
            answer = json.loads(line)
            if answer.get("id") == number and "method" not in answer:
                return _result(answer)
        raise Failed(f"it ended instead of answering {method}")

    def send_request(self, method: str, **params: object) -> int:
        """Send a request without waiting for its answer, and return its id."""
        self._number += 1
        if self.era == MODERN:
            client = {f"{_META}clientInfo": _CLIENT, f"{_META}clientCapabilities": {}}
            params = {**params, "_meta": {f"{_META}protocolVersion": self.era, **client}}
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    @property
    def output(self) -> int:
        """The descriptor that the program's messages are read from."""
        return self._out.fileno()

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
        return sum(map(_processor_seconds, self._processes()))

    def memory(self) -> "Memory":
        """Held by the program and its helpers now."""
        found = [_memory(process) for process in self._processes()]
        return Memory(resident=sum(one.resident for one in found), share=sum(one.share for one in found))

    def _processes(self) -> list[int]:
        return [process for process in _family(self.process.pid) if not _is_server(process)]

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


def _memory(process: int) -> Memory:
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return Memory(resident=0.0, share=0.0)
    kibibytes = {words[0]: int(words[1]) for line in text.splitlines()[1:] if (words := line.split())[2:] == ["kB"]}
    return Memory(resident=kibibytes["Rss:"] / 1024, share=kibibytes["Pss:"] / 1024)


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
