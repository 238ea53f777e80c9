"""Which types may a value be cast to?

A domain's check is a function of somebody's making, so a type must be one that the engine brings, or an allowed one.
"""

from sqlglot import exp

from .functions import CATALOGUES
from .statement import Terms
from .vocabulary import TYPES
from .wording import refusal

__all__ = ["check_type"]

_HARMLESS = frozenset({"sqlite", "duckdb", "mysql"})
"""Whose types run nothing."""


def check_type(node: exp.DataType, terms: Terms) -> None:
    kind = node.args.get("kind")
    if terms.dialect in _HARMLESS or not isinstance(kind, exp.Expr) or node.this != exp.DType.USERDEFINED:
        return
    parts = [one.name.lower() for one in kind.find_all(exp.Identifier)] or [kind.name.lower()]
    name, schema = parts[-1], parts[-2] if len(parts) > 1 else None
    if {name, ".".join(parts)} & terms.allowed or f"::{'.'.join(parts)}" in terms.functions:
        return
    if schema in (CATALOGUES[terms.dialect].schemas or ()) or (schema is None and name in TYPES):
        return
    raise refusal(
        ".".join(parts),
        "is a type of somebody's making, whose checks may run anything",
        "Compare without the cast, or name the type under `functions` in the settings of this database.",
    )
