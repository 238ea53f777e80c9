"""Which functions has SQLite, and how stable is each?"""

import re
import sqlite3

from .sqlite_allowed import is_allowed

__all__ = ["functions"]

_DETERMINISTIC, _DIRECT_ONLY = 0x800, 0x80000
_WITHIN_A_STATEMENT = frozenset(
    {
        "changes",
        "current_date",
        "current_time",
        "current_timestamp",
        "date",
        "datetime",
        "julianday",
        "last_insert_rowid",
        "strftime",
        "time",
        "total_changes",
        "unixepoch",
    }
)
"""Those that tell the time, or what the connection has done; SQLite's own flag does not tell them from the others."""

_SEARCHED = re.compile(r"CREATE\s+VIRTUAL\s+TABLE\b.*?\bUSING\s+fts5\b", re.IGNORECASE | re.DOTALL)
"""Full-text tables, whose search may be written as a call in FROM."""

_ORDER = ("immutable", "stable", "volatile")


def functions(connection: sqlite3.Connection) -> dict[str, str]:
    found: dict[str, str] = {}
    rows = connection.execute("SELECT lower(name), type, flags FROM pragma_function_list")
    for name, kind, flags in rows.fetchall():
        found[name] = max(found.get(name, "immutable"), _stability(name, kind, flags), key=_ORDER.index)
    tables = connection.execute("SELECT lower(name), sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL")
    searched = [name for name, sql in tables.fetchall() if _SEARCHED.match(sql)]
    return {**found, **{f"from:{name}": "immutable" for name in searched}}


def _stability(name: str, kind: str, flags: int) -> str:
    """A function that no statement may use is the least stable, whatever its flags say."""
    if flags & _DIRECT_ONLY or not is_allowed(sqlite3.SQLITE_FUNCTION, None, name):
        return "volatile"
    if name in _WITHIN_A_STATEMENT:
        return "stable"
    is_fixed = flags & _DETERMINISTIC or kind in ("a", "w") or name.startswith("sqlite_")
    return "immutable" if is_fixed or name in _OF_A_SEARCH else "volatile"


_OF_A_SEARCH = frozenset({"bm25", "highlight", "match", "matchinfo", "offsets", "snippet"})
"""By what a full-text table holds, and by nothing else."""
