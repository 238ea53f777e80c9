"""Price of compaction policies, replayed call by call over recorded sessions with prompt-cache prices.

Part of `make bench-context`; alone, `python bench/context_money.py`. The sessions are those of `pi`, whose answers bear
time stamps and the provider's usage. Each runs through a real `Context` by the clock of the recording: unchanged
leading messages are read from the cache, the rest is written to it, and after a pause longer than the cache's lifetime
everything is written again. A summarising call is charged in full, as input that no cache holds. The agent is assumed
to behave the same afterwards, which flatters every policy that keeps less; the identifiers beside each price are what
that assumption rests on.

A single threshold says little, for it decides at which moment a session is cut: a policy's price is the mean over five
thresholds around its own, with the lowest and the highest of them. Baselines: the session's own compactions replayed
with the same prices, and the mean of plain cuts with a tail of 10 % at nine thresholds from 55 to 95 %.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
from context_alone import run_alone
from context_continuity import Figures as Identifiers
from context_continuity import Reading, reading_of, rounded, tell
from context_traces import mended, read_pi

from ullage.context import CachePrices, Context, Options, SummaryAnswer, SummaryRequest
from ullage.context.token_weights import Scale
from ullage.messages import Format, Message, write_messages
from ullage.models import shipped
from ullage.tokens import Meter, drain

MODEL, WINDOW = "claude-opus-4-5", 200_000
PRICES = CachePrices()
"""Anthropic's, in tokens of plain input."""
SUMMARY = 1_000
"""Tokens that the summarising model puts out; the recorded summaries have about as many."""
AROUND = (-0.05, -0.025, 0.0, 0.025, 0.05)
NINE = tuple(share / 100 for share in range(55, 100, 5))
CEILING = -0.08
"""What the default may cost at most, against the session's own behaviour and against the nine plain cuts."""
FLOOR = 0.95
"""The identifiers that the default keeps at least."""
ORIGINAL, DEFAULT = "the original's options (65 %, tail 30 %)", "the default"
Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the model in a recording."""

    step: int
    """Messages that stand before its answer."""
    time: float
    prompt: int
    output: int
    """Tokens, as the provider reported them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    name: str
    messages: tuple[Message, ...]
    calls: tuple[Call, ...]
    fixed: int
    """Tokens of the system prompt and the tools: what the first call weighed beside its messages."""
    bill: float
    """What the provider charged, in dollars, its own cache misses included."""


def read_recording(path: Path, scale: Scale) -> Recording | None:
    """A session of `pi` with the time and the usage of each call; None where its answers bear no usage."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    told = [line for line in lines if line.get("type") == "message"]
    raw, reports = list[Message](), dict[int, Raw]()
    for line in told:
        for message in read_pi(line["message"]):
            raw.append(message)
            # Parts stay the same objects when a recording is mended; messages do not.
            reports.update((id(part), line) for part in message.parts if "usage" in line["message"])
    messages, calls = tuple(mended(raw)), list[Call]()
    for step, message in enumerate(messages):
        line = reports.get(id(message.parts[0])) if message.role == "assistant" else None
        if line is not None:
            usage = line["message"]["usage"]
            prompt = usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
            time = datetime.fromisoformat(line["timestamp"]).timestamp()
            calls.append(Call(step=step, time=time, prompt=prompt, output=usage["output"]))
    if not calls:
        return None
    first = drain(scale.entries(write_messages(messages[: calls[0].step], scale.format)))
    fixed = max(0, calls[0].prompt - sum(entry.weight.tokens for entry in first))
    bill = sum(line["message"].get("usage", {}).get("cost", {}).get("total", 0.0) for line in told)
    return Recording(name=path.stem, messages=messages, calls=tuple(calls), fixed=fixed, bill=bill)


@dataclass(slots=True)
class Meterman:
    """Sums up what calls cost, in tokens of plain input."""

    total: float = 0.0
    last: float | None = None
    """The time of the last call."""

    def is_cold(self, time: float) -> bool:
        return self.last is None or time - self.last > PRICES.lifetime

    def charge(self, call: Call, prompt: int, common: int) -> None:
        """`common` is what begins the prompt as it began the last one."""
        read = 0 if self.is_cold(call.time) else common
        self.total += PRICES.read * read + PRICES.write * (prompt - read) + PRICES.output * call.output
        self.last = call.time


@dataclass(slots=True)
class Summarising:
    """A model that gives a summary of the usual length, and notes what it was sent."""

    scale: Scale
    window: int | None = WINDOW
    sent: int = 0
    calls: int = 0
    text: str = ""

    def __post_init__(self) -> None:
        sentence = "Some of the work is done and the rest of it goes on. "
        self.text = sentence * (SUMMARY // self.scale.count(sentence))

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        self.calls += 1
        self.sent += self.scale.count(request.instructions) + self.scale.count(request.text)
        return SummaryAnswer(text=self.text)


def recorded(recording: Recording) -> float:
    """The session's own behaviour: the prompts as they were, of which only a shrinking one breaks the cache."""
    meter, before = Meterman(), 0
    for call in recording.calls:
        if call.prompt < before:
            meter.total += before + PRICES.output * SUMMARY
        meter.charge(call, call.prompt, recording.fixed if call.prompt < before else before)
        before = call.prompt
    return meter.total


