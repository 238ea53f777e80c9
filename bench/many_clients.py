"""Many HTTP clients of one gateway, that come, call, cancel, go and come again while its settings are edited.

Run by `make bench-many`. `CLIENTS` and `SECONDS` say how many clients there are and for how long; 50 and 180 unless
said otherwise. Half of them speak 2025-11-25 and half 2026-07-28, none has a token. Behind the gateway are a server
that keeps state for each session, one that is declared shared, and one that speaks the stateless era. A part of the
clients leaves without a word. Prints what was asked and answered, the processes and the memory of the gateway before
and after, and one line of figures; fails where a call was refused, a session lost its state, or something is left.
"""

import asyncio
import json
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
from gateway_client import private_environment
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

CLIENTS = int(os.environ.get("CLIENTS", "50"))
SECONDS = float(os.environ.get("SECONDS", "180"))
SEED = int(os.environ.get("SEED", "1"))
SETTLING = 75.0
"""Seconds after the last client in which the processes of gone sessions must have ended."""
MOST_GROWTH = 1.25
"""Memory after the clients have gone, as a part of what it was when as many had been there once."""
SERVER = Path(__file__).parent / "many_clients_server.py"
IDLE_SECONDS = 40
"""The idle limit of the server with state, so that what a vanished client leaves ends within the run."""
PATIENCE = 60.0
Mode = Literal["legacy", "2026-07-28"]


@dataclass(slots=True)
class Tally:
    """What became of the calls."""

    answered: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    mixed_up: list[str] = field(default_factory=list[str])
    """Answers that were not the session's own value, each with what it was and after which time."""
    outlasted: int = 0
    """Sessions that were idle for longer than the server's idle limit before they recalled their value."""
    sessions: int = 0
    vanished: int = 0
    edits: int = 0
    longest: float = 0.0


def settings_text(edit: int) -> str:
    command = f"command = {json.dumps(sys.executable)}\n"
    state = f"idle_timeout = {IDLE_SECONDS}\ncall_timeout = {60 + edit % 7}\n"
    keeping, forgetting = (
        command + f"args = {json.dumps(['-I', '-S', str(SERVER), *options])}\n" for options in ([], ["--stateless"])
    )
    tables = [
        '[gateway]\nmode = "direct"\n',
        f"[servers.state]\n{keeping}{state}",
        f"[servers.common]\n{forgetting}shared = true\n",
        f"[servers.modern]\n{forgetting}",
        f"[servers.extra]\n{keeping}" if edit % 2 else "",
    ]
    return "\n".join(tables)


class Gateway:
    """`ullage serve --http` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        environment = private_environment(folder)
        self._settings = Path(environment["XDG_CONFIG_HOME"]) / "ullage" / "ullage.toml"
        self._settings.parent.mkdir(parents=True)
        self.edit(0)
        work = folder / "work"
        work.mkdir()
        self._errors = folder / "stderr.txt"
        with self._errors.open("wb") as errors:
            command = [sys.executable, "-m", "ullage", "serve", "--http", "0"]
            self.process = subprocess.Popen(
                command, env=environment, cwd=work, stderr=errors, stdout=subprocess.DEVNULL
            )
        self.url = self._address()

    def _address(self) -> str:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            if found := re.search(r"http://\S+/mcp\b", self._errors.read_text(encoding="utf-8")):
                return found[0]
            time.sleep(0.05)
        raise SystemExit(f"the gateway did not start: {self._errors.read_text(encoding='utf-8')}")

    def edit(self, number: int) -> None:
        """Write other settings, which the gateway takes over while it runs."""
        self._settings.write_text(settings_text(number), encoding="utf-8")

    def servers(self) -> int:
        """Processes of servers below the gateway."""
        return sum(SERVER.name in command_of(process) for process in family(self.process.pid))

    def memory(self) -> float:
        """Megabytes that the gateway itself holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def family(process: int) -> Iterator[int]:
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text(encoding="ascii").split():
                yield from family(int(child))


def command_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@contextmanager
def gateway() -> Iterator[Gateway]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        opened = Gateway(Path(name))
        try:
            yield opened
        finally:
            opened.end()


async def measured(tally: Tally, kind: str, call: Awaitable[Any]) -> str | None:
    """The text of an answer; None where the call was refused, which is counted with its reason."""
    began = time.monotonic()
    try:
        with anyio.fail_after(PATIENCE):
            result = await call
    except (MCPError, TimeoutError, httpx2.HTTPError, ValueError) as error:
        tally.refused[f"{kind}: {type(error).__name__} {str(error)[:120]}"] += 1
        return None
    tally.longest = max(tally.longest, time.monotonic() - began)
    text = "".join(getattr(block, "text", "") for block in getattr(result, "content", ()))
    if getattr(result, "is_error", False):
        tally.refused[f"{kind}: {text[:160]}"] += 1
        return None
    tally.answered[kind] += 1
    return text


