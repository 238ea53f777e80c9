"""The guard: decides whether a statement only reads.

An allow-list at every level, which fails closed: characters, tokens, the first word, and then the rules for that kind
of statement. The guard is the first of several locks and never the only one: the engine and its role stop what a parser
misreads. It runs nothing and knows nothing of the tables' content.

`check_query` is the pipeline of every query, including one that is only explained or described: first its text is
judged, then every node of its tree.

`check_explain` accepts EXPLAIN only of a query that could itself be run, because some forms of it run the query.

`check_pragma` accepts pragmas that take a table's name as argument and pragmas without a value, never an assignment.

`check_show` and `check_describe` have a list for each engine; everything else is refused. Their conditions are judged
like those of a query.
"""

import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from sqlglot import exp

from ..database import Dialect, Stability
from .allowed_functions import ASKING, READING
from .lexer import Kind, Statement, Terms, read, refusal, words
from .parse_query import PIVOTS, Passage, check_operators, one_statement, parse
from .query_rules import check_bomb, check_calls, check_node
from .table_rules import (
    SHOW_ALL,
    check_function_in_from,
    check_setting,
    check_statement_texts,
    check_table,
    check_table_name,
    check_words,
    is_automatic_index,
    names_variables,
    read_tables,
    shadow_tables,
)

__all__ = [
    "check_describe",
    "check_explain",
    "check_pragma",
    "check_query",
    "check_show",
    "is_query",
    "judge",
    "skip_explain",
]

_ASKING: Mapping[Dialect, frozenset[str]] = {
    "sqlite": ASKING,
    "duckdb": frozenset({"table_info", "storage_info", "show"}),
}
_READING: Mapping[Dialect, frozenset[str]] = {
    "sqlite": READING,
    "duckdb": words(
        """
show_tables show_tables_expanded show_databases database_list database_size version platform collations functions
user_agent metadata_info
        """
    ),
}


def check_pragma(passage: Passage, terms: Terms) -> tuple[str, ...]:
    """Check a PRAGMA and return the tables it describes."""
    at = 3 if passage.mark(2) == "." else 1
    name = passage.word(at)
    asking, reading = _ASKING[terms.dialect], _READING[terms.dialect]
    if name not in asking | reading:
        known = sorted(asking | reading)
        near = difflib.get_close_matches(name, known)
        raise refusal(f"PRAGMA {name}", "is not among those that only tell", "Use one of these.", tuple(near or known))
    rest = passage.tokens[at + 1 :]
    if not rest:
        return ()
    if name not in asking:
        raise refusal(f"PRAGMA {name}", "with a value sets it", f"Write PRAGMA {name} alone.")
    opens = passage.mark(at + 1)
    end = {"(": at + 4, "=": at + 3}.get(opens)
    closed = opens == "=" or passage.mark(at + 3) == ")"
    if end != len(passage.tokens) or not closed or passage.tokens[at + 2].kind in ("mark", "operator"):
        raise refusal("PRAGMA", "has an argument that is not one name", "Write PRAGMA table_info(name).")
    token = passage.tokens[at + 2]
    name = token.name.strip("'").lower() if token.kind == "string" else token.name
    if passage.word(at).startswith("index_") and is_automatic_index(name):
        return ()
    check_table_name([name], terms)
    return (name,)


_HEADS = frozenset({"select", "with", "values", "table"})
_DUCKDB_HEADS = PIVOTS | {"from"}
_ROOTS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.Pivot)


def is_query(passage: Passage, terms: Terms, at: int = 0) -> bool:
    """Return whether a query begins at a token, possibly in parentheses."""
    while passage.mark(at) == "(":
        at += 1
    heads = _HEADS | _DUCKDB_HEADS if terms.dialect == "duckdb" else _HEADS
    return passage.word(at) in heads


def check_query(passage: Passage, terms: Terms) -> tuple[str, ...]:
    """Check a query and return the tables it reads."""
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
    aliases = (alias.this for alias in tree.find_all(exp.TableAlias) if alias.args.get("columns"))
    starts = {alias.meta.get("start") for alias in aliases if isinstance(alias, exp.Identifier)}
    # Tokens that are an alias with column names in parentheses, not a call.
    column_lists = {
        number
        for place, number in places.items()
        if place in starts and any(token.is_name for token in passage.tokens[number + 2 : number + 3])
    }
    check_calls(passage, terms, column_lists)
    strings = {start for start, number in places.items() if passage.tokens[number].kind == "string"}
    waiting: list[object] = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.Expr):
            check_node(one, terms)
            check_bomb(one, terms.dialect)
            if isinstance(one, exp.Table):
                check_table(one, terms, strings)
            if isinstance(one, exp.Lateral) and isinstance(one.this, exp.Func):
                check_function_in_from(one.this, terms)
            waiting.extend(one.args.values())
        elif isinstance(one, list | tuple):
            waiting.extend(cast("list[object]", one))
    return read_tables(tree)


