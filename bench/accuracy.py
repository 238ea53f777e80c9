"""How near are our counts to what providers reported, beside litellm, tiktoken and characters/4 on the same rows?

Run by `make bench-accuracy`. `DATA` names another folder of the same shape, `PEERS=no` leaves the peers out. Prints a
table, then what fell short of a floor, then one line of figures; fails where a floor is missed.

Claude is calibrated on part of the default data. Each of its rows is therefore judged by weights that were fitted
without the row's repository (`claude_folds.json`, marked † in the table), and by those that ship where the repository
took no part in the fit. A second table tells by provider and kind whether bands hold and exact counts are exact, see
`accuracy_bands`.
"""

import json
import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import accuracy_bands
from peers import NAMES, Peer, peer_counts
from rows import Row, Skipped, data_folder, read_rows

from ullage.messages import Format, Text
from ullage.models import shipped
from ullage.tokens import Count, Meter
from ullage.tokens.count import Reach
from ullage.tokens.estimate import CALIBRATIONS

CHAT_FAMILIES = frozenset({"gpt-3.5", "gpt-4", "gpt-4o", "gpt-4.1", "gpt-4.5"})
OPEN_MAKERS = frozenset({"deepseek", "mistral", "qwen"})
"""Whose models are judged together, whoever hosts them."""
NEW_CLAUDE = "claude_4_7"
FOLDS = Path(__file__).with_name("claude_folds.json")
_MIXED = "media, schemas, thinking and hosted tools"
WEAK: Mapping[str, float] = {
    f"api.xiaomimimo.com: {_MIXED}": 0.25,
    f"bedrock: {_MIXED}": 0.25,
    f"console.opencode.ai: {_MIXED}": 0.20,
    f"dashscope: {_MIXED}": 2.20,
    f"minimax: {_MIXED}": 0.75,
    f"mistral: {_MIXED}": 1.05,
    f"ollama: {_MIXED}": 0.85,
    f"together: {_MIXED}": 3.20,
    "bedrock claude-3.5, plain": 0.25,
    "bedrock command, tools": 0.20,
    "bedrock llama-2, plain": 0.15,
    "bedrock minimax, plain": 0.45,
    "bedrock nemotron, plain": 0.40,
    "bedrock nova, tools": 0.12,
    "bedrock palmyra, tools": 0.30,
    "bedrock titan, plain": 0.60,
    "google gemma-3, plain": 1.00,
    "groq compound, plain": 1.00,
    "huggingface llama-3, tools": 4.00,
    "minimax minimax, tools": 0.12,
}
"""Groups whose median error is above a tenth, and what it must not exceed: mostly media that the recordings have only
as an address or not at all, and hosts of which a handful of requests was recorded."""
ONE_PASSAGE = 0.1
"""Distinct words among all, below which a text is one passage said again and again (Claude only)."""
LEAST_TOKENS = 50
"""Below this a share of error says more about rounding than about counting (Claude only)."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What a group must reach: at least this share exact, at most these errors (as shares)."""

    exact: float = 0.0
    median: float = 0.10
    p95: float = math.inf
    mean: float = math.inf


@dataclass(slots=True)
class Group:
    """Rows of one provider, family and kind, and how far off each count was."""

    name: str
    floor: Floor
    errors: list[float] = field(default_factory=list)
    inside: int = 0
    left_out: bool = False
    """Whether its counts come from weights fitted without each row's repository."""
    peers: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, count: Count, reported: int, peers: dict[str, int | None]) -> None:
        self.errors.append(abs(count.tokens - reported) / reported)
        self.inside += count.low <= reported <= count.high
        for name, number in peers.items():
            if number is not None:
                self.peers[name].append(abs(number - reported) / reported)

    @property
    def title(self) -> str:
        return f"{self.name} †" if self.left_out else self.name

    @property
    def exact(self) -> float:
        return sum(error == 0 for error in self.errors) / len(self.errors)

    @property
    def mean(self) -> float:
        return sum(self.errors) / len(self.errors)

    def quantile(self, part: float) -> float:
        return quantile(self.errors, part)

    def misses(self) -> list[str]:
        reached = {"median": self.quantile(0.5), "p95": self.quantile(0.95), "mean": self.mean}
        missed = [f"exact {self.exact:.1%} < {self.floor.exact:.0%}"] if self.exact < self.floor.exact else []
        return missed + [
            f"{name} {value:.2%} > {getattr(self.floor, name):.0%}"
            for name, value in reached.items()
            if value > getattr(self.floor, name)
        ]


