"""Who leaves what a provider would refuse, who says nothing instead of a summary, and who keeps what is needed?

Part of `make bench-context`. The same points of the same traces for everyone: steps of a session at which a window has
filled to the threshold and is not yet over, nothing having been compacted before. The original cut off the last
messages that fit 30 % of the window, whatever stood there; its way is written down here, with our weights. The others
are in `context_peers`. Of validity, only what providers refuse is told, in each of the four formats; what is needed
again is asked as in `context_continuity`, of the first compaction in each of its windows.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import anyio
from context_continuity import DEFINITIONS, Kept, Reading, Way, reading_of, rounded, windows
from context_peers import KEEP, SENTENCE, Left, left_by, peers
from context_traces import FORMATS, MODELS, Point, Trace, read_traces
from context_validity import WINDOWS, Says

from ullage.context import Options
from ullage.context.compaction import Teller, compact
from ullage.context.context_options import limits_of
from ullage.context.summary import Breaker
from ullage.context.token_weights import Scale
from ullage.messages import Format, faults, user_message, write_message
from ullage.models import shipped
from ullage.tokens import Meter, drain

FULL, MOST = 0.65, 6
"""The share of the window that is used at a point at least, and the points of a trace in one window at most."""
OURS, ORIGINAL = "ullage", "the original"


@dataclass(slots=True)
class Party:
    """Someone, and what became of the histories."""

    compacted: int = 0
    """Points; of ours those of one format."""
    placeholders: int = 0
    judged: int = 0
    """A history in one format."""
    refused: int = 0

    def judge(self, natives: Sequence[object], form: Format) -> None:
        self.judged += 1
        self.refused += bool(faults(natives, form))

    def to_json(self) -> dict[str, float]:
        return {
            "compacted": self.compacted,
            "refused": round(self.refused / max(1, self.judged), 4),
            "placeholders": round(self.placeholders / max(1, self.compacted), 4),
        }


@dataclass(slots=True)
class Figures:
    points: int
    parties: dict[str, Party] = field(default_factory=dict[str, Party])
    needed: dict[tuple[str, str], Kept] = field(default_factory=dict[tuple[str, str], Kept])
    """By party and family: identifiers that later calls need, by all definitions."""

    def shares(self, party: str) -> dict[str, float | None]:
        return {family: rounded(kept.share) for (name, family), kept in self.needed.items() if name == party}

    def missed(self) -> list[str]:
        """Nothing: what others do is no floor of ours."""
        return []

    def to_json(self) -> dict[str, object]:
        parties = {name: party.to_json() for name, party in self.parties.items()}
        return {"points": self.points, **parties, "needed": {name: self.shares(name) for name, _ in self.needed}}


def run(data: Path) -> Figures:
    meter = Meter(shipped())
    scale, traces = Scale(meter, MODELS[Format.OPENAI_CHAT], Format.OPENAI_CHAT), read_traces(data)
    points = [point for trace in traces for point in full_points(trace, scale)]
    figures = Figures(len(points), {OURS: anyio.run(ours, points, meter), ORIGINAL: originally(points, meter)})
    firsts = [first for trace in traces for first in first_points(trace, scale)]
    for first in firsts:
        first.tell(figures, OURS, anyio.run(first.ours))
    for peer in peers(wanted=os.environ.get("PEERS") != "no"):
        figures.parties[peer] = _judged(left_by(peer, points))
        for first, left in zip(firsts, left_by(peer, [first.point for first in firsts]), strict=True):
            first.tell(figures, peer, left)
    return figures


def full_points(trace: Trace, scale: Scale) -> Iterator[Point]:
    """Of each window the points that are nearest to equal distances."""
    chunks = trace.chunks(scale.format)
    fixed = drain(scale.fixed(trace.system)).total.tokens
    used = list(accumulate((_weight(chunk, scale) for chunk in chunks[:-1]), initial=fixed))[1:]
    for window in WINDOWS:
        full = [step for step, tokens in zip(trace.steps, used, strict=True) if FULL * window <= tokens <= window]
        yield from (Point(trace=trace, step=step, window=window) for step in spread(full, MOST))


def spread(steps: Sequence[int], most: int) -> list[int]:
    """As many of them, the first and the last among them, at equal distances."""
    if len(steps) <= most:
        return list(steps)
    return [steps[round(number * (len(steps) - 1) / (most - 1))] for number in range(most)]


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The first compaction of a trace in a window."""

    point: Point
    scale: Scale
    chunks: Sequence[Sequence[object]]
    """All that came before it, and the answer behind it."""
    reading: Reading

    async def ours(self) -> Left:
        made = await Way(scale=self.scale, window=self.point.window, chunks=self.chunks).points()
        if not made:
            return Left(messages=self.point.history, compacted=False)
        natives = [native for chunk in self.chunks[:-1] for native in chunk]
        known = dict(zip(map(id, natives), self.point.history, strict=True))
        return Left(messages=tuple(known.get(id(entry.native), entry.message) for entry in made[-1][1]), compacted=True)

    def tell(self, figures: Figures, party: str, left: Left) -> None:
        there = {id(message) for message in left.messages}
        gone = {place for place, message in enumerate(self.point.history) if id(message) not in there}
        tally = figures.needed.setdefault((party, self.point.trace.family), Kept())
        for definition in DEFINITIONS:
            needed = list(self.reading.needed(definition, self.point.step, gone))
            tally.needed += len(needed)
            tally.kept += sum(word in left.text for word in needed)


