"""Whether bands hold and exact counts are exact, for every provider and kind of request, on repositories left out.

Each row is judged by bands that were fitted without its repository (`scripts/fit_bands.py`) and, for Claude, by weights
that were fitted without it too (`claude_folds.json`). What the tables of chat templates and frames say is not fitted
anew: most of it is read from what makers publish.

Floors for a provider and kind of at least 30 rows: 95 of 100 counts in their band, 98 of 100 exact counts right. On the
recordings that come with this project also: a median band and a mean error no worse than before bands were fitted
(`accuracy_before.json`), and a share of exact counts at most five points lower. The groups in `EXCEPTIONS` may have a
wider band, and no larger error. Those three are taken of what ships, for that is what is compared. A band's width is a
share of the reported count.
"""

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rows import Row, fit_bands, samples_of

from ullage.tokens import Count, Meter, Method

BEFORE = Path(__file__).with_name("accuracy_before.json")
COVERED, RIGHT, LEAST_ROWS = 0.95, 0.98, 30
SHARE_LOST = 0.05
TOLERANCE = 1.005
"""Figures of before are rounded."""
_MEDIA = "media behind an address, or left out of the recordings, may be of any size, and the old band was too narrow"
_MISSED = "the old band missed what the new one holds: in band before"
EXCEPTIONS: Mapping[str, str] = {
    "anthropic other": _MEDIA,
    "azure-openai tools": f"{_MISSED} 72.1%",
    "bedrock other": "requests for Converse were read without tools and media: a band of almost nothing is narrow",
    "bedrock plain": "requests for Converse were read in part: in band before 60.0%",
    "bedrock tools": "tools were not read, and a band of almost nothing is narrow: in band before 18.3%",
    "cerebras tools": f"{_MISSED} 69.7%",
    "google other": _MEDIA,
    "google-vertex other": _MEDIA,
    "google-vertex tools": "thoughts behind signatures, which Vertex counts at times, were left out",
    "groq tools": f"{_MISSED} 77.9%",
    "xai other": f"{_MISSED} 35.0%",
    "xai plain": f"{_MISSED} 31.6%; most names are answered by a newer model with a prompt of its own, some are not",
}


@dataclass(slots=True)
class Judged:
    """Counts of one group against what was reported."""

    counts: list[Count] = field(default_factory=list)
    reported: list[int] = field(default_factory=list)
    redacted: list[bool] = field(default_factory=list)

    def add(self, count: Count, row: Row) -> None:
        self.counts.append(count)
        self.reported.append(row.reported)
        self.redacted.append(row.redacted)

    @property
    def covered(self) -> float:
        pairs = zip(self.counts, self.reported, strict=True)
        return sum(count.low <= reported <= count.high for count, reported in pairs) / len(self.counts)

    @property
    def exact(self) -> float:
        """The share of counts that are called exact."""
        return sum(count.method is Method.EXACT for count in self.counts) / len(self.counts)

    @property
    def right(self) -> float | None:
        """Of the counts called exact, those that are; redacted rows are left out. None where there are none."""
        trios = zip(self.counts, self.reported, self.redacted, strict=True)
        hits = [c.tokens == reported for c, reported, redacted in trios if c.method is Method.EXACT and not redacted]
        return sum(hits) / len(hits) if hits else None

    @property
    def width(self) -> float:
        pairs = zip(self.counts, self.reported, strict=True)
        return statistics.median((count.high - count.low) / reported for count, reported in pairs)

    @property
    def mean(self) -> float:
        pairs = zip(self.counts, self.reported, strict=True)
        return statistics.mean(abs(count.tokens - reported) / reported for count, reported in pairs)


