"""May this statement be run on this database?

An allow-list at every level, which fails closed: characters, tokens, the first word, then whatever that word calls for.
It is the first of several locks and never the only one: the engine and its role hold what a parser gets wrong. Nothing
is run here, and nothing is known of what the tables hold.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..engine import Dialect, Stability
from .explain import check_explain, explained
from .lexer import read
from .passage import Passage, one_statement
from .pragmas import check_pragma
from .query import check_query, is_query
from .showing import check_describe, check_show
from .statement import Kind, Statement, Terms
from .withheld import SHOW_ALL, names_variables, shadow_tables
from .wording import refusal

__all__ = ["judge"]

_Check = Callable[[Passage, Terms], tuple[str, ...]]
_NOTHING: Mapping[str, Stability] = MappingProxyType({})

_ROOTS: Mapping[Dialect, Mapping[str, tuple[Kind, _Check]]] = {
    "postgres": {"explain": ("explain", check_explain), "show": ("show", check_show)},
    "mysql": {
        "explain": ("explain", check_describe),
        "analyze": ("explain", check_explain),
        "describe": ("describe", check_describe),
        "desc": ("describe", check_describe),
        "show": ("show", check_show),
    },
    "sqlite": {"explain": ("explain", check_explain), "pragma": ("pragma", check_pragma)},
    "duckdb": {
        "explain": ("explain", check_explain),
        "describe": ("describe", check_describe),
        "desc": ("describe", check_describe),
        "summarize": ("describe", check_describe),
        "show": ("show", check_show),
        "pragma": ("pragma", check_pragma),
    },
    "tsql": {},
    "oracle": {},
}
"""What a statement may begin with besides a query."""


def judge(
    sql: str,
    dialect: Dialect,
    *,
    functions: Mapping[str, Stability] = _NOTHING,
    allowed: frozenset[str] = frozenset(),
) -> Statement:
    """Raises `Refused`, which names what may not be and how to write it instead."""
    terms = Terms(dialect=dialect, functions=functions, allowed=frozenset(name.lower() for name in allowed))
    tokens = one_statement(read(sql, dialect))
    passage = Passage(tokens)
    kind, check = _root(passage, terms)
    try:
        tables = check(passage, terms)
    except RecursionError:
        raise refusal(tokens[0].text, "begins what is nested too deeply", "Ask a simpler question.") from None
    start, end = tokens[0].start, tokens[-1].end
    if dialect in ("postgres", "mysql"):
        _withhold(passage, kind, terms)
    is_all = kind == "show" and dialect == "postgres" and passage.word(1) == "all" and len(tokens) == 2
    runs = SHOW_ALL if is_all else _edited(sql, start, end, terms)
    return Statement(kind=kind, sql=sql[start:end], tables=tables, runs=runs)


def _withhold(passage: Passage, kind: Kind, terms: Terms) -> None:
    """Also in a plan: the rows that it counted tell of what it read."""
    asked = passage if kind == "select" else passage.after(explained(passage, terms))
    if kind != "show" and is_query(asked, terms):
        shadow_tables(asked, terms)
    elif kind == "show" and terms.dialect == "mysql" and names_variables(passage):
        raise refusal(passage.tokens[0].text, "cannot look at the server's settings", "Read them in a SELECT.")


def _edited(sql: str, start: int, end: int, terms: Terms) -> str:
    """The text with what must be certain in it; empty where that is nothing."""
    if not terms.edits and not terms.cuts:
        return ""
    changes = {*((place, place, text) for place, text in terms.edits), *((begin, to, "") for begin, to in terms.cuts)}
    pieces, at = list[str](), start
    for begin, to, text in sorted(changes):
        pieces += [sql[at:begin], text]
        at = max(at, to)
    return "".join([*pieces, sql[at:end]])


def _root(passage: Passage, terms: Terms) -> tuple[Kind, _Check]:
    if is_query(passage, terms):
        return "select", check_query
    found = _ROOTS[terms.dialect].get(passage.word(0))
    if found is None:
        begins = tuple(sorted({"select", "with", "values", *_ROOTS[terms.dialect]}))
        raise refusal(
            passage.tokens[0].text, "does not begin a statement that only reads", "Begin with SELECT or WITH.", begins
        )
    return found
