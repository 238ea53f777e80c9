"""How often does a search bring the tools that were needed, beside BM25 as fastmcp does it and SQLite's FTS5?

Run by `make bench-search`. `DATA` names another folder of the same shape: one folder a set, each with `tools.jsonl` and
`queries.jsonl`. Prints a table for each measure, what building and asking cost, and one line of figures; fails where
our mean nDCG@10 is not ahead of both peers' by the floor.

Both peers get what is best for them: the server's name before the tool's, as behind a gateway, and for fastmcp the
parameters, which it reads too.
"""

import json
import math
import os
import re
import sqlite3
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ullage.search import LexicalIndex, document_of
from ullage.tool import Tool

DEFAULT_DATA = Path(__file__).parents[2] / "shared" / "data" / "search" / "dev"
FLOOR = 6.0
"""Points of mean nDCG@10 that we must be ahead of each peer."""
DEPTH = 10
OURS = "ullage"
MEASURES = ("recall@1", "recall@5", "recall@10", "nDCG@10")

Row = dict[str, Any]
Search = Callable[[str], Sequence[str]]
"""The ids of the nearest tools, best first, ten at the most."""


@dataclass(frozen=True, slots=True)
class Set:
    name: str
    tools: list[Row]
    queries: list[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    values: tuple[float, ...]
    """One a measure, in points, as the mean over queries."""
    build: float
    """Seconds of CPU for all tools of the set."""
    asks: tuple[float, ...]
    """Milliseconds of CPU for each query, in order."""


def ours(tools: Sequence[Row]) -> Search:
    index = LexicalIndex(
        document_of(_tool(row), server=row.get("server") or "", document_id=row["id"]) for row in tools
    )
    return lambda query: [hit.document.id for hit in index.search(query, DEPTH)]


def _tool(row: Row) -> Tool:
    return Tool(name=row["name"], description=row.get("description"), input_schema=row.get("inputSchema") or {})


def fastmcp(tools: Sequence[Row]) -> Search:
    """BM25 with k1 1.5 and b 0.75 over the words of name, description and parameters.

    Scores as fastmcp's `server/transforms/search/bm25.py` does (github.com/jlowin/fastmcp at a272dfa): lower case, runs
    of a to z and digits, single letters left out. Its loop over every tool is replaced by postings, so that its times
    here are better than its own.
    """
    counts = [Counter(_fastmcp_words(" ".join(_fastmcp_texts(row)))) for row in tools]
    lengths = [count.total() for count in counts]
    average = sum(lengths) / len(lengths)
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, count in enumerate(counts):
        for word, times in count.items():
            postings[word].append((place, times))

    def search(query: str) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        for word in _fastmcp_words(query):
            found = postings.get(word, ())
            rarity = math.log((len(tools) - len(found) + 0.5) / (len(found) + 0.5) + 1)
            for place, times in found:
                scores[place] += rarity * times * 2.5 / (times + 1.5 * (0.25 + 0.75 * lengths[place] / average))
        return [tools[place]["id"] for place in sorted(scores, key=lambda place: (-scores[place], place))[:DEPTH]]

    return search


def _fastmcp_words(text: str) -> list[str]:
    return [word for word in re.findall("[a-z0-9]+", text.lower()) if len(word) > 1]


def _fastmcp_texts(row: Row) -> Iterator[str]:
    yield f"{row.get('server') or ''}_{row['name']}"
    yield row.get("description") or ""
    for name, inner in ((row.get("inputSchema") or {}).get("properties") or {}).items():
        yield name
        yield str((inner.get("description") if isinstance(inner, dict) else None) or "")


def fts5(tools: Sequence[Row]) -> Search:
    """SQLite's full-text index with the Porter tokenizer, any word of the query, ranked by its bm25()."""
    database = sqlite3.connect(":memory:")
    database.execute("create virtual table tool using fts5(server, name, description, tokenize = 'porter unicode61')")
    database.executemany(
        "insert into tool (rowid, server, name, description) values (?, ?, ?, ?)",
        (
            (place, row.get("server") or "", row["name"], row.get("description") or "")
            for place, row in enumerate(tools)
        ),
    )
    asked = f"select rowid from tool where tool match ? order by bm25(tool), rowid limit {DEPTH}"

    def search(query: str) -> list[str]:
        words = dict.fromkeys(re.findall(r"\w+", query))
        if not words:
            return []
        any_word = " OR ".join(f'"{word}"' for word in words)
        return [tools[place]["id"] for (place,) in database.execute(asked, (any_word,))]

    return search


MAKERS: dict[str, Callable[[Sequence[Row]], Search]] = {OURS: ours, "fastmcp": fastmcp, "fts5": fts5}


def main() -> int:
    folder = Path(os.environ.get("DATA") or DEFAULT_DATA)
    sets = list(read_sets(folder))
    if not sets:
        print(f"no data: `{folder}` has no set of tools and queries; name another with DATA=path", file=sys.stderr)
        return 2
    measured = {name: [measure(make, each) for each in sets] for name, make in MAKERS.items()}
    for place, measure_name in enumerate(MEASURES):
        report(measure_name, sets, {name: [each.values[place] for each in all_] for name, all_ in measured.items()})
    report_cost(sets, measured)
    return conclude(sets, measured)


def read_sets(folder: Path) -> Iterator[Set]:
    for path in sorted(folder.glob("*/queries.jsonl")):
        queries = [row for row in _rows(path) if row["relevant"]]
        if queries:
            yield Set(path.parent.name, _rows(path.with_name("tools.jsonl")), queries)


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def measure(make: Callable[[Sequence[Row]], Search], each: Set) -> Measured:
    start = time.process_time()
    search = make(each.tools)
    build = time.process_time() - start
    asks, judged = list[float](), list[tuple[float, ...]]()
    for row in each.queries:
        start = time.process_time()
        found = search(row["query"])
        asks.append(1_000 * (time.process_time() - start))
        judged.append(judge(found, set(row["relevant"])))
    values = tuple(100 * mean(column) for column in zip(*judged, strict=True))
    return Measured(values=values, build=build, asks=tuple(asks))


def judge(found: Sequence[str], needed: set[str]) -> tuple[float, ...]:
    """The measures of one answer, 0 to 1, in the order of `MEASURES`; a tool is needed or not, with no grades."""
    recalls = (sum(id_ in needed for id_ in found[:depth]) / len(needed) for depth in (1, 5, 10))
    gain = sum(1 / math.log2(rank + 2) for rank, id_ in enumerate(found[:DEPTH]) if id_ in needed)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(needed))))
    return (*recalls, gain / ideal)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def report(title: str, sets: Sequence[Set], columns: dict[str, list[float]]) -> None:
    print(f"{title:28}{'tools':>7}{'queries':>9}" + "".join(f"{name:>10}" for name in columns))
    for place, each in enumerate(sets):
        values = "".join(f"{column[place]:>10.1f}" for column in columns.values())
        print(f"  {each.name:26}{len(each.tools):>7}{len(each.queries):>9}{values}")
    print(f"  {'mean':42}" + "".join(f"{mean(column):>10.1f}" for column in columns.values()) + "\n")


def report_cost(sets: Sequence[Set], measured: dict[str, list[Measured]]) -> None:
    print(f"{'CPU':28}{'tools':>7}" + "".join(f"{name + ': build s, ask ms':>28}" for name in measured))
    for place, each in enumerate(sets):
        costs = [all_[place] for all_ in measured.values()]
        cells = "".join(f"{cost.build:>18.3f}{middle(cost.asks):>10.2f}" for cost in costs)
        print(f"  {each.name:26}{len(each.tools):>7}{cells}")
    print()


def middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def conclude(sets: Sequence[Set], measured: dict[str, list[Measured]]) -> int:
    means = {
        name: [round(mean(column), 2) for column in zip(*(each.values for each in all_), strict=True)]
        for name, all_ in measured.items()
    }
    ahead = {name: round(means[OURS][-1] - values[-1], 2) for name, values in means.items() if name != OURS}
    missed = {name: points for name, points in ahead.items() if points < FLOOR}
    for name, points in missed.items():
        print(f"BELOW THE FLOOR  ahead of {name} by {points} points of nDCG@10, not by {FLOOR:g}")
    print(json.dumps({"sets": len(sets), ", ".join(MEASURES): means, "ahead": ahead, "missed": len(missed)}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
