"""Index of the words and names of documents.

Postings tell which documents containwhich terms, and BM25F over them.

A posting is a number of eight bytes in one sorted array, where a dictionary needs a hundred bytes. The 64 bits are the
term's number, the document's position, the field, and the number of occurrences. Sorted, the keys of a term are
adjacent, and among them those of a document. Counts of unchanged documents are taken from an earlier index by
arithmetic.

`Postings` scores by BM25F: a term counts by its rarity, by the fields in which it occurs and by how little else these
contain (Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields", 2004). Everything that does
not depend on the query is computed beforehand; a query only adds up. Immutable. Terms are defined in
`stemming_and_synonyms`.

A query that gives a tool's name must find the tool, however it is spelt and whatever else scores well: `createIssue`,
`create-issue`, `github.create_issue`, `mcp__github__create_issue`, or the beginning of it. `Names` matches names only,
and never changes once made; no look-up goes through all names.

`Spellings` stores a spelling as a 64-bit hash: twelve bytes with the document's position, where the text itself takes a
hundred and more. A query matches the hash of one of a million spellings by chance once in ten million million queries.

`places_before` and `moved` map the positions of unchanged documents between an old and a new index, so that work on
them is not repeated.

`Lines` stores all lines as one array of bytes, and finds a text in all of them at once: first its first letters as one
number, then letter by letter where these were found. Frequent texts take hardly longer than absent ones.
"""

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from .document import Document, Field, Named, Reason
from .stemming_and_synonyms import Wanted, of_run, parts, runs

__all__ = [
    "Counted",
    "Keys",
    "Levels",
    "Lines",
    "Names",
    "Places",
    "Postings",
    "Spellings",
    "count",
    "counts_of",
    "fields_of",
    "first_key",
    "keys_of",
    "moved",
    "pairs_of",
    "places_before",
    "places_of",
    "terms_of",
    "with_places",
    "with_terms",
]

_END = b"\n"
_Places = NDArray[np.int64]


class Lines:
    """Lines of bytes without line breaks, searchable together."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._text = np.frombuffer(_END.join((*lines, b"")), dtype=np.uint8)
        sizes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + len(_END)
        self._starts = np.cumsum(sizes) - sizes

    def find(self, text: bytes) -> tuple[_Places, _Places]:
        """Return the line of each occurrence of a text, and the position in the line. The text has at least two
        bytes."""
        size = 4 if len(text) >= 4 else 2
        at = self._beginning_with(text[:size])
        for distance in range(size, len(text)):
            if not len(at):
                break
            # The index never exceeds the end: the last line's end is not a letter of the text, so that candidate is
            # dropped there.
            at = at[self._text[at + distance] == text[distance]]
        lines = np.searchsorted(self._starts, at, side="right") - 1
        return lines, at - self._starts[lines]

    def _beginning_with(self, letters: bytes) -> _Places:
        """Return the positions of two or four letters, compared as numbers of that many bytes, at any offset."""
        size = len(letters)
        number = np.frombuffer(letters, dtype=f"u{size}")[0]
        found = list[_Places]()
        for first in range(size):
            rest = self._text[first:]
            numbers = rest[: len(rest) // size * size].view(f"u{size}")
            found.append(np.flatnonzero(numbers == number) * size + first)
        return np.sort(np.concatenate(found))


Places = NDArray[np.int32]


def places_before(documents: Sequence[Document], before: Sequence[Document]) -> Places:
    """Return for each document its earlier position, -1 where it is new or differs."""
    known = {document.id: place for place, document in enumerate(before)}
    found = np.full(len(documents), -1, dtype=np.int32)
    for place, document in enumerate(documents):
        old = known.get(document.id)
        if old is not None and before[old] == document:
            found[place] = old
    return found


def moved(places: Places, before: int) -> Places:
    """Return for each of the earlier documents its present position, -1 where it is gone."""
    found = np.full(before, -1, dtype=np.int32)
    kept = np.flatnonzero(places >= 0)
    found[places[kept]] = kept
    return found


@dataclass(frozen=True, slots=True)
class Spellings:
    """Spellings of documents, as sorted hashes."""

    marks: NDArray[np.uint64]
    """The hashes, sorted; those of equal spellings by position."""
    places: Places
    """Position of the document with that spelling."""

    @classmethod
    def of(cls, spelt: Iterable[tuple[str, int]]) -> "Spellings":
        """Make the spellings from pairs of a spelling and the document's position."""
        known = [(_mark(spelling), place) for spelling, place in spelt]
        marks = np.array([mark for mark, _ in known], dtype=np.uint64)
        return _sorted(marks, np.array([place for _, place in known], dtype=np.int32))

    def holders(self, spelling: str) -> Places:
        """Return the positions of the documents with this spelling, in order."""
        mark = np.uint64(_mark(spelling))
        return self.places[np.searchsorted(self.marks, mark) : np.searchsorted(self.marks, mark, side="right")]

    def taken_over(self, now: Places, more: "Spellings") -> "Spellings":
        """Return the spellings with the documents' new positions, without those that are gone (-1), and with more."""
        places = now[self.places]
        stayed = places >= 0
        return _sorted(np.concatenate([self.marks[stayed], more.marks]), np.concatenate([places[stayed], more.places]))


