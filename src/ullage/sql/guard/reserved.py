"""Which words can only mean that something is changed?

Told from the text, so that no reading of it by a parser can hide them. Quoted names are never such words.
"""

import re
from collections.abc import Callable, Mapping

from ..engine import Dialect
from .functions import CATALOGUES
from .functions.postgres import LIKE_COLUMNS, UNSAFE
from .functions.tsql import RESERVED
from .passage import Passage
from .settings import ASKING, check_variable
from .statement import Terms
from .tables import check_table_name
from .wording import refusal

__all__ = ["check_words"]

_WRITES = ("insert", "update", "delete", "merge")
_BEFORE_TABLES = frozenset({"join", "table", "summarize", "describe", "pivot", "unpivot", "show"})
_SEQUENCES = frozenset({"nextval", "currval"})
_PACKAGE = re.compile(r"(?:dbms|utl|owa|ctx|sdo|apex)_\w+|htp|htf")


def check_words(passage: Passage, terms: Terms) -> None:
    for number, token in enumerate(passage.tokens):
        if token.is_word("into") and not _is_unpivot(passage, number, terms):
            raise refusal("INTO", "writes what is selected", "Select the rows without INTO.")
        if token.is_word(*_WRITES) and _opens(passage, number):
            raise refusal(token.text.upper(), "writes", "Only reading is possible here.")
        if _locks(passage, number):
            raise refusal("FOR UPDATE", "locks rows", "Select without locking: nothing here can be changed.")
        if token.is_word("next") and passage.word(number + 1) == "value" and passage.word(number + 2) == "for":
            raise refusal("NEXT VALUE FOR", "moves a sequence", "Read the sequence's last value from the catalogue.")
        _OWN[terms.dialect](passage, number, terms)


def _locks(passage: Passage, number: int) -> bool:
    following = passage.word(number + 1)
    if passage.word(number) == "lock":
        return following == "in" and passage.word(number + 2) == "share"
    after = passage.word(number + 2)
    strengths = {"update": after != "in", "share": after != "in", "no": after == "key", "key": after == "share"}
    return passage.word(number) == "for" and strengths.get(following, False)


def _opens(passage: Passage, number: int) -> bool:
    """Whether a statement begins with this word in parentheses."""
    following = passage.tokens[number + 1 : number + 2]
    return passage.mark(number - 1) == "(" and any(token.is_name for token in following)


def _is_unpivot(passage: Passage, number: int, terms: Terms) -> bool:
    """DuckDB names the columns of an UNPIVOT so, and has no SELECT INTO."""
    return terms.dialect == "duckdb" and passage.word(number + 1) == "name"


def _check_duckdb(passage: Passage, number: int, _: Terms) -> None:
    token = passage.tokens[number]
    if token.kind == "string" and passage.word(number - 1) in _BEFORE_TABLES:
        raise refusal(token.text, "is a text in the place of a table, which is read as a file", "Name a table.")


def _check_mysql(passage: Passage, number: int, terms: Terms) -> None:
    token = passage.tokens[number]
    if token.kind == "operator" and token.text.endswith("@@"):
        for name in passage.dotted(number + 1)[-1:]:
            check_variable(name)
    _check_dotted(passage, number, terms)


def _check_transact(passage: Passage, number: int, _: Terms) -> None:
    token = passage.tokens[number]
    if token.kind != "word":
        return
    if token.name.startswith("@") and not token.name.startswith("@@"):
        raise refusal(token.text, "is a variable, and none is set here", "Write the value itself.")
    if token.name in RESERVED and not _is_hint(passage, number):
        raise refusal(
            token.text.upper(), "begins a statement of its own", "Send one SELECT; put such names in [brackets]."
        )
    if token.name == "fetch" and passage.word(number - 1) not in ("row", "rows"):
        raise refusal("FETCH", "reads a cursor", "Use OFFSET … ROWS FETCH NEXT … ROWS ONLY.")


def _is_hint(passage: Passage, number: int) -> bool:
    word = passage.word(number)
    after = passage.mark(number + 1)
    return (word == "merge" and passage.word(number + 1) == "join") or (word == "index" and after in ("(", "="))


def _check_sqlite(passage: Passage, number: int, terms: Terms) -> None:
    """After IN, a name is a table's, and a text is a name."""
    following = passage.tokens[number + 1 : number + 2]
    if not passage.tokens[number].is_word("in") or not following:
        return
    if following[0].kind == "string":
        raise refusal(following[0].text, "is a text in the place of a table", "Put the values in parentheses.")
    if parts := passage.dotted(number + 1):
        check_table_name(parts, terms)


def _check_attribute(passage: Passage, number: int, terms: Terms) -> None:
    """PostgreSQL takes `(value).name` for a call where there is no such column.

    So it takes `table.name`; but there a column of the name of somebody's function is likelier than the call.
    """
    if not passage.tokens[number].is_name or passage.mark(number - 1) != ".":
        return
    name, of_a_value = passage.tokens[number].name, passage.mark(number - 2) == ")"
    if name == "pg_stat_statements" and not of_a_value and passage.mark(number + 1) != "(":
        # The view of that name, which is withheld in another way; its function takes no row.
        return
    if name in ASKING and passage.mark(number + 1) != "(":
        raise refusal(f".{name}", "asks for a setting that is not written out", f"Write {name}('…').")
    catalogue = CATALOGUES["postgres"]
    said = terms.functions.get(name)
    unsafe = name in UNSAFE or catalogue.denied.fullmatch(name) is not None
    if terms.functions:
        unsafe = (unsafe and said is not None) or terms.functions.get(f".{name}") == "made"
    elif LIKE_COLUMNS.fullmatch(name):
        unsafe = False
    if of_a_value and (name.startswith("pg_") or said in ("volatile", "made")):
        unsafe = not catalogue.knows(name, terms.functions)
    if unsafe and name not in terms.allowed:
        raise refusal(f".{name}", "is a function that may do more than read", "Name a column after the dot.")


def _check_dotted(passage: Passage, number: int, terms: Terms) -> None:
    """Oracle needs no parentheses to call a function."""
    token = passage.tokens[number]
    if not token.is_name:
        return
    if token.name in _SEQUENCES and passage.mark(number - 1) == ".":
        raise refusal(f".{token.text}", "moves a sequence", "Read the sequence's last value from the catalogue.")
    if terms.dialect == "oracle" and passage.mark(number + 1) == "." and _PACKAGE.fullmatch(token.name):
        member = passage.tokens[number + 2].name if number + 2 < len(passage.tokens) else ""
        full = f"{token.name}.{member}"
        if full not in CATALOGUES["oracle"].packages and full not in terms.allowed:
            raise refusal(full, "is of a package that may do more than read", "Use a built-in function of SQL.")


_OWN: Mapping[Dialect, Callable[[Passage, int, Terms], None]] = {
    "postgres": _check_attribute,
    "duckdb": _check_duckdb,
    "mysql": _check_mysql,
    "sqlite": _check_sqlite,
    "tsql": _check_transact,
    "oracle": _check_dotted,
}
