"""How well are tools found by queries in other languages?

Twenty requests for tools of the set `mcpproxy_golden`, said in Portuguese, Spanish, German, Korean and Chinese
(`tongues.txt`, written for this). `python training/tongues.py SET TABLE`.
"""

import sys
from pathlib import Path

import numpy as np
from evaluate import EVIDENCE, by_meaning, by_words
from measure import fused, ndcg
from tools import set_documents

from ullage.search.loading import read_table

_LANGUAGES = ("Portuguese", "Spanish", "German", "Korean", "Chinese")


def main(folder: Path, table: Path) -> None:
    documents, embedder = set_documents(folder), read_table(table)
    places = {document.id: place for place, document in enumerate(documents)}
    lines = Path(__file__).with_name("tongues.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines]
    relevant = [np.array([places[row[0]]]) for row in rows]
    print(f"{'nDCG@10':12}{'words':>10}{'table':>10}{'fused':>10}{'first':>10}")
    for column, language in enumerate(_LANGUAGES, start=1):
        queries = [row[column] for row in rows]
        words, named = by_words(documents, queries)
        near = by_meaning(embedder, documents, queries)
        both = named + fused(words, near, EVIDENCE / (EVIDENCE + words.max(axis=1, keepdims=True)))
        values = [ndcg(scores, relevant).mean() for scores in (named + words, near, both)]
        first = 100 * np.mean([each.argmax() in needed for each, needed in zip(both, relevant, strict=True)])
        print(f"{language:12}" + "".join(f"{value:>10.1f}" for value in (*values, first)))


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:3]))
