"""How is a table named in a statement of ours?"""

from .engine import Dialect
from .structure import Table

__all__ = ["first_rows"]

_QUOTES = {"mysql": ("`", "`"), "tsql": ("[", "]")}


def first_rows(dialect: Dialect, table: Table, rows: int) -> str:
    """A statement for some rows of a table, as each dialect has it."""
    parts = (table.name,) if table.schema is None else (table.schema, table.name)
    name = ".".join(_quoted(dialect, part) for part in parts)
    if dialect == "tsql":
        return f"SELECT TOP {rows} * FROM {name}"
    return f"SELECT * FROM {name} " + (f"FETCH FIRST {rows} ROWS ONLY" if dialect == "oracle" else f"LIMIT {rows}")


def _quoted(dialect: Dialect, name: str) -> str:
    opening, closing = _QUOTES.get(dialect, ('"', '"'))
    return f"{opening}{name.replace(closing, closing * 2)}{closing}"
