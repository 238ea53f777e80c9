"""Cost of trying a server's regular expression on a text.

Patterns come from servers that nobody vouches for, Python's engine backtracks, and a match once begun cannot be
stopped. So a pattern is tried only where the ways to match it are few: the product of what each of its repetitions and
alternations allows, with repetitions inside repetitions refused altogether. What is not tried is not asserted; the
server will.
"""

import re
import warnings
from functools import lru_cache

__all__ = ["affordable", "compiled", "ways"]

_WAYS = 1_000_000
"""Tried at the most."""
_LONG_PATTERN = 2_000
_ATOMS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""Escapes and classes: one character of text each, whatever stands in them."""
_QUANTIFIER = re.compile(r"(?<!\()([*+?]|\{(\d*)(,?)(\d*)\})[?+]?")
_GROUP = re.compile(r"\([^()]*\)")
_FLAGS = re.compile(r"\(\?[aiLmsux-]+[:)]")
"""Python's own, which JSON Schema does not have; ignoring case makes a large class take long to compile."""
_REPEATED = re.compile(r"[*+{]|\?(?![:=!<])")


@lru_cache(maxsize=4_096)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """None for what only another dialect can read."""
    if _FLAGS.search(pattern):
        return None
    try:
        with warnings.catch_warnings():
            # Python warns of what it will read otherwise one day, such as `[[:alpha:]]`.
            warnings.simplefilter("error")
            return re.compile(pattern)
    except (re.error, Warning, OverflowError, RecursionError):
        return None


def affordable(pattern: str, length: int) -> bool:
    """Whether trying the pattern on a text of that length ends soon."""
    return ways(pattern, length) is not None


@lru_cache(maxsize=4_096)
def ways(pattern: str, length: int) -> int | None:
    """In how many ways it may have to be tried on a text of that length; None where they are too many."""
    if len(pattern) > _LONG_PATTERN:
        return None
    plain = _ATOMS.sub("x", pattern)
    choices = _choices(plain)
    if choices is None:
        return None
    found = choices if plain.startswith("^") and "|" not in plain else choices * max(1, length)
    for quantifier in _QUANTIFIER.finditer(plain):
        found *= _ways(quantifier, length)
        if found > _WAYS:
            return None
    return found if found <= _WAYS else None


def _ways(quantifier: re.Match[str], length: int) -> int:
    whole, least, comma, most = quantifier.groups()
    if whole == "?":
        return 2
    if whole in "*+" or (comma and not most):
        return max(1, length)
    if not comma:
        return 1
    return max(1, int(most) - int(least or 0) + 1)


def _choices(plain: str) -> int | None:
    """In how many ways its alternations may be taken; None where a group that can itself match in several ways is
    repeated."""
    choices = 1
    while (group := _GROUP.search(plain)) is not None:
        inside = group[0][1:-1].removeprefix("?:")
        choosy = _REPEATED.search(inside) is not None or "|" in inside or "\1" in inside
        if choosy and plain[group.end() : group.end() + 1] in ("*", "+", "{"):
            return None
        choices *= 1 + inside.count("|")
        if choices > _WAYS:
            return None
        plain = plain[: group.start()] + ("\1" if choosy else "x") + plain[group.end() :]
    return choices * (1 + plain.count("|"))
