"""Does this text call only what reads?

A name before a parenthesis is a call, however the parser takes it: the text is what will run. Words of the grammar,
types and the names of column lists are told apart from calls; the tree is asked only where such a list stands.
"""

import difflib
import re
from collections.abc import Set

from .functions import CATALOGUES
from .functions.standard import NAMES as STANDARD
from .passage import Passage
from .settings import ASKING, check_setting
from .statement import Terms
from .tables import check_table_name
from .vocabulary import ALWAYS_GRAMMAR, BEFORE_PARENTHESIS, TYPES
from .wording import refusal

__all__ = ["check_calls", "check_function", "is_search_table"]

_OWN_SCHEMA = "pg_catalog"
_FORMATS = frozenset({"format", "printf", "sformat"})
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
    if _is_clause(passage, number, terms):
        return
    check_function(token.name, qualifier, terms)
    if qualifier is None and _has_own(token.name, terms) and not _is_special(passage, number):
        # The server would choose whichever function fits the arguments best; with its schema it can only be its own.
        terms.edits.append((token.start, "pg_catalog."))
    if token.name in _FORMATS and _is_escaped(passage, number + 2):
        raise refusal(f"{token.text}()", "has a format with escapes", "Write the format as a plain '…' string.")
    if token.name in _WITHOUT_ARGUMENTS.get(terms.dialect, ()) and passage.mark(number + 2) != ")":
        raise refusal(f"{token.text}(…)", "with an argument sets it", f"Call {token.text}() without one.")
    if terms.dialect == "oracle" and token.name in _ASKS_XML:
        _check_xquery(passage)
    if token.name in ASKING:
        check_setting(_literal(passage, number + 2))
    if terms.dialect == "duckdb" and token.name in _ASKS_A_TABLE:
        _check_asked(token.name, _literal(passage, number + 2), terms)


def _is_clause(passage: Passage, number: int, terms: Terms) -> bool:
    """Whether a name before a parenthesis is part of a clause that only some engines have."""
    if passage.word(number) in ("first", "next") and passage.word(number - 1) == "fetch":
        return True
    if passage.mark(number + 3) != ")":
        return False
    is_outer = terms.dialect == "oracle" and passage.mark(number + 2) == "+"
    return is_outer or (terms.dialect == "tsql" and passage.word(number + 2) in _BARE_HINTS)


def _is_made(passage: Passage, number: int, terms: Terms) -> bool:
    """Whether a word that is also a type's name, or of some grammar, calls what somebody made under it."""
    name = passage.word(number)
    is_type = passage.mark(number - 1) == "::" or passage.word(number - 1) == "as"
    return terms.functions.get(name) == "made" and name not in ALWAYS_GRAMMAR and not is_type


def _has_own(name: str, terms: Terms) -> bool:
    """Whether PostgreSQL brings a function under whose name somebody made another."""
    return (
        terms.dialect == "postgres"
        and terms.functions.get(name) == "made"
        and f"{_OWN_SCHEMA}.{name}" in terms.functions
        and name not in terms.allowed
    )


def _is_special(passage: Passage, number: int) -> bool:
    """Whether the call is written with words between its arguments, as `substring(a FROM 2)`; that is always a
    function of PostgreSQL's own, and may not have its schema before it."""
    depth = 0
    for place in range(number + 1, len(passage.tokens)):
        depth += (passage.mark(place) == "(") - (passage.mark(place) == ")")
        if depth == 0:
            return False
        if depth == 1 and passage.word(place) in ("from", "for", "placing", "in", "similar"):
            return True
    return False


def _is_escaped(passage: Passage, number: int) -> bool:
    """Whether a string may say something else than what is written."""
    token = passage.tokens[number] if number < len(passage.tokens) else None
    return token is not None and token.kind == "string" and token.text[:1].lower() in ("e", "u") and "\\" in token.text


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
    if qualifier in (None, "main") and is_search_table(name, terms):
        return
    if qualifier is not None:
        if name in catalogue.methods and qualifier not in _SCHEMAS:
            return
        if catalogue.schemas is not None and qualifier not in catalogue.schemas:
            raise refusal(f"{full}()", "is a function of somebody's making", _YOURS)
    own = terms.functions.get(f"{_OWN_SCHEMA}.{name}") if qualifier in (None, _OWN_SCHEMA) else None
    if own is not None and catalogue.knows(name, {name: own}):
        return
    if terms.functions.get(name) == "made":
        raise refusal(f"{full}()", "is, or may be, a function that somebody made in this database", _YOURS)
    if not catalogue.knows(name, terms.functions):
        known = catalogue.denied.fullmatch(name) is not None
        raise refusal(
            f"{full}()",
            "may do more than read" if known else "is not known to only read",
            _REWRITE if known else _YOURS,
            () if known else _nearest(name, terms),
        )


def is_search_table(name: str, terms: Terms) -> bool:
    """Whether it is a full-text table of SQLite, which may be written as a call in FROM: `docs('words')`. Elsewhere
    there is no such function."""
    if f"from:{name}" not in terms.functions:
        return False
    catalogue = CATALOGUES[terms.dialect]
    return name not in terms.functions and name not in catalogue.certain and not catalogue.denied.fullmatch(name)


def _nearest(name: str, terms: Terms) -> tuple[str, ...]:
    """Functions that may be called and are spelt alike."""
    catalogue = CATALOGUES[terms.dialect]
    listed = catalogue.certain | catalogue.names | STANDARD
    near = difflib.get_close_matches(name, sorted(terms.allowed), cutoff=0.7)
    near += difflib.get_close_matches(name, sorted(listed), n=8, cutoff=0.7)
    near += difflib.get_close_matches(name, sorted(one for one in terms.functions if one.isidentifier()), cutoff=0.7)
    known = [
        one
        for one in dict.fromkeys(near)
        if one in terms.allowed or catalogue.knows(one, terms.functions) or _has_own(one, terms)
    ]
    return tuple(known[:3])


_REWRITE = "Leave the call out: here a statement may only compute from the tables it reads."
_YOURS = "Use a built-in function; one of your own must be named under `functions` in the settings of this database."
