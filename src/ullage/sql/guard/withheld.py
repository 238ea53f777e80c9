"""What tables of the server itself show of its host and of other sessions, and how that is withheld.

PostgreSQL's `pg_settings` and `SHOW ALL` answer with `***` for the value of every setting that `check_setting` refuses,
and its lists of sessions and statements with `***` for the text that others run. Such a table is replaced by a query of
the same name in front of the statement, so that whatever the statement does with it, it cannot see more. MySQL cannot
be asked so of statements; there a column with their text cannot be named. Its tables of settings are replaced as those
of PostgreSQL are.

A table that the user names under `functions` in the settings of the database is shown as it is.
"""

import re
from collections.abc import Mapping

from ..statement_texts import INNER, TABLES, TEXTS
from .passage import Passage
from .settings import HIDDEN_SETTINGS, HIDDEN_VARIABLES, SHOWN_SETTINGS
from .statement import Terms
from .wording import refusal

__all__ = ["SHOW_ALL", "check_statement_texts", "names_variables", "shadow_tables"]

_OWN = "pg_catalog"
_ALWAYS_SHOWN = "', '".join(sorted(SHOWN_SETTINGS))
_IS_HIDDEN = (
    f"(pg_catalog.lower(s.name) OPERATOR(pg_catalog.~) '{HIDDEN_SETTINGS}' AND s.name OPERATOR(pg_catalog.<>) "
    f"ALL (ARRAY['{_ALWAYS_SHOWN}']))"
)
_SETTINGS = (
    "SELECT r.* FROM pg_catalog.pg_settings AS s, LATERAL pg_catalog.jsonb_populate_record(s, CASE WHEN "
    f"{_IS_HIDDEN} THEN pg_catalog.jsonb_build_object('setting', '***', 'boot_val', '***', 'reset_val', '***', "
    "'sourcefile', null) ELSE pg_catalog.jsonb_build_object('sourcefile', null) END) AS r"
)
_ACTIVITY = (
    "SELECT r.* FROM pg_catalog.pg_stat_activity AS s, LATERAL pg_catalog.jsonb_populate_record(s, "
    "pg_catalog.jsonb_build_object('query', '***')) AS r"
)
_STATEMENTS = (
    "SELECT r.* FROM pg_stat_statements AS s, LATERAL pg_catalog.jsonb_populate_record(s, "
    "pg_catalog.jsonb_build_object('query', '***')) AS r"
)
_SHADOWS: Mapping[str, str] = {
    "pg_settings": _SETTINGS,
    "pg_stat_activity": _ACTIVITY,
    "pg_stat_statements": _STATEMENTS,
}
SHOW_ALL = (
    f"WITH pg_settings AS ({_SETTINGS}) SELECT name, CASE setting WHEN '***' THEN setting "
    "ELSE pg_catalog.current_setting(name, true) END AS setting, short_desc AS description FROM pg_settings "
    "ORDER BY pg_catalog.lower(name)"
)
"""Gives the columns of SHOW ALL."""

_IS_HIDDEN_VARIABLE = f"lower(VARIABLE_NAME) REGEXP '^({HIDDEN_VARIABLES})$'"
_VALUE = f"CASE WHEN {_IS_HIDDEN_VARIABLE} THEN '***' ELSE VARIABLE_VALUE END AS VARIABLE_VALUE"
_VARIABLES: Mapping[str, str] = {
    "global_variables": f"SELECT VARIABLE_NAME, {_VALUE} FROM {{schema}}.global_variables",
    "session_variables": f"SELECT VARIABLE_NAME, {_VALUE} FROM {{schema}}.session_variables",
    "variables_by_thread": f"SELECT THREAD_ID, VARIABLE_NAME, {_VALUE} FROM {{schema}}.variables_by_thread",
    # It has a column for each place that a value may come from.
    "system_variables": f"SELECT * FROM {{schema}}.system_variables WHERE NOT {_IS_HIDDEN_VARIABLE}",
}
"""MySQL's tables of settings, without the values that `check_variable` refuses."""

