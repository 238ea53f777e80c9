"""May this SHOW, DESCRIBE or SUMMARIZE be run?

Each engine has its own; what is not on its list is refused. A condition in them is judged as that of a query is.
"""

from .explain import explained
from .lexer import read
from .passage import Passage
from .query import check_query, is_query
from .settings import check_setting
from .statement import Terms
from .tables import check_table_name
from .wording import refusal
from .wordlist import words

__all__ = ["check_describe", "check_show"]

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
    if terms.dialect == "mysql":
        _mysql(passage, terms)
    elif terms.dialect == "duckdb":
        return _duckdb(passage, terms)
    else:
        _postgres(passage)
    return ()


def check_describe(passage: Passage, terms: Terms) -> tuple[str, ...]:
    """Also EXPLAIN of a table, and SUMMARIZE."""
    at = explained(passage, terms) if terms.dialect == "mysql" else 1
    if is_query(passage, terms, at):
        return check_query(passage.after(at), terms)
    if at == len(passage.tokens) and terms.dialect == "duckdb":
        return ()
    return _named(passage, at, terms)


def _named(passage: Passage, at: int, terms: Terms) -> tuple[str, ...]:
    parts, at = _name(passage, at)
    if at < len(passage.tokens) and terms.dialect == "mysql":
        at += 1
    _ends(passage, at)
    check_table_name(parts, terms)
    return (".".join(parts),)


def _name(passage: Passage, at: int) -> tuple[list[str], int]:
    """A name with its dots, and where it ends."""
    parts = passage.dotted(at)
    after = at + 2 * len(parts)
    if not parts or passage.mark(after - 1) == ".":
        wrong = passage.tokens[min(after, len(passage.tokens) - 1)]
        raise refusal(wrong.text, "is no name of a table", "Name one table.")
    return parts, after - 1


def _ends(passage: Passage, at: int) -> None:
    if at < len(passage.tokens):
        raise refusal(passage.tokens[at].text, "is one word too many here", "Leave it out.")


def _postgres(passage: Passage) -> None:
    words = " ".join(token.name for token in passage.tokens[1:])
    if words in ("time zone", "transaction isolation level", "session authorization"):
        return
    parts, at = _name(passage, 1)
    _ends(passage, at)
    if parts == ["all"]:
        return
    check_setting(".".join(parts))


def _duckdb(passage: Passage, terms: Terms) -> tuple[str, ...]:
    at = 2 if passage.word(1) == "all" else 1
    if at == len(passage.tokens):
        return ()
    if passage.word(at) not in _LISTS:
        return check_describe(passage, terms)
    at += 1
    if passage.word(at) in ("from", "in"):
        _, at = _name(passage, at + 1)
    _ends(passage, at)
    return ()


def _mysql(passage: Passage, terms: Terms) -> None:
    at = 1
    while passage.word(at) in _MODIFIERS:
        at += 1
    if passage.word(at) == "count" and [passage.mark(at + place) for place in (1, 2, 3)] == ["(", "*", ")"]:
        at += 4
    if f"{passage.word(at)}_{passage.word(at + 1)}" in _SHOWN_IN_TWO:
        created = passage.word(at) == "create"
        _conditions(passage, _name(passage, _if_not_exists(passage, at + 2))[1] if created else at + 2, terms)
    elif passage.word(at) in _SHOWN:
        _conditions(passage, at + 1, terms)
    else:
        shown = " ".join(token.text for token in passage.tokens[:3])
        raise refusal(shown, "is not among what may be shown", "Read information_schema.", tuple(sorted(_SHOWN)))


def _if_not_exists(passage: Passage, at: int) -> int:
    return at + 3 if [passage.word(at + place) for place in range(3)] == ["if", "not", "exists"] else at


def _conditions(passage: Passage, at: int, terms: Terms) -> None:
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
            _ends(passage, at)
