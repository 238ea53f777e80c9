"""How is a table named in a statement of ours?"""

from .engine import Dialect
from .structure import Table

__all__ = ["first_rows", "quoted"]

_QUOTES = {"mysql": ("`", "`"), "tsql": ("[", "]")}


def first_rows(dialect: Dialect, table: Table, rows: int, *, by_name: bool = False) -> str:
    """A statement for some rows of a table, as each dialect has it; its columns by name where not all may be read."""
    parts = (table.name,) if table.schema is None else (table.schema, table.name)
    name = ".".join(quoted(dialect, part) for part in parts)
    columns = ", ".join(quoted(dialect, column.name) for column in table.columns if by_name) or "*"
    if dialect == "tsql":
        return f"SELECT TOP {rows} {columns} FROM {name}"
    return f"SELECT {columns} FROM {name} " + (
        f"FETCH FIRST {rows} ROWS ONLY" if dialect == "oracle" else f"LIMIT {rows}"
    )


def quoted(dialect: Dialect, name: str) -> str:
    opening, closing = _QUOTES.get(dialect, ('"', '"'))
    return f"{opening}{name.replace(closing, closing * 2)}{closing}"
