"""Decides between showing all tools and showing `find_tool`, and writes the instructions.

A catalogue that takes little of the window is shown directly, because finding would cost more than it saves.
Decided when the configuration changes and then kept, since every client's prompt cache hangs on the list; a margin
keeps a catalogue near the threshold from flipping. Nothing is measured or stored here.

A decision is made when a list is first asked for, and stands while the configuration does, also over starts. Only a
catalogue that is shown directly is looked at again when it changes, and not even that once a client was told that it
is: what a client reads about the tools and what it is then listed must say the same. How the choice is made, `surface`
knows.

The user's rules for Ullage's own tools hold for finding and calling as well: what is denied is neither listed nor
answered, what is hidden is answered only. What the tools do is not known here.

One line a server: its name, how many tools it has, and what is to be found there, from the settings, else from what the
server says of itself, else from its tools' names. With many servers the lines grow shorter, then only names are left,
then the first of them; the text never exceeds its budget.
"""

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, Protocol

from ullage.invisible_characters import remove_invisible
from ullage.ledger import Recorder, Unrecorded
from ullage.options import IndexKind, Rules
from ullage.tool import ANONYMOUS, Call, Caller, Listener, Reply, Tool, ToolSource

from ..merge.tool_view import Entry, Member, Missing, View
from ..metering import ASSUMED, Reference
from ..slim.schema_walk import first_sentence
from ..tool_source import Introduction, Spawn
from .tool_forms import CALL_WRITE, FormsCache, find_tools
from .tool_index import Embedders, VectorCache
from .usage_learning import Learning

__all__ = [
    "Decision",
    "FindSettings",
    "Mode",
    "Remembered",
    "Searched",
    "Standing",
    "Surface",
    "SurfaceMemory",
    "Surroundings",
    "decide",
    "instructions_of",
    "introduce",
    "listed_own",
    "own_entry",
]

Mode = Literal["auto", "direct", "search"]
Surface = Literal["direct", "search"]

_MARGIN = 0.25
"""Part of the threshold that a catalogue must pass it by before a standing decision changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    surface: Surface
    reason: str
    configuration: str = ""
    """What was configured when it was decided."""
    certain: bool = True
    """False where the catalogue was not yet known: good for now, not to be kept."""


def decide(
    mode: Mode,
    *,
    catalogue: int | None,
    window: int,
    share: float = 0.02,
    previous: Surface | None = None,
) -> Decision:
    """`catalogue` is what all definitions weigh in tokens, None where not all of them are known."""
    if mode != "auto":
        return Decision(surface=mode, reason=f"the settings say {mode}")
    if catalogue is None:
        return Decision(surface="search", reason="the catalogue is not known yet", certain=False)
    threshold = window * share
    leaning = {"direct": 1 + _MARGIN, "search": 1 - _MARGIN, None: 1.0}[previous]
    surface: Surface = "direct" if catalogue < threshold * leaning else "search"
    kept = " (kept: within the margin)" if (catalogue < threshold) != (surface == "direct") else ""
    reason = f"{catalogue:,} tokens of definitions against {threshold:,.0f}, {share:.1%} of {window:,}{kept}"
    return Decision(surface=surface, reason=reason)


class SurfaceMemory(Protocol):
    """Keeps decisions, by whatever key a gateway has."""

    def recall(self, key: str) -> Decision | None: ...

    def remember(self, key: str, decision: Decision) -> None: ...


@dataclass(frozen=True, slots=True)
class Remembered:
    """Keeps decisions as long as the process lives."""

    decisions: dict[str, Decision] = field(default_factory=dict[str, Decision])

    def recall(self, key: str) -> Decision | None:
        return self.decisions.get(key)

    def remember(self, key: str, decision: Decision) -> None:
        self.decisions[key] = decision


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSettings:
    mode: Mode = "auto"
    direct_below: float = 0.02
    """In `auto`: the part of the window below which a catalogue is shown directly."""
    find_budget: int = 1_000
    """Tokens of a search's reply where the caller names no budget."""
    stop_early: bool = True
    """Whether a clear search gets a brief reply. Not for users: benchmarks measure what the whole budget gives."""
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


