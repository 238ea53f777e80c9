"""Ranks documents by fused scores, and reranks the best.

Names before scores, and equal scores in the order of documents. Knows numbers by place, not what they are of.

Words and meaning are each divided by their best, so that both are on one scale, and share the score as the query has
it: where many rare words fit, words decide, and where few do, meaning. Scores are fused, not ranks: a rank forgets
whether the first was near or only the least far. Knows numbers by place, not what they are of.

A second look at the best candidates of a search: word by word, clause by clause, server by server.

The first ranking compares whole texts, and among tools that are much alike it cannot tell which one has the object that
was asked for. Here each word of the query looks for the nearest word of a candidate, and each word of the candidate's
name and first sentence for the nearest word of the query: a name that says more than was asked for loses. A request
made of several clauses ranks a candidate by the clause that it fits best, so that the tool of each clause comes up.

Costs a millisecond, however many tools there are: only the best of the first ranking are looked at. What each feature
weighs was fitted on tools and queries that the table had not learnt from (`training/rerank.py`) and comes with the
table.
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
    "fuse",
    "ranked",
]

Scores = NDArray[np.float64]


def ranked(scores: Scores, named: Levels, limit: int) -> list[int]:
    """The places of those that come first; what is neither named nor has a score does not come at all."""
    found = list[int]()
    for level in range(int(named.max(initial=0)), 0, -1):
        places = np.flatnonzero(named == level)
        found += places[best(scores[places], limit - len(found))].tolist()
    return found + best(np.where(named, 0, scores), limit - len(found), above=0).tolist()


def best(scores: Scores, limit: int, above: float = -np.inf) -> NDArray[np.intp]:
    """Where the greatest are that are above this, in falling order, those first among equals that stand first."""
    if limit <= 0:
        return np.zeros(0, dtype=np.intp)
    least = np.partition(scores, -limit)[-limit] if limit < len(scores) else -np.inf
    candidates = np.flatnonzero((scores >= least) & (scores > above))
    return candidates[np.argsort(-scores[candidates], kind="stable")][:limit]


CANDIDATES = 40
"""Documents that are looked at again."""
FEATURES = (
    "clause", "said", "said in name", "name", "head", "server", "exact", "said in name exact", "rare", "words",
    "said by clause", "strong clause", "name by clause",
)  # fmt: skip
_CLAUSE, _SAID, _SAID_IN_NAME, _NAME_ASKED, _HEAD_ASKED, _SERVER, _EXACT, _IN_NAME_EXACT, _RARE, _WORDS = range(10)
_SAID_BY_CLAUSE, _STRONG_CLAUSE, _NAME_BY_CLAUSE = range(10, 13)
_SAME = 0.999
"""Nearness from which two rows are one word."""
_REMEMBERED = 4_096
"""Documents whose words are kept; then all are forgotten."""
_DECIMALS = 5
"""Machines add in different orders; less than this is no difference."""
_NAME, _HEAD = 1, 2

_Numbers = NDArray[np.float64]
_Rows = NDArray[np.intp]
_Known = tuple[tuple[_Rows, ...], float]
"""The rows of each field of a document, then those of all, each once; and how long the sum of its name's rows is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The best of the first ranking, and how the clauses of the query rank all documents."""

    query: str
    places: list[int]
    fused: _Numbers
    """The score of each by words and meaning."""
    words: _Numbers
    """What of it is by words."""
    clauses: Sequence[str]
    """Where the query has several."""
    clause_totals: _Numbers
    """By words, a row a clause and a column a document; no rows where there is one clause only."""
    clause_nearness: _Numbers | NDArray[np.float32]
    """By meaning, likewise."""


