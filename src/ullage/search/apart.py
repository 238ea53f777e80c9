"""What are the letters of a text, with marks such as accents apart from them?

As Unicode takes letters apart, but some at a time: marks that follow each other are sorted there, in a time that grows
with the square of their number, and who writes a tool's description can write twenty thousand. So marks may stand in
another order where there are that many; whoever asks leaves them out or takes them in any order.
"""

import unicodedata
from typing import Literal

__all__ = ["apart"]

_AT_ONCE = 256


def apart(text: str, form: Literal["NFD", "NFKD"]) -> str:
    """The text, decomposed."""
    if len(text) <= _AT_ONCE:
        return unicodedata.normalize(form, text)
    return "".join(
        unicodedata.normalize(form, text[start : start + _AT_ONCE]) for start in range(0, len(text), _AT_ONCE)
    )
