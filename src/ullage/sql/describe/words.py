"""How are a name, a type and a size said in the fewest tokens?

What stands in a database was written by whoever made it, and a model reads it: everything is put on one line and
cleaned of characters that nobody sees.
"""

import re

from ullage.table import clean

from ..structure import Routine, Table

__all__ = ["full_name", "on_one_line", "rounded", "short_type"]

_LONGEST_TYPE = 60
"""Characters; an enumeration may have hundreds of values."""
_SHORTER = (
    (re.compile(r"\(\d+(?:\s*,\s*\d+)?\)"), ""),
    (re.compile(r"^character varying"), "varchar"),
    (re.compile(r"^(?:character|bpchar)\b"), "char"),
    (re.compile(r"^integer\b"), "int"),
    (re.compile(r"^boolean\b"), "bool"),
    (re.compile(r"^double precision\b"), "double"),
    (re.compile(r"^(time|timestamp) without time zone"), r"\1"),
    (re.compile(r"^(time|timestamp) with time zone"), r"\1tz"),
)


def full_name(thing: Table | Routine) -> str:
    """With its schema, where that is not the default one."""
    return on_one_line(thing.name if thing.schema is None else f"{thing.schema}.{thing.name}")


def on_one_line(text: str) -> str:
    return " ".join(clean(text).text.split())


def short_type(written: str) -> str:
    """Without sizes, which no question depends on."""
    said = on_one_line(written).lower()
    for pattern, shorter in _SHORTER:
        said = pattern.sub(shorter, said)
    return said if len(said) <= _LONGEST_TYPE else f"{said.partition('(')[0][:_LONGEST_TYPE]}(…)"


def rounded(rows: int) -> str:
    """`~250`, `~10k`, `~1.2M`: an estimate, and no more digits than it deserves."""
    for unit, size in (("B", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)):
        if rows >= size:
            scaled = rows / size
            return f"~{scaled:.1f}{unit}".replace(".0", "") if scaled < 10 else f"~{scaled:.0f}{unit}"
    return f"~{rows}"
