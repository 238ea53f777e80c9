"""Why is this document among the results?

The values that a search returns: a hit, how the query named it, and what gave it its score: words, meaning, use.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from .document import Document, Field

__all__ = ["Hit", "Named", "Reason", "Why"]


class Named(IntEnum):
    """Whether the query says a document's name. More comes before less, whatever the scores."""

    NO = 0
    IN_PART = 1
    """The whole query is part of the name, from the beginning of a word: `create_iss`."""
    AMONG_OTHERS = 2
    """A word of the query can only be this name: `file a bug with create_issue`."""
    WHOLLY = 3
    """The whole query is the name, in whatever spelling: `github.createIssue`."""
    EXACTLY = 4
    """The query is the name letter for letter, and so comes before other spellings of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What one term in one field gave. The reasons of a hit sum to what words gave it."""

    term: str
    """As indexed: lower case and stemmed."""
    field: Field
    score: float
    asked: bool
    """False where the query had not the term but a kin word of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What gave a hit its score: words, meaning, the closer look and use sum to it."""

    words: float
    reasons: tuple[Reason, ...]
    """What each term in each field gave to that, greatest first."""
    meaning: float = 0.0
    nearness: float | None = None
    """Of meanings: 1 for the same, about 0 for what has nothing to do with one another. None where meaning is not known
    to the index."""
    share: float = 0.0
    """What meaning could give to this query's hits at the most; words could give the rest."""
    closer: float = 0.0
    """What comparing it with the query word by word and clause by clause added; 0 where it was not among the best."""
    use: float = 0.0
    """What having been of use before added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A document that is near the query."""

    document: Document
    score: float
    """Comparable within one query only. 0 where the name alone matched."""
    named: Named
    explain: Callable[[], Why] = field(repr=False, compare=False)
    """Why, worked out when asked for, of the index as it was at the search."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """What each term in each field gave to the score, greatest first."""
        return self.explain().reasons