@dataclass(slots=True)
class Group:
    """A provider and a kind, judged by what ships and by what was fitted without each row's repository."""

    name: str
    hidden: bool
    shipped: Judged = field(default_factory=Judged)
    left_out: Judged = field(default_factory=Judged)
    repositories: set[str] = field(default_factory=set[str])

    def misses(self, before: Mapping[str, float] | None) -> list[str]:
        if self.hidden or len(self.shipped.counts) < LEAST_ROWS:
            return []
        missed = [f"in band {self.left_out.covered:.1%} < {COVERED:.0%}"] if self.left_out.covered < COVERED else []
        right = self.left_out.right
        if right is not None and right < RIGHT:
            missed.append(f"exact right {right:.1%} < {RIGHT:.0%}")
        return missed + (self._worse(before) if before is not None else [])

    def _worse(self, before: Mapping[str, float]) -> list[str]:
        missed = []
        for figure in ("mean",) if self.name in EXCEPTIONS else ("width", "mean"):
            now = getattr(self.shipped, figure)
            if now > before[figure] * TOLERANCE + 0.0005:
                missed.append(f"{figure} {now:.2%} > {before[figure]:.2%} before")
        if self.shipped.exact < before["exact"] - SHARE_LOST:
            missed.append(f"called exact {self.shipped.exact:.1%}, {before['exact']:.1%} before")
        return missed


def judge(rows: Sequence[Row], shipped: Meter, unfitted: Callable[[Row], Meter]) -> list[Group]:
    """`unfitted` gives the meter of a row whose bands are as the rules have them, fitted without its repository."""
    samples = samples_of(rows, unfitted)
    usable = [sample for row, sample in zip(rows, samples, strict=True) if not row.redacted]
    folds = {
        repository: fit_bands.fit(sample for sample in usable if sample.repository != repository)
        for repository in {row.repository for row in rows}
    }
    groups: dict[str, Group] = {}
    for row, sample in zip(rows, samples, strict=True):
        name = f"{row.provider} {row.kind}"
        group = groups.setdefault(name, Group(name, row.hidden))
        group.repositories.add(row.repository)
        group.shipped.add(shipped.weigh(row.request, f"{row.host}/{row.model}").total, row)
        fold = folds[row.repository]
        reach = next((fold[key] for key in sample.keys if key in fold), None)
        group.left_out.add(sample.count if reach is None else reach.apply(sample.count), row)
    return sorted(groups.values(), key=lambda group: group.name)


def report(groups: Sequence[Group], before: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
    """Prints the table and gives what fell short, by group."""
    titles = f"{'rows':>6}{'repos':>6}{'in band':>9}{'exact':>7}{'right':>7}"
    print(f"\n{'repositories left out of every fit':34}{titles}    as it ships{'width':>9}{'mean':>8}{'before':>18}")
    missed: dict[str, list[str]] = defaultdict(list)
    for group in groups:
        held, ships, then = group.left_out, group.shipped, before.get(group.name)
        right = "-" if held.right is None else f"{held.right:.1%}"
        was = f"{then['width']:.0%}, {then['mean']:.1%}" if then else "-"
        mark = " hidden prompt" if group.hidden else ""
        print(
            f"{group.name:34}{len(held.counts):>6}{len(group.repositories):>6}{held.covered:>9.1%}{held.exact:>7.0%}"
            f"{right:>7}    {ships.exact:>8.0%} exact{ships.width:>9.1%}{ships.mean:>8.1%}{was:>18}{mark}"
        )
        if misses := group.misses(then):
            missed[group.name] = misses
    everything = [group.left_out for group in groups if not group.hidden]
    rows = sum(len(judged.counts) for judged in everything)
    covered = sum(judged.covered * len(judged.counts) for judged in everything) / rows
    print(f"{'all but hidden prompts':34}{rows:>6}{'':6}{covered:>9.1%}")
    for name, reason in EXCEPTIONS.items():
        print(f"  allowed a wider band than before: {name}: {reason}")
    return missed


def read_before() -> dict[str, dict[str, float]]:
    return json.loads(BEFORE.read_text(encoding="utf-8"))