def first_points(trace: Trace, scale: Scale) -> Iterator[First]:
    chunks = trace.chunks(scale.format)
    used = list(accumulate(_weight(chunk, scale) for chunk in chunks[:-1]))
    reading = reading_of(trace.messages)
    for window in windows(used[-1]):
        calls = next((calls for calls, tokens in enumerate(used) if tokens >= FULL * window), None)
        if calls is not None:
            point = Point(trace=trace, step=trace.steps[calls], window=window)
            yield First(point=point, scale=scale, chunks=chunks[: calls + 2], reading=reading)


def _weight(natives: Sequence[object], scale: Scale) -> int:
    return sum(entry.weight.tokens for entry in drain(scale.entries(natives)))


async def ours(points: Sequence[Point], meter: Meter) -> Party:
    party = Party()
    for form in FORMATS:
        scale = Scale(meter, MODELS[form], form)
        for point in points:
            fixed = drain(scale.fixed(point.trace.system)).total.tokens
            entries = drain(scale.entries(_before(point, form)))
            limits = limits_of(
                Options(), point.window, fixed=fixed, used=fixed + sum(one.weight.tokens for one in entries)
            )
            teller = Teller(scale=scale, summarizer=Says(SENTENCE), breaker=Breaker(lambda: 0.0))
            made = await compact(entries, limits, scale, teller)
            party.compacted += made.compacted and form is Format.OPENAI_CHAT
            party.judge([entry.native for entry in made.entries], form)
    return party


def originally(points: Sequence[Point], meter: Meter) -> Party:
    party = Party(compacted=len(points))
    for form in FORMATS:
        scale = Scale(meter, MODELS[form], form)
        for point in points:
            party.judge(cut_anywhere(point, scale), form)
    return party


def cut_anywhere(point: Point, scale: Scale) -> list[object]:
    """A summary, and the last messages that fit."""
    natives = _before(point, scale.format)
    room, start = KEEP * point.window, len(natives)
    for entry in reversed(drain(scale.entries(natives))):
        room -= entry.weight.tokens
        if room < 0:
            break
        start -= 1
    summary = user_message(scale.format, f"<context_summary>\n{SENTENCE}\n</context_summary>")
    return [summary, *natives[start:]]


def _before(point: Point, form: Format) -> list[object]:
    """The messages before a point, as a client of the format holds them."""
    calls = point.trace.steps.index(point.step) + 1
    return [native for chunk in point.trace.chunks(form)[:calls] for native in chunk]


def _judged(answers: Sequence[Left]) -> Party:
    """Message by message, for writing a history whole would mend it."""
    party = Party()
    for left in (left for left in answers if left.compacted):
        party.compacted += 1
        party.placeholders += left.is_placeholder
        for form in FORMATS:
            party.judge([native for message in left.messages for native in write_message(message, form)], form)
    return party


def report(figures: Figures) -> None:
    print(f"{f'{figures.points} points, the same for all':34}{'compacted':>11}{'refused':>10}{'placeholder':>13}")
    for name, party in figures.parties.items():
        shares = party.to_json()
        print(f"{name:34}{party.compacted:>11}{shares['refused']:>10.1%}{shares['placeholders']:>13.1%}")
    families = list(dict.fromkeys(family for _, family in figures.needed))
    print(f"{'needed again and there':34}" + "".join(f"{family:>20}" for family in families))
    for name in dict.fromkeys(name for name, _ in figures.needed):
        row = [figures.needed[name, family] for family in families]
        print(f"{name:34}" + "".join(f"{one!s:>20}" for one in row))
