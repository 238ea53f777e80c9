"""How well does a finished table find tools, beside words and fused with them?

As `bench/search.py` measures: a set at a time, names before scores, nDCG@10. With an encoder in ONNX behind the table,
that too. `python training/evaluate.py SETS TABLE [ENCODER TOKENIZER]`, where SETS is a folder of sets.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from lookup import Lookup, nearness, sentences_of
from measure import fused, ndcg
from tools import Described, read_rows, set_tools

from ullage.search import LexicalIndex, document_of
from ullage.tool import Tool

EVIDENCE = 7.0
"""What nearness weighs against the best score by words: half where that is as great, less where it is greater."""
_NAMED_BEFORE = 50
_DRAWS = 1_000

Near = Callable[[Sequence[Described], Sequence[str]], np.ndarray]
"""How near each tool (a column) is to each query (a row)."""


def main(sets: Path, table: Path, encoder: Sequence[Path]) -> None:
    makers: dict[str, Near] = {"table": by_table(Lookup(table))}
    if encoder:
        makers["encoder"] = by_encoder(*encoder)
    found = {path.parent.name: one_set(path.parent, makers) for path in sorted(sets.glob("*/queries.jsonl"))}
    found = {name: columns for name, columns in found.items() if columns}
    titles = list(next(iter(found.values())))
    print(f"{'nDCG@10':22}" + "".join(f"{title:>17}" for title in titles))
    for name, columns in found.items():
        print(f"{name:22}" + "".join(f"{columns[title].mean():>17.1f}" for title in titles))
    print(f"{'mean':22}" + "".join(f"{_mean(found, title):>17.2f}" for title in titles))
    for title in titles[1:]:
        low, high = _interval(found, title, titles[0])
        print(f"{title} - {titles[0]}: {_mean(found, title) - _mean(found, titles[0]):+.2f} [{low:+.2f}, {high:+.2f}]")


def one_set(folder: Path, makers: dict[str, Near]) -> dict[str, np.ndarray]:
    """Of each way to search, the measure of each query."""
    tools = set_tools(folder)
    places = {tool.id: place for place, tool in enumerate(tools)}
    rows = [row for row in read_rows(folder / "queries.jsonl") if row["relevant"]]
    if not rows:
        return {}
    relevant = [np.array([places[id_] for id_ in row["relevant"] if id_ in places]) for row in rows]
    queries = [row["query"] for row in rows]
    words, named = by_words(folder, places, queries)
    share = EVIDENCE / (EVIDENCE + words.max(axis=1, keepdims=True))
    columns = {"words": ndcg(named + words / np.maximum(words.max(axis=1, keepdims=True), 1e-9), relevant)}
    for name, near in makers.items():
        scores = near(tools, queries)
        columns[name] = ndcg(scores, relevant)
        columns[f"{name} fused .5"] = ndcg(named + fused(words, scores), relevant)
        columns[f"{name} fused"] = ndcg(named + fused(words, scores, share), relevant)
    return columns


def by_words(folder: Path, places: dict[str, int], queries: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Scores by words, and how much each tool is named by each query."""
    index = LexicalIndex(
        document_of(
            Tool(name=row["name"], description=row.get("description"), input_schema=row.get("inputSchema") or {}),
            server=row.get("server") or "",
            document_id=row["id"],
        )
        for row in read_rows(folder / "tools.jsonl")
    )
    scores, named = (np.zeros((len(queries), len(places)), dtype=np.float32) for _ in range(2))
    for row, query in enumerate(queries):
        for id_, score in index.scores(query).items():
            scores[row, places[id_]] = score
        for hit in index.search(query, _NAMED_BEFORE):
            named[row, places[hit.document.id]] = 10 * hit.named
    return scores, named


def by_table(lookup: Lookup) -> Near:
    def near(tools: Sequence[Described], queries: Sequence[str]) -> np.ndarray:
        vectors = np.stack([lookup.tool(tool.fields) for tool in tools])
        return np.stack([nearness(np.stack([*map(lookup.query, sentences_of(query))]), vectors) for query in queries])

    return near


def by_encoder(model: Path, tokenizer: Path) -> Near:
    from run_encoder import Encoder

    encoder = Encoder(model, tokenizer)

    def near(tools: Sequence[Described], queries: Sequence[str]) -> np.ndarray:
        vectors = encoder.vectors([tool_text(tool) for tool in tools])
        parts = [sentences_of(query) for query in queries]
        asked = encoder.vectors([part for each in parts for part in each])
        ends = np.cumsum([len(each) for each in parts])
        return np.stack([nearness(each, vectors) for each in np.split(asked, ends[:-1])])

    return near


def tool_text(tool: Described) -> str:
    """What the encoder reads of a tool, in the order in which it was trained."""
    return " ".join(field for field in tool.fields if field)


def _mean(found: dict[str, dict[str, np.ndarray]], title: str) -> float:
    return float(np.mean([columns[title].mean() for columns in found.values()]))


def _interval(found: dict[str, dict[str, np.ndarray]], title: str, against: str) -> tuple[float, float]:
    """95 of a hundred draws of the queries have the difference of means within it."""
    chance = np.random.default_rng(7)
    ahead = [columns[title] - columns[against] for columns in found.values()]
    means = [np.mean([chance.choice(each, len(each)).mean() for each in ahead]) for _ in range(_DRAWS)]
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(argument) for argument in sys.argv[3:5]])