_UNIQUE = re.compile(r"processlist|events_statements_\w+|innodb_trx")
"""Of MySQL's tables with statements, names that are no user's, so that they are meant without their database too."""


def shadow_tables(passage: Passage, terms: Terms) -> None:
    """Has a query stand in front of the statement for each table of the server that shows too much."""
    if terms.dialect == "mysql":
        shadows = _take_variables(passage, terms)
    else:
        named = [name for name in _SHADOWS if name not in terms.allowed and _take_schema(passage, name, terms)]
        shadows = {name: _SHADOWS[name] for name in named}
    if not shadows:
        return
    first, second = passage.word(0), passage.word(1)
    if first == "with" and second == "recursive" and "pg_stat_statements" in shadows:
        raise refusal("pg_stat_statements", "cannot be read in a recursive query", "Read it in a query of its own.")
    queries = ", ".join(f"{name} AS ({query})" for name, query in shadows.items())
    if first != "with":
        terms.edits.append((passage.tokens[0].start, f"WITH {queries} "))
        return
    behind = passage.tokens[1 if second == "recursive" else 0]
    terms.edits.append((behind.end, f" {queries},"))


def _take_schema(passage: Passage, table: str, terms: Terms) -> bool:
    """Whether a statement names the table; a schema before it is taken away, since a query has none."""
    found = False
    for number, token in enumerate(passage.tokens):
        if not token.is_name or token.name != table:
            continue
        if passage.mark(number - 1) != ".":
            found = True
            continue
        schema = passage.tokens[number - 2]
        if not schema.is_name or (schema.name != _OWN and table != "pg_stat_statements"):
            continue
        if passage.mark(number - 3) == ".":
            raise refusal(table, "is named with its database", "Leave the database's name out.")
        found = True
        terms.cuts.append((schema.start, token.start))
    return found


def names_variables(passage: Passage) -> bool:
    """Whether a statement reads MySQL's tables of settings."""
    return any(_variables_at(passage, number) for number in range(len(passage.tokens)))


def _take_variables(passage: Passage, terms: Terms) -> dict[str, str]:
    """The queries for MySQL's tables of settings that a statement names; their database is taken away there."""
    found: dict[str, str] = {}
    for number, token in enumerate(passage.tokens):
        if token.name in terms.allowed or not _variables_at(passage, number):
            continue
        schema = passage.tokens[number - 2]
        found.setdefault(token.name, _VARIABLES[token.name].format(schema=schema.name))
        terms.cuts.append((schema.start, token.start))
    return found


def _variables_at(passage: Passage, number: int) -> bool:
    token = passage.tokens[number]
    if not token.is_name or token.name not in _VARIABLES or number < 2 or passage.mark(number - 1) != ".":
        return False
    schema = passage.tokens[number - 2]
    return schema.is_name and schema.name in INNER


def check_statement_texts(passage: Passage, terms: Terms) -> None:
    """Refuses columns of MySQL with the text of what others run, and `*`, where such a table is read."""
    if terms.dialect != "mysql":
        return
    for number, token in enumerate(passage.tokens):
        before = passage.tokens[number - 2] if number >= 2 and passage.mark(number - 1) == "." else None
        is_inner = (before is not None and before.is_name and before.name in INNER) or (
            before is None and _UNIQUE.fullmatch(token.name) is not None
        )
        if is_inner and token.is_name and TABLES.fullmatch(token.name) and token.name not in terms.allowed:
            _refuse_texts(passage, token.name)


def _refuse_texts(passage: Passage, table: str) -> None:
    for number, token in enumerate(passage.tokens):
        is_star = token.text == "*" and (
            passage.word(number - 1) in ("select", "distinct", "all") or passage.mark(number - 1) in (",", ".")
        )
        is_whole = token.is_word("table") or is_star
        if is_whole or (token.is_name and token.name in TEXTS):
            raise refusal(
                f"{token.text} of {table}", "may show what other sessions run", "Name the columns that you need."
            )
