"""What may a tool be called towards a model, and which tool is meant by it?

Providers take letters, digits, `_` and `-`, 64 of them at most, a letter or `_` first; sources call their tools as they
like. A name that is good as it is stays.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator

__all__ = ["acceptable_names"]

_LONGEST = 64
_GOOD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def acceptable_names(names: Iterable[str]) -> list[str]:
    """One for each, in this order; no two alike. Which tools stand beside a good name never changes it."""
    asked = list(names)
    taken = {name for name in asked if _GOOD.fullmatch(name)}
    given, seen = list[str](), set[str]()
    for name in asked:
        is_good = _GOOD.fullmatch(name) is not None and name not in seen
        chosen = name if is_good else next(one for one in _spellings(name) if one not in taken)
        taken.add(chosen)
        seen.add(name)
        given.append(chosen)
    return given


def _spellings(name: str) -> Iterator[str]:
    """The nearest, then ones told apart by a mark that is always the same for this name."""
    plain = _OTHER.sub("_", name)
    plain = plain if _GOOD.match(plain) else f"_{plain}"
    if len(plain) <= _LONGEST:
        yield plain
    number = 0
    while True:
        mark = hashlib.sha256(f"{name}{number or ''}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        yield f"{plain[: _LONGEST - 9]}_{mark}"
        number += 1
