"""Does this text call only what reads?

A name before a parenthesis is a call, however the parser takes it: the text is what will run. Words of the grammar,
types and the names of column lists are told apart from calls; the tree is asked only where such a list stands.
"""

import re
from collections.abc import Set

from .functions import CATALOGUES
from .passage import Passage
from .settings import ASKING, check_setting
from .statement import Terms
from .tables import check_table_name
from .vocabulary import ALWAYS_GRAMMAR, BEFORE_PARENTHESIS, TYPES
from .wording import refusal

__all__ = ["check_calls", "check_function"]

_NO_CALLS = BEFORE_PARENTHESIS | TYPES
_WITHOUT_ARGUMENTS = {"mysql": frozenset({"last_insert_id"})}
"""Those that set something when they are given one."""
_BARE_HINTS = frozenset({"nolock", "readuncommitted", "readpast"})
"""Of SQL Server, which may follow a table without WITH; a call of one is still seen in the tree."""
_SCHEMAS = frozenset({"dbo", "sys", "guest", "information_schema", "master", "msdb"})
"""Of SQL Server: what is called of one of these is no value's method."""
_ASKS_XML = frozenset({"xmltable", "xmlquery", "xmlexists"})
_FETCHES = re.compile(r"(?:doc|collection|available|view|resource|text|lines)\s*\(\s*[\"'$\w]", re.IGNORECASE)
"""Functions of XQuery that read from elsewhere."""
_PLAIN_STRING = re.compile(r"[en]?'([\w. ]+)'|(\$\w*\$)([\w. ]+)\2", re.IGNORECASE)
_ASKS_A_TABLE = frozenset({"pragma_show", "pragma_table_info", "pragma_storage_info"})
"""Of DuckDB, which take the table's name as a text."""


def check_calls(passage: Passage, terms: Terms, lists: Set[int]) -> None:
    """`lists` are the numbers of tokens that name a column list."""
    for number, token in enumerate(passage.tokens):
        if token.is_name and passage.mark(number + 1) == "(" and number not in lists:
            _check_call(passage, number, terms)


def _check_call(passage: Passage, number: int, terms: Terms) -> None:
    token = passage.tokens[number]
    qualifier = _qualifier(passage, number)
    if qualifier is None and token.kind == "word" and token.name in _NO_CALLS and not _is_made(passage, number, terms):
        return
    if terms.dialect == "oracle" and passage.mark(number + 2) == "+" and passage.mark(number + 3) == ")":
        return
    if terms.dialect == "tsql" and passage.word(number + 2) in _BARE_HINTS and passage.mark(number + 3) == ")":
        return
    check_function(token.name, qualifier, terms)
    if token.name in _WITHOUT_ARGUMENTS.get(terms.dialect, ()) and passage.mark(number + 2) != ")":
        raise refusal(f"{token.text}(…)", "with an argument sets it", f"Call {token.text}() without one.")
    if terms.dialect == "oracle" and token.name in _ASKS_XML:
        _check_xquery(passage)
    if token.name in ASKING:
        check_setting(_literal(passage, number + 2))
    if terms.dialect == "duckdb" and token.name in _ASKS_A_TABLE:
        _check_asked(token.name, _literal(passage, number + 2), terms)


def _is_made(passage: Passage, number: int, terms: Terms) -> bool:
    """Whether a word that is also a type's name, or of some grammar, calls what somebody made under it."""
    name = passage.word(number)
    is_type = passage.mark(number - 1) == "::" or passage.word(number - 1) == "as"
    return terms.functions.get(name) == "made" and name not in ALWAYS_GRAMMAR and not is_type


def _check_xquery(passage: Passage) -> None:
    for token in passage.tokens:
        if token.kind == "string" and _FETCHES.search(token.text):
            raise refusal(token.text, "fetches what it names", "Query the XML that is given with PASSING.")


def _qualifier(passage: Passage, number: int) -> str | None:
    """What stands before the name's dot; empty where that is a value."""
    if passage.mark(number - 1) != ".":
        return None
    before = passage.tokens[number - 2] if number >= 2 else None
    return before.name if before is not None and before.is_name else ""


def _literal(passage: Passage, number: int) -> str | None:
    """None unless it is a string that says what it seems to."""
    token = passage.tokens[number]
    found = _PLAIN_STRING.fullmatch(token.text) if token.kind == "string" else None
    if found is None or passage.mark(number + 1) not in (")", ","):
        return None
    return found[1] or found[3]


def _check_asked(function: str, table: str | None, terms: Terms) -> None:
    if table is None:
        raise refusal(f"{function}()", "asks for a table that is not written out", "Name it in a plain '…' string.")
    check_table_name(table.split("."), terms)


def check_function(name: str, qualifier: str | None, terms: Terms) -> None:
    catalogue = CATALOGUES[terms.dialect]
    full = f"{qualifier}.{name}" if qualifier else name
    if {name, full} & terms.allowed or full in catalogue.packages:
        return
    if qualifier is not None:
        if name in catalogue.methods and qualifier not in _SCHEMAS:
            return
        if catalogue.schemas is not None and qualifier not in catalogue.schemas:
            raise refusal(f"{full}()", "is a function of somebody's making", _YOURS)
    if terms.functions.get(name) == "made":
        raise refusal(f"{full}()", "is, or may be, a function that somebody made in this database", _YOURS)
    if not catalogue.knows(name, terms.functions):
        known = catalogue.denied.fullmatch(name) is not None
        raise refusal(
            f"{full}()",
            "may do more than read" if known else "is not known to only read",
            _REWRITE if known else _YOURS,
        )


_REWRITE = "Leave the call out: here a statement may only compute from the tables it reads."
_YOURS = "Use a built-in function; one of your own must be named under `functions` in the settings of this database."
