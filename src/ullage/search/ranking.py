"""Ranks documents by words and by the similarity of their vectors, and reranks the best.

`Meaning` uses vectors of documents computed before, and computes the others.

`Matrix` stores a vector as bytes and the value of one step: a quarter of the memory, which changes a similarity by less
than three thousandths. Comparing several queries with a hundred thousand vectors takes half the time too, because
memory is the bottleneck: some vectors at a time are widened where they stay in the cache.

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
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .document import Document, Embedder, EmbedderFailed, WordVectors
from .postings import Levels, places_before

__all__ = [
    "CANDIDATES",
    "FEATURES",
    "Candidates",
    "Fused",
    "Matrix",
    "Meaning",
    "Nearness",
    "Reranker",
    "Scores",
    "Vector",
    "best",
    "closer_look",
    "distinctness",
    "fuse",
    "ranked",
]

Places = NDArray[np.intp] | NDArray[np.int32]
Vector = NDArray[np.float32]

_STEPS = 127
_MOST = 9
"""Vectors that are compared at a time."""
_SMALL = 1 << 18
"""Multiplications up to which OpenBLAS computes a product in one thread: threads that wait for each other and for the
same memory use two to three times the CPU."""
_WIDE = 4
"""Blocks that are widened at a time: half a megabyte."""


class Matrix:
    """A matrix of quantised rows, all zeros until they are set."""

    def __init__(self, number: int, size: int) -> None:
        height = max(1, _SMALL // (size * _MOST))
        self._number = number
        self._blocks = np.zeros((-(-number // height), height, size), dtype=np.int8)
        """The blocks of rows; the last may end in unused rows."""
        self.steps = np.zeros(number, dtype=np.float32)

    @property
    def size(self) -> int:
        return self._blocks.shape[2]

    def put(self, places: Places, vectors: Vector) -> None:
        steps = np.abs(vectors).max(axis=1, initial=0) / np.float32(_STEPS)
        self.steps[places] = steps
        self.rows[places] = np.round(vectors / np.where(steps, steps, 1)[:, None])

    def take(self, places: Places, other: "Matrix", theirs: Places) -> None:
        """Copy rows of another matrix, whose vectors have the same size."""
        self.steps[places] = other.steps[theirs]
        self.rows[places] = other.rows[theirs]

    def nearness(self, vectors: Vector) -> Vector:
        """Return the similarity of each row to each of these vectors, a row a vector."""
        near = self._products(vectors).transpose(1, 0, 2).reshape(len(vectors), -1)
        return near[:, : self._number] * self.steps

    def nearness_together(self, vectors: Vector, of_others: float) -> Vector:
        """Return the similarity of each row to the first of these vectors combined with that to the nearest of the
        others, which has the share `of_others`. Cheaper than one by one for very many rows."""
        near = self._products(vectors)
        nearest = near[:, 0]
        if len(vectors) > 1:
            nearest = (1 - of_others) * nearest + of_others * near[:, 1:].max(axis=1)
        return nearest.ravel()[: self._number] * self.steps

    def _products(self, vectors: Vector) -> Vector:
        """Return the products by block, by vector, by row of the block, in quantisation steps."""
        blocks, height, size = self._blocks.shape
        found = np.empty((blocks, len(vectors), height), dtype=np.float32)
        room = np.empty((_WIDE, height, size), dtype=np.float32)
        for start in range(0, blocks, _WIDE):
            some = slice(start, start + _WIDE)
            wide = room[: len(self._blocks[some])]
            wide[...] = self._blocks[some]
            np.matmul(vectors, wide.transpose(0, 2, 1), out=found[some])
        return found

    @property
    def rows(self) -> NDArray[np.int8]:
        """The rows, in quantisation steps."""
        return self._blocks.reshape(-1, self.size)


Nearness = NDArray[np.float64]

_OF_CLAUSE = 0.5
"""Share of the nearest clause where there are several; the whole query has the rest."""
_MANY = 20_000
"""Documents above which the clauses of a query are not scored separately."""
_DECIMALS = 5
"""Decimals to which sums are rounded: machines add in different orders, so the last bits differ."""
_AT_ONCE = 1_000
"""Documents that are embedded at a time, to limit memory."""


class Meaning:
    """The vectors of documents, by position. Immutable."""

    def __init__(
        self,
        documents: Sequence[Document],
        embedder: Embedder,
        vectors: Mapping[str, Vector],
        before: "Meaning | None" = None,
    ) -> None:
        """Collect or compute the vectors.

        Args:
            documents: The documents, in order.
            embedder: Computes vectors that are not known.
            vectors: Known vectors by the documents' ids, of this embedder's edition.
            before: An earlier object, from which the vectors of unchanged documents are taken.
        """
        self.documents, self.edition, self.weight = documents, embedder.edition, embedder.weight
        self._embedder = embedder
        with _told(embedder):
            self.matrix = Matrix(len(documents), embedder.embed_query("").shape[1])
        same = before is not None and before.edition == self.edition
        self._absent = self._take(vectors, self._take_over(before if same else None))
        """Positions of documents whose vectors were not known."""
        self._fresh = self._make()

    @property
    def made(self) -> dict[str, Vector]:
        """The vectors computed here, by their documents' ids."""
        ids = (self.documents[place].id for place in self._absent)
        return dict(zip(ids, self._fresh.astype(np.float32), strict=True))

    def nearness(self, query: str) -> Nearness:
        """Return the similarity of each document: 1 for the same, about 0 or less for unrelated texts."""
        return self.nearness_by_clause(query)[0]

    def nearness_by_clause(self, query: str) -> tuple[Nearness, Vector]:
        """Return `nearness`, and a row for each clause where the query has several and there are not too many
        documents."""
        with _told(self._embedder):
            vectors = _sound(self._embedder.embed_query(query))
        if len(self.documents) > _MANY:  # Scoring clauses separately would cost more than all else.
            together = self.matrix.nearness_together(vectors, _OF_CLAUSE)
            return np.round(together.astype(np.float64), _DECIMALS), np.zeros((0, len(together)), dtype=np.float32)
        near = self.matrix.nearness(vectors)
        clauses = near[1:]
        whole: Vector = near[0]
        if len(clauses):
            whole = (1 - _OF_CLAUSE) * whole + _OF_CLAUSE * clauses.max(axis=0)
        return np.round(whole.astype(np.float64), _DECIMALS), clauses

    def _take_over(self, before: "Meaning | None") -> list[int]:
        """Copy rows from `before`, and return the positions of documents without one."""
        if before is None:
            return [*range(len(self.documents))]
        places = places_before(self.documents, before.documents)
        stayed = np.flatnonzero(places >= 0)
        self.matrix.take(stayed, before.matrix, places[stayed])
        return np.flatnonzero(places < 0).tolist()

    def _take(self, vectors: Mapping[str, Vector], places: Sequence[int]) -> list[int]:
        """Store the known vectors of documents at these positions, and return the positions of the others."""
        size, absent = (self.matrix.size,), list[int]()
        for start in range(0, len(places), _AT_ONCE):
            some = places[start : start + _AT_ONCE]
            found = [(place, vectors.get(self.documents[place].id)) for place in some]
            of_size = [(place, vector) for place, vector in found if vector is not None and vector.shape == size]
            known = [(place, vector) for place, vector in of_size if np.isfinite(vector.sum())]
            if known:
                self.matrix.put(np.array([place for place, _ in known]), np.stack([vector for _, vector in known]))
            absent += sorted({*some} - {place for place, _ in known})
        return absent

    def _make(self) -> NDArray[np.float16]:
        """Compute the missing vectors in half precision, as they are stored, so that a search gives the same now and
        after the next start."""
        made = np.zeros((len(self._absent), self.matrix.size), dtype=np.float16)
        for start in range(0, len(self._absent), _AT_ONCE):
            some = self._absent[start : start + _AT_ONCE]
            with _told(self._embedder):
                vectors = self._embedder.embed_documents([self.documents[place] for place in some])
            made[start : start + _AT_ONCE] = _sound(vectors)
            self.matrix.put(np.array(some), made[start : start + _AT_ONCE].astype(np.float32))
        return made


@contextmanager
def _told(embedder: Embedder) -> Generator[None]:
    """Convert an embedder's error to `EmbedderFailed`, with the embedder."""
    try:
        yield
    except Exception as error:
        raise EmbedderFailed(embedder, error) from error


def _sound(vectors: Vector) -> Vector:
    """Replace a vector that is not finite by zeros: it would make all scores invalid."""
    return np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors, np.float32(0))


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
