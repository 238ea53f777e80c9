"""Which words can only mean that something is changed?

Told from the text, so that no reading of it by a parser can hide them. Quoted names are never such words.
"""

import re

from .functions import CATALOGUES
from .functions.tsql import RESERVED
from .passage import Passage
from .statement import Terms
from .wording import refuse

__all__ = ["check_words"]

_WRITES = ("insert", "update", "delete", "merge")
_SEQUENCES = frozenset({"nextval", "currval"})
_PACKAGE = re.compile(r"(?:dbms|utl|owa|ctx|sdo|apex)_\w+|htp|htf")


def check_words(passage: Passage, terms: Terms) -> None:
    for number, token in enumerate(passage.tokens):
        if token.is_word("into") and not _is_unpivot(passage, number, terms):
            refuse("INTO", "writes what is selected", "Select the rows without INTO.")
        if token.is_word(*_WRITES) and passage.mark(number - 1) == "(" and passage.mark(number + 1) not in ("(", ")"):
            refuse(token.text.upper(), "writes", "Only reading is possible here.")
        if _locks(passage, number):
            refuse("FOR UPDATE", "locks rows", "Select without locking: nothing here can be changed.")
        if token.is_word("next") and passage.word(number + 1) == "value" and passage.word(number + 2) == "for":
            refuse("NEXT VALUE FOR", "moves a sequence", "Read the sequence's last value from the catalogue.")
        if terms.dialect == "tsql":
            _check_transact(passage, number)
        if terms.dialect in ("oracle", "mysql") and token.is_name:
            _check_dotted(passage, number, terms)


def _locks(passage: Passage, number: int) -> bool:
    following = passage.word(number + 1)
    if passage.word(number) == "lock":
        return following == "in" and passage.word(number + 2) == "share"
    return passage.word(number) == "for" and following in ("update", "share", "no", "key")


def _is_unpivot(passage: Passage, number: int, terms: Terms) -> bool:
    """DuckDB names the columns of an UNPIVOT so, and has no SELECT INTO."""
    return terms.dialect == "duckdb" and passage.word(number + 1) == "name"


def _check_transact(passage: Passage, number: int) -> None:
    token = passage.tokens[number]
    if token.kind != "word":
        return
    if token.name.startswith("@") and not token.name.startswith("@@"):
        refuse(token.text, "is a variable, and none is set here", "Write the value itself.")
    if token.name in RESERVED and not _is_hint(passage, number):
        refuse(token.text.upper(), "begins a statement of its own", "Send one SELECT; put such names in [brackets].")
    if token.name == "fetch" and passage.word(number - 1) not in ("row", "rows"):
        refuse("FETCH", "reads a cursor", "Use OFFSET … ROWS FETCH NEXT … ROWS ONLY.")


def _is_hint(passage: Passage, number: int) -> bool:
    word = passage.word(number)
    after = passage.mark(number + 1)
    return (word == "merge" and passage.word(number + 1) == "join") or (word == "index" and after in ("(", "="))


def _check_dotted(passage: Passage, number: int, terms: Terms) -> None:
    """Oracle needs no parentheses to call a function."""
    token = passage.tokens[number]
    if token.name in _SEQUENCES and passage.mark(number - 1) == ".":
        refuse(f".{token.text}", "moves a sequence", "Read the sequence's last value from the catalogue.")
    if terms.dialect == "oracle" and passage.mark(number + 1) == "." and _PACKAGE.fullmatch(token.name):
        member = passage.tokens[number + 2].name if number + 2 < len(passage.tokens) else ""
        full = f"{token.name}.{member}"
        if full not in CATALOGUES["oracle"].packages and full not in terms.allowed:
            refuse(full, "is of a package that may do more than read", "Use a built-in function of SQL.")
