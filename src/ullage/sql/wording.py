"""Error messages of databases without the values that they quote.

A conversion that fails quotes the value, and so would hand out a column that is masked. What the question itself says
may be repeated.
"""

import re

__all__ = ["without_data"]

_QUOTED = {'"': re.compile(r'"(.*)"', re.DOTALL), "'": re.compile(r"'(.*)'", re.DOTALL)}
_PIECES = {'"': re.compile(r'"([^"]*)"'), "'": re.compile(r"'([^']*)'")}


def without_data(message: str, sql: str, quote: str) -> str:
    """A value may itself hold quotes, so that all from the first quote to the last goes where any piece is unknown."""
    pieces = [found[1] for found in _PIECES[quote].finditer(message)]
    asked = sql.casefold()
    if message.count(quote) % 2 == 0 and all(piece.casefold() in asked for piece in pieces):
        return message
    return _QUOTED[quote].sub(f"{quote}…{quote}", message)
