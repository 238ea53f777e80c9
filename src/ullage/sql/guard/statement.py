"""What is a statement that may be run?

Values only: made by the guard, run by an engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..engine import Dialect, Stability

__all__ = ["Kind", "Statement", "Terms"]

Kind = Literal["select", "explain", "show", "describe", "pragma"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    kind: Kind
    sql: str
    """As it was written, without what stood before its first word or after its last."""
    tables: tuple[str, ...] = ()
    """The names it reads, as written but in lower case and without quotes, in the order of the alphabet; those of its
    own WITH clauses are not among them."""
    runs: str = ""
    """The text to run, where a name in it must be made certain; empty where that is `sql`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one statement is judged by."""

    dialect: Dialect
    functions: Mapping[str, Stability] = field(default_factory=dict[str, Stability])
    """As the engine tells of them; empty where it cannot."""
    allowed: frozenset[str] = frozenset()
    """Functions and types of the user's making, in lower case, with or without their schema."""
    edits: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """What is put into the text before it is run, by its place: found while the statement is judged."""
    cuts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """What is taken out of it, from a place to another."""
