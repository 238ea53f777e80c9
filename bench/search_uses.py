"""What does learning from use gain, and what does it cost those who need something else?

Half of a set's tools are used: half of the queries that need only these are the history, and a tool that such a query
needs and a reply of twenty shows is called after it. Then three kinds of queries are asked, with and without what was
learnt: the history's again with a quarter of their words left out, the other queries that need a used tool, and
those that need none of them. Once more with a history that is poisoned: the tool that most replies showed of those that
nobody needed is called five times after every query. The first tool without learning must come first or second with
it. `python bench/search_uses.py` runs this part alone.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from search_intervals import Interval, draw
from search_sets import DEPTH, MEASURES, Query, Set, data_folder, document, judge, read_sets

from ullage.search import Hit, HybridIndex, Uses, load_table, need_of, restrained

__all__ = ["Learnt", "main", "measure", "report"]

_SHOWN = 20
"""Tools of a reply."""
_ROUNDS = 3
"""Other tools are used in each."""
_LEFT_OUT = 0.25
_POISON = 5
_NDCG = MEASURES.index("nDCG@10")
_KINDS = ("the same need again", "the same tool, other words", "tools never used")
_LEAST_GAIN, _MOST_LOSS, _MOST_TAKEN = 5.0, 0.5, 1.0
"""Points for the first kind, points for the last, and of a hundred first places what a poisoned tool may take."""

Asked = tuple[int, str, Query]
"""The place of its kind, the words, and what they need."""


@dataclass(slots=True)
class Tally:
    """Of one set, over all rounds."""

    name: str
    values: list[list[tuple[float, float]]] = field(default_factory=lambda: [[] for _ in _KINDS])
    """A list a kind, in it nDCG@10 of each query: without and with what was learnt."""
    poisoned: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """The same over all kinds, with a sound history and with a poisoned one."""
    taken: list[bool] = field(default_factory=list[bool])
    """Whether the poisoned tool came first where it had not."""
    fallen: int = 0
    """First tools that came later than second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    tallies: Sequence[Tally]

    def of(self, kind: int) -> Interval:
        return _gain([tally.values[kind] for tally in self.tallies])

    @property
    def poison(self) -> Interval:
        return _gain([tally.poisoned for tally in self.tallies])

    @property
    def taken(self) -> float:
        """Of a hundred first places, as the mean over sets."""
        return float(100 * np.mean([np.mean(tally.taken) for tally in self.tallies if tally.taken]))

    @property
    def fallen(self) -> int:
        return sum(tally.fallen for tally in self.tallies)

    def missed(self) -> list[str]:
        again, unused = self.of(0).mean, self.of(2).mean
        said = {
            f"{_KINDS[0]}: {again:+.2f} points, floor {_LEAST_GAIN:+g}": again < _LEAST_GAIN,
            f"{_KINDS[2]}: {unused:+.2f} points, floor {-_MOST_LOSS:+g}": unused < -_MOST_LOSS,
            f"a poisoned tool took {self.taken:.2f} % of first places, at most {_MOST_TAKEN:g}": self.taken
            > _MOST_TAKEN,
            f"{self.fallen} first tools fell below the second place": self.fallen > 0,
        }
        return [line for line, is_missed in said.items() if is_missed]

    def to_json(self) -> Mapping[str, object]:
        return {
            **{kind: self.of(place).to_json() for place, kind in enumerate(_KINDS)},
            "poisoned": self.poison.to_json(),
            "first places taken, %": round(self.taken, 2),
            "first tools that fell below the second place": self.fallen,
        }


def measure(sets: Sequence[Set]) -> Learnt:
    return Learnt(tallies=[_tally(each) for each in sets])


def report(learnt: Learnt) -> None:
    print("nDCG@10 gained by learning from use; in brackets the number of queries asked")
    print(f"{'':18}" + "".join(f"{kind:>30}" for kind in _KINDS))
    for tally in learnt.tallies:
        print(f"{tally.name:18}" + "".join(f"{_cell(values):>30}" for values in tally.values))
    print(f"{'mean':18}" + "".join(f"{_interval(learnt.of(place)):>30}" for place in range(len(_KINDS))))
    print(
        f"a tool called after everything: {_interval(learnt.poison)} points, first in {learnt.taken:.2f} % of answers"
    )
    print(f"first tools that fell below the second place: {learnt.fallen}")


