"""How does Ullage rank tools, whole and in parts?

By words alone, by meaning alone and by both, which is what it does. All through the index that the gateway uses; to
rank by meaning alone is nobody's setting and only here to show what either side knows.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from search_sets import DEPTH, Row, Search, document

from ullage.search import Embedder, HybridIndex, LexicalIndex, load_encoder, load_table

__all__ = ["Answers", "Kind", "answers", "rankings_of"]

Kind = Literal["static", "encoder"]
Answers = dict[str, list[list[Sequence[str]]]]
"""By ranking: a list a set, in it the ids found for each query."""


def answers(kind: Kind, sets: Sequence[tuple[Sequence[Row], Sequence[str]]]) -> Answers:
    """What is found in each set of tools and queries."""
    found: Answers = {}
    for tools, queries in sets:
        for name, search in _rankings(kind, tools).items():
            found.setdefault(name, []).append([search(query) for query in queries])
    return found


def _rankings(kind: Kind, tools: Sequence[Row]) -> Mapping[str, Search]:
    if kind == "static":
        return rankings_of(tools, load_table())
    index = HybridIndex([*map(document, tools)], load_encoder())
    return {"encoder": _nearest(index), "fused+enc": _best(index)}


def rankings_of(tools: Sequence[Row], table: Embedder) -> Mapping[str, Search]:
    """By words, by a table and by both."""
    documents = [*map(document, tools)]
    index = HybridIndex(documents, table)
    return {"lexical": _best(LexicalIndex(documents)), "static": _nearest(index), "fused": _best(index)}


def _best(index: LexicalIndex | HybridIndex) -> Search:
    return lambda query: [hit.document.id for hit in index.search(query, DEPTH)]


def _nearest(index: HybridIndex) -> Search:
    """Nearness as it is fused, with nothing beside it."""
    meaning = index.meaning
    if meaning is None:
        raise TypeError("an index of words alone knows no meaning")

    def search(query: str) -> list[str]:
        places = np.argsort(-meaning.nearness(query), kind="stable")[:DEPTH]
        return [meaning.documents[place].id for place in places.tolist()]

    return search
