"""How long does a client wait for its tools when the servers behind the gateway are slow to start?

Ten servers that take seconds each; first with nothing known of them, then with the catalogue of that first time on
disk. What counts is whether the whole list is there before any of them is up.
"""

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway_client import MODERN, Failed, Session, session
from gateway_fronts import OURS, Upstream

SERVERS = 10
SECONDS = 3.0
PATIENCE = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A start of the gateway, from nothing to its first list."""

    seconds: float
    tools: int
    """Of the servers, in that list."""
    up: int
    """Servers that had come up by then."""


def measure() -> tuple[Started, Started]:
    """With nothing known, and with the catalogue on disk."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "starts.txt"
        servers = [
            Upstream(
                name=f"slow{number}", script="gateway_server.py", options=("--start", str(SECONDS), "--log", str(log))
            )
            for number in range(SERVERS)
        ]
        cold = _start(servers, folder, wait=True)
        log.unlink()
        return cold, _start(servers, folder, wait=False)


def _start(servers: Sequence[Upstream], folder: Path, *, wait: bool) -> Started:
    begun = time.monotonic()
    with session(OURS.command(servers, folder), MODERN, {}, folder) as opened:
        tools = _listed(opened)
        started = Started(seconds=time.monotonic() - begun, tools=tools, up=_up(folder / "starts.txt"))
        if wait:
            _until_all_are_listed(opened)
    return started


def _listed(opened: Session) -> int:
    return sum(tool["name"].startswith("slow") for tool in opened.ask("tools/list")["tools"])


def _up(log: Path) -> int:
    return log.read_text(encoding="utf-8").count(" is-up ") if log.exists() else 0


def _until_all_are_listed(opened: Session) -> None:
    end = time.monotonic() + PATIENCE
    while (listed := _listed(opened)) < SERVERS:
        if time.monotonic() > end:
            raise Failed(f"after {PATIENCE} seconds {listed} of {json.dumps(SERVERS)} servers are listed")
        time.sleep(0.2)
