"""Is what a compaction leaves always what a provider takes, with everything in it that must stay?

Part of `make bench-context`. Every trace runs through every window in each of the four formats, and before each call of
a model what fills the window to the threshold is compacted; the trace goes on from what is left. Once more it is given
as a whole, as someone does who opens an old session. A summarising model says nothing, or one sentence, or is not
there. Some messages on the way are pinned, but not the first: a task must survive without that.

The validator is the package's own (`ullage.messages.faults`), which knows the providers' rules and not our cuts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path

import anyio
from context_seen import Figures, Seen, report
from context_traces import FORMATS, MODELS, Trace, read_traces

from ullage.context import Entry, Options, SummaryAnswer, SummaryRequest
from ullage.context.compaction import Compaction, Teller, compact
from ullage.context.context_options import Limits, limits_of
from ullage.context.summary import Breaker
from ullage.context.token_weights import Scale
from ullage.messages import Format, Text, Thinking, ToolCall, ToolResult, faults
from ullage.models import shipped
from ullage.tokens import Meter, drain

__all__ = ["WINDOWS", "Says", "report", "run"]

WINDOWS = (8_000, 16_000, 32_000, 64_000, 128_000)
FULL = 0.65
PIN_EVERY, PIN_FROM, PIN_LIGHT = 10, 2, 0.05
"""How many steps apart something is pinned, from which on, and which share of the window all of that weighs at most."""
TASK, EDGE = 0.15, 80
"""The share of the window up to which a task is kept whole, and the characters of either end of a longer one."""
LIMIT = re.compile(r"[^.!?\n]*\b(?:must|never|only|do not|don't|always)\b[^.!?\n]*", re.IGNORECASE)
"""A sentence that sets a constraint, by a narrower rule than the package's own."""
REST = 5
"""Steps after which a compaction that came to nothing is tried again."""
ENOUGH = 25
"""Compactions of one trace in one window."""


@dataclass(frozen=True, slots=True)
class Says:
    """A summarising model that always says the same."""

    words: str
    window: int | None = None

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        return SummaryAnswer(text=self.words)


