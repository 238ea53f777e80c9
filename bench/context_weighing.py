"""How near is the figure of how full the window is, and what does it cost to have it before every call?

The accounting part of `make bench-context`, over sessions of the agent `pi` in which every answer bears the usage that
the provider reported. Each call of the model is foretold twice: from the reports of the calls before it, and from
nothing but its messages. The recordings have neither system prompt nor tools; what the first call weighed beside its
messages stands for them. A call right after a compaction of the recording has no report to go on from, and is shown
apart. Prints a table, then what fell short of a floor; fails where a floor is missed.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hold
from accuracy import quantile
from context_traces import data_folder

from ullage.context.token_weights import Anchored, Entry, Fixed, Scale, observe
from ullage.context.window_usage import usage_of
from ullage.messages import Format
from ullage.models import Usage, shipped
from ullage.tokens import Count, Meter, Method, drain

ANCHORED_P95, WEIGHED_MEAN = 0.002, 0.05
MOST_MILLISECONDS = 2.0
"""Of processor: what a step costs on the mean, and what the figure alone costs in 19 of 20, with the largest session
in memory."""
MOST_HELD = 20.0
"""Milliseconds for which weighing a whole session holds the event loop at most."""
LARGE = 0.8
"""The part of the session after which a step counts as one of a large session."""
Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the model, as recorded."""

    history: tuple[Raw, ...]
    """What was sent."""
    usage: Usage
    answer: Raw | None
    compacted: bool
    """Whether what was sent was compacted since the call before."""


@dataclass(slots=True)
class Figures:
    calls: int = 0
    messages: int = 0
    """Of the largest session, none let go."""
    tokens: int = 0
    anchored: list[float] = field(default_factory=list[float])
    """By how much of the prompt each figure that had a report to go on from was off."""
    carried: list[float] = field(default_factory=list[float])
    """The same, right after a compaction."""
    weighed: list[float] = field(default_factory=list[float])
    """The same, from the messages alone."""
    inside: int = 0
    """Prompts within the band of the anchored figure."""
    step: float = 0.0
    """Milliseconds of processor for a step of a large session: new messages weighed, a report taken, a figure had."""
    figure: float = 0.0
    """Milliseconds for the figure alone, in 19 of 20."""
    held: float = 0.0
    """Milliseconds of the longest stretch in which weighing the largest session lets nobody else in."""

    def missed(self) -> list[str]:
        mean, p95 = sum(self.weighed) / len(self.weighed), quantile(self.anchored, 0.95)
        return [
            line
            for line, is_missed in (
                (f"anchored p95 {p95:.3%} > {ANCHORED_P95:.1%}", p95 > ANCHORED_P95),
                (f"weighed mean {mean:.2%} > {WEIGHED_MEAN:.0%}", mean > WEIGHED_MEAN),
                (f"a step costs {self.step:.2f} ms > {MOST_MILLISECONDS}", self.step > MOST_MILLISECONDS),
                (f"the figure costs {self.figure:.2f} ms > {MOST_MILLISECONDS}", self.figure > MOST_MILLISECONDS),
                (f"weighing holds the loop {self.held:.1f} ms > {MOST_HELD}", self.held > MOST_HELD),
            )
            if is_missed
        ]

    def to_json(self) -> dict[str, float]:
        return {
            "calls": self.calls,
            "anchored p95": round(quantile(self.anchored, 0.95), 6),
            "anchored in band": round(self.inside / len(self.anchored), 3),
            "weighed mean": round(sum(self.weighed) / len(self.weighed), 5),
            "weighed p95": round(quantile(self.weighed, 0.95), 5),
            "step ms": round(self.step, 3),
            "figure ms": round(self.figure, 3),
            "held ms": round(self.held, 1),
        }


