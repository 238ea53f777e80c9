"""May this PRAGMA be run?

Those that ask, with a table's name for an argument, and those that tell when nothing is given. An assignment never.
"""

from collections.abc import Mapping

from ..engine import Dialect
from .functions.sqlite import ASKING, READING
from .passage import Passage
from .statement import Terms
from .tables import check_table_name, is_automatic_index
from .wording import refusal
from .wordlist import words

__all__ = ["check_pragma"]

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
    at = 3 if passage.mark(2) == "." else 1
    name = passage.word(at)
    asking, reading = _ASKING[terms.dialect], _READING[terms.dialect]
    if name not in asking | reading:
        raise refusal(
            f"PRAGMA {name}", "is not among those that only tell", "Use one of these.", tuple(sorted(asking | reading))
        )
    rest = passage.tokens[at + 1 :]
    if not rest:
        return ()
    if name not in asking:
        raise refusal(f"PRAGMA {name}", "with a value sets it", f"Write PRAGMA {name} alone.")
    return _asked(passage, at, terms)


def _asked(passage: Passage, at: int, terms: Terms) -> tuple[str, ...]:
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
