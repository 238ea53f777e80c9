"""The texts that a query asks by: the whole of it, then its clauses.

A request for two things, in two sentences or in two clauses of one, needs the tool of either, and the mean of both is
near to neither.
"""

import re

__all__ = ["asked"]

_LONG = 10_000
"""Characters of a query that count."""
_END = re.compile(
    r"(?<=[.!?;])\s+|\n+|,\s+|\s+(?:and|then|also|plus|afterwards|additionally|as well as|after that)(?=\s)",
    re.IGNORECASE,
)
"""Where a clause ends: a sentence's end, a line's, a comma, or a word that joins two requests."""
_MOST = 8
_LEAST_WORDS = 3
"""Of a clause that can be asked by."""


def asked(query: str) -> list[str]:
    """The whole query, then its clauses where there are several."""
    whole = query[:_LONG]
    clauses = [part.strip() for part in _END.split(whole)]
    found = [clause for clause in clauses if len(clause.split()) >= _LEAST_WORDS][:_MOST]
    return [whole, *found] if len(found) > 1 else [whole]