def run(data: Path) -> Figures:
    """The figures of all recorded sessions of `pi` under the folder."""
    figures = Figures()
    for path in sorted((data / "pi").glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        calls = list(read_calls(lines))
        figures.calls += len(calls)
        model = next(line["message"]["model"] for line in lines if line.get("message", {}).get("role") == "assistant")
        foretell(calls, model, figures)
        natives = [native for line in lines if (native := _native(line)) is not None]
        time_steps(natives, model, figures)
    return figures


def read_calls(lines: list[Raw]) -> Iterator[Call]:
    answered = {line["message"].get("toolCallId") for line in lines if line["type"] == "message"}
    history, compacted = dict[int, Raw](), False
    for place, line in enumerate(lines):
        if line["type"] == "compaction":
            kept = {at: native for at, native in history.items() if at >= line["firstKeptEntryIndex"]}
            history, compacted = {place: _summary(line["summary"]), **kept}, True
            continue
        native = _native(line, answered)
        if _reported(line):
            yield Call(
                history=tuple(history.values()), usage=_usage(line["message"]), answer=native, compacted=compacted
            )
            compacted = False
        if native is not None:
            history[place] = native


def _reported(line: Raw) -> bool:
    """An answer that was broken off before it began reports nothing."""
    usage = line.get("message", {}).get("usage")
    return usage is not None and usage["input"] + usage["cacheRead"] + usage["cacheWrite"] > 0


def _usage(message: Raw) -> Usage:
    said = message["usage"]
    return Usage(input=said["input"] + said["cacheRead"] + said["cacheWrite"], output=said["output"])


def _summary(text: str) -> Raw:
    return {"role": "user", "content": f"<context_summary>\n{text}\n</context_summary>"}


def _native(line: Raw, answered: set[str] | None = None) -> Raw | None:
    """The message as `pi` sends it to Anthropic: without calls that nobody ran and thinking that bears no signature."""
    message = line.get("message", {})
    match message.get("role"):
        case "user":
            return {"role": "user", "content": message["content"]}
        case "bashExecution":
            return {"role": "user", "content": f"Ran `{message['command']}`\n```\n{message['output']}\n```"}
        case "toolResult":
            result = {"type": "tool_result", "tool_use_id": message["toolCallId"], "is_error": message["isError"]}
            return {"role": "user", "content": [result | {"content": message["content"]}]}
        case "assistant":
            blocks = [block for part in message["content"] for block in _blocks(part, answered)]
            return {"role": "assistant", "content": blocks} if blocks else None
        case _:
            return None


def _blocks(part: Raw, answered: set[str] | None) -> Iterator[Raw]:
    if part["type"] == "text" and part["text"].strip():
        yield {"type": "text", "text": part["text"]}
    elif part["type"] == "thinking" and part.get("thinkingSignature"):
        yield {"type": "thinking", "thinking": part["thinking"], "signature": part["thinkingSignature"]}
    elif part["type"] == "toolCall" and (answered is None or part["id"] in answered):
        yield {"type": "tool_use", "id": part["id"], "name": part["name"], "input": part["arguments"]}


def foretell(calls: list[Call], model: str, figures: Figures) -> None:
    scale = Scale(Meter(shipped()), model, Format.ANTHROPIC)
    fixed = _overhead(scale, calls[0])
    entries, anchored = tuple[Entry, ...](), None
    for call in calls:
        entries = _entries(scale, entries, call)
        true = call.usage.input or 1
        if call is not calls[0]:
            figures.weighed.append(abs(usage_of(scale, fixed, entries).used - true) / true)
            _compare(scale, entries, anchored, call, figures)
        sent, entries = entries, _answered(scale, entries, call)
        anchored = observe(scale, call.usage, fixed=Fixed(), sent=sent, answer=entries[len(sent) :], before=anchored)


def _compare(scale: Scale, entries: tuple[Entry, ...], anchored: Anchored | None, call: Call, figures: Figures) -> None:
    """The anchored figure knows nothing of system prompt and tools but what was reported."""
    found, true = usage_of(scale, Fixed(), entries, anchored=anchored), call.usage.input or 1
    off = abs(found.used - true) / true
    if found.method is Method.ANCHORED:
        figures.anchored.append(off)
        figures.inside += found.low <= true <= found.high
    else:
        figures.carried.append(off)


def _overhead(scale: Scale, first: Call) -> Fixed:
    weighed = sum(entry.weight.tokens for entry in drain(scale.entries(first.history)))
    return Fixed(system_prompt=Count.exact((first.usage.input or 0) - weighed))


def _entries(scale: Scale, entries: tuple[Entry, ...], call: Call) -> tuple[Entry, ...]:
    """The history that was sent; what was in the one before stays the same object, as in a real loop."""
    if call.compacted:
        known = {id(entry.native): entry for entry in entries}
        fresh = [native for native in call.history if id(native) not in known]
        made = {id(entry.native): entry for entry in drain(scale.entries(fresh))}
        return tuple((known | made)[id(native)] for native in call.history)
    return drain(scale.grown(entries, call.history[len(entries) :]))


def _answered(scale: Scale, entries: tuple[Entry, ...], call: Call) -> tuple[Entry, ...]:
    return entries if call.answer is None else drain(scale.grown(entries, [call.answer]))


def time_steps(natives: list[Raw], model: str, figures: Figures) -> None:
    """A session of which nothing is let go, message by message."""
    _, held = hold.run(_warm(model).entries(natives))
    scale, entries, steps, alone = _warm(model), tuple[Entry, ...](), list[float](), list[float]()
    anchored = None
    for native in natives:
        begin = time.thread_time()
        entries = drain(scale.grown(entries, [native]))
        middle = time.thread_time()
        found = usage_of(scale, Fixed(), entries, anchored=anchored)
        end = time.thread_time()
        anchored = observe(scale, Usage(input=found.used), fixed=Fixed(), sent=entries, before=anchored)
        steps.append(time.thread_time() - begin)
        alone.append(end - middle)
    large = int(LARGE * len(natives))
    if len(natives) > figures.messages:
        figures.messages, figures.tokens = len(natives), sum(entry.weight.tokens for entry in entries)
        figures.step = 1000 * sum(steps[large:]) / len(steps[large:])
        figures.figure = 1000 * quantile(alone[large:], 0.95)
        figures.held = 1000 * held


def _warm(model: str) -> Scale:
    """With its vocabularies loaded, and nothing counted yet."""
    scale = Scale(Meter(shipped()), model, Format.ANTHROPIC)
    scale.count("xqzptlk")
    return scale


def report(figures: Figures) -> None:
    print(f"{'how far a call is foretold':34}{'calls':>7}{'median':>9}{'mean':>9}{'p95':>9}{'worst':>9}")
    rows = {
        "from the reports before it": figures.anchored,
        "right after a compaction": figures.carried,
        "from its messages alone": figures.weighed,
    }
    for name, errors in rows.items():
        mean = sum(errors) / max(1, len(errors))
        print(f"{name:34}{len(errors):>7}{quantile(errors, 0.5):>9.3%}{mean:>9.3%}", end="")
        print(f"{quantile(errors, 0.95):>9.3%}{max(errors, default=0.0):>9.2%}")
    print(f"in the band of the first: {figures.inside / len(figures.anchored):.1%}")
    print(f"a session of {figures.messages} messages and {figures.tokens:,} tokens, none let go: ", end="")
    print(f"{figures.step:.2f} ms a step, of which the figure {figures.figure:.2f} ms (p95); ", end="")
    print(f"weighing it whole holds the event loop {figures.held:.1f} ms at most")


def main() -> int:
    folder = data_folder()
    if not (folder / "pi").is_dir():
        print(f"no data: `{folder}` has no folder `pi`; name one with DATA=path", file=sys.stderr)
        return 2
    figures = run(folder)
    report(figures)
    missed = figures.missed()
    print("\n".join(f"BELOW THE FLOOR  {line}" for line in missed))
    print(json.dumps(figures.to_json() | {"missed": len(missed)}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
