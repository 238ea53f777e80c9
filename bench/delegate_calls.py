"""What does a call cost its caller's processor, whoever makes it?

The same answer of one server on loopback, read as bytes, by Ullage, by the providers' SDKs and by the peers, in turns
and in one run; the least of several turns, since others use the machine too.
"""

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delegate_peers import python_of
from delegate_server import pieces

HERE = Path(__file__).parent
SHORT, LONG = 8, 200
"""Pieces of the answer: a sentence, and some paragraphs."""
ROUNDS = 7
CALLS = {SHORT: 40, LONG: 8}
"""A turn."""
WORKERS = {"litellm": "delegate_litellm.py", "pydantic-ai": "delegate_pydantic_ai.py", "sdks": "delegate_sdks.py"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Milliseconds of processor a call."""

    short: float
    long: float


@dataclass(frozen=True, slots=True)
class Worker:
    process: "subprocess.Popen[str]"

    def order(self, **order: object) -> Any:  # noqa: ANN401
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or "null")


@contextmanager
def working(command: Sequence[str]) -> Generator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def measure(peers: Sequence[str]) -> dict[str, Cost]:
    """By who called, and on which wire."""
    commands = [[sys.executable, str(HERE / "delegate_ours.py")]]
    commands += [[str(python_of(name)), str(HERE / WORKERS[name])] for name in peers]
    with ExitStack() as stack:
        server = stack.enter_context(working([sys.executable, str(HERE / "delegate_server.py")]))
        assert server.stdout is not None
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        workers = [Worker(stack.enter_context(working(command))) for command in commands]
        short, long = (_turns(workers, address, count) for count in (SHORT, LONG))
    return {name: Cost(short=short[name], long=long[name]) for name in short}


def _turns(workers: Sequence[Worker], address: str, count: int) -> dict[str, float]:
    names = [(worker, name) for worker in workers for name in worker.order(address=f"{address}/{count}")]
    least = {name: float("inf") for _, name in names}
    for turn in range(ROUNDS + 1):
        for worker, name in names:
            text = "" if name.startswith("bytes") else "".join(pieces(count))
            spent = worker.order(who=name, times=CALLS[count], text=text)
            # The first turn is for what is loaded once.
            least[name] = min(least[name], spent) if turn else least[name]
    return least
