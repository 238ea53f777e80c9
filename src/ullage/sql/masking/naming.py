"""What does a query call its parts?"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from .known import UNCOUNTED, Columns, fold
from .refusing import not_understood

__all__ = ["Ctes", "Named", "renamed"]


@dataclass(frozen=True, slots=True)
class Named:
    """A query named by WITH."""

    name: exp.Identifier
    columns: Columns | None
    """None while it is not yet read."""

    def is_meant_by(self, name: exp.Identifier, *, folds: bool) -> bool:
        """Whether a name is surely this one's, and not that of a table or query in other letters."""
        if bool(name.quoted) != bool(self.name.quoted):
            return False
        return name.name == self.name.name or (folds and not name.quoted and fold(name.name) == fold(self.name.name))


Ctes = Mapping[str, Named]


def renamed(node: exp.Expr, columns: Columns) -> Columns:
    """A source's columns as its alias calls them: `AS t(a, b)`."""
    alias = node.args.get("alias")
    names = list(alias.args.get("columns") or ()) if isinstance(alias, exp.TableAlias) else []
    if not names:
        return columns
    if UNCOUNTED in columns:
        return columns if not any(column.masks for column in columns) else not_understood(node)
    if len(names) > len(columns):
        not_understood(node)
    first = tuple(replace(column, name=fold(name.name)) for column, name in zip(columns, names, strict=False))
    return first + columns[len(names) :]
