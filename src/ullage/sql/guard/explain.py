"""May this EXPLAIN be run?

Only of a query that could itself be run: some forms run what they explain, and none is worth telling apart.
"""

from .passage import Passage
from .query import check_query, is_query
from .statement import Terms
from .wording import refusal
from .wordlist import words

__all__ = ["check_explain", "explained"]

_OPTIONS = words("analyze verbose costs settings generic_plan buffers serialize wal timing summary memory format")
_PLAIN = frozenset({"analyze", "verbose", "extended", "partitions", "query", "plan"})


def check_explain(passage: Passage, terms: Terms) -> tuple[str, ...]:
    if passage.word(0) == "analyze" and any(passage.word(place) == "table" for place in (1, 2)):
        raise refusal("ANALYZE TABLE", "writes statistics", "Write ANALYZE SELECT …, or EXPLAIN SELECT …")
    return check_query(passage.after(explained(passage, terms)), terms)


def explained(passage: Passage, terms: Terms) -> int:
    """Where the explained query begins."""
    at = 1
    while True:
        if passage.mark(at) == "(" and not is_query(passage, terms, at):
            at = _after_options(passage, at + 1)
        elif passage.word(at) == "format" and passage.mark(at + 1) == "=":
            at += 3
        elif passage.word(at) in _PLAIN:
            at += 1
        else:
            return at


def _after_options(passage: Passage, at: int) -> int:
    while passage.mark(at) != ")":
        if passage.word(at) not in _OPTIONS:
            raise refusal(
                passage.mark(at) or "EXPLAIN",
                "is no option of EXPLAIN",
                "Write EXPLAIN SELECT …",
                tuple(sorted(_OPTIONS)),
            )
        at += 1
        if passage.mark(at) not in (",", ")"):
            at += 1
        if passage.mark(at) == ",":
            at += 1
    return at + 1
