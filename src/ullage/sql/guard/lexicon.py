"""How does each engine cut a text into words?

Data only, from the engines' own manuals and tried on the engines themselves. The settings under which they hold are
the engines' defaults: `standard_conforming_strings` on, `sql_mode` without ANSI_QUOTES and NO_BACKSLASH_ESCAPES,
`QUOTED_IDENTIFIER` on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..engine import Dialect

__all__ = ["LEXICONS", "Lexicon"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    strings: str = "'"
    """Characters that open a string, each closed by itself and doubled within."""
    names: Mapping[str, str] = field(default_factory=lambda: {'"': '"'})
    """What opens a quoted name, to what closes it."""
    backslash: bool = False
    """Whether a backslash escapes in every string."""
    escaping: frozenset[str] = frozenset()
    """Prefixes of strings in which a backslash escapes."""
    prefixes: frozenset[str] = frozenset()
    """Other prefixes that belong to a string when they touch it."""
    dollars: bool = False
    """Whether `$tag$ … $tag$` is a string."""
    alternative: bool = False
    """Whether `q'[ … ]'` is a string."""
    nested: bool = False
    """Whether a comment in a comment must be closed of its own."""
    hashes: bool = False
    """Whether `#` opens a comment."""
    dashes_need_space: bool = False
    """Whether `--x` is two minus signs."""
    initials: str = "_"
    """What a word may begin with, besides letters."""
    inner: str = "_"
    """What it may go on with, besides letters and digits."""


_BRACKETS = {'"': '"', "[": "]"}

LEXICONS: Mapping[Dialect, Lexicon] = {
    "postgres": Lexicon(
        escaping=frozenset({"e"}), prefixes=frozenset({"b", "x", "n"}), dollars=True, nested=True, inner="_$"
    ),
    "duckdb": Lexicon(escaping=frozenset({"e"}), prefixes=frozenset({"b", "x"}), dollars=True, nested=True, inner="_$"),
    "mysql": Lexicon(
        strings="'\"",
        names={"`": "`"},
        backslash=True,
        prefixes=frozenset({"b", "x", "n"}),
        hashes=True,
        dashes_need_space=True,
        initials="_$",
        inner="_$",
    ),
    "sqlite": Lexicon(names={**_BRACKETS, "`": "`"}, prefixes=frozenset({"x"}), inner="_$"),
    "tsql": Lexicon(names=_BRACKETS, prefixes=frozenset({"n"}), nested=True, initials="_@#", inner="_@#$"),
    "oracle": Lexicon(prefixes=frozenset({"n"}), alternative=True, inner="_$#"),
}
