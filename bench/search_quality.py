"""How often does a search bring the tools that were needed, beside other rankings?

Every ranking answers every query of every set, each set with its own tools. Prints a table for each measure and how far
ours are ahead, with intervals (`search_intervals`). Floors are for means of nDCG@10 over sets; where the encoder or the
peers' encoder is not at hand, what hangs on it is left out and said to be.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import search_peers
from search_elsewhere import answers_elsewhere, have_encoder
from search_intervals import Draws, Interval, draw
from search_minilm import have_minilm
from search_ours import Answers, answers
from search_sets import MEASURES, Maker, Set, judge

__all__ = ["Quality", "measure", "report"]

_PEERS: Mapping[str, Maker] = {
    "fastmcp": search_peers.fastmcp,
    "FTS5": search_peers.fts5,
    "mcp-opt": search_peers.mcp_optimizer,
    "ToolHive": search_peers.toolhive,
}
_NEED_MINILM = frozenset({"mcp-opt", "ToolHive"})
_BEST_PEER = "the best peer"
_FLOORS = (
    ("fused", "lexical", 3.5),
    ("fused", _BEST_PEER, 5.0),
    ("fused+enc", "lexical", 5.0),
    ("fused+enc", _BEST_PEER, 7.0),
)
"""A ranking, what it must be ahead of, and by how many points of mean nDCG@10."""
_JUDGED_BY = MEASURES.index("nDCG@10")
_WIDTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    ranking: str
    other: str
    floor: float
    interval: Interval

    @property
    def missed(self) -> bool:
        return self.interval.mean < self.floor

    def __str__(self) -> str:
        by = self.interval
        return f"{self.ranking} - {self.other}: {by.mean:+.2f} [{by.low:+.2f}, {by.high:+.2f}], floor {self.floor:+g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    sets: Sequence[Set]
    rankings: Sequence[str]
    values: Sequence[np.ndarray]
    """Of each set, queries by rankings by measures."""
    draws: Draws
    left_out: Sequence[str]

    @property
    def ahead(self) -> list[Ahead]:
        peers = [name for name in self.rankings if name in _PEERS]
        best = max(peers, key=lambda name: self._interval(name).mean, default=None)
        pairs = [(name, best if other == _BEST_PEER else other, floor) for name, other, floor in _FLOORS]
        return [
            Ahead(ranking=name, other=other, floor=floor, interval=self._difference(name, other))
            for name, other, floor in pairs
            if other is not None and name in self.rankings
        ]

    def _interval(self, name: str) -> Interval:
        return self.draws.of(self.rankings.index(name), _JUDGED_BY)

    def _difference(self, name: str, other: str) -> Interval:
        return self.draws.ahead(self.rankings.index(name), self.rankings.index(other), _JUDGED_BY)

    def missed(self) -> list[str]:
        return [f"{each} points of nDCG@10" for each in self.ahead if each.missed]

    def to_json(self) -> Mapping[str, object]:
        return {
            "sets": {each.name: [len(each.tools), len(each.queries)] for each in self.sets},
            "mean, low, high": {
                measure: {name: self.draws.of(column, place).to_json() for column, name in enumerate(self.rankings)}
                for place, measure in enumerate(MEASURES)
            },
            "nDCG@10 by set": {
                each.name: dict(zip(self.rankings, values.mean(axis=0)[:, _JUDGED_BY].round(2).tolist(), strict=True))
                for each, values in zip(self.sets, self.values, strict=True)
            },
            "ahead": {f"{each.ranking} - {each.other}": each.interval.to_json() for each in self.ahead},
            "left out": list(self.left_out),
        }


def measure(sets: Sequence[Set]) -> Quality:
    left_out = list[str]()
    found: Answers = {name: _answers(make, sets) for name, make in _peers(sets, left_out).items()}
    found |= answers("static", [(each.tools, [query.text for query in each.queries]) for each in sets])
    if have_encoder():
        found |= answers_elsewhere("encoder", sets)
    else:
        left_out.append("the encoder is not installed: its rankings and its two floors are LEFT OUT")
    values = [_judged([of_sets[place] for of_sets in found.values()], each) for place, each in enumerate(sets)]
    return Quality(sets=sets, rankings=list(found), values=values, draws=draw(values), left_out=left_out)


def _peers(sets: Sequence[Set], left_out: list[str]) -> Mapping[str, Maker]:
    if os.environ.get("PEERS") == "no":
        left_out.append("PEERS=no: no peer is measured, and floors against peers are LEFT OUT")
        return {}
    if have_minilm():
        search_peers.embed_all(sets)
        return _PEERS
    left_out.append("the peers' encoder cannot be had: mcp-optimizer's and ToolHive's merges are LEFT OUT")
    return {name: make for name, make in _PEERS.items() if name not in _NEED_MINILM}


def _answers(make: Maker, sets: Sequence[Set]) -> list[list[Sequence[str]]]:
    return [[search(query.text) for query in each.queries] for each in sets for search in (make(each.tools),)]


def _judged(found: Sequence[Sequence[Sequence[str]]], each: Set) -> np.ndarray:
    """Queries by rankings by measures."""
    return np.array(
        [
            [judge(answer, query.needed) for answer in of_query]
            for query, *of_query in zip(each.queries, *found, strict=True)
        ]
    )


def report(quality: Quality) -> None:
    for line in quality.left_out:
        print(f"!! {line}")
    for place, name in enumerate(MEASURES):
        print(f"{name:18}{'queries':>8}" + "".join(f"{ranking:>{_WIDTH}}" for ranking in quality.rankings))
        for each, values in zip(quality.sets, quality.values, strict=True):
            print(f"  {each.name[:20]:20}{len(each.queries):>4}" + _cells(values.mean(axis=0)[:, place]))
        intervals = [quality.draws.of(column, place) for column in range(len(quality.rankings))]
        print(f"  {'mean':24}" + _cells(each.mean for each in intervals))
        print(f"  {'95 % from':24}" + _cells(each.low for each in intervals))
        print(f"  {'to':24}" + _cells(each.high for each in intervals) + "\n")
    for ahead in quality.ahead:
        print(f"{ahead}{'  MISSED' if ahead.missed else ''}")
    if _NEED_MINILM & {*quality.rankings}:
        print("mcp-opt and ToolHive answer with eight tools; all-MiniLM-L6-v2 stands in for their bge-small-en-v1.5")


def _cells(values: Iterable[float]) -> str:
    return "".join(f"{value:>{_WIDTH}.1f}" for value in values)