def plain_cut(recording: Recording, threshold: float, keep: float) -> float:
    """All but a tail replaced by a summary, in the provider's own tokens; the recording's own cuts are left out."""
    meter, used, sent, before = Meterman(), 0, 0, 0
    for call in recording.calls:
        used += max(0, call.prompt - before) if call.prompt >= before else 0
        before, common = call.prompt, sent
        if used >= threshold * WINDOW:
            meter.total += used + PRICES.output * SUMMARY
            used = int(recording.fixed + SUMMARY + keep * WINDOW)
            common = recording.fixed
        meter.charge(call, used, common)
        sent = used
    return meter.total


@dataclass(slots=True, kw_only=True)
class Replay:
    """A recording on its way through a `Context` of its own, at the times at which its calls were made."""

    recording: Recording
    scale: Scale
    options: Options
    meter: Meterman = field(default_factory=Meterman)
    compactions: int = 0
    kept: Identifiers = field(default_factory=Identifiers)
    weights: dict[int, int] = field(default_factory=dict[int, int])
    """Tokens of each message by its `id`."""
    held: list[object] = field(default_factory=list[object])
    """What was weighed: an `id` is an object's own only as long as it lives."""

    async def run(self, natives: Sequence[Sequence[object]], reading: Reading) -> float:
        """`natives` are the messages before each call since the one before it."""
        now, before, sent = 0.0, list[object](), tuple[object, ...]()
        fixed, summarising = self.recording.fixed, Summarising(self.scale)
        context = Context(
            model=MODEL,
            meter=self.scale.meter,
            format=self.scale.format,
            system="word " * max(0, fixed - 20),
            options=self.options,
            summarizer=summarising,
            clock=lambda: now,
        )
        for call, (*answer, last) in zip(self.recording.calls, natives, strict=True):
            context.observe(answer=answer)
            context.add(last)
            now = call.time
            ready = await context.prepare()
            before += (*answer, last)
            if ready.compacted:
                self.compactions += 1
                self.kept.compactions["all"] = self.compactions
                tell(self.kept, "all", reading, before, drain(self.scale.entries(ready.messages)))
            common = fixed + self._weigh(_common(sent, ready.messages)) if sent else 0
            self.meter.charge(call, fixed + self._weigh(ready.messages), common)
            sent = ready.messages
        self.meter.total += summarising.sent + PRICES.output * SUMMARY * summarising.calls
        return self.meter.total

    def _weigh(self, natives: Sequence[object]) -> int:
        for native in natives:
            if id(native) not in self.weights:
                self.weights[id(native)] = drain(self.scale.entries([native]))[0].weight.tokens
                self.held.append(native)
        return sum([self.weights[id(native)] for native in natives])


def _common(before: Sequence[object], after: Sequence[object]) -> Sequence[object]:
    """The messages that both begin with."""
    pairs = zip(before, after, strict=False)
    size = next((place for place, (old, new) in enumerate(pairs) if old is not new), None)
    return after[: min(len(before), len(after)) if size is None else size]