def _sorted(marks: NDArray[np.uint64], places: Places) -> Spellings:
    order = np.lexsort((places, marks))
    return Spellings(marks[order], places[order])


def _mark(spelling: str) -> int:
    # Servers can send names that cannot be encoded, such as with half of a surrogate pair.
    return int.from_bytes(blake2b(spelling.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


_LONGEST = 100
"""Longest query, in letters, that can be part of a name."""
_LONG_NAME = 128
"""Letters of a name that are matched in part, which is MCP's limit: otherwise a very long name would match many queries
and rank before the right tools. In full, a name of any length matches."""
_LEAST_INSIDE = 4
"""Least letters of a query that can match inside a word."""
_OWNED = re.compile(r"['\u2019]s\b", re.IGNORECASE)
"""A possessive ending: `user's` does not mean `users`."""
_PROPER = re.compile(r"\W*([A-Z][A-Za-z0-9]*)(?:['\u2019]s)?\W*")
_NAME = b"\0"
"""Separator before the name's words; occurs in no word."""

Levels = NDArray[np.int8]
"""How the query names each document: a `Named` by position."""


class Names:
    """Names of documents by position, in every spelling."""

    def __init__(self, documents: Sequence[Document], before: "Names | None" = None) -> None:
        """Build the names; those of unchanged documents are taken from `before`."""
        self.documents = documents
        places = places_before(documents, () if before is None else before.documents)
        self.texts: list[bytes] = [
            (_spaced(_parts(document.server)) + _NAME + _spaced(_parts(document.name)))
            if before is None or old < 0
            else before.texts[old]
            for document, old in zip(documents, places.tolist(), strict=True)
        ]
        new = np.flatnonzero(places < 0).tolist()
        self.spellings = Spellings.of((spelling, place) for place in new for spelling in _spellings(documents[place]))
        if before is not None:
            self.spellings = before.spellings.taken_over(moved(places, len(before.documents)), self.spellings)
        self._servers = np.array([text.index(_NAME) for text in self.texts], dtype=np.int64)
        """Number of letters of a document's line that belong to the server's name."""
        self._lines = Lines([text.replace(_NAME, b"") for text in self.texts])
        self._together = Lines([text.partition(_NAME)[2].replace(b" ", b"") for text in self.texts])

    def named(self, query: str) -> Levels:
        """Return how the query names each document."""
        levels = np.zeros(len(self.documents), dtype=np.int8)
        words = parts(query) if len(query) <= _LONGEST else []
        for places in self._in_part(query, words):
            levels[places] = Named.IN_PART
        for places in self._among_others(query):
            levels[places] = Named.AMONG_OTHERS
        if words:
            levels[self.spellings.holders("".join(words))] = Named.WHOLLY
        levels[self.spellings.holders(_quoted(query.strip()))] = Named.EXACTLY
        return levels

    def _in_part(self, query: str, words: list[str]) -> Iterator[NDArray[np.int64]]:
        """Yield positions whose name is longer than the query and contains it; the server's words may come first."""
        if words:
            # Positions where these words are in the name, or across server and name, but not in the server alone.
            spaced = _spaced(words)
            places, starts = self._lines.find(spaced)
            servers = self._servers[places]
            in_server, in_name = starts + len(spaced) <= servers, starts >= servers
            across = places[~in_server & ~in_name]
            from_a_word_on = np.concatenate([places[in_name], np.setdiff1d(across, places[in_server])])
            yield from_a_word_on
            together = "".join(words)
            if len(together) >= _LEAST_INSIDE and not any(map(str.isspace, query.strip())):
                yield self._together.find(together.encode())[0]

    def _among_others(self, query: str) -> Iterator[NDArray[np.int32]]:
        """Yield positions whose name is in the query as one compound word. A word that is only capitalised, such as
        `GitHub`, may be any name, and matches only the tool spelt exactly so."""
        for word in query[: _LONGEST * _LONGEST].split():
            if len(word) <= _LONGEST and len(made_of := parts(_OWNED.sub("", word))) > 1:
                proper = _PROPER.fullmatch(word)
                yield self.spellings.holders(_quoted(proper[1])) if proper else self._longest_ending(made_of)

    def _longest_ending(self, words: list[str]) -> NDArray[np.int32]:
        """Return the positions named by the word, or by its remainder after prefixes, of at least two words."""
        for start in range(len(words) - 1):
            places = self.spellings.holders("".join(words[start:]))
            if len(places):
                return places
        return np.zeros(0, dtype=np.int32)


def _parts(name: str) -> list[str]:
    return parts(name[:_LONG_NAME])


def _spaced(words: Sequence[str]) -> bytes:
    return "".join(f" {word}" for word in words).encode()


def _spellings(document: Document) -> set[str]:
    """Return the spellings of a document: each name without separators, alone and after its server's; and as written,
    in quotes."""
    server, names = "".join(_parts(document.server)), (document.name, *document.aliases)
    together = {"".join(_parts(name)) for name in names} - {""}
    return together | {server + name for name in together} | {_quoted(name) for name in names}


def _quoted(name: str) -> str:
    """Mark a name as written. Spellings without separators have letters and digits only."""
    return f"`{name}`"


Keys = NDArray[np.uint64]
Numbers = NDArray[np.int64]

_COUNT, _FIELD, _PLACE = 14, 3, 21
"""Bits of each part. The 26 bits above them are the term's: room for two million documents, and for more terms than fit
into memory."""
_MOST = (1 << _COUNT) - 1
"""The most occurrences of a term in a field that are counted."""
_OF_FIELD, _OF_PLACE, _OF_TERM = (np.uint64(bits) for bits in (_COUNT, _COUNT + _FIELD, _COUNT + _FIELD + _PLACE))


def keys_of(terms: Numbers, places: Numbers, fields: Numbers) -> Keys:
    """Return sorted keys, one for each term in each field of each document, from single occurrences."""
    places_and_fields = places.astype(np.uint64) << np.uint64(_FIELD) | fields.astype(np.uint64)
    different, counts = np.unique(
        terms.astype(np.uint64) << np.uint64(_FIELD + _PLACE) | places_and_fields, return_counts=True
    )
    return different << _OF_FIELD | np.minimum(counts, _MOST).astype(np.uint64)


def first_key(term: int, place: int) -> np.uint64:
    """Return a lower bound of the keys of this term in this document and in later ones."""
    return np.uint64((term << _PLACE | place) << (_FIELD + _COUNT))


def pairs_of(keys: Keys) -> Keys:
    """Return numbers that are equal for the same term in the same document."""
    return keys >> _OF_PLACE


def terms_of(keys: Keys) -> Numbers:
    return (keys >> _OF_TERM).astype(np.int64)


def places_of(keys: Keys) -> Numbers:
    return (keys >> _OF_PLACE & np.uint64((1 << _PLACE) - 1)).astype(np.int64)


def fields_of(keys: Keys) -> Numbers:
    return (keys >> _OF_FIELD & np.uint64((1 << _FIELD) - 1)).astype(np.int64)


def counts_of(keys: Keys) -> Numbers:
    return (keys & np.uint64(_MOST)).astype(np.int64)


def with_places(keys: Keys, places: NDArray[np.int32]) -> Keys:
    """Return the keys with other positions."""
    mask = ~(np.uint64((1 << _PLACE) - 1) << _OF_PLACE)
    return keys & mask | places.astype(np.uint64) << _OF_PLACE


def with_terms(keys: Keys, terms: Numbers) -> Keys:
    """Return the keys with other terms."""
    return keys & ((np.uint64(1) << _OF_TERM) - np.uint64(1)) | terms.astype(np.uint64) << _OF_TERM


_FIELDS = len(Field)
_AT_ONCE = 1 << 20
"""Terms that are collected before they are counted, to limit memory."""
_UNUSED = 1_000
"""Unused terms that are tolerated, in addition to one for each used term."""


class _Numbers(dict[str, int]):
    """A number for each term, assigned on first use."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class _Known(dict[str, tuple[int, ...]]):
    """The numbers of the terms in a run of letters, computed on first use. Runs outside ASCII are not cached: in
    scripts without spaces they rarely occur again."""

    def __init__(self, numbers: _Numbers) -> None:
        self._numbers = numbers

    def __missing__(self, run: str) -> tuple[int, ...]:
        found = tuple(map(self._numbers.__getitem__, of_run(run)))
        if run.isascii():
            self[run] = found
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The counted terms of documents. Immutable."""

    documents: Sequence[Document]
    numbers: dict[str, int]
    """Numbers of terms; some may no longer occur in any document."""
    keys: Keys
    lengths: NDArray[np.int64]
    """Lengths in terms, a row a document and a column a field."""


def count(documents: Sequence[Document], before: Counted | None = None) -> Counted:
    """Count documents; the counts of unchanged ones are taken from `before`."""
    lengths = np.zeros((len(documents), _FIELDS), dtype=np.int64)
    places = places_before(documents, () if before is None else before.documents)
    stayed = places >= 0
    numbers, portions = _Numbers(), list[Keys]()
    if before is not None and stayed.any():
        numbers.update(before.numbers)
        lengths[stayed] = before.lengths[places[stayed]]
        # Without those of removed documents.
        now = moved(places, len(before.documents))[places_of(before.keys)]
        portions.append(with_places(before.keys[now >= 0], now[now >= 0]))
    portions += _count(documents, np.flatnonzero(~stayed).tolist(), numbers, lengths)
    keys = np.concatenate(portions or [np.zeros(0, dtype=np.uint64)])
    keys.sort()
    return _without_unused(Counted(documents=documents, numbers=dict(numbers), keys=keys, lengths=lengths))


def _count(
    documents: Sequence[Document], places: Iterable[int], numbers: _Numbers, lengths: NDArray[np.int64]
) -> Iterable[Keys]:
    """Yield the keys of the documents at these positions, some at a time, and fill in their lengths."""
    found, counted, known = array("I"), list[int](), _Known(numbers)
    for place in places:
        for field, text in enumerate(documents[place].texts()):
            if text:
                before = len(found)
                found.extend(chain.from_iterable(map(known.__getitem__, runs(text))))
                lengths[place, field] = len(found) - before
        counted.append(place)
        if len(found) >= _AT_ONCE:
            yield _keys(found, counted, lengths)
            found, counted = array("I"), []
    if found:
        yield _keys(found, counted, lengths)


def _keys(found: "array[int]", counted: Sequence[int], lengths: NDArray[np.int64]) -> Keys:
    """Return the keys of terms in the order of the texts in which they were found."""
    sizes = lengths[counted].ravel()
    places, fields = np.repeat(counted, _FIELDS), np.tile(np.arange(_FIELDS), len(counted))
    return keys_of(np.array(found, dtype=np.int64), np.repeat(places, sizes), np.repeat(fields, sizes))


def _without_unused(counted: Counted) -> Counted:
    """Renumber the terms where most of them no longer occur in any document."""
    of_keys = terms_of(counted.keys)
    used = np.zeros(len(counted.numbers), dtype=bool)
    used[of_keys] = True
    if len(used) <= 2 * int(used.sum()) + _UNUSED:
        return counted
    new = np.cumsum(used) - 1
    numbers = {term: int(new[number]) for term, number in counted.numbers.items() if used[number]}
    return replace(counted, numbers=numbers, keys=with_terms(counted.keys, new[of_keys]))


_WEIGHTS: Mapping[Field, float] = {
    Field.SERVER: 1.0,
    Field.NAME: 3.0,
    Field.TITLE: 1.0,
    Field.DESCRIPTION: 1.0,
    Field.PARAMETER_NAMES: 0.3,
    Field.PARAMETER_DESCRIPTIONS: 0.3,
}
"""Weights in the order of `Field`. Deliberately round: finer ones were better where they were tuned and worse
elsewhere."""
_POSTINGS_FIELDS = tuple(Field)
_SATURATION = 2.0
"""BM25's k1: how quickly further occurrences of a term stop counting."""
_LENGTH = 0.75
"""BM25's b: how much the length of a field reduces the weight of its terms."""
_POSTINGS_AT_ONCE = 1 << 18
"""Postings that are computed at a time, to limit memory."""

_PostingsNumbers = NDArray[np.float64]


class Postings:
    """Counted documents, ready for queries."""

    def __init__(self, documents: Sequence[Document], before: "Postings | None" = None) -> None:
        """Count the documents; the counts of unchanged ones are taken from `before`."""
        self.counted = count(documents, None if before is None else before.counted)
        # Start of the keys of one term in one document.
        pairs = pairs_of(self.counted.keys)
        starts = np.flatnonzero(np.diff(pairs, prepend=~pairs[:1]))
        terms = terms_of(self.counted.keys[starts])
        holders = np.bincount(terms, minlength=len(self.counted.numbers))
        self._ends = np.cumsum(holders)
        """End of each term's postings."""
        # Uses the standard library's logarithm, once for each number of documents: numpy's differs between machines.
        number, (different, which) = len(self.documents), np.unique(holders, return_inverse=True)
        self._rarities = np.array([math.log(1 + (number - held + 0.5) / (held + 0.5)) for held in different.tolist()])[
            which
        ]
        # The weight of one occurrence in each field of each document: less, the longer the field is relative to others.
        lengths = self.counted.lengths
        total = np.maximum(lengths.sum(axis=0), 1)
        self._scales = np.array([*_WEIGHTS.values()]) / (1 - _LENGTH + _LENGTH * lengths * len(lengths) / total)
        self._places = np.empty(len(starts), dtype=np.int32)
        self._impacts = np.empty(len(starts), dtype=np.float64)
        """Contribution of a term to a document, for a query that has it once."""
        self._work_out(starts, terms)

    @property
    def documents(self) -> Sequence[Document]:
        return self.counted.documents

    def holds(self, term: str) -> bool:
        """Return whether any document has this term."""
        postings = self._postings(term)
        return postings.start < postings.stop

    def totals(self, wants: Mapping[str, Wanted]) -> _PostingsNumbers:
        """Return the score of every document."""
        places, given = list[NDArray[np.int32]](), list[_PostingsNumbers]()
        for term, want in wants.items():
            postings = self._postings(term)
            places.append(self._places[postings])
            given.append(want.weight * self._impacts[postings])
        if not places:
            return np.zeros(len(self.documents))
        totals = np.bincount(np.concatenate(places), weights=np.concatenate(given), minlength=len(self.documents))
        return totals.astype(np.float64, copy=False)

    def reasons(self, place: int, wants: Mapping[str, Wanted]) -> tuple[Reason, ...]:
        """Return the contribution of each term in each field to a document's score, greatest first."""
        found: list[Reason] = []
        for term, want in wants.items():
            shares = self._shares(term, place)
            if shares:
                given = want.weight * self._rarities[self.counted.numbers[term]] / (sum(shares.values()) + _SATURATION)
                found += [
                    Reason(term=term, field=_POSTINGS_FIELDS[field], score=float(given * share), asked=want.asked)
                    for field, share in shares.items()
                ]
        return tuple(sorted(found, key=lambda reason: -reason.score))

    def _postings(self, term: str) -> slice:
        number = self.counted.numbers.get(term)
        if number is None:
            return slice(0, 0)
        return slice(int(self._ends[number - 1]) if number else 0, int(self._ends[number]))

    def _shares(self, term: str, place: int) -> dict[int, float]:
        """Return the share of the term in each field of a document that has it."""
        number = self.counted.numbers.get(term)
        if number is None:
            return {}
        start, end = np.searchsorted(self.counted.keys, [first_key(number, place), first_key(number, place + 1)])
        keys = self.counted.keys[start:end]
        fields = fields_of(keys)
        return dict(zip(fields.tolist(), (counts_of(keys) * self._scales[place, fields]).tolist(), strict=True))

    def _work_out(self, starts: NDArray[np.int64], terms: NDArray[np.int64]) -> None:
        """Fill in positions and impacts: further occurrences of a term count less and less."""
        keys = self.counted.keys
        for begin in range(0, len(starts), _POSTINGS_AT_ONCE):
            some = slice(begin, min(begin + _POSTINGS_AT_ONCE, len(starts)))
            first = starts[some.start]
            portion = keys[first : starts[some.stop] if some.stop < len(starts) else len(keys)]
            places = places_of(portion)
            shares = np.add.reduceat(
                counts_of(portion) * self._scales[places, fields_of(portion)], starts[some] - first
            )
            self._impacts[some] = self._rarities[terms[some]] * (shares / (shares + _SATURATION))
            self._places[some] = places[starts[some] - first]
