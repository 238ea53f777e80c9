"""Fits what each feature of the second look weighs (`ullage/search/ranking.py`).

Reads the tables of all folds and the queries that `bench/search_unseen.py` asks, each with the table that has not
learnt from its tools: `python training/rerank.py FOLDS TABLE`. For each fold it fits the weights on the queries of the
other folds and writes them into the card of that fold's table, so that what is measured there was not fitted there; the
weights of all folds together go into the card of the table that ships, where one is named. Prints nDCG@10 of each kind
of queries without the second look, with weights fitted elsewhere, and with those of all.

A listwise softmax: of the candidates of a query, those that are needed shall have the highest scores. Each kind of
queries counts the same, whatever its number. Deterministic.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "bench"))
from search_sets import Set, document
from search_unseen import parts, parts_to_fit

from ullage.search import HybridIndex
from ullage.search.load_embedder import read_table
from ullage.search.ranking import FEATURES, Reranker, distinctness
from ullage.search.static_embedder import StaticTable

__all__ = ["Asked", "asked_of", "fit"]

_SCALE = 12.0
_STEPS, _RATE = 150, 0.06
_HELD_BACK = 1e-3
"""How strongly weights are drawn to where they begin."""
_FIRST = 0.5
DEPTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query's candidates."""

    kind: str
    fold: int
    features: np.ndarray
    """A row a candidate; first the fused score, then the features."""
    named: np.ndarray
    needed: np.ndarray
    number_needed: int


def asked_of(kind: str, fold: int, each: Set, table: StaticTable) -> list[Asked]:
    index = HybridIndex([document(row) for row in each.tools], table)
    reranker, found = Reranker(index.postings.documents, table, table.weight), list[Asked]()
    for query in each.queries:
        seen = index.candidates(query.text)
        ids = [index.postings.documents[place].id for place in seen.places]
        found.append(
            Asked(
                kind=kind,
                fold=fold,
                features=np.column_stack([seen.fused, reranker.features(seen)]).astype(np.float32),
                named=index.names.named(query.text)[seen.places].astype(np.float32),
                needed=np.array([id_ in query.needed for id_ in ids]),
                number_needed=len(query.needed),
            )
        )
    return found


def fit(asked: Sequence[Asked]) -> np.ndarray:
    """Weights of the fused score and of the features, such that the best candidate of a query has 1 in the mean."""
    kinds = [one.kind for one in asked]
    some = [one for one in asked if one.needed.any()]
    features = np.concatenate([one.features for one in some])
    wanted = np.concatenate([one.needed / one.needed.sum() for one in some]).astype(np.float32)
    lengths = np.array([len(one.needed) for one in some])
    starts = np.cumsum(lengths) - lengths
    counts = np.repeat([1 / kinds.count(one.kind) for one in some], lengths).astype(np.float32)
    counts /= len(set(kinds))
    first = np.array([_FIRST, *np.zeros(len(FEATURES))], dtype=np.float32)
    weights, mean, square = first.copy(), np.zeros_like(first), np.zeros_like(first)
    for step in range(_STEPS):
        scores = _SCALE * (features @ weights)
        grown = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), lengths))
        chance = grown / np.repeat(np.add.reduceat(grown, starts), lengths)
        gradient = _SCALE * (features.T @ ((chance - wanted) * counts)) + _HELD_BACK * (weights - first)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        pace = _RATE * (1 - step / _STEPS) / (np.sqrt(square / (1 - 0.99 ** (step + 1))) + 1e-8)
        weights = weights - pace * mean / (1 - 0.9 ** (step + 1))
    best = np.maximum.reduceat(features @ weights, starts)
    return weights / best.mean()


def ndcg(one: Asked, weights: np.ndarray) -> float:
    share, first = distinctness(one.features[:, 1:]), np.eye(1, len(weights))[0]
    scores = one.features @ (share * weights + (1 - share) * first) + 1_000 * one.named
    order = np.argsort(-scores, kind="stable")[:DEPTH]
    gains = one.needed[order] / np.log2(np.arange(len(order)) + 2)
    return 100 * float(gains.sum()) / float((1 / np.log2(np.arange(min(DEPTH, one.number_needed)) + 2)).sum())


def main(folds: Path, shipped: Path | None = None) -> None:
    tables = {int(path.parent.name[-1]): read_table(path.parent) for path in folds.glob("fold_*/table.json")}
    asked, more = (
        [one for part in some() for one in asked_of(part.kind, part.fold, part.set, tables[part.fold])]
        for some in (parts, parts_to_fit)
    )
    of_folds = {fold: fit([one for one in (*asked, *more) if one.fold != fold]) for fold in sorted(tables)}
    of_all = fit([*asked, *more])
    for fold, weights in of_folds.items():
        _write(folds / f"fold_{fold}", weights)
    if shipped is not None:
        _write(shipped, of_all)
    print("weights", dict(zip(("fused", *FEATURES), of_all.round(3).tolist(), strict=True)))
    rows = list[tuple[float, ...]]()
    for kind in dict.fromkeys(one.kind for one in asked):
        some = [one for one in asked if one.kind == kind]
        ways = (lambda _: np.eye(1, 1 + len(FEATURES))[0], lambda one: of_folds[one.fold], lambda _: of_all)
        rows.append(tuple(float(np.mean([ndcg(one, way(one)) for one in some])) for way in ways))
        print(f"  {kind:20}" + "".join(f"{value:8.1f}" for value in rows[-1]))
    print(f"  {'mean':20}" + "".join(f"{value:8.2f}" for value in np.mean(rows, axis=0)))


def _write(folder: Path, weights: np.ndarray) -> None:
    path = folder / "table.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    card["feature_weights"] = [round(float(weight), 3) for weight in weights]
    path.write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:3]))
