"""Decides between showing all tools and showing `find_tool`, and writes the instructions.

A catalogue that takes a small part of the window is shown directly, because search would cost more than it saves. The
decision is made when a list is first requested and kept while the configuration stays the same, also over restarts,
because every client's prompt cache depends on the list. Only a directly shown catalogue is reconsidered when it
changes, with a margin that keeps a catalogue near the threshold from flipping; and not once a client has read the
instructions, since these and the list must agree.

The user's rules for Ullage's own tools apply to search and calls too: a denied tool is neither listed nor answered, a
hidden tool is only answered.

The instructions have one line for each server: its name, the number of its tools, and a description from the
settings, else from the server, else from the names of its tools. With many servers the lines get shorter, then only
names remain, then the first of them. The text never exceeds its budget.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, Protocol

from ullage.invisible_characters import remove_invisible
from ullage.ledger import Recorder, Unrecorded
from ullage.options import IndexKind, Rules
from ullage.tool import ANONYMOUS, Caller, Tool, ToolSource

from ..merge.tool_view import Entry, Member, Missing, View
from ..reply_metadata import ASSUMED, Reference
from ..slim.schema_walk import first_sentence
from ..tool_source import Spawn
from .tool_forms import CALL_WRITE, FIND, FormsCache, find_tools
from .tool_index import Embedders, VectorCache
from .usage_learning import Learning

if TYPE_CHECKING:
    from ..results import ShapeMemory

__all__ = [
    "OWN_SERVER",
    "Decision",
    "FindSettings",
    "Mode",
    "Remembered",
    "RequestTexts",
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
"""Share of the threshold by which a catalogue must pass it before an earlier decision changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The choice between showing tools directly and searching for them."""

    surface: Surface
    reason: str
    configuration: str = ""
    """Fingerprint of the configuration that the decision was made under."""
    certain: bool = True
    """False if the catalogue was not yet known; such a decision is not stored."""


def decide(
    mode: Mode,
    *,
    catalogue: int | None,
    window: int,
    share: float = 0.02,
    previous: Surface | None = None,
) -> Decision:
    """Choose between direct and search.

    Args:
        mode: From the settings; anything but `auto` decides.
        catalogue: Tokens of all definitions; None if not all of them are known.
        window: Tokens of the model's context window.
        share: Of the window, below which a catalogue is shown directly.
        previous: The earlier decision, which a margin favours.
    """
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
    """Interface of a store of decisions, by the gateway's key."""

    def recall(self, key: str) -> Decision | None:
        """Return the stored decision for a key; None if there is none."""
        ...

    def remember(self, key: str, decision: Decision) -> None:
        """Store the decision for a key."""
        ...


@dataclass(frozen=True, slots=True)
class Remembered:
    """Stores decisions in memory."""

    decisions: dict[str, Decision] = field(default_factory=dict[str, Decision])

    def recall(self, key: str) -> Decision | None:
        return self.decisions.get(key)

    def remember(self, key: str, decision: Decision) -> None:
        self.decisions[key] = decision


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSettings:
    """The settings of `Find`."""

    mode: Mode = "auto"
    direct_below: float = 0.02
    """In `auto`: share of the window below which a catalogue is shown directly."""
    find_budget: int = 1_000
    """Tokens of a search's reply if the caller gives no budget."""
    stop_early: bool = True
    """Whether a clear search gets a brief reply. Not a user setting: benchmarks turn it off to measure the whole
    budget."""
    index: IndexKind = "static"
    """What ranks tools besides their words: a table, an encoder, or nothing."""
    learn: bool = True
    """Whether calls that followed earlier searches affect the ranking."""
    shapes: bool = True
    """Whether a search shows what tools return."""
    whole: tuple[str, ...] = ()
    """Tools, by listed names or patterns, that are listed with an `outputSchema` because the client gets their results
    whole."""
    join_calls: bool = False
    """Whether one `call_tool` takes every tool, as in the original."""
    start_wait: float = 10.0
    """Seconds that a search waits for servers whose tools are not known yet."""
    instructions_budget: int = 300
    own: Rules = field(default_factory=Rules)
    """Rules for Ullage's own tools, by name."""
    pending: tuple[Missing, ...] = ()
    """Settings files that wait for the user's approval, reported beside servers whose tools are not known."""
    key: str = "default"
    """Key under which the choice between direct and search is stored."""
    configuration: str = ""
    """Fingerprint of the settings; the choice is kept while it stays the same."""


