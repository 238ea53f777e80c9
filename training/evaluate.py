"""How well does a finished table find tools, beside words and fused with them?

As `bench/search.py` measures: a set at a time, names before scores, nDCG@10. With the folder of an encoder behind the
table's, that too. `python training/evaluate.py SETS TABLE [ENCODER]`, where SETS is a folder of sets.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from measure import fused, ndcg
from tools import read_rows, set_documents

from ullage.search import Document, Embedder, LexicalIndex
from ullage.search.loading import read_encoder, read_table

EVIDENCE = 7.0
"""What nearness weighs against the best score by words: half where that is as great, less where it is greater."""
_NAMED_BEFORE = 50
_DRAWS = 1_000
_OF_SENTENCE = 0.7
"""What the nearest sentence of a query weighs, where it has several; the whole gets the rest."""


def main(sets: Path, table: Path, encoder: Sequence[Path]) -> None:
    embedders: dict[str, Embedder] = {"table": read_table(table)}
    if encoder:
        embedders["encoder"] = read_encoder(encoder[0])
    found = {path.parent.name: one_set(path.parent, embedders) for path in sorted(sets.glob("*/queries.jsonl"))}
    found = {name: columns for name, columns in found.items() if columns}
    titles = list(next(iter(found.values())))
    print(f"{'nDCG@10':22}" + "".join(f"{title:>17}" for title in titles))
    for name, columns in found.items():
        print(f"{name:22}" + "".join(f"{columns[title].mean():>17.1f}" for title in titles))
    print(f"{'mean':22}" + "".join(f"{_mean(found, title):>17.2f}" for title in titles))
    for title in titles[1:]:
        low, high = _interval(found, title, titles[0])
        print(f"{title} - {titles[0]}: {_mean(found, title) - _mean(found, titles[0]):+.2f} [{low:+.2f}, {high:+.2f}]")


def one_set(folder: Path, embedders: Mapping[str, Embedder]) -> dict[str, np.ndarray]:
    """Of each way to search, the measure of each query."""
    documents = set_documents(folder)
    places = {document.id: place for place, document in enumerate(documents)}
    rows = [row for row in read_rows(folder / "queries.jsonl") if row["relevant"]]
    if not rows:
        return {}
    relevant = [np.array([places[id_] for id_ in row["relevant"] if id_ in places]) for row in rows]
    queries = [row["query"] for row in rows]
    words, named = by_words(documents, queries)
    share = EVIDENCE / (EVIDENCE + words.max(axis=1, keepdims=True))
    columns = {"words": ndcg(named + words / np.maximum(words.max(axis=1, keepdims=True), 1e-9), relevant)}
    for name, embedder in embedders.items():
        scores = by_meaning(embedder, documents, queries)
        columns[name] = ndcg(scores, relevant)
        columns[f"{name} fused .5"] = ndcg(named + fused(words, scores), relevant)
        columns[f"{name} fused"] = ndcg(named + fused(words, scores, share), relevant)
    return columns


def by_words(documents: Sequence[Document], queries: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Scores by words, and how much each tool is named by each query."""
    index = LexicalIndex(documents)
    places = {document.id: place for place, document in enumerate(documents)}
    scores, named = (np.zeros((len(queries), len(places)), dtype=np.float32) for _ in range(2))
    for row, query in enumerate(queries):
        for id_, score in index.scores(query).items():
            scores[row, places[id_]] = score
        for hit in index.search(query, _NAMED_BEFORE):
            named[row, places[hit.document.id]] = 10 * hit.named
    return scores, named


def by_meaning(embedder: Embedder, documents: Sequence[Document], queries: Sequence[str]) -> np.ndarray:
    """How near each tool (a column) is to each query (a row)."""
    vectors = embedder.embed_documents(documents)
    return np.stack([_nearness(embedder.embed_query(query) @ vectors.T) for query in queries])


def _nearness(near: np.ndarray) -> np.ndarray:
    """Who asks for two things wants the tool of either."""
    return near[0] if len(near) == 1 else (1 - _OF_SENTENCE) * near[0] + _OF_SENTENCE * near[1:].max(axis=0)


def _mean(found: dict[str, dict[str, np.ndarray]], title: str) -> float:
    return float(np.mean([columns[title].mean() for columns in found.values()]))


def _interval(found: dict[str, dict[str, np.ndarray]], title: str, against: str) -> tuple[float, float]:
    """95 of a hundred draws of the queries have the difference of means within it."""
    chance = np.random.default_rng(7)
    ahead = [columns[title] - columns[against] for columns in found.values()]
    means = [np.mean([chance.choice(each, len(each)).mean() for each in ahead]) for _ in range(_DRAWS)]
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(argument) for argument in sys.argv[3:4]])