def main() -> int:
    found = measure(read_sets(data_folder()))
    report(found)
    print(json.dumps(found.to_json()))
    return 1 if found.missed() else 0


def _tally(each: Set) -> Tally:
    index, tally = HybridIndex(map(document, each.tools), load_table()), Tally(each.name)
    shown = {query.text: [hit.document.id for hit in index.search(query.text, _SHOWN)] for query in each.queries}
    for seed in range(_ROUNDS):
        _round(index, each, shown, tally, random.Random(seed))
    return tally


def _round(
    index: HybridIndex, each: Set, shown: Mapping[str, Sequence[str]], tally: Tally, chance: random.Random
) -> None:
    needed = sorted({tool for query in each.queries for tool in query.needed})
    used = set(chance.sample(needed, len(needed) // 2))
    history = _history(each.queries, used, chance)
    calls = [(query.text, tool) for query in history for tool in sorted(query.needed) if tool in shown[query.text]]
    poison = _poison(history, shown, set(needed))
    sound = _uses(index, calls)
    poisoned = _uses(index, [*calls, *((query.text, poison) for query in history for _ in range(_POISON))])
    for kind, text, query in _asked(each.queries, history, used, {tool for _, tool in calls}, chance):
        plain = index.search(text, _SHOWN)
        ranked = [_ranked(index, uses, text, plain) for uses in (sound, poisoned)]
        points = [judge([hit.document.id for hit in hits[:DEPTH]], query.needed)[_NDCG] for hits in (plain, *ranked)]
        tally.values[kind].append((points[0], points[1]))
        tally.poisoned.append((points[1], points[2]))
        firsts = [hits[0].document.id for hits in (plain, *ranked) if hits]
        if firsts:
            tally.fallen += sum(firsts[0] not in {hit.document.id for hit in hits[:2]} for hits in ranked)
            tally.taken.append(firsts[2] == poison != firsts[1])


def _history(queries: Sequence[Query], used: set[str], chance: random.Random) -> list[Query]:
    """Half of the queries of each tool that is used."""
    total = Counter(tool for query in queries for tool in query.needed)
    taken: Counter[str] = Counter()
    history = list[Query]()
    for query in chance.sample(queries, len(queries)):
        if query.needed <= used and all(2 * taken[tool] < total[tool] for tool in query.needed):
            taken.update(query.needed)
            history.append(query)
    return history


def _poison(history: Sequence[Query], shown: Mapping[str, Sequence[str]], needed: set[str]) -> str:
    often = Counter(tool for query in history for tool in shown[query.text])
    return next((tool for tool, _ in often.most_common() if tool not in needed), "")


def _uses(index: HybridIndex, calls: Sequence[tuple[str, str]]) -> Uses:
    uses = Uses()
    for text, tool in calls:
        uses.add(need_of(text, index.holds), ("", tool), 0.0)
    return uses


def _asked(
    queries: Sequence[Query], history: Sequence[Query], used: set[str], called: set[str], chance: random.Random
) -> Iterator[Asked]:
    before = set(map(id, history))
    for query in queries:
        if id(query) in before and query.needed & called:
            yield 0, _shortened(query.text, chance), query
        elif id(query) not in before and query.needed & called:
            yield 1, query.text, query
        elif not query.needed & used:
            yield 2, query.text, query


def _shortened(text: str, chance: random.Random) -> str:
    words = text.split()
    return " ".join(word for word in words if chance.random() >= _LEFT_OUT) or text


def _ranked(index: HybridIndex, uses: Uses, text: str, plain: Sequence[Hit]) -> Sequence[Hit]:
    learnt = {tool: bonus for (_, tool), bonus in uses.bonuses(need_of(text, index.holds), 0.0).items()}
    return restrained(index.search(text, _SHOWN, learnt=learnt), learnt) if learnt else plain


def _gain(sets: Sequence[Sequence[tuple[float, float]]]) -> Interval:
    return draw([np.array(values)[:, :, None] for values in sets if values]).ahead(1, 0, 0)


def _cell(values: Sequence[tuple[float, float]]) -> str:
    return f"{np.mean([after - before for before, after in values]):+.2f} ({len(values)})" if values else "–"


def _interval(interval: Interval) -> str:
    return f"{interval.mean:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]"


if __name__ == "__main__":
    sys.exit(main())