SUMMARIZERS: Mapping[str, Says | None] = {
    "says nothing": Says(""),
    "says a sentence": Says("The user asked for something, much of it is done, and the rest of the work goes on."),
    "is not there": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A trace in one format, weighed once for all windows."""

    trace: Trace
    scale: Scale
    fixed: int
    chunks: tuple[tuple[Entry, ...], ...]
    """By what came between two calls of the model; the last answer is left out, for nobody was called after it."""

    @property
    def used(self) -> int:
        return self.fixed + sum(map(_weight, self.chunks))

    @property
    def is_text(self) -> bool:
        return not any(isinstance(part, ToolCall) for message in self.trace.messages for part in message.parts)


def weighed(trace: Trace, format: Format, meter: Meter) -> Weighed:  # noqa: A002
    scale = Scale(meter, MODELS[format], format)
    chunks = trace.chunks(format)[:-1]
    entries = iter(drain(scale.entries([native for chunk in chunks for native in chunk])))
    return Weighed(
        trace=trace,
        scale=scale,
        fixed=drain(scale.fixed(trace.system)).total.tokens,
        chunks=tuple(tuple(islice(entries, len(chunk))) for chunk in chunks),
    )


@dataclass(slots=True, kw_only=True)
class Run:
    """A trace on its way through one window."""

    weighed: Weighed
    window: int
    summarizer: str
    breaker: Breaker = field(default_factory=lambda: Breaker(lambda: 0.0))
    entries: tuple[Entry, ...] = ()
    steps: int = 0
    pinned: int = 0
    """Tokens."""
    asked: int = 0
    generation: int = 1
    task: str = ""
    """The first words of the user's."""

    @property
    def scale(self) -> Scale:
        return self.weighed.scale

    @property
    def fixed(self) -> int:
        return self.weighed.fixed

    def grow(self, chunk: Sequence[Entry]) -> None:
        """As it was weighed in the whole, until something is let go for the first time."""
        if not self.task:
            self.task = next((_words(one) for one in chunk if one.message.role == "user"), "")
        if self.asked:
            whole, since = drain(self.scale.grown(self.entries, [one.native for one in chunk])), len(self.entries)
            self.entries, chunk = whole[:since], whole[since:]
        self.entries = (*self.entries, *self._perhaps_pinned(chunk))

    def _perhaps_pinned(self, chunk: Sequence[Entry]) -> Sequence[Entry]:
        """The first message of a step, whose whole step then stays."""
        self.steps += 1
        if self.steps % PIN_EVERY != PIN_FROM or self.pinned + _weight(chunk) > PIN_LIGHT * self.window:
            return chunk
        self.pinned += _weight(chunk)
        return (replace(chunk[0], pinned=True), *chunk[1:])

    @property
    def used(self) -> int:
        return self.fixed + _weight(self.entries)

    @property
    def limits(self) -> Limits:
        return limits_of(Options(), self.window, fixed=self.fixed, used=self.used)

    async def compact(self) -> Seen:
        teller = Teller(
            scale=self.scale,
            summarizer=SUMMARIZERS[self.summarizer],
            breaker=self.breaker,
            generation=self.generation,
            recalls=True,
        )
        before = self.entries if self.asked else drain(self.scale.together(self.entries))
        self.asked += 1
        made = await compact(before, self.limits, self.scale, teller)
        self.entries, self.generation = made.entries, self.generation + made.compacted
        return self._seen(before, made)

    def _last_said(self, entries: Sequence[Entry]) -> list[Entry]:
        """Where no tool was ever called, the recording's protocol is text and only the task is the user's own."""
        return _last_said(entries[:1] if self.weighed.is_text else entries)

    def _keeps(self, text: str, left: Sequence[Entry]) -> bool:
        """Whether words are there to the letter; of more than a share of the window, both ends and every constraint."""
        there = "\n".join(map(_words, left))
        if text in there:
            return True
        if self.scale.count(text) <= TASK * self.window:
            return False
        limits = [found.strip() for found in LIMIT.findall(text)]
        return all(one in there for one in (text.strip()[:EDGE], text.strip()[-EDGE:], *limits))

    def _seen(self, before: Sequence[Entry], made: Compaction) -> Seen:
        natives, left = [entry.native for entry in before], {id(entry.native) for entry in made.entries}
        last, pinned = self._last_said(before), [entry for entry in before if entry.pinned]
        return Seen(
            family=self.weighed.trace.family,
            name=self.weighed.trace.name,
            format=self.scale.format,
            window=self.window,
            summarizer=self.summarizer,
            before=(self.fixed + _weight(before)) / self.window,
            after=(self.fixed + _weight(made.entries)) / self.window,
            tiers=tuple(shed.tier for shed in made.sheds),
            warning=made.warning or "",
            faults=faults([entry.native for entry in made.entries], self.scale.format, original=natives)
            if made.compacted
            else (),
            keeps_last=all(id(entry.native) in left or self._keeps(_words(entry), made.entries) for entry in last),
            keeps_task=self._keeps(self.task, made.entries),
            keeps_pinned=all(id(entry.native) in left for entry in pinned),
            stuck=(self.fixed + stuck(before)) / self.window,
        )


def _words(entry: Entry) -> str:
    return "\n".join(part.text for part in entry.message.parts if isinstance(part, Text))


def _weight(entries: Iterable[Entry]) -> int:
    return sum(entry.weight.tokens for entry in entries)


def _last_said(entries: Sequence[Entry]) -> list[Entry]:
    """The last message in which the user says something and does not only bring results."""
    said = [one for one in entries if one.kind == "message" and one.message.role == "user" and _says(one)]
    return said[-1:]


def _says(entry: Entry) -> bool:
    return not all(isinstance(part, ToolResult) for part in entry.message.parts)


def _brings_results(entry: Entry) -> bool:
    return any(isinstance(part, ToolResult) for part in entry.message.parts)


def stuck(entries: Sequence[Entry]) -> int:
    """What must stay weighs: whole steps of what is pinned, of the user's last message and of the newest; and where the
    model thinks between calls, all since the user spoke without bringing results."""
    steps = list(_steps(entries))
    said = [place for place, step in enumerate(steps) if _last_said(step)]
    turn = [place for place in said if steps[place][0].message.role == "user"]
    since = range(turn[-1] if turn else 0, len(steps))
    thinks = any(isinstance(part, Thinking) for place in since for one in steps[place] for part in one.message.parts)
    kept = {place for place, step in enumerate(steps) if any(entry.pinned for entry in step)}
    kept |= {*said[-1:], len(steps) - 1, *(since if thinks else ())}
    return sum(_weight(steps[place]) for place in kept)


def _steps(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """A message of the user's, or an answer with the results of its calls."""
    step = list[Entry]()
    for entry in entries:
        answers = entry.message.role == "assistant" and not (step and step[-1].message.role == "assistant")
        if step and (answers or (entry.message.role == "user" and not _brings_results(entry))):
            yield step
            step = []
        step.append(entry)
    yield step


async def through(run: Run) -> list[Seen]:
    """The compactions on the way through a trace; one in vain is tried again some steps later, or when it must be."""
    seen, rests = list[Seen](), 0
    for chunk in run.weighed.chunks:
        run.grow(chunk)
        rests -= 1
        if run.used >= run.limits.hard or (run.used >= run.limits.soft and rests <= 0):
            seen.append(await run.compact())
            rests = 0 if seen[-1].tiers else REST
        if len(seen) == ENOUGH:
            break
    return seen


async def at_once(run: Run) -> list[Seen]:
    """The one compaction of a session that is opened when it is long over its window."""
    for chunk in run.weighed.chunks:
        run.grow(chunk)
    return [await run.compact()]


def runs(weighed: Weighed) -> Iterator[Run]:
    """One a summarising model and window that is ever full."""
    for window in WINDOWS:
        if weighed.used >= FULL * window:
            yield from (Run(weighed=weighed, window=window, summarizer=summarizer) for summarizer in SUMMARIZERS)


def runs_at_once(weighed: Weighed) -> Iterator[Run]:
    """One a window that is ever full, the summarising models by turns."""
    for window, summarizer in zip(WINDOWS, cycle(SUMMARIZERS), strict=False):
        if weighed.used >= FULL * window:
            yield Run(weighed=weighed, window=window, summarizer=summarizer)


def run(data: Path) -> Figures:
    return anyio.run(_run, read_traces(data), Meter(shipped()))


async def _run(traces: Sequence[Trace], meter: Meter) -> Figures:
    figures = Figures(len(traces))
    for form in FORMATS:
        for trace in traces:
            there = weighed(trace, form, meter)
            figures.seen += [seen for one in runs(there) for seen in await through(one)]
            figures.seen += [seen for one in runs_at_once(there) for seen in await at_once(one)]
    return figures
