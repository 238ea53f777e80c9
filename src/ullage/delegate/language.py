"""The language that a text is written in, or None where that is not clear.

py3langid decides, from the first part of a text without code and addresses. It is loaded when a language is first
asked for, which takes most of a second of CPU: whoever has an event loop to keep free calls `load_detector` in a thread
before. Where two languages are left, the verb that a prompt begins with decides. None is better than a guess: a
session's language then holds.
"""

import re
from functools import cache
from typing import Any, Protocol, cast

__all__ = ["detect_language", "load_detector"]

_LOOKED_AT = 2_000
"""Characters from the beginning."""
_SHORT = 17
"""Characters, below which a text in letters of the alphabet is too short to tell; in other scripts four are enough."""
_LEAST = 0.4
"""Probability that a language needs."""
_LEAD = 2.0
"""How many times the next one's probability it needs, since some languages differ little."""
_COMMANDS = {
    **dict.fromkeys(("escreva", "explique", "crie", "faça", "resuma", "traduza", "liste", "mostre"), "pt"),
    **dict.fromkeys(("escribe", "explica", "haz", "traduce", "muestra", "resume"), "es"),
    **dict.fromkeys(("write", "explain", "create", "make", "summarize", "summarise", "translate", "show"), "en"),
}
"""Verbs that prompts begin with, by the language of the policy's own examples."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|\S+@\S+", re.DOTALL)
_NO_LETTER = re.compile(r"[\W\d_]+")


def detect_language(text: str) -> str | None:
    """The two-letter code of a text's language; None where there is too little of it, or no language stands out."""
    sample = " ".join(_CODE.sub(" ", text[:_LOOKED_AT]).split())
    letters = _NO_LETTER.sub("", sample)
    if len(letters) < 4 or (letters.isascii() and len(sample) < _SHORT):
        return None
    (best, likely), (next_best, next_likely), *_ = _identifier().rank(sample)
    if likely >= _LEAST and likely >= _LEAD * next_likely:
        return best if len(best) == 2 else None
    commanded = _COMMANDS.get(sample.partition(" ")[0].lower())
    return commanded if commanded in (best, next_best) else None


def load_detector() -> None:
    """Makes `detect_language` quick; may be called from any thread."""
    _identifier()


class _Identifier(Protocol):
    """What is used of py3langid, which has no types."""

    def rank(self, text: str) -> list[tuple[str, float]]:
        """Every language with its probability, the likeliest first."""
        ...


@cache
def _identifier() -> _Identifier:
    from py3langid import langid  # pyright: ignore[reportMissingTypeStubs]

    library = cast("Any", langid)
    return cast("_Identifier", library.LanguageIdentifier.from_model_file(library.MODEL_FILE, norm_probs=True))
