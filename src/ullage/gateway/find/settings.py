"""What can be set about finding and calling, and what stands around them?"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from ullage.ledger import Recorder, Unrecorded
from ullage.options import IndexKind, Rules
from ullage.tool import ANONYMOUS, Call, Caller, Listener, Reply

from ..merge.missing import Missing
from ..merge.view import View
from ..reference import ASSUMED, Reference
from ..spawn import Spawn
from .embedders import Embedders
from .forms import FormsCache
from .learning import Learning
from .surface import Mode, Remembered, SurfaceMemory
from .vectors import VectorCache

__all__ = ["FindSettings", "Searched", "Surroundings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSettings:
    mode: Mode = "auto"
    direct_below: float = 0.02
    """In `auto`: the part of the window below which a catalogue is shown directly."""
    find_budget: int = 1_000
    """Tokens of a search's reply where the caller names no budget."""
    index: IndexKind = "static"
    """What ranks tools beside their words."""
    learn: bool = True
    """Whether searches are ranked by what was called after earlier ones."""
    join_calls: bool = False
    """Whether one `call_tool` takes every tool, as in the original."""
    start_wait: float = 10.0
    """Seconds that a search waits for servers whose tools are not known yet."""
    instructions_budget: int = 300
    own: Rules = field(default_factory=Rules)
    """For our own tools, by their names."""
    pending: tuple[Missing, ...] = ()
    """Settings files that wait for the user's approval, reported beside servers whose tools are not known."""
    key: str = "default"
    """For whom the choice between direct and search is remembered."""
    configuration: str = ""
    """A fingerprint of the settings: while it stays, the choice stays."""


def _assumed(caller: Caller) -> Reference:
    return ASSUMED


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What `Find` works with besides its tools; each has a default that keeps nothing and tells nobody."""

    recorder: Recorder = field(default_factory=Unrecorded)
    reference: Callable[[Caller], Reference] = _assumed
    memory: SurfaceMemory = field(default_factory=Remembered)
    """Keeps the choice of surface between starts."""
    forms: FormsCache | None = None
    """Keeps the forms of definitions between starts."""
    embedders: Embedders = field(default_factory=Embedders)
    vectors: VectorCache | None = None
    """Keeps what definitions mean between starts."""
    learning: Learning | None = None
    """Knows what was called after which search."""
    spawn: Spawn | None = None
    """Runs in the background what searches will ask for."""
    quiet: float = 0.0
    """Seconds after a list in which nothing is made in the background: a client waits for its first answers."""
    lister: Caller = ANONYMOUS
    """Stands for whoever lists tools, since a list is asked for by nobody in particular."""
    clock: Callable[[], float] = time.perf_counter
    """Seconds that only ever grow."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Searched(Protocol):
    """What `Find` stands around: `Merge`, or something around it."""

    async def view(self, wait: float = 0.0) -> View:
        """All that is known, after waiting up to so many seconds for whoever never said what he offers."""
        ...

    async def call(self, call: Call) -> Reply: ...

    def watch(self, listener: Listener) -> Callable[[], None]: ...

    async def close(self) -> None: ...
