"""Which texts does a query ask by?

Who asks for two things in two sentences wants the tool of either, and the mean of both is near to neither.
"""

import re

__all__ = ["asked"]

_LONG = 10_000
"""Characters of a query that count."""
_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_MOST = 8
_LEAST_WORDS = 3
"""Of a sentence that can be asked by."""


def asked(query: str) -> list[str]:
    """The whole query, then its sentences where there are several."""
    whole = query[:_LONG]
    found = [part for part in _END.split(whole) if len(part.split()) >= _LEAST_WORDS][:_MOST]
    return [whole, *found] if len(found) > 1 else [whole]
