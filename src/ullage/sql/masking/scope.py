"""What does a name mean at this place of a query?

The sources of a SELECT and those around it, as far as masked columns go. Where a name could mean several things, it
means all of them; where it could mean nothing known, that is said, and the caller refuses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from .known import UNCOUNTED, Columns, fold

__all__ = ["ROWID", "Masks", "Scope", "Source"]

Masks = frozenset[str]

ROWID = frozenset({"rowid", "oid", "_rowid_"})
"""What SQLite calls the number of a row, unless a column is called so."""
_BARE = frozenset({"ctid", "tableoid", "xmin", "xmax", "cmin", "cmax", "rownum", "level", "sysdate", "systimestamp"})
"""Names that every row or none has, and that are no column of a table."""


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    columns: Columns
    rowid: Masks | None = None
    """What may stand in the number of a row, where it has one."""

    @property
    def is_open(self) -> bool:
        """Whether it has further columns, none of them masked."""
        return UNCOUNTED in self.columns

    @property
    def masks(self) -> Masks:
        return frozenset[str]().union(*(column.masks for column in self.columns))

    def column(self, name: str) -> Masks | None:
        """What may stand in a column; None where there is none of that name."""
        found = [column.masks for column in self.columns if column.name in (fold(name), "")]
        if found or self.is_open:
            return frozenset[str]().union(*found)
        if self.rowid is not None and fold(name) in ROWID:
            return self.rowid
        return frozenset() if fold(name) in _BARE else None


@dataclass(slots=True)
class Scope:
    outer: "Scope | None" = None
    sources: list[Source] = field(default_factory=list[Source])
    aliases: dict[str, Masks] = field(default_factory=dict[str, Masks])
    """What the SELECT's own columns are called, and a function's parameters."""
    is_merged: bool = False
    """Whether `*` is not simply the columns of all sources one after the other."""

    @property
    def names(self) -> set[str]:
        """Of the columns that may be meant here."""
        around = set[str]() if self.outer is None else self.outer.names
        return around | {
            column.name for source in self.sources for column in source.columns if column.name not in ("", "*")
        }

    def row(self, name: str) -> list[Source]:
        """Every source of that name, here and around: which of them is meant, letter case may decide."""
        around = [] if self.outer is None else self.outer.row(name)
        return [source for source in self.sources if source.name == fold(name)] + around

    def column(self, name: str) -> Masks | None:
        """What may stand behind a name without its table; None where nothing is known of it."""
        found = [source.column(name) for source in self.sources]
        found += [self.aliases.get(fold(name)), None if self.outer is None else self.outer.column(name)]
        return _together(found)

    def column_of(self, table: str, name: str) -> Masks | None:
        return _together([source.column(name) for source in self.row(table)])


def _together(found: Sequence[Masks | None]) -> Masks | None:
    known = [masks for masks in found if masks is not None]
    return frozenset[str]().union(*known) if known else None
