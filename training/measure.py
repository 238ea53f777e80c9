"""How well do vectors find tools, alone and fused with words?

Works on the sets of a pack with whatever makes vectors of tools and queries. nDCG@10 as `bench/search.py` has it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Set", "fused", "ndcg", "read_sets", "report"]

DEPTH = 10
Scores = np.ndarray
"""A row a query, a column a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    name: str
    arrays: Mapping[str, np.ndarray]
    relevant: list[np.ndarray]
    lexical: Scores


def read_sets(pack: Path) -> list[Set]:
    found = list[Set]()
    for path in sorted(pack.glob("set_*.npz")):
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        relevant = np.split(arrays["relevant"], arrays["relevant_ends"][:-1])
        found.append(
            Set(name=path.stem.removeprefix("set_"), arrays=arrays, relevant=relevant, lexical=_lexical(arrays))
        )
    return found


def _lexical(arrays: Mapping[str, np.ndarray]) -> Scores:
    near, scores = arrays["near"], arrays["scores"]
    full = np.zeros((len(near), len(arrays["name_table_ends"]) + 1), dtype=np.float32)
    np.put_along_axis(full, near, scores, axis=1)
    return full[:, :-1]


def fused(lexical: Scores, semantic: Scores, share: float | np.ndarray = 0.5) -> Scores:
    """Each side divided by its best, and the two added; the share is the semantic side's."""
    return (1 - share) * _scaled(lexical) + share * _scaled(semantic)


def _scaled(scores: Scores) -> Scores:
    return np.maximum(scores, 0) / np.maximum(scores.max(axis=1, keepdims=True), 1e-9)


def ndcg(scores: Scores, relevant: list[np.ndarray]) -> np.ndarray:
    """Of each query, in points."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    discounts = 1 / np.log2(np.arange(DEPTH) + 2)
    gains = [(discounts[: len(row)] * np.isin(row, needed)).sum() for row, needed in zip(best, relevant, strict=True)]
    ideals = [discounts[: len(needed)].sum() for needed in relevant]
    return 100 * np.array(gains) / np.array(ideals)


def report(title: str, sets: list[Set], semantic: Callable[[Set], Scores]) -> dict[str, dict[str, float]]:
    """Prints and returns the mean of each set: by words, by meaning, by both."""
    rows = dict[str, dict[str, float]]()
    for each in sets:
        scores = semantic(each)
        rows[each.name] = {
            "lexical": float(ndcg(each.lexical, each.relevant).mean()),
            "alone": float(ndcg(scores, each.relevant).mean()),
            "fused": float(ndcg(fused(each.lexical, scores), each.relevant).mean()),
        }
    print(title)
    for name, row in rows.items():
        print(f"  {name:20}" + "".join(f"{kind:>9} {value:5.1f}" for kind, value in row.items()))
    return rows