_OPTIONS = words("analyze verbose costs settings generic_plan buffers serialize wal timing summary memory format")
_PLAIN = frozenset({"analyze", "verbose", "extended", "partitions", "query", "plan"})


def check_explain(passage: Passage, terms: Terms) -> tuple[str, ...]:
    """Check an EXPLAIN and return the tables it reads."""
    if passage.word(0) == "analyze" and any(passage.word(place) == "table" for place in (1, 2)):
        raise refusal("ANALYZE TABLE", "writes statistics", "Write ANALYZE SELECT …, or EXPLAIN SELECT …")
    return check_query(passage.after(skip_explain(passage, terms)), terms)


def skip_explain(passage: Passage, terms: Terms) -> int:
    """Return the index of the token at which the explained query begins."""
    at = 1
    while True:
        if passage.mark(at) == "(" and not is_query(passage, terms, at):
            place = at + 1
            while passage.mark(place) != ")":
                if passage.word(place) not in _OPTIONS:
                    raise refusal(
                        passage.mark(place) or "EXPLAIN",
                        "is not an option of EXPLAIN",
                        "Write EXPLAIN SELECT …",
                        tuple(sorted(_OPTIONS)),
                    )
                place += 1
                if passage.mark(place) not in (",", ")"):
                    place += 1
                if passage.mark(place) == ",":
                    place += 1
            at = place + 1
        elif passage.word(at) == "format" and passage.mark(at + 1) == "=":
            at += 3
        elif passage.word(at) in _PLAIN:
            at += 1
        else:
            return at


_MODIFIERS = words("full global session local extended storage")
_SHOWN = words(
    """
tables columns fields index indexes keys databases schemas variables status triggers events engines charset collation
warnings errors processlist plugins privileges
"""
)
_SHOWN_IN_TWO = words(
    """
create_table create_view create_database create_schema create_function create_procedure create_trigger create_event
create_sequence create_package table_status function_status procedure_status character_set open_tables package_status
index_statistics
"""
)
_LISTS = words("tables databases schemas views")


def check_show(passage: Passage, terms: Terms) -> tuple[str, ...]:
    """Check a SHOW and return the tables it describes."""
    if terms.dialect == "mysql":
        _check_mysql_show(passage, terms)
    elif terms.dialect == "duckdb":
        at = 2 if passage.word(1) == "all" else 1
        if at == len(passage.tokens):
            return ()
        if passage.word(at) not in _LISTS:
            return check_describe(passage, terms)
        at += 1
        if passage.word(at) in ("from", "in"):
            _, at = _name(passage, at + 1)
        _expect_end(passage, at)
    else:
        shown = " ".join(token.name for token in passage.tokens[1:])
        if shown not in ("time zone", "transaction isolation level", "session authorization"):
            parts, at = _name(passage, 1)
            _expect_end(passage, at)
            if parts != ["all"]:
                check_setting(".".join(parts))
    return ()


def check_describe(passage: Passage, terms: Terms) -> tuple[str, ...]:
    """Check a DESCRIBE, an EXPLAIN of a table, or a SUMMARIZE, and return the tables it reads."""
    at = skip_explain(passage, terms) if terms.dialect == "mysql" else 1
    if is_query(passage, terms, at):
        return check_query(passage.after(at), terms)
    if at == len(passage.tokens) and terms.dialect == "duckdb":
        return ()
    parts, at = _name(passage, at)
    if at < len(passage.tokens) and terms.dialect == "mysql":
        at += 1
    _expect_end(passage, at)
    check_table_name(parts, terms)
    return (".".join(parts),)


def _name(passage: Passage, at: int) -> tuple[list[str], int]:
    """Return the parts of a dotted name, and the index of the token after it."""
    parts = passage.dotted(at)
    after = at + 2 * len(parts)
    if not parts or passage.mark(after - 1) == ".":
        wrong = passage.tokens[min(after, len(passage.tokens) - 1)]
        raise refusal(wrong.text, "is no name of a table", "Name one table.")
    return parts, after - 1


def _expect_end(passage: Passage, at: int) -> None:
    if at < len(passage.tokens):
        raise refusal(passage.tokens[at].text, "is one word too many here", "Leave it out.")