_SEARCHED = "The tools of these servers are found with find_tool:"
_SHOWN = "Tools of these servers:"
_LENGTHS = (120, 80, 50, 30)
"""Characters of a description, the longest that fits for all."""
_NAMES_SHOWN = 8
_READ = 2_000
"""Characters that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    name: str
    tools: int | None
    """None where they are not known yet."""
    description: str


def introduce(view: View, surface: Surface, weigh: Callable[[str], int], budget: int, alone: str | None = None) -> str:
    """Empty where there are no servers.

    Args:
        alone: The instructions of the only server, where there is just one and its tools are shown as they are. They
            are passed on whole if they fit the budget.
    """
    if alone and len(alone) <= _READ:
        whole = remove_invisible(alone)
        if weigh(whole) <= budget:
            return whole
    lines = list(_lines(view))
    if not lines:
        return ""
    head = _SEARCHED if surface == "search" else _SHOWN
    return next((text for text in _texts(head, lines) if weigh(text) <= budget), "")


def _lines(view: View) -> Iterator[_Line]:
    """In the order of the settings. Ullage's own tools are listed or found, but they are no server's; a database is
    told of where someone has described it."""
    entries: dict[str, list[Entry]] = {}
    for entry in view.entries:
        entries.setdefault(entry.server, []).append(entry)
    missing = {one.server for one in view.missing}
    for name in view.servers or tuple(entries):
        found = entries.get(name, [])
        if found and (not found[0].member.own or found[0].member.description):
            member = found[0].member
            said = _one_line(member.description or "") or _one_line(_said(member))
            description = said or _one_line(", ".join(entry.original for entry in found[:_NAMES_SHOWN]))
            yield _Line(name=_one_line(name), tools=len(found), description=description)
        elif name in missing:
            yield _Line(name=_one_line(name), tools=None, description="")


def _one_line(text: str) -> str:
    """What a server or a file says, such that it cannot look like a line of ours; of a very long text the beginning."""
    seen = remove_invisible(text[:_READ])
    return " ".join("".join(letter if letter.isprintable() else " " for letter in seen).split())


def _said(member: Member) -> str:
    said = _introduction_of(member)
    return "" if said is None else said.instructions or said.title or ""


def instructions_of(member: Member) -> str | None:
    """What a server wants models to know of it; None where it said nothing."""
    said = _introduction_of(member)
    return None if said is None else said.instructions


def _introduction_of(member: Member) -> Introduction | None:
    introduction = getattr(member.source, "introduction", None)
    said = introduction() if callable(introduction) else introduction
    return said if isinstance(said, Introduction) else None


def _texts(head: str, lines: Sequence[_Line]) -> Iterator[str]:
    """The same at every length, longest first."""
    for length in _LENGTHS:
        yield "\n".join([head, *(_written(line, length) for line in lines)])
    yield "\n".join([head, *(f"- {line.name}{_number(line)}" for line in lines)])
    names = [line.name for line in lines]
    shown = len(names)
    while shown:
        rest = len(names) - shown
        yield f"{head} {', '.join(names[:shown])}{f' and {rest} more' if rest else ''}"
        shown = shown * 9 // 10
    yield f"{head} {len(names)} in all"


def _written(line: _Line, length: int) -> str:
    description = first_sentence(line.description, length)
    return f"- {line.name}{_number(line)}{f': {description}' if description else ''}"


def _number(line: _Line) -> str:
    if line.tools is None:
        return ""
    return f" ({line.tools} tool{'' if line.tools == 1 else 's'})"


@dataclass(slots=True, kw_only=True)
class Standing:
    memory: SurfaceMemory
    weigh: Callable[[View], Awaitable[int]]
    """What all definitions of a view weigh."""
    window: Callable[[], int]
    decided: Decision | None = None
    _seen: str = ""
    """The revision of the view that it was last held against."""
    _promised: str | None = None
    """The configuration under which a client was told which it is."""

    def surface(self, settings: FindSettings) -> Surface:
        """As decided; before that, as the settings or memory have it."""
        if settings.mode != "auto":
            return settings.mode
        kept = self._kept(settings)
        return kept.surface if kept else "search"

    def promise(self, settings: FindSettings) -> None:
        """A client is told which it is: from now on it stands until the configuration changes."""
        if self.decided is None:
            said = Decision(surface=self.surface(settings), reason="a client was told so", certain=False)
            self.decided = replace(said, configuration=settings.configuration)
        self._promised = settings.configuration

    async def decide(self, view: View, settings: FindSettings) -> Surface:
        kept = self._kept(settings)
        if kept is None or not self._stands(kept, view, settings):
            kept = await self._anew(view, settings, kept)
        self.decided, self._seen = kept, view.revision
        return kept.surface

    def _kept(self, settings: FindSettings) -> Decision | None:
        return self.decided or self.memory.recall(settings.key)

    def _stands(self, kept: Decision, view: View, settings: FindSettings) -> bool:
        if settings.mode != "auto":
            return kept.surface == settings.mode
        if kept.configuration != settings.configuration:
            return False
        settled = self._seen == view.revision or self._promised == settings.configuration
        return settled or kept.surface == "search" or bool(view.missing)

    async def _anew(self, view: View, settings: FindSettings, kept: Decision | None) -> Decision:
        decision = decide(
            settings.mode,
            catalogue=None if view.missing else await self.weigh(view),
            window=self.window(),
            share=settings.direct_below,
            previous=kept.surface if kept else None,
        )
        decision = replace(decision, configuration=settings.configuration)
        if decision.certain and settings.mode == "auto":
            self.memory.remember(settings.key, decision)
        return decision


_SERVER = "ullage"


def listed_own(settings: FindSettings) -> tuple[Tool, ...]:
    rules = settings.own
    return tuple(
        tool
        for tool in find_tools(join_calls=settings.join_calls)
        if rules.access(tool.name) != "deny" and not rules.is_hidden(tool.name)
    )


def own_entry(name: str, source: ToolSource, settings: FindSettings) -> Entry:
    """One of our own tools with the rules for it, as if it were a server's."""
    tools = {tool.name: tool for tool in (CALL_WRITE, *find_tools(join_calls=settings.join_calls))}
    member = Member(name=_SERVER, source=source, prefix="", rules=settings.own, own=True)
    return Entry(listed=name, tool=tools[name], member=member, original=name)