HOSTED: Mapping[str, tuple[str, Floor]] = {
    "web_search": ("openai, searching the web", Floor(median=0.30, mean=0.45)),
    "web_search_preview": ("openai, searching the web, which is not counted", Floor(median=0.02, p95=0.06)),
    "image_generation": ("openai, drawing", Floor(median=0.25, mean=0.70)),
    "tool_search": ("openai, searching for tools", Floor(median=0.02, p95=0.10)),
}
"""Groups of requests with a tool that OpenAI runs itself, and their floors: what a tool brings is not in a request, and
how much a search finds is anybody's guess."""


def quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")


def group_of(row: Row) -> tuple[str, Floor]:
    """The line of the table that a row belongs to, and the floor stated for it."""
    card, provider = row.match.card, row.provider
    kinds = [str(tool.hosted.get("type")) for tool in row.request.tools if tool.hosted] if provider == "openai" else []
    if found := next((HOSTED[kind] for kind in kinds if kind in HOSTED), None):
        return found
    if row.kind == "other":
        return _mixed_group(row)
    if card.provider in OPEN_MAKERS:
        return _open_group(row, card.family)
    return _NAMERS.get(provider, _other_group)(row, card.family)


def _mixed_group(row: Row) -> tuple[str, Floor]:
    name = f"{row.provider}: {_MIXED}"
    return name, Floor(median=WEAK.get(name, 0.10))


def _openai_group(row: Row, family: str) -> tuple[str, Floor]:
    if any(tool.hosted is not None for tool in row.request.tools):
        return _mixed_group(row)
    if "embedding" in family or not row.request.messages:
        return f"openai {family}, {row.kind}", Floor()
    old = family in CHAT_FAMILIES
    if row.kind == "tools":
        return (
            ("openai 3.5 to 4.1, tools", Floor(median=0.01, p95=0.05))
            if old
            else ("openai o-series and gpt-5, tools", Floor(median=0.02, p95=0.05))
        )
    if row.request.format is Format.OPENAI_RESPONSES:
        return f"openai Responses {'4.x' if old else 'reasoning'}, plain", Floor(exact=0.88)
    return (
        ("openai chat 3.5 to 4.1, plain", Floor(exact=0.98))
        if old
        else ("openai chat reasoning, plain", Floor(exact=0.88))
    )


def _claude_group(row: Row, _: str) -> tuple[str, Floor]:
    new = row.match.card.tokenizer == NEW_CLAUDE
    name = "claude 4.7 and later" if new else "claude 3 to 4.6"
    if row.kind == "tools":
        return f"{name}, tools", Floor(median=0.02)
    if row.reported < LEAST_TOKENS:
        return f"{name}, plain under {LEAST_TOKENS} tokens", Floor()
    if not new and is_one_passage(row):
        return f"{name}, plain, one passage again and again", Floor(mean=0.05, p95=0.11)
    return f"{name}, plain", Floor(mean=0.08) if new else Floor(mean=0.035, p95=0.08)


def is_one_passage(row: Row) -> bool:
    """Whether nine words of ten were said before: the error of a word then comes again instead of cancelling out."""
    parts = [part for message in (*row.request.system, *row.request.messages) for part in message.parts]
    words = [word for part in parts if isinstance(part, Text) for word in part.text.split()]
    return len(set(words)) < ONE_PASSAGE * len(words)


def _gemini_group(row: Row, family: str) -> tuple[str, Floor]:
    if not family.startswith("gemini"):
        return _other_group(row, family)
    return f"gemini, {row.kind}", Floor(exact=0.95) if row.kind == "plain" else Floor(median=0.02)


def _open_group(row: Row, _: str) -> tuple[str, Floor]:
    maker = row.match.card.provider
    return f"{maker} on any host, {row.kind}", Floor(exact=0.90) if row.kind == "plain" else Floor()


def _other_group(row: Row, family: str) -> tuple[str, Floor]:
    name = f"{row.provider} {family}, {row.kind}"
    return name, Floor(median=WEAK.get(name, 0.10))