def _check_mysql_show(passage: Passage, terms: Terms) -> None:
    at = 1
    while passage.word(at) in _MODIFIERS:
        at += 1
    if passage.word(at) == "count" and [passage.mark(at + place) for place in (1, 2, 3)] == ["(", "*", ")"]:
        at += 4
    if f"{passage.word(at)}_{passage.word(at + 1)}" in _SHOWN_IN_TWO:
        is_created, at = passage.word(at) == "create", at + 2
        if is_created:
            has_condition = [passage.word(at + place) for place in range(3)] == ["if", "not", "exists"]
            _, at = _name(passage, at + 3 if has_condition else at)
        _check_conditions(passage, at, terms)
    elif passage.word(at) in _SHOWN:
        _check_conditions(passage, at + 1, terms)
    else:
        shown = " ".join(token.text for token in passage.tokens[:3])
        raise refusal(shown, "is not among what may be shown", "Read information_schema.", tuple(sorted(_SHOWN)))


def _check_conditions(passage: Passage, at: int, terms: Terms) -> None:
    while at < len(passage.tokens):
        word = passage.word(at)
        if word in ("from", "in"):
            _, at = _name(passage, at + 1)
        elif word == "like" and at + 1 < len(passage.tokens) and passage.tokens[at + 1].kind == "string":
            at += 2
        elif word in ("where", "limit"):
            asked = read("SELECT 1 FROM shown", terms.dialect)
            check_query(Passage((*asked, *passage.tokens[at:])), terms)
            return
        else:
            _expect_end(passage, at)


_Check = Callable[[Passage, Terms], tuple[str, ...]]
_NOTHING: Mapping[str, Stability] = MappingProxyType({})

_JUDGE_ROOTS: Mapping[Dialect, Mapping[str, tuple[Kind, _Check]]] = {
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
"""The first words that a statement may begin with besides those of a query."""


def judge(
    sql: str,
    dialect: Dialect,
    *,
    functions: Mapping[str, Stability] = _NOTHING,
    allowed: frozenset[str] = frozenset(),
) -> Statement:
    """Judge whether a statement only reads.

    Args:
        sql: the statement as written.
        dialect: its dialect.
        functions: the engine's functions with their stability; empty if it lists none.
        allowed: functions and types that the user allows, with or without schema.

    Returns:
        The statement, the tables it reads, and the text to run if it must differ.

    Raises:
        Refused: names what is not allowed and how to write it instead.

    Example:
        judge("SELECT total FROM orders", "postgres").tables  # ("orders",)
    """
    terms = Terms(dialect=dialect, functions=functions, allowed=frozenset(name.lower() for name in allowed))
    tokens = one_statement(read(sql, dialect))
    passage = Passage(tokens)
    if is_query(passage, terms):
        kind, check = "select", check_query
    else:
        found = _JUDGE_ROOTS[terms.dialect].get(passage.word(0))
        if found is None:
            begins = tuple(sorted({"select", "with", "values", *_JUDGE_ROOTS[terms.dialect]}))
            raise refusal(
                passage.tokens[0].text,
                "does not begin a statement that only reads",
                "Begin with SELECT or WITH.",
                begins,
            )
        kind, check = found
    try:
        tables = check(passage, terms)
    except RecursionError:
        raise refusal(tokens[0].text, "begins what is nested too deeply", "Ask a simpler question.") from None
    start, end = tokens[0].start, tokens[-1].end
    if dialect in ("postgres", "mysql"):
        # Hide what the server's own tables show of other sessions; in a plan as well, since its row counts reveal
        # values.
        asked = passage if kind == "select" else passage.after(skip_explain(passage, terms))
        if kind != "show" and is_query(asked, terms):
            shadow_tables(asked, terms)
        elif kind == "show" and terms.dialect == "mysql" and names_variables(passage):
            raise refusal(passage.tokens[0].text, "cannot look at the server's settings", "Read them in a SELECT.")
    changes = {*((place, place, text) for place, text in terms.edits), *((begin, to, "") for begin, to in terms.cuts)}
    runs = ""
    if kind == "show" and dialect == "postgres" and passage.word(1) == "all" and len(tokens) == 2:
        runs = SHOW_ALL
    elif changes:
        pieces, at = list[str](), start
        for begin, to, text in sorted(changes):
            pieces += [sql[at:begin], text]
            at = max(at, to)
        runs = "".join([*pieces, sql[at:end]])
    return Statement(kind=kind, sql=sql[start:end], tables=tables, runs=runs)
