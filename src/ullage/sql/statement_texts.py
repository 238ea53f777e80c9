"""Where does MySQL show what other sessions run?

Data only, for the guard, which judges statements, and for the engine, which looks for views that show as much.
"""

import re
from collections.abc import Iterable

__all__ = ["INNER", "TABLES", "TEXTS", "showing_views"]

INNER = frozenset({"information_schema", "performance_schema", "sys"})
"""Databases of the server's own."""
TABLES = re.compile(
    r"processlist|threads|events_statements_\w+|prepared_statements_instances|session|x\$session|x\$processlist"
    r"|(?:x\$)?statement\w*|innodb_trx|(?:x\$)?innodb_lock_waits|(?:x\$)?schema_table_lock_waits"
)
"""Tables of these databases that hold what others run."""
TEXTS = frozenset(
    """
    info info_binary processlist_info sql_text digest_text query_sample_text query current_statement last_statement
    trx_query waiting_query blocking_query
    """.split()  # noqa: SIM905
)
"""Columns of these tables with the text of statements."""
_READ = re.compile(rf"`(?:{'|'.join(sorted(INNER))})`\.`(?:{TABLES.pattern})`")
_QUOTED = re.compile(r"`([^`]+)`")


def showing_views(definitions: Iterable[tuple[str, str]]) -> set[str]:
    """Of views by name and definition, as the server writes it and in lower case: those that show such a text, and
    those that read one of them."""
    named = {name: (set(_QUOTED.findall(text)), _READ.search(text) is not None) for name, text in definitions}
    shown = {name for name, (words, is_inner) in named.items() if is_inner and words & TEXTS}
    while more := {name for name, (words, _) in named.items() if words & shown} - shown:
        shown |= more
    return shown
