"""Starts of `ullage serve` over stdio, measured from outside: CPU, wall, stalls and memory.

Every start is a process of its own with the user's folders in a temporary folder and its settings in the user's own
file, as a client runs it. A start is cold when nothing was kept, or when the settings were edited since the last one;
it is warm when it follows a start that ended in order, in the same working folder or in a new one. The figures are
taken when an answer arrives, so they are what a client waits for. CPU is that of the program and its helpers, not that
of the servers behind it.
"""

import json
import os
import select
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gateway_client import MODERN, Era, Failed, Memory, Session, private_environment
from gateway_fronts import FASTMCP, OURS_FOUND, Front, Named, Upstream

ERAS: tuple[Era, ...] = ("2025-11-25", MODERN)
Kind = Literal["first start", "edited settings", "warm", "warm, new folder"]
COLD: tuple[Kind, ...] = ("first start", "edited settings")
STEPS = ("initialize", "tools/list", "first call")
"""In 2026-07-28 there is no `initialize`; `server/discover` takes its place."""
COLD_ROUNDS = 3
WARM_ROUNDS = 5
STALL_ROUNDS = 3
PING_SECONDS = 0.005
"""Between two pings."""
SETTLE_SECONDS = 1.5
"""Of pings before the first call."""
MEMORY_SECONDS = 5.0
"""After the start of the process."""
PATIENCE = 60.0
ONE = (Upstream(name="echo", script="gateway_server.py"),)
MANY = tuple(
    Upstream(name=name, script="gateway_server.py", options=("--tools", "100"))
    for name in ("ledger", "forge", "board", "diary")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Seconds from the start of the process to one answer."""

    cpu: float
    wall: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """The longest time that a ping waited for its answer, in milliseconds."""

    before_call: float
    during_call: float
    at: float
    """Seconds from the answer to `initialize` to the longest of those before the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Memory at three moments of one start; None where no search was made."""

    initialize: Memory
    settled: Memory
    used: Memory | None


Start = dict[str, Sample]
"""By step."""


class User:
    """A user's folders with settings for some servers, in which programs are started.

    Args:
        folder: Empty folder that everything is written to.
        servers: Servers behind the program.
        front: How the program is started and called.
    """

    def __init__(self, folder: Path, servers: Sequence[Upstream], front: Front = OURS_FOUND) -> None:
        self.folder = folder
        self.servers = servers
        self.front = front
        self.command = front.command(servers, folder)
        self._edits = 0
        self._folders = 0
        if front is OURS_FOUND:
            self.command = [*ullage_command(), "serve"]
            self.edit_settings()

    def edit_settings(self) -> None:
        """Write the settings, different from the last time in nothing but the servers' time limit."""
        self._edits += 1
        tables = ['[gateway]\nmode = "search"\n']
        for server in self.servers:
            program, *arguments = server.command
            entry = f"command = {json.dumps(program)}\nargs = {json.dumps(arguments)}\n"
            tables.append(f"[servers.{server.name}]\n{entry}call_timeout = {60 + self._edits}\n")
        path = Path(private_environment(self.folder)["XDG_CONFIG_HOME"]) / "ullage" / "ullage.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(tables), encoding="utf-8")

    def new_folder(self) -> Path:
        self._folders += 1
        folder = self.folder / f"project{self._folders}"
        folder.mkdir()
        return folder

    @property
    def call(self) -> Named:
        return self.front.call(self.servers, self.servers[0], "echo", {"text": "hello"})

    @contextmanager
    def session(self, era: Era, work: Path | None = None) -> Iterator[Session]:
        """A process that has just been started and is ended by the end of its input."""
        opened = Session(self.command, era, self.front.environment, self.folder, work)
        # A program that never answers would hold the whole benchmark.
        watchdog = threading.Timer(PATIENCE, opened.process.kill)
        watchdog.start()
        try:
            yield opened
        finally:
            watchdog.cancel()
            opened.end()


def ullage_command() -> list[str]:
    """The installed command, which is what clients run; the module where it is not installed beside Python."""
    script = Path(sys.executable).parent / "ullage"
    return [str(script)] if script.exists() else [sys.executable, "-m", "ullage"]


@contextmanager
def user(servers: Sequence[Upstream], front: Front = OURS_FOUND) -> Iterator[User]:
    # What a program writes after its end of input must not stop the folder from being removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield User(Path(name), servers, front)


def measure_start(one: User, era: Era, work: Path | None = None) -> Start:
    """Start the program and ask for the three answers one after another, as a client does."""
    begun = time.perf_counter()
    with one.session(era, work) as opened:

        def sample() -> Sample:
            return Sample(cpu=opened.processor_seconds(), wall=time.perf_counter() - begun)

        opened.greet()
        initialized = sample()
        opened.ask("tools/list")
        listed = sample()
        call_first_tool(one, opened)
        return dict(zip(STEPS, (initialized, listed, sample()), strict=True))


def call_first_tool(one: User, opened: Session) -> None:
    """Call until the tool answers: a gateway may know of it only when the server behind it is up."""
    end, said = time.monotonic() + PATIENCE, ""
    while "hello" not in said:
        try:
            said = opened.call(*one.call)
        except Failed as error:
            said = str(error)
            time.sleep(0.02)
        if time.monotonic() > end:
            raise Failed(f"{one.front.name} said {said!r}")


def learn(one: User, era: Era) -> None:
    """Start the program once and end it in order, with its servers up, so that the next start is warm."""
    measure_start(one, era)


def measure_starts(servers: Sequence[Upstream], era: Era, kinds: Sequence[Kind]) -> dict[Kind, list[Start]]:
    """Every kind of start several times, in turns, so that other load on the machine falls on all of them."""
    starts: dict[Kind, list[Start]] = {kind: [] for kind in kinds}
    with user(servers) as kept, user(servers) as edited:
        learn(kept, era)
        if "edited settings" in kinds:
            learn(edited, era)
        for turn in range(max(COLD_ROUNDS, WARM_ROUNDS)):
            for kind in kinds:
                if kind != "warm" and turn >= COLD_ROUNDS:
                    continue
                if kind == "first start":
                    with user(servers) as fresh:
                        starts[kind].append(measure_start(fresh, era))
                elif kind == "edited settings":
                    edited.edit_settings()
                    starts[kind].append(measure_start(edited, era))
                else:
                    work = kept.new_folder() if kind == "warm, new folder" else None
                    starts[kind].append(measure_start(kept, era, work))
    return starts


def measure_peer(servers: Sequence[Upstream], era: Era) -> list[Start]:
    """Starts of fastmcp's proxy, which keeps nothing between them."""
    with user(servers, FASTMCP) as one:
        return [measure_start(one, era) for _ in range(COLD_ROUNDS)]


def measure_stalls(one: User, era: Era) -> Stalls:
    """Send pings at a fixed rate, whether or not the last was answered, and see how long each waits.

    The pings start with the answer to `initialize` and the request for the list, and go on through the first call. In
    2026-07-28 there is no `ping`; `server/discover` takes its place.
    """
    with one.session(era) as opened:
        opened.greet()
        begun = time.perf_counter()
        sent, waits = dict[int, float](), list[tuple[float, float]]()
        opened.send_request("tools/list")
        call: int | None = None
        called, buffered, next_ping = 0.0, b"", begun
        while True:
            now = time.perf_counter()
            if now - begun > PATIENCE:
                raise Failed("the first call was not answered while pings were sent")
            if now >= next_ping:
                sent[opened.send_request("server/discover" if era == MODERN else "ping")] = time.perf_counter()
                next_ping += PING_SECONDS
                # A sender that was held up itself goes on at the same rate and does not catch up.
                next_ping = max(next_ping, now)
            if call is None and now - begun > SETTLE_SECONDS:
                called = time.perf_counter()
                name, arguments = one.call
                call = opened.send_request("tools/call", name=name, arguments=arguments)
            if not select.select([opened.output], [], [], max(0.0, next_ping - time.perf_counter()))[0]:
                continue
            arrived = time.perf_counter()
            read = os.read(opened.output, 1 << 20)
            if not read:
                raise Failed("it ended instead of answering pings")
            *lines, buffered = (buffered + read).split(b"\n")
            answers = {json.loads(line).get("id") for line in lines}
            waits += [(sent[number], arrived - sent.pop(number)) for number in answers & sent.keys()]
            if call in answers:
                break
    quiet = [(wait, at) for at, wait in waits if at < called]
    longest, at = max(quiet)
    rest = max((wait for at, wait in waits if at >= called), default=0.0)
    return Stalls(before_call=longest * 1000, during_call=rest * 1000, at=at - begun)


def stalls_of(era: Era) -> dict[str, list[Stalls]]:
    """Stalls of first starts and warm starts with the many tools, in turns."""
    found: dict[str, list[Stalls]] = {"first start": [], "warm": []}
    with user(MANY) as kept:
        learn(kept, era)
        for _ in range(STALL_ROUNDS):
            with user(MANY) as fresh:
                found["first start"].append(measure_stalls(fresh, era))
            found["warm"].append(measure_stalls(kept, era))
    return found


def measure_memory(one: User, era: Era, *, search: bool) -> Holding:
    """Memory when `initialize` is answered, five seconds after the start, and after one search and one call."""
    begun = time.monotonic()
    with one.session(era) as opened:
        opened.greet()
        initialized = opened.memory()
        opened.ask("tools/list")
        time.sleep(max(0.0, begun + MEMORY_SECONDS - time.monotonic()))
        settled = opened.memory()
        if not search:
            return Holding(initialize=initialized, settled=settled, used=None)
        if one.front.find is not None:
            opened.call(*one.front.find("compare the reports of an owner"))
        call_first_tool(one, opened)
        time.sleep(0.5)
        return Holding(initialize=initialized, settled=settled, used=opened.memory())


def memory_of(front: Front) -> dict[tuple[Era, str], Holding]:
    """Memory of warm starts, all at once: other load changes nothing of it."""

    def one_start(era: Era, name: str) -> Holding:
        servers = MANY if name == "400 tools" else ONE
        with user(servers, front) as one:
            learn(one, era)
            return measure_memory(one, era, search=name == "400 tools")

    cases: list[tuple[Era, str]] = [(era, name) for era in ERAS for name in ("1 tool", "400 tools")]
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(cases, pool.map(lambda case: one_start(*case), cases), strict=True))


def spread(starts: Sequence[Start], step: str, figure: Callable[[Sample], float]) -> tuple[float, float]:
    """The least and the median of one figure."""
    values = [figure(start[step]) for start in starts]
    return min(values), statistics.median(values)
