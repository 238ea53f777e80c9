"""May this query be run?

The pipeline of every query, also of one that is only explained or described. First the text is judged, then the tree of
it, node by node, with none left out.
"""

from collections.abc import Iterator, Mapping
from typing import cast

from sqlglot import exp

from .bombs import check_bomb
from .calls import check_calls
from .dressing import PIVOTS
from .nodes import check_node
from .operators import check_operators
from .parsing import parse
from .passage import Passage
from .reserved import check_words
from .statement import Terms
from .tables import check_function_in_from, check_table, read_tables
from .withheld import check_statement_texts
from .wording import refusal

__all__ = ["check_query", "is_query"]

_HEADS = frozenset({"select", "with", "values", "table"})
_DUCKDB_HEADS = PIVOTS | {"from"}
_ROOTS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.Pivot)


def is_query(passage: Passage, terms: Terms, at: int = 0) -> bool:
    while passage.mark(at) == "(":
        at += 1
    heads = _HEADS | _DUCKDB_HEADS if terms.dialect == "duckdb" else _HEADS
    return passage.word(at) in heads


def check_query(passage: Passage, terms: Terms) -> tuple[str, ...]:
    """The tables that it reads."""
    if not is_query(passage, terms):
        raise refusal(
            passage.tokens[0].text if passage.tokens else "", "does not begin a query", "Begin with SELECT or WITH."
        )
    check_words(passage, terms)
    check_operators(passage, terms)
    check_statement_texts(passage, terms)
    tree, places = parse(passage, terms.dialect)
    if not isinstance(tree, _ROOTS):
        raise refusal(type(tree).__name__, "is not a query", "Send one SELECT.")
    check_calls(passage, terms, _column_lists(passage, tree, places))
    strings = {start for start, number in places.items() if passage.tokens[number].kind == "string"}
    for node in _every(tree):
        check_node(node, terms)
        check_bomb(node, terms.dialect)
        if isinstance(node, exp.Table):
            check_table(node, terms, strings)
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Func):
            check_function_in_from(node.this, terms)
    return read_tables(tree)


def _column_lists(passage: Passage, tree: exp.Expr, places: Mapping[int, int]) -> set[int]:
    """The tokens that are an alias with its columns in parentheses, and no call."""
    aliases = (alias.this for alias in tree.find_all(exp.TableAlias) if alias.args.get("columns"))
    starts = {alias.meta.get("start") for alias in aliases if isinstance(alias, exp.Identifier)}
    return {
        number
        for place, number in places.items()
        if place in starts and any(token.is_name for token in passage.tokens[number + 2 : number + 3])
    }


def _every(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Each node once, whatever list or tuple holds it."""
    waiting: list[object] = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.Expr):
            yield one
            waiting.extend(one.args.values())
        elif isinstance(one, list | tuple):
            waiting.extend(cast("list[object]", one))
