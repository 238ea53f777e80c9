"""Which DuckDB statements are run?

One, of a kind that reads, by DuckDB's own parser. Stops whatever could leave something behind in the session or the
server: temporary tables, settings, variables, prepared statements, checkpoints. What a reading statement then reaches
for is stopped by the database's own settings.
"""

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from .failure import Failure

__all__ = ["refuse_unless_reading"]


class Kind(Protocol):
    @property
    def name(self) -> str: ...


class Statement(Protocol):
    @property
    def type(self) -> Kind: ...

    @property
    def query(self) -> str: ...


Some = TypeVar("Some", bound=Statement)

_BLANK = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)"
_PRAGMA = re.compile(rf"{_BLANK}*pragma{_BLANK}+(\w+)\b", re.IGNORECASE | re.DOTALL)
_EXPLAIN = re.compile(
    rf"{_BLANK}*explain\b{_BLANK}*(?:analyze\b{_BLANK}*|\({_BLANK}*(?:analyze|format)\b[^()]*\){_BLANK}*)?",
    re.IGNORECASE | re.DOTALL,
)
_PIVOT = re.compile(
    rf"{_BLANK}*(?:\({_BLANK}*)*(?:pivot|pivot_wider|with|from|select|describe|summarize)\b", re.IGNORECASE | re.DOTALL
)
_PRAGMAS = frozenset(
    {
        "collations",
        "database_list",
        "database_size",
        "functions",
        "metadata_info",
        "platform",
        "show",
        "show_databases",
        "show_tables",
        "show_tables_expanded",
        "storage_info",
        "table_info",
        "user_agent",
        "version",
    }
)


def refuse_unless_reading(sql: str, parse: Callable[[str], Sequence[Some]]) -> Some:
    statements = parse(sql)
    if len(statements) != 1:
        raise Failure("query", f"one statement is run at a time, and there are {len(statements)}", code="STATEMENTS")
    statement = statements[0]
    if not _is_reading(statement, parse):
        raise Failure("query", f"a statement of the kind {statement.type.name} is not run here", code="STATEMENT_KIND")
    return statement


def _is_reading(statement: Statement, parse: Callable[[str], Sequence[Some]]) -> bool:
    match statement.type.name:
        case "SELECT":
            return True
        case "MULTI":
            # A PIVOT first finds its columns; DuckDB counts that as several statements.
            return _PIVOT.match(statement.query) is not None
        case "PRAGMA":
            named = _PRAGMA.match(statement.query)
            return named is not None and named[1].lower() in _PRAGMAS
        case "EXPLAIN":
            return _explains_reading(statement.query, parse)
        case _:
            return False


def _explains_reading(query: str, parse: Callable[[str], Sequence[Some]]) -> bool:
    head = _EXPLAIN.match(query)
    inner = parse(query[head.end() :]) if head is not None else ()
    return len(inner) == 1 and inner[0].type.name in ("SELECT", "MULTI") and _is_reading(inner[0], parse)
