"""Statements whose values DuckDB writes as text itself, where Python has no type for them.

Python's dates end at the year 9999 and know no infinity, its times have no nanoseconds, its intervals no months, and
its floats are doubles. A statement with such columns is asked for as the text that DuckDB writes, inside lists and
structures too, which reads back as the same value.
"""

from collections.abc import Sequence
from typing import Any

__all__ = ["rendered"]

_SAME = frozenset(
    """
    bigint blob bit boolean decimal double enum hugeint integer null smallint sqlnull tinyint ubigint uhugeint uinteger
    usmallint utinyint uuid varchar
    """.split()  # noqa: SIM905
)
"""Types whose values Python holds whole, by DuckDB's ids."""


def rendered(query: str, columns: Sequence[str], types: Sequence[Any]) -> str | None:
    """The query with its columns cast to what can be held; None where it needs no change.

    Args:
        query: One SELECT.
        columns: The names of its columns.
        types: Their types, as `DuckDBPyRelation.types` has them.
    """
    shown = [_shown(place, kind) for place, kind in enumerate(types, 1)]
    if not any(shown):
        return None
    listed = ", ".join(
        f"{cast or f'#{place}'} AS {_quoted(name)}"
        for place, (name, cast) in enumerate(zip(columns, shown, strict=True), 1)
    )
    return f"SELECT {listed} FROM (\n{query.rstrip().rstrip(';')}\n) AS shown"


def _shown(place: int, kind: Any) -> str | None:  # noqa: ANN401 - a type of DuckDB's own
    text = _kind(kind, "VARCHAR")
    if text is None:
        return None
    cast = f"CAST(#{place} AS {text})"
    number = _kind(kind, "DOUBLE")
    return cast if number == text else f"CAST({cast} AS {number})"


def _kind(kind: Any, of_float: str) -> str | None:  # noqa: ANN401
    """The type to cast to, with another one for floats; None where the type may stay."""
    name = str(kind.id)
    if name in _SAME:
        return None
    if name == "float":
        return of_float
    parts = kind.children if name in ("list", "array", "struct", "map") else ()
    inner = {str(key): _kind(part, of_float) for key, part in parts if key != "size"}
    if parts and not any(inner.values()):
        return None
    kept = {key: inner[key] or str(part) for key, part in parts if key != "size"}
    match name:
        case "list" | "array":
            return f"{kept['child']}[]"
        case "struct" if all(kept):
            return f"STRUCT({', '.join(f'{_quoted(key)} {part}' for key, part in kept.items())})"
        case "map":
            return f"MAP({kept['key']}, {kept['value']})"
        case _:
            return "VARCHAR"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
