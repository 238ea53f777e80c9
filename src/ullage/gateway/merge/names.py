"""By which name is a tool of many servers listed?

`prefix__tool`, in letters that every model's maker accepts, of at most 48 characters, so that there is room for the
client's own prefix. No two listed names fall together, not even where a client writes `.` and `-` as `_` or forgets
about case. Where two want the same, the one before has it if both are heard at once; a name once given stays with whom
it was given to, though another is heard that comes before, and though he himself is gone for a while: a model that
learned a name never reaches another tool by it. Which spelling in a call means which tool, `spelling` knows.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ullage.invisible_characters import has_invisible

__all__ = ["LONGEST", "NOBODY", "Origin", "Owned", "fold", "listed_names", "remembered"]

LONGEST = 48
"""Characters of a listed name; the model's APIs allow 64."""
_JOINT = "__"
_HASH = 6
"""Digits of the hash in a suffix; more only where these are taken."""
_LONGEST_HASH = 20
"""Digits beyond which another hash is tried: a server may take every name of another on purpose."""
_LEAST_PREFIX = 16
"""Characters that a prefix keeps when a name is cut; the tool's own name tells more."""
_REMEMBERED = 50_000
"""Names of the gone that are kept for them: a server that invents names without end must not fill the memory."""
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_FOLDED = str.maketrans(".-", "__")


Origin = tuple[str, str]
"""A server and the name of one of its tools there."""
NOBODY: Mapping[str, Origin] = MappingProxyType({})


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


def listed_names(
    owners: Iterable[Owned], reserved: Iterable[str] = (), given: Mapping[str, Origin] = NOBODY
) -> dict[Origin, str]:
    """The listed name of every server's every name; where two want the same, the first has it.

    Names in `reserved` go to nobody, those in `given` (`remembered`) only to whom they were given.
    """
    names = _Names(reserved, given)
    late: list[tuple[Owned, str]] = []
    for owner in owners:
        for name in owner.names:
            if not names.give(_wish(owner, name), (owner.server, name)):
                late.append((owner, name))
    for owner, name in late:
        digits = _HASH
        while not names.give(_suffixed(owner, name, digits), (owner.server, name)):
            digits += 1
    return names.listed


def remembered(given: Mapping[str, Origin], listed: Mapping[Origin, str], most: int = _REMEMBERED) -> dict[str, Origin]:
    """Whose each name is that was ever listed, as clients may take it for the same. The longest gone are forgotten."""
    now = {fold(name): origin for origin, name in listed.items()}
    gone = [name for name in given if name not in now]
    return {**{name: given[name] for name in gone[max(0, len(gone) - most) :]}, **now}


class _Names:
    """Names as they are given out, each to one alone."""

    def __init__(self, reserved: Iterable[str], given: Mapping[str, Origin]) -> None:
        self.listed: dict[Origin, str] = {}
        self._taken = {fold(name) for name in reserved}
        self._given = given

    def give(self, name: str, origin: Origin) -> bool:
        """Whether it may have the name, or has one already."""
        folded = fold(name)
        if origin in self.listed:
            return True
        if folded in self._taken or self._given.get(folded, origin) != origin:
            return False
        self._taken.add(folded)
        self.listed[origin] = name
        return True


def _wish(owner: Owned, name: str) -> str:
    if not owner.prefix:
        return _suffixed(owner, name, _HASH) if has_invisible(name) else name
    plain = f"{_clean(owner.prefix)}{_JOINT}{_clean(name)}"
    legible = any(letter.isalnum() for letter in _clean(name))
    return plain if legible and len(plain) <= LONGEST else _suffixed(owner, name, _HASH)


def _suffixed(owner: Owned, name: str, digits: int) -> str:
    """The name, cut to leave room, and a hash of server and tool: cut names never fall together."""
    said = f"{owner.server}\0{name}" if digits <= _LONGEST_HASH else f"{owner.server}\0{name}\0{digits}"
    shown = min(digits, _LONGEST_HASH)
    digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:shown]
    return f"{_cut(owner.prefix, name, LONGEST - shown - 1)}_{digest}"


def _cut(prefix: str, name: str, room: int) -> str:
    clean = _clean(name)
    if not prefix:
        return clean[:room]
    room -= len(_JOINT)
    kept = _clean(prefix)[: max(_LEAST_PREFIX, room - len(clean))]
    return f"{kept}{_JOINT}{clean[: room - len(kept)]}"


def _clean(name: str) -> str:
    return _FORBIDDEN.sub("_", name)