POLICIES: Mapping[str, Options] = {
    ORIGINAL: Options(keep=0.30, cold_threshold=1),
    DEFAULT: Options(),
    "threshold 40 %": Options(compact_threshold=0.40),
    "threshold 50 %": Options(compact_threshold=0.50),
    "threshold 80 %": Options(compact_threshold=0.80),
    "tail 5 %": Options(keep=0.05),
    "tail 20 %": Options(keep=0.20),
    "not before 65 %, cold or not": Options(cold_threshold=1),
    "waiting for a cold cache": Options(wait_for_cold_cache=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A policy over one recording."""

    costs: tuple[float, ...]
    """One for each threshold around the policy's own."""
    compactions: float
    identifiers: float | None
    """The share of what later calls need that is there, of the definition that fares worst; None where none needs any.
    """

    @property
    def mean(self) -> float:
        return sum(self.costs) / len(self.costs)


@dataclass(slots=True)
class Figures:
    recordings: dict[str, Recording] = field(default_factory=dict[str, Recording])
    own: dict[str, float] = field(default_factory=dict[str, float])
    nine: dict[str, float] = field(default_factory=dict[str, float])
    plain: dict[tuple[str, float], float] = field(default_factory=dict[tuple[str, float], float])
    """By recording and tail: a plain cut at 65 %."""
    policies: dict[tuple[str, str], Priced] = field(default_factory=dict[tuple[str, str], Priced])

    def against(self, name: str, policy: str) -> tuple[float, float]:
        """A policy's price against the session's own behaviour and against the nine plain cuts."""
        mean = self.policies[name, policy].mean
        return mean / self.own[name] - 1, mean / self.nine[name] - 1

    def missed(self) -> list[str]:
        if not self.recordings:
            return ["no recording of `pi` bears times and usage, so nothing is measured"]
        found = list[str]()
        for name in self.recordings:
            if any(change > CEILING for change in self.against(name, DEFAULT)):
                own, nine = self.against(name, DEFAULT)
                found.append(f"{name}: the default costs {own:+.1%} and {nine:+.1%}, more than {CEILING:+.0%}")
            kept = self.policies[name, DEFAULT].identifiers
            if kept is None:
                found.append(f"{name}: no call after a compaction needs an identifier, so nothing is measured")
            elif kept < FLOOR:
                found.append(f"{name}: the default keeps {kept:.1%} of identifiers, under {FLOOR:.0%}")
        return found

    def to_json(self) -> dict[str, object]:
        return {
            name: {
                policy: {
                    "own": round(self.against(name, policy)[0], 4),
                    "nine": round(self.against(name, policy)[1], 4),
                    "identifiers": rounded(self.policies[name, policy].identifiers),
                }
                for policy in POLICIES
            }
            for name in self.recordings
        }


def run(data: Path) -> Figures:
    figures, scale = Figures(), Scale(Meter(shipped()), MODEL, Format.ANTHROPIC)
    for path in sorted((data / "pi").glob("*.jsonl")):
        recording = read_recording(path, scale)
        if recording is None:
            continue
        name = recording.name
        figures.recordings[name], figures.own[name] = recording, recorded(recording)
        figures.nine[name] = sum(plain_cut(recording, threshold, 0.10) for threshold in NINE) / len(NINE)
        figures.plain.update(((name, keep), plain_cut(recording, 0.65, keep)) for keep in (0.30, 0.10))
        whole, natives, start = iter(write_messages(recording.messages, scale.format)), list[list[object]](), 0
        for call in recording.calls:
            size = len(write_messages(recording.messages[start : call.step], scale.format))
            natives.append([next(whole) for _ in range(size)])
            start = call.step
        messages = [entry.message for entry in drain(scale.entries([one for chunk in natives for one in chunk]))]
        reading = reading_of(messages)
        for policy, options in POLICIES.items():
            figures.policies[name, policy] = anyio.run(_priced, recording, scale, options, natives, reading)
    return figures


async def _priced(
    recording: Recording, scale: Scale, options: Options, natives: Sequence[Sequence[object]], reading: Reading
) -> Priced:
    runs, costs = list[Replay](), list[float]()
    for shift in AROUND:
        moved = replace(options, compact_threshold=options.threshold[1] + shift)
        runs.append(Replay(recording=recording, scale=scale, options=moved))
        costs.append(await runs[-1].run(natives, reading))
    needed = [kept for one in runs for kept in one.kept.found.items()]
    shares = [
        sum(kept.kept for (_, own), kept in needed if own == name)
        / max(1, sum(kept.needed for (_, own), kept in needed if own == name))
        for name in {own for (_, own), kept in needed if kept.needed}
    ]
    compactions = sum(one.compactions for one in runs) / len(runs)
    return Priced(costs=tuple(costs), compactions=compactions, identifiers=min(shares, default=None))


def report(figures: Figures) -> None:
    if not figures.recordings:
        print("no recording of `pi` bears times and usage")
    for name, recording in figures.recordings.items():
        own, nine = figures.own[name], figures.nine[name]
        print(f"{name}: {len(recording.calls)} calls, billed ${recording.bill:.2f}; in tokens of plain input:")
        columns = (("M tokens", 9), ("own", 8), ("nine cuts", 11), ("from", 8), ("to", 8), ("compactions", 13))
        print(" " * 42 + "".join(f"{title:>{width}}" for title, width in (*columns, ("identifiers", 13))))
        plain = {f"plain cut at 65 %, tail {keep:.0%}": figures.plain[name, keep] for keep in (0.30, 0.10)}
        for title, cost in {"its own compactions": own, **plain}.items():
            print(f"{title:42}{cost / 1e6:>9.2f}{cost / own - 1:>+8.1%}{cost / nine - 1:>+11.1%}")
        for policy in POLICIES:
            priced, against = figures.policies[name, policy], figures.against(name, policy)
            kept = "-" if priced.identifiers is None else f"{priced.identifiers:.1%}"
            low, high = min(priced.costs) / nine - 1, max(priced.costs) / nine - 1
            print(
                f"{policy:42}{priced.mean / 1e6:>9.2f}{against[0]:>+8.1%}{against[1]:>+11.1%}{low:>+8.1%}{high:>+8.1%}"
                f"{priced.compactions:>13.1f}{kept:>13}"
            )


if __name__ == "__main__":
    sys.exit(run_alone(run, report))