RequestTexts = Callable[[Iterable[tuple[str, Sequence[Tool], str]]], Iterable[str] | None]
"""Writes what a program's first request has for servers, each with its name, tools and instructions; None for a program
whose requests are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Storage, callbacks and background of `Find`. The defaults store nothing between starts and have no background."""

    recorder: Recorder = field(default_factory=Unrecorded)
    reference: Callable[[Caller], Reference] = lambda _: ASSUMED
    memory: SurfaceMemory = field(default_factory=Remembered)
    """Keeps the choice of surface between starts."""
    forms: FormsCache | None = None
    """Keeps the forms of definitions between starts."""
    embedders: Embedders = field(default_factory=Embedders)
    vectors: VectorCache | None = None
    """Keeps the embeddings of definitions between starts."""
    learning: Learning | None = None
    """Learns which tools are called after which searches."""
    shapes: "ShapeMemory | None" = None
    """Knows what tools return."""
    spawn: Spawn | None = None
    """Runs preparations for searches in the background."""
    quiet: float = 0.0
    """Seconds after a list without background work, because the client is waiting for its first answers."""
    lister: Caller = ANONYMOUS
    """The caller used for lists, which are made for no caller in particular."""
    request_texts: RequestTexts = lambda _: None
    """Writes what the client's program sends."""
    counts: FormsCache | None = None
    """Keeps the tokens of these texts between starts."""
    clock: Callable[[], float] = time.perf_counter
    """Monotonic seconds."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


_SEARCHED = "The tools of these servers are found with find_tool:"
_SHOWN = "Tools of these servers:"
_LENGTHS = (90, 70, 50, 30)
"""Lengths of descriptions in characters; the longest at which all lines fit is used."""
_NAMES_SHOWN = 8
_READ = 2_000
"""Most characters read of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    name: str
    tools: int | None
    """None where they are not known yet."""
    description: str


def introduce(view: View, surface: Surface, weigh: Callable[[str], int], budget: int, alone: str | None = None) -> str:
    """Return the instructions within the budget; empty if there are no servers.

    Args:
        view: The servers and their tools.
        surface: Whether tools are shown or searched for.
        weigh: Counts tokens.
        budget: In tokens.
        alone: The instructions of the only server, if there is one and its tools are shown directly. They are passed
            on whole if they fit the budget.
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
    """Yield a line for each server, in the order of the settings.

    Ullage's own tools belong to no server and are omitted, except for a database with a description.
    """
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
    """Return an untrusted text on one line, so that it cannot imitate a line of Ullage's; only the beginning of a
    long text."""
    seen = remove_invisible(text[:_READ])
    return " ".join("".join(letter if letter.isprintable() else " " for letter in seen).split())


def _said(member: Member) -> str:
    said = member.source.introduction()
    return "" if said is None else said.instructions or said.title or ""


def instructions_of(member: Member) -> str | None:
    """Return a server's own instructions; None if it has none."""
    said = member.source.introduction()
    return None if said is None else said.instructions


def _texts(head: str, lines: Sequence[_Line]) -> Iterator[str]:
    """Yield the instructions at decreasing lengths."""
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
    """Keeps the current choice between direct and search, and revises it when the rules above allow."""

    memory: SurfaceMemory
    weigh: Callable[[View], Awaitable[int]]
    """Counts the tokens of all definitions in a view."""
    window: Callable[[], int]
    decided: Decision | None = None
    _seen: str = ""
    """Revision of the view that the decision was last checked against."""
    _promised: str | None = None
    """Configuration under which a client has read the instructions."""

    def surface(self, settings: FindSettings) -> Surface:
        """Return the decision; before there is one, that of the settings or of memory."""
        if settings.mode != "auto":
            return settings.mode
        kept = self._kept(settings)
        return kept.surface if kept else "search"

    def promise(self, settings: FindSettings) -> None:
        """Fix the choice until the configuration changes, because a client reads the instructions now."""
        if self.decided is None:
            said = Decision(surface=self.surface(settings), reason="a client was told so", certain=False)
            self.decided = replace(said, configuration=settings.configuration)
        self._promised = settings.configuration

    async def decide(self, view: View, settings: FindSettings) -> Surface:
        """Return the kept choice if it is still valid for this view, else decide again."""
        kept = self._kept(settings)
        if kept is None or not self._stands(kept, view, settings):
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
            kept = decision
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


OWN_SERVER = "ullage"
"""Server name of Ullage's own tools."""


def listed_own(settings: FindSettings) -> tuple[Tool, ...]:
    """Return those of Ullage's own tools that are neither denied nor hidden."""
    rules = settings.own
    return tuple(
        tool
        for tool in find_tools(
            join_calls=settings.join_calls, is_typed=any(fnmatchcase(FIND.name, one) for one in settings.whole)
        )
        if rules.access(tool.name) != "deny" and not rules.is_hidden(tool.name)
    )


def own_entry(name: str, source: ToolSource, settings: FindSettings) -> Entry:
    """Return one of Ullage's own tools as an entry with its rules."""
    tools = {tool.name: tool for tool in (CALL_WRITE, *find_tools(join_calls=settings.join_calls))}
    member = Member(name=OWN_SERVER, source=source, prefix="", rules=settings.own, own=True)
    return Entry(listed=name, tool=tools[name], member=member, original=name)
