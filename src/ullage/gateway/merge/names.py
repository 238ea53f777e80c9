"""By which name is a tool of many servers listed?

`prefix__tool`, in letters that every model's maker accepts, of at most 48 characters, so that there is room for the
client's own prefix. No two listed names fall together, not even where a client writes `.` and `-` as `_` or forgets
about case. Names follow from servers, prefixes and tools alone, never from who was heard first. Which spelling in a
call means which tool, `spelling` knows.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["LONGEST", "Owned", "fold", "listed_names"]

LONGEST = 48
"""Characters of a listed name; the model's APIs allow 64."""
_JOINT = "__"
_HASH = 6
"""Digits of the hash in a suffix; more only where these are taken."""
_LEAST_PREFIX = 16
"""Characters that a prefix keeps when a name is cut; the tool's own name tells more."""
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_FOLDED = str.maketrans(".-", "__")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The tools, or the prompts, of one server."""

    server: str
    prefix: str
    """Empty for none: names then stay as they are, however long, unless another has them."""
    names: tuple[str, ...]


def fold(name: str) -> str:
    """The name as the least careful client writes it."""
    return name.lower().translate(_FOLDED)


def listed_names(owners: Iterable[Owned], reserved: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """The listed name of every server's every name; where two want the same, the first has it.

    Names in `reserved` go to nobody.
    """
    taken = {fold(name) for name in reserved}
    given: dict[tuple[str, str], str] = {}
    late: list[tuple[Owned, str]] = []
    for owner in owners:
        for name in owner.names:
            wish = _wish(owner, name)
            if fold(wish) in taken:
                late.append((owner, name))
            else:
                taken.add(fold(wish))
                given[owner.server, name] = wish
    for owner, name in late:
        if (owner.server, name) not in given:
            given[owner.server, name] = _elsewhere(owner, name, taken)
            taken.add(fold(given[owner.server, name]))
    return given


def _wish(owner: Owned, name: str) -> str:
    if not owner.prefix:
        return name
    plain = f"{_clean(owner.prefix)}{_JOINT}{_clean(name)}"
    legible = any(letter.isalnum() for letter in _clean(name))
    return plain if legible and len(plain) <= LONGEST else _suffixed(owner, name, _HASH)


def _elsewhere(owner: Owned, name: str, taken: set[str]) -> str:
    """A name with as much of a hash as it takes to be alone."""
    digits = _HASH
    while fold(found := _suffixed(owner, name, digits)) in taken:
        digits += 1
    return found


def _suffixed(owner: Owned, name: str, digits: int) -> str:
    """The name, cut to leave room, and a hash of server and tool: cut names never fall together."""
    digest = hashlib.sha256(f"{owner.server}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    return f"{_cut(owner.prefix, name, LONGEST - digits - 1)}_{digest}"


def _cut(prefix: str, name: str, room: int) -> str:
    clean = _clean(name)
    if not prefix:
        return clean[:room]
    room -= len(_JOINT)
    kept = _clean(prefix)[: max(_LEAST_PREFIX, room - len(clean))]
    return f"{kept}{_JOINT}{clean[: room - len(kept)]}"


def _clean(name: str) -> str:
    return _FORBIDDEN.sub("_", name)