class Reranker:
    """Looks at candidates again. Safe to use from several threads."""

    def __init__(self, documents: Sequence[Document], words: WordVectors, weight: float) -> None:
        """`weight` is what nearness weighs beside words, as `fusion.fuse` has it."""
        self._documents, self._words, self._weight = documents, words, weight
        self._known: dict[int, _Known] = {}

    def gains(self, seen: Candidates) -> _Numbers:
        """What each candidate gains beside its fused score."""
        gains: _Numbers = (self.features(seen) * np.array(self._words.feature_weights[1:])).sum(axis=1)
        return gains.round(_DECIMALS)

    @property
    def of_fused(self) -> float:
        """What the fused score weighs beside the features."""
        return self._words.feature_weights[0]

    def features(self, seen: Candidates) -> _Numbers:
        """A row a candidate, a column a feature in the order of `FEATURES`."""
        found = np.zeros((len(seen.places), len(FEATURES)))
        if not seen.places:
            return found
        self._compare_clauses(seen, found)
        # The best fused score of any candidate of the same server: tools that are needed together live
        # together.
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
        """How much better a candidate fits its best clause than the whole query, once with every clause's best document
        at 1 and once with clauses that are near to nothing counting less."""
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
        """Fills in what single words say."""
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


@dataclass(frozen=True, slots=True)
class _Lists:
    """Lists of rows, one a candidate, behind each other."""

    flat: _Rows
    filled: _Rows
    """The places of lists that hold something."""
    starts: _Rows
    """Where each of those begins."""
    number: int

    @classmethod
    def of(cls, lists: Sequence[_Rows]) -> "_Lists":
        lengths = np.array([len(one) for one in lists])
        filled = np.flatnonzero(lengths)
        return cls(np.concatenate(lists), filled, (np.cumsum(lengths) - lengths)[filled], len(lists))

    def most(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Of each row of values, the greatest of each list; 0 for a list of nothing."""
        found = np.zeros((len(values), self.number), dtype=np.float32)
        if len(self.filled):
            found[:, self.filled] = np.maximum.reduceat(values, self.starts, axis=1)
        return found

    def totals(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Of each row of values, the sum of each list."""
        found = np.zeros((len(values), self.number), dtype=np.float32)
        if len(self.filled):
            found[:, self.filled] = np.add.reduceat(values, self.starts, axis=1)
        return found

    def total(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """The sum of each list."""
        found = np.zeros(self.number, dtype=np.float32)
        if len(self.filled):
            found[self.filled] = np.add.reduceat(values, self.starts)
        return found


def _by_rarity(shares: NDArray[np.float32], nearest: NDArray[np.float32]) -> _Numbers:
    """How much of what was asked each candidate says, words that most candidates say counting least: where all are
    about issues, `issue` tells none of them apart."""
    said = nearest.sum(axis=1, keepdims=True)
    rare = shares * np.log((nearest.shape[1] + 1) / (np.maximum(said, 0) + 1))
    total: _Numbers = (rare * nearest).sum(axis=0) / max(float(rare.sum()), 1e-9)
    return total


_LEAST, _GROWTH, _START = 0.1, 0.04, 0.06
"""Of what is nearest to a text without sense: half of some thirty such texts came nearer than 0.10 to 0.15 to one of
45 tools, 0.14 to 0.21 to one of 100, 0.22 to 0.27 of 500, 0.28 to 0.36 of 4,000. The more tools, the nearer chance
comes, as the logarithm of their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """Numbers by place."""

    scores: Scores
    """What words, meaning, the closer look and use sum to; 0 for what was not found."""
    words: Scores
    meaning: Scores
    closer: Scores
    """What the best candidates gained when they were looked at again; see `rerank`."""
    use: Scores
    nearness: Nearness | None
    share: float
    """What meaning can give at the most."""
    worth: float
    """What a point of the score by words alone became."""


def fuse(totals: Scores, nearness: Nearness | None, use: Scores, weight: float = 0.0) -> Fused:
    """Of one document or more: scores by words, nearness where it is known, what use adds, 0 or more, and what nearness
    weighs: the best score by words at which both have half."""
    near = np.zeros(len(totals)) if nearness is None else np.maximum(nearness, 0)
    best_total, nearest = float(totals.max()), float(near.max())
    share = weight / (weight + best_total) if nearest else 0.0
    worth = (1 - share) / best_total if best_total else 0.0
    # What shares no word with the query must be nearer than chance would bring one of so many documents.
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
    """With what the candidates at these places gained; words and meaning weigh so much beside it, for all documents."""
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