_NAMERS: dict[str, Callable[[Row, str], tuple[str, Floor]]] = {
    "openai": _openai_group,
    "azure-openai": _openai_group,
    "anthropic": _claude_group,
    "google": _gemini_group,
    "google-vertex": _gemini_group,
}


def main() -> int:
    folder, skipped = data_folder(), Skipped({})
    if not folder.is_dir():
        print(f"no data: `{folder}` is not a folder; name one with DATA=path", file=sys.stderr)
        return 2
    everything = list(read_rows(folder, shipped(), skipped))
    rows = [row for row in everything if not row.hidden]
    groups = measure(rows, peer_counts(rows) if os.environ.get("PEERS") != "no" else None)
    report(groups, skipped)
    meters = Meters()
    banded = accuracy_bands.judge(everything, meters.shipped, Meters(reaches={}).of)
    missed = accuracy_bands.report(banded, accuracy_bands.read_before() if not os.environ.get("DATA") else {})
    return conclude(groups, len(rows), missed)


def measure(rows: Sequence[Row], peers: Sequence[Peer] | None) -> list[Group]:
    meters = Meters()
    groups: dict[str, Group] = {}
    for index, row in enumerate(rows):
        name, floor = group_of(row)
        group = groups.setdefault(name, Group(name, floor))
        meter = meters.of(row)
        group.left_out |= meter is not meters.shipped
        weight = meter.weigh(row.request, f"{row.host}/{row.model}")
        group.add(weight.total, row.reported, peers[index] if peers else {})
    return sorted(groups.values(), key=lambda group: group.name)


class Meters:
    """The meter that ships, and one for each repository that took part in the fit for Claude, fitted without it."""

    def __init__(self, reaches: Mapping[str, Reach] | None = None) -> None:
        self._reaches = reaches
        self.shipped = Meter(shipped(), reaches=reaches)
        self._folds: dict[str, dict[str, dict[str, float]]] = json.loads(FOLDS.read_text(encoding="utf-8"))
        self._made: dict[tuple[str, str], Meter] = {}

    def of(self, row: Row) -> Meter:
        tokenizer = row.match.card.tokenizer or ""
        weights = self._folds.get(tokenizer, {}).get(row.repository)
        if weights is None:
            return self.shipped
        key = tokenizer, row.repository
        if key not in self._made:
            fitted = CALIBRATIONS[tokenizer]
            calibration = replace(fitted, weights={**fitted.weights, **weights})
            calibrations = {**CALIBRATIONS, tokenizer: calibration}
            self._made[key] = Meter(shipped(), calibrations=calibrations, reaches=self._reaches)
        return self._made[key]


def report(groups: Iterable[Group], skipped: Skipped) -> None:
    print(f"{'':58}{'rows':>6}{'exact':>8}{'median':>8}{'mean':>8}{'p95':>8}{'in band':>9}   ", end="")
    print("  ".join(f"{name:>13}" for name in NAMES) + "   (mean error)")
    for group in groups:
        print(
            f"{group.title:58}{len(group.errors):>6}{group.exact:>8.1%}{group.quantile(0.5):>8.2%}{group.mean:>8.2%}"
            f"{group.quantile(0.95):>8.1%}{group.inside / len(group.errors):>9.0%}   ",
            end="",
        )
        print("  ".join(f"{mean(group.peers[name]):>13}" for name in NAMES))
    print("\nNot measured:")
    for reason, number in sorted(skipped.reasons.items(), key=lambda pair: -pair[1]):
        print(f"  {number:>5}  {reason}")


def mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.1%}" if values else "-"


def conclude(groups: Sequence[Group], rows: int, banded: Mapping[str, list[str]]) -> int:
    missed = {group.name: misses for group in groups if (misses := group.misses())} | dict(banded)
    for name, misses in missed.items():
        print(f"BELOW THE FLOOR  {name}: {'; '.join(misses)}")
    figures = {
        group.name: [
            len(group.errors),
            round(group.exact, 4),
            round(group.quantile(0.5), 4),
            round(group.quantile(0.95), 4),
        ]
        for group in groups
    }
    print(json.dumps({"rows": rows, "missed": len(missed), "rows, exact, median, p95": figures}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
