"""What does a gateway add to one call of one server?

A raw client and a raw echo server, so that nearly all there is to see is the gateway. Rounds are interleaved: whatever
else the machine does falls on all of them.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gateway_client import Era, Failed, Session, milliseconds, session
from gateway_fronts import Front, Upstream

ROUNDS = 15
CALLS = 100
WARM = 30
PATIENCE = 60
ECHO = Upstream(name="echo", script="gateway_server.py")


@dataclass(slots=True)
class Cost:
    """Of one front in one era."""

    walls: list[float] = field(default_factory=list[float])
    """Seconds of each call."""
    processor: float = 0.0
    """Seconds, over all calls."""

    @property
    def wall(self) -> float:
        """Milliseconds, the median."""
        return milliseconds(self.walls)

    @property
    def added(self) -> float:
        """Milliseconds of processor a call, of the gateway alone."""
        return self.processor / len(self.walls) * 1000


def measure(fronts: Sequence[Front], era: Era) -> dict[str, Cost]:
    costs = {front.name: Cost() for front in fronts}
    with ExitStack() as stack:
        sessions = {front.name: stack.enter_context(_ready(front, era)) for front in fronts}
        for _ in range(ROUNDS):
            for front in fronts:
                _block(front, sessions[front.name], costs[front.name])
    return costs


@contextmanager
def _ready(front: Front, era: Era) -> Iterator[Session]:
    """A session whose calls are answered and warm."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with session(front.command([ECHO], folder), era, front.environment, folder) as opened:
            opened.ask("tools/list")
            _until_it_answers(front, opened)
            for _ in range(WARM):
                _once(front, opened)
            yield opened


def _until_it_answers(front: Front, opened: Session) -> None:
    """A gateway may answer before the server behind it is up."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return _once(front, opened)
        except Failed:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _once(front: Front, opened: Session) -> None:
    name, arguments = front.call([ECHO], ECHO, "echo", {"text": "hello"})
    if "hello" not in (said := opened.call(name, arguments)):
        raise Failed(f"{front.name} said {said!r}")


def _block(front: Front, opened: Session, cost: Cost) -> None:
    before = opened.processor_seconds()
    for _ in range(CALLS):
        begun = time.perf_counter()
        _once(front, opened)
        cost.walls.append(time.perf_counter() - begun)
    cost.processor += opened.processor_seconds() - before
