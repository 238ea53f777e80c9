"""How would a database go about a question?

The statement that asks for a plan without running anything, in each dialect, and the plan in few words. Never
`ANALYZE`, which runs the question.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from ullage.errors import Refused
from ullage.table import clean, encode

from .engine import Answer, Dialect

__all__ = ["explain_statement", "plan_text"]

_PREFIXES: Final[dict[Dialect, str]] = {
    "sqlite": "EXPLAIN QUERY PLAN",
    "duckdb": "EXPLAIN (FORMAT json)",
    "postgres": "EXPLAIN",
    "mysql": "EXPLAIN",
}
_LONGEST = 200
"""Characters of one condition in a plan."""


def explain_statement(dialect: Dialect, sql: str) -> str:
    """On a line of its own, so that a comment before the question hides nothing."""
    prefix = _PREFIXES.get(dialect)
    if prefix is None:
        raise Refused(
            "this database makes a plan only by writing it somewhere",
            suggestion="ask for the table's indexes with table instead",
        )
    return f"{prefix}\n{sql}"


def plan_text(dialect: Dialect, answer: Answer) -> str:
    if dialect == "sqlite":
        return _sqlite(answer)
    if dialect == "duckdb":
        return _duckdb(answer)
    if len(answer.columns) == 1:
        return "\n".join(clean(str(row[0])).text for row in answer.rows)
    return _without_empty(answer)


def _sqlite(answer: Answer) -> str:
    """Rows of number, parent's number, nothing, and words."""
    depths: dict[object, int] = {0: -1}
    lines: list[str] = []
    for number, parent, _, words in answer.rows:
        depths[number] = depth = depths.get(parent, -1) + 1
        lines.append(f"{'  ' * depth}{clean(str(words)).text}")
    return "\n".join(lines)


def _duckdb(answer: Answer) -> str:
    """A tree of operators as JSON, in the last column."""
    lines: list[str] = []
    for row in answer.rows:
        try:
            tree: Any = json.loads(str(row[-1]))
        except ValueError:
            lines.append(clean(str(row[-1])).text)
        else:
            _operators(cast("list[Any]", tree if isinstance(tree, list) else [tree]), 0, lines)
    return "\n".join(lines)


def _operators(nodes: Sequence[Any], depth: int, lines: list[str]) -> None:
    for node in nodes:
        if isinstance(node, Mapping):
            operator = cast("Mapping[str, Any]", node)
            name = " ".join(str(operator.get("name", "")).split())
            lines.append(f"{'  ' * depth}{clean(name).text}{_extra(operator.get('extra_info'))}")
            _operators(operator.get("children") or [], depth + 1, lines)


def _extra(info: object) -> str:
    if not isinstance(info, Mapping):
        return ""
    said = (f"{key}={_short(value)}" for key, value in cast("Mapping[str, Any]", info).items() if value not in ("", []))
    return " " + "; ".join(said)


def _short(value: object) -> str:
    text = ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
    flat = " ".join(clean(text).text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}…"


def _without_empty(answer: Answer) -> str:
    """As a table, without the columns in which nothing stands."""
    full = [index for index in range(len(answer.columns)) if any(row[index] is not None for row in answer.rows)]
    return encode([answer.columns[index] for index in full], [[row[index] for index in full] for row in answer.rows])
