"""Who leaves a history that a provider would refuse, and who says nothing instead of a summary?

Part of `make bench-context`. The same points of the same traces for everyone: the steps of a session at which a window
has filled to the threshold and is not yet over, nothing having been compacted before. The original cut off the last
messages that fit 30 % of the window, whatever stood there; its way is written down here, with our weights. The others
are in `context_peers`. Told is only what providers refuse, in each of the four formats.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from context_peers import KEEP, SENTENCE, Left, left_by, peers
from context_traces import FORMATS, MODELS, Point, Trace, read_traces
from context_validity import WINDOWS

from ullage.context.weighing import Scale
from ullage.messages import Format, faults, user_message, write_message
from ullage.models import shipped
from ullage.tokens import Meter, drain

FULL, MOST = 0.65, 6
"""The share of the window that is used at a point at least, and the points of a trace in one window at most."""
ORIGINAL = "the original"


@dataclass(slots=True)
class Party:
    """Someone, and what became of the histories."""

    compacted: int = 0
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

    def missed(self) -> list[str]:
        """Nothing: what others do is no floor of ours."""
        return []

    def to_json(self) -> dict[str, object]:
        return {"points": self.points, **{name: party.to_json() for name, party in self.parties.items()}}


def run(data: Path, *, with_peers: bool = True) -> Figures:
    meter = Meter(shipped())
    scale = Scale(meter, MODELS[Format.OPENAI_CHAT], Format.OPENAI_CHAT)
    points = [point for trace in read_traces(data) for point in full_points(trace, scale)]
    figures = Figures(len(points), {ORIGINAL: originally(points, meter)})
    for peer in peers(wanted=with_peers):
        figures.parties[peer] = _judged(left_by(peer, points))
    return figures


def full_points(trace: Trace, scale: Scale) -> Iterator[Point]:
    """Of each window the points that are nearest to equal distances."""
    chunks = trace.chunks(scale.format)
    fixed = drain(scale.fixed(trace.system)).total.tokens
    weights = [sum(entry.weight.tokens for entry in drain(scale.entries(chunk))) for chunk in chunks]
    used = list(accumulate(weights[:-1], initial=fixed))[1:]
    for window in WINDOWS:
        full = [step for step, tokens in zip(trace.steps, used, strict=True) if FULL * window <= tokens <= window]
        yield from (Point(trace=trace, step=step, window=window) for step in spread(full, MOST))


def spread(steps: Sequence[int], most: int) -> list[int]:
    """As many of them, the first and the last among them, at equal distances."""
    if len(steps) <= most:
        return list(steps)
    return [steps[round(number * (len(steps) - 1) / (most - 1))] for number in range(most)]


def originally(points: Sequence[Point], meter: Meter) -> Party:
    party = Party(compacted=len(points))
    for form in FORMATS:
        scale = Scale(meter, MODELS[form], form)
        for point in points:
            party.judge(cut_anywhere(point, scale), form)
    return party


def cut_anywhere(point: Point, scale: Scale) -> list[object]:
    """A summary, and the last messages that fit."""
    calls = point.trace.steps.index(point.step) + 1
    natives = [native for chunk in point.trace.chunks(scale.format)[:calls] for native in chunk]
    room, start = KEEP * point.window, len(natives)
    for entry in reversed(drain(scale.entries(natives))):
        room -= entry.weight.tokens
        if room < 0:
            break
        start -= 1
    summary = user_message(scale.format, f"<context_summary>\n{SENTENCE}\n</context_summary>")
    return [summary, *natives[start:]]


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
