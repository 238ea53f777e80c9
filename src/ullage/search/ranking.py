"""Ranks documents by fused scores, and reranks the best.

`ranked` puts documents named in the query before all others, and equal scores in the order of documents. Everything
here works on numbers by position, independent of the documents.

`fuse` combines words and meaning. Each is divided by its best score, so that both are on one scale, and their shares
depend on the query: where many rare words match, words decide; where few do, meaning. Scores are fused, not ranks,
because a rank does not show whether the first was similar or only the least dissimilar.

`Reranker` compares the best candidates with the query again: word by word, clause by clause, server by server. The
first ranking compares whole texts, and among similar tools it cannot tell which has the object in the query. Here the
most similar word of a candidate is found for each word of the query, and the most similar word of the query for each
word of the candidate's name and first sentence: a name with more than the query asks for loses. With a query of several
clauses, a candidate is ranked by the clause that it matches best, so that the tool of each clause is found. Where the
candidates' first sentences are alike, comparing them adds noise, and the first ranking is kept (`distinctness`).

This takes a millisecond for any number of tools, because only the best of the first ranking are compared. The weights
of the features were fitted on tools and queries that the table was not trained on (`training/rerank.py`) and ship with
the table.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .document import Document, WordVectors
from .meaning_index import Nearness
from .name_match import Levels

__all__ = [
    "CANDIDATES",
    "FEATURES",
    "Candidates",
    "Fused",
    "Reranker",
    "Scores",
    "best",
    "closer_look",
    "distinctness",
    "fuse",
    "ranked",
]

Scores = NDArray[np.float64]


def ranked(scores: Scores, named: Levels, limit: int) -> list[int]:
    """Return the positions of the best documents, in order; those neither named nor with a score are left out."""
    found = list[int]()
    for level in range(int(named.max(initial=0)), 0, -1):
        places = np.flatnonzero(named == level)
        found += places[best(scores[places], limit - len(found))].tolist()
    return found + best(np.where(named, 0, scores), limit - len(found), above=0).tolist()


def best(scores: Scores, limit: int, above: float = -np.inf) -> NDArray[np.intp]:
    """Return the positions of the greatest scores above a bound, in falling order; equal ones in order of position."""
    if limit <= 0:
        return np.zeros(0, dtype=np.intp)
    least = np.partition(scores, -limit)[-limit] if limit < len(scores) else -np.inf
    candidates = np.flatnonzero((scores >= least) & (scores > above))
    return candidates[np.argsort(-scores[candidates], kind="stable")][:limit]


CANDIDATES = 40
"""Number of documents that are reranked."""
FEATURES = (
    "clause", "said", "said in name", "name", "head", "server", "exact", "said in name exact", "rare", "words",
    "said by clause", "strong clause", "name by clause",
)  # fmt: skip
_CLAUSE, _SAID, _SAID_IN_NAME, _NAME_ASKED, _HEAD_ASKED, _SERVER, _EXACT, _IN_NAME_EXACT, _RARE, _WORDS = range(10)
_SAID_BY_CLAUSE, _STRONG_CLAUSE, _NAME_BY_CLAUSE = range(10, 13)
_SAME = 0.999
"""Similarity from which two rows count as one word."""
_REMEMBERED = 4_096
"""Documents whose words are cached; when full, the cache is cleared."""
_DECIMALS = 5
"""Decimals to which sums are rounded: machines add in different orders, so smaller differences are meaningless."""
_NAME, _HEAD = 1, 2
_COMPARED = 15
"""Candidates that are compared with the best to see whether they are alike; with fewer, none are."""
_DISTINCT = 0.05
"""How far the best matching first sentence must be ahead of the mean of the candidates for a full comparison. It is at
least that far ahead for nine of ten requests to real servers, and for one of four among a thousand models with the same
description; anything from 0.04 to 0.12 ranks as well."""

_Numbers = NDArray[np.float64]
_Rows = NDArray[np.intp]
_Known = tuple[tuple[_Rows, ...], float]
"""The rows of each field of a document, then those of all fields, each once; and the length of the sum of its name's
rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The best of the first ranking, and the scores of all documents for each clause of the query."""

    query: str
    places: list[int]
    fused: _Numbers
    """Score of each by words and meaning."""
    words: _Numbers
    """The part of it by words."""
    clauses: Sequence[str]
    """The clauses, where the query has several."""
    clause_totals: _Numbers
    """Scores by words, a row a clause and a column a document; without rows where there is only one clause."""
    clause_nearness: _Numbers | NDArray[np.float32]
    """Scores by meaning, in the same form."""


class Reranker:
    """Reranks candidates. Safe to use from several threads."""

    def __init__(self, documents: Sequence[Document], words: WordVectors, weight: float) -> None:
        """Create a reranker; `weight` is the weight of similarity relative to words, as in `fuse`."""
        self._documents, self._words, self._weight = documents, words, weight
        self._known: dict[int, _Known] = {}

    def gains(self, seen: Candidates) -> tuple[float, _Numbers]:
        """Return the weight of the fused scores, and the gain of each candidate in addition to its fused score."""
        features, (of_fused, *weights) = self.features(seen), self._words.feature_weights
        share = distinctness(features)
        gains: _Numbers = share * (features * np.array(weights)).sum(axis=1)
        return share * of_fused + (1 - share), gains.round(_DECIMALS)

    def features(self, seen: Candidates) -> _Numbers:
        """Return the features, a row a candidate and a column a feature in the order of `FEATURES`."""
        found = np.zeros((len(seen.places), len(FEATURES)))
        if not seen.places:
            return found
        self._compare_clauses(seen, found)
        # The best fused score of any candidate of the same server: tools that are needed together are often on one
        # server.
        best: dict[str, float] = {}
        servers = [self._documents[place].server for place in seen.places]
        for server, score in zip(servers, seen.fused.tolist(), strict=True):
            best[server] = max(score, best.get(server, 0.0))
        found[:, _SERVER] = np.array([best[server] for server in servers])
        found[:, _WORDS] = seen.words
        asked, tells = self._words.query_words(seen.query)
        if len(asked):
            self._compare(seen, asked, tells, found)
        return found

    def _compare_clauses(self, seen: Candidates, found: _Numbers) -> None:
        """Fill in how much better a candidate matches its best clause than the whole query: once with every clause's
        best document at 1, and once with less weight for clauses that are similar to nothing."""
        if not len(seen.clause_totals):
            return
        best_totals = seen.clause_totals.max(axis=1)
        nearest = np.maximum(seen.clause_nearness.max(axis=1), 1e-9)
        share = (self._weight / (self._weight + best_totals))[:, None]
        by_words = seen.clause_totals[:, seen.places] / np.maximum(best_totals, 1e-9)[:, None]
        by_meaning = np.maximum(seen.clause_nearness[:, seen.places], 0) / nearest[:, None]
        scores: _Numbers = (1 - share) * by_words + share * by_meaning
        strength = (nearest / nearest.max())[:, None] ** 3
        found[:, _CLAUSE] = scores.max(axis=0) - seen.fused
        found[:, _STRONG_CLAUSE] = (strength * scores).max(axis=0) - seen.fused

    def _compare(self, seen: Candidates, asked: _Rows, tells: NDArray[np.float32], found: _Numbers) -> None:
        """Fill in the features of single words."""
        held = [self._rows_of(place) for place in seen.places]
        everything, names, heads = (_Lists.of([fields[field] for fields, _ in held]) for field in (-1, _NAME, _HEAD))
        different = np.unique(np.concatenate([asked, everything.flat]))
        near, lengths = self._words.nearness_of_words(asked, different)
        at_asked, at_names = (np.searchsorted(different, rows) for rows in (asked, names.flat))
        weights = tells * lengths[at_asked]
        shares = (weights / max(float(weights.sum()), 1e-9))[:, None]
        backwards = near.max(axis=0)
        nearest = everything.most(near[:, np.searchsorted(different, everything.flat)])
        nearest_in_name = names.most(near[:, at_names])
        found[:, _SAID], found[:, _EXACT] = shares.T @ nearest, shares.T @ (nearest >= _SAME)
        found[:, _SAID_IN_NAME] = shares.T @ nearest_in_name
        found[:, _IN_NAME_EXACT] = shares.T @ (nearest_in_name >= _SAME)
        found[:, _RARE] = _by_rarity(shares, nearest)
        for column, rows in ((_NAME_ASKED, names), (_HEAD_ASKED, heads)):
            at = np.searchsorted(different, rows.flat)
            found[:, column] = rows.total(lengths[at] * backwards[at]) / np.maximum(rows.total(lengths[at]), 1e-9)
        members = [np.flatnonzero(np.isin(asked, self._words.query_words(text)[0])) for text in seen.clauses]
        members = [some for some in members if len(some)]
        if len(members) > 1:
            by_clause = [shares[some, 0] @ nearest[some] for some in members]
            best = np.max([said / max(float(said.max()), 1e-9) for said in by_clause], axis=0)
            found[:, _SAID_BY_CLAUSE] = best * found[:, _SAID].max() - found[:, _SAID]
            # Cosines of the sums of rows, from those of single rows: the whole query first, then its clauses.
            picked = np.zeros((1 + len(members), len(asked)), dtype=np.float32)
            for row, some in enumerate((slice(None), *members)):
                picked[row, some] = weights[some]
            long = np.sqrt(np.maximum(((picked @ near[:, at_asked]) * picked).sum(axis=1), 1e-9))[:, None]
            to_names = names.totals((picked / long) @ near[:, at_names] * lengths[at_names])
            to_names /= np.array([length for _, length in held], dtype=np.float32)
            found[:, _NAME_BY_CLAUSE] = to_names[1:].max(axis=0) - to_names[0]

    def _rows_of(self, place: int) -> "_Known":
        known = self._known.get(place)
        if known is None:
            fields = self._words.document_words(self._documents[place])
            near, lengths = self._words.nearness_of_words(fields[_NAME], fields[_NAME])
            length = max(float(lengths @ near @ lengths), 1e-9) ** 0.5
            known = (*fields, np.unique(np.concatenate(fields))), length
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[place] = known
        return known


def distinctness(features: _Numbers) -> float:
    """Return how much comparing the candidates counts, from 0 where their first sentences are alike to 1.

    Among many tools with nearly the same description, the most similar words say nothing about which one is wanted.
    Tools without descriptions are compared by their names.
    """
    heads = np.sort(features[:, _HEAD_ASKED])[-_COMPARED:]
    if len(heads) < _COMPARED or heads[-1] <= 0:
        return 1.0
    return round(min(1.0, float(heads[-1] - heads.mean()) / _DISTINCT), _DECIMALS)


@dataclass(frozen=True, slots=True)
class _Lists:
    """Lists of rows, one a candidate, concatenated."""

    flat: _Rows
    filled: _Rows
    """Positions of the non-empty lists."""
    starts: _Rows
    """Start of each of those."""
    number: int

    @classmethod
    def of(cls, lists: Sequence[_Rows]) -> "_Lists":
        lengths = np.array([len(one) for one in lists])
        filled = np.flatnonzero(lengths)
        return cls(np.concatenate(lists), filled, (np.cumsum(lengths) - lengths)[filled], len(lists))

    def most(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return for each row of values the maximum over each list; 0 for an empty list."""
        found = np.zeros((len(values), self.number), dtype=np.float32)
        if len(self.filled):
            found[:, self.filled] = np.maximum.reduceat(values, self.starts, axis=1)
        return found

    def totals(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return for each row of values the sum over each list."""
        found = np.zeros((len(values), self.number), dtype=np.float32)
        if len(self.filled):
            found[:, self.filled] = np.add.reduceat(values, self.starts, axis=1)
        return found

    def total(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the sum over each list."""
        found = np.zeros(self.number, dtype=np.float32)
        if len(self.filled):
            found[self.filled] = np.add.reduceat(values, self.starts)
        return found


def _by_rarity(shares: NDArray[np.float32], nearest: NDArray[np.float32]) -> _Numbers:
    """Return how much of the query each candidate covers. Words covered by most candidates count least: where all are
    about issues, `issue` distinguishes none of them."""
    said = nearest.sum(axis=1, keepdims=True)
    rare = shares * np.log((nearest.shape[1] + 1) / (np.maximum(said, 0) + 1))
    total: _Numbers = (rare * nearest).sum(axis=0) / max(float(rare.sum()), 1e-9)
    return total


_LEAST, _GROWTH, _START = 0.1, 0.04, 0.06
"""The similarity expected by chance, as a function of the number of tools: its minimum, its growth with the logarithm
of that number, and the offset subtracted. Of some thirty texts without sense, half were nearer than 0.10 to 0.15 to one
of 45 tools, 0.14 to 0.21 to one of 100, 0.22 to 0.27 of 500, 0.28 to 0.36 of 4,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """Fused scores by position."""

    scores: Scores
    """Sum of words, meaning, reranking and use; 0 for documents that were not found."""
    words: Scores
    meaning: Scores
    closer: Scores
    """The gains of the candidates that were reranked; see `Reranker`."""
    use: Scores
    nearness: Nearness | None
    share: float
    """The most that meaning can contribute."""
    worth: float
    """What one point of the score by words alone became after fusion."""


def fuse(totals: Scores, nearness: Nearness | None, use: Scores, weight: float = 0.0) -> Fused:
    """Fuse the scores of one document or more.

    Args:
        totals: Scores by words.
        nearness: Similarities of meaning, where known.
        use: The gains from previous use, 0 or more.
        weight: The weight of similarity: the best score by words at which both contribute half.
    """
    near = np.zeros(len(totals)) if nearness is None else np.maximum(nearness, 0)
    best_total, nearest = float(totals.max()), float(near.max())
    share = weight / (weight + best_total) if nearest else 0.0
    worth = (1 - share) / best_total if best_total else 0.0
    # A document that shares no word with the query must be more similar than chance would bring one of so many
    # documents.
    floor = max(_LEAST, _GROWTH * math.log(len(totals)) - _START)
    found = (totals > 0) | (near >= floor)
    words, meaning = worth * totals, np.where(found, near * (share / nearest if nearest else 0.0), 0.0)
    return Fused(
        scores=words + meaning + use,
        words=words,
        meaning=meaning,
        closer=np.zeros(len(totals)),
        use=use,
        nearness=nearness,
        share=share,
        worth=worth,
    )


def closer_look(fused: Fused, places: Sequence[int], gains: Scores, weight: float) -> Fused:
    """Return the scores with the gains of reranked candidates. Words and meaning have the given weight relative to
    these, for all documents."""
    closer = np.zeros(len(fused.scores))
    closer[places] = gains
    words, meaning = weight * fused.words, weight * fused.meaning
    return replace(
        fused,
        scores=words + meaning + closer + fused.use,
        words=words,
        meaning=meaning,
        closer=closer,
        share=weight * fused.share,
        worth=weight * fused.worth,
    )