async def use(client: Client, mode: Mode, name: str, chance: random.Random, tally: Tally) -> None:
    """What one client does while it is connected."""
    await measured(tally, "list", client.list_tools())
    began = time.monotonic()
    if mode == "legacy":
        await measured(tally, "remember", client.call_tool("state__remember", {"value": name}))
    for _ in range(chance.randint(1, 5)):
        await anyio.sleep(chance.uniform(0.05, 1.0))
        server = chance.choice(("common", "modern"))
        said = await measured(tally, server, client.call_tool(f"{server}__stateless_echo", {"value": name}))
        compare(name, said, server, tally)
        if chance.random() < 0.4:
            # Given up half-way: the client tells the server so.
            with anyio.move_on_after(chance.uniform(0.01, 0.2)):
                await client.call_tool(f"{server}__stateless_slow", {"seconds": 5})
            tally.answered["cancelled"] += 1
    if mode == "legacy":
        said = await measured(tally, "recall", client.call_tool("state__recall", {}))
        idle = time.monotonic() - began
        if said == "" and idle >= IDLE_SECONDS:
            # The settings say that the server ends after this time without a call.
            tally.outlasted += 1
        else:
            compare(name, said, f"recall after {idle:.1f} s", tally)


def compare(name: str, said: str | None, kind: str, tally: Tally) -> None:
    """Note an answer that is not the session's own value."""
    if said is not None and name not in said:
        tally.mixed_up.append(f"{kind}: `{said[:60]}` instead of `{name}`")


async def visit(url: str, mode: Mode, name: str, chance: random.Random, tally: Tally) -> None:
    """Connect, do something, and leave: in order, or without a word."""
    vanishes = chance.random() < 0.3
    tally.sessions += 1
    tally.vanished += vanishes
    timeout = httpx2.Timeout(PATIENCE)
    async with httpx2.AsyncClient(timeout=timeout) as http:
        transport = streamable_http_client(url, http_client=http, terminate_on_close=not vanishes)
        try:
            async with Client(transport, mode=mode) as client:
                await use(client, mode, name, chance, tally)
        except (MCPError, httpx2.HTTPError, ExceptionGroup, RuntimeError) as error:
            tally.refused[f"connection: {type(error).__name__} {str(error)[:120]}"] += 1


async def come_and_go(url: str, number: int, until: float, tally: Tally) -> None:
    chance = random.Random(SEED * 1_000 + number)
    mode: Mode = "legacy" if number % 2 else "2026-07-28"
    turn = 0
    await anyio.sleep(chance.uniform(0, 2))
    while time.monotonic() < until:
        turn += 1
        await visit(url, mode, f"c{number}t{turn}x", chance, tally)
        await anyio.sleep(chance.uniform(0.1, 1.0))


async def edit_settings(opened: Gateway, until: float, tally: Tally) -> None:
    while time.monotonic() < until:
        await anyio.sleep(3)
        tally.edits += 1
        opened.edit(tally.edits)
    opened.edit(0)


async def run_clients(opened: Gateway, seconds: float, tally: Tally) -> int:
    """The most processes of servers there were at once."""
    until, most = time.monotonic() + seconds, 0
    async with anyio.create_task_group() as tasks:
        for number in range(CLIENTS):
            tasks.start_soon(come_and_go, opened.url, number, until, tally)
        tasks.start_soon(edit_settings, opened, until, tally)
        while time.monotonic() < until:
            await anyio.sleep(1)
            most = max(most, opened.servers())
    return most


async def settled(opened: Gateway, processes: int) -> float:
    """Seconds until no more processes are left than there were."""
    began = time.monotonic()
    while opened.servers() > processes and time.monotonic() - began < SETTLING:
        await anyio.sleep(0.5)
    return time.monotonic() - began


async def measure() -> int:
    tally = Tally()
    with gateway() as opened:
        # As many clients as there will be, once: what they made the gateway load stays.
        warming = Tally()
        await run_clients(opened, 8, warming)
        await settled(opened, 3)
        processes, memory = opened.servers(), opened.memory()
        most = await run_clients(opened, SECONDS, tally)
        busy = opened.memory()
        took = await settled(opened, processes)
        left, after = opened.servers(), opened.memory()
    print(f"{CLIENTS} clients, {SECONDS:g} s, {tally.edits} edits of the settings, seed {SEED}")
    print(f"{tally.sessions} sessions, {tally.vanished} left without a word; answered: {dict(tally.answered)}")
    if tally.outlasted:
        print(f"{tally.outlasted} sessions outlasted the idle limit of {IDLE_SECONDS} s and began anew")
    print(f"server processes {processes} before, {most} at most, {left} after {took:.0f} s")
    held = f"gateway {memory:.0f} MB before, {busy:.0f} MB at the end, {after:.0f} MB after"
    print(f"{held}; longest answer {tally.longest:.1f} s")
    missed = [f"refused {count} times: {why}" for why, count in tally.refused.most_common(10)]
    missed += [f"state lost or another's: {one}" for one in tally.mixed_up]
    missed += [f"{left - processes} processes are left"] * (left > processes)
    missed += [f"memory grew from {memory:.0f} to {after:.0f} MB"] * (after > memory * MOST_GROWTH)
    print("\n" + "\n".join(f"MISSED {line}" for line in missed))
    figures = {"sessions": tally.sessions, "answered": tally.answered.total(), "refused": tally.refused.total()}
    print(json.dumps({**figures, "processes": left, "megabytes": round(after), "missed": len(missed)}))
    return 1 if missed else 0


if __name__ == "__main__":
    # The SDK logs a traceback for each answer that comes after its call was given up.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    logging.getLogger("client").setLevel(logging.CRITICAL)
    sys.exit(asyncio.run(measure()))
