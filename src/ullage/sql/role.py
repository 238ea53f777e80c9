"""What the user is told of the role that a database is asked with, and the grants of one that can only read.

The locks hold whatever the role may do; one that can only read is a lock of its own. Nothing is asked of the database
here.
"""

from collections.abc import Iterable, Sequence

from .engine import Dialect, Probe
from .quoting import quoted
from .structure import Structure, Table

__all__ = ["role_sentences", "with_column_grants"]

_NAMED = 3
"""Abilities that are named; the rest are counted."""
_READERS = {"postgres": "ullage_reader", "mysql": "'ullage_reader'@'%'"}
"""As the SQL for a reading role calls it."""
_OF_ALL = {"postgres": ("ALTER DEFAULT PRIVILEGES ",), "mysql": ("GRANT SELECT, SHOW VIEW ON ",)}
"""Lines that grant what is masked along with the rest: of tables to come, or of a whole database, from which MySQL can
take nothing away again."""
_NEW_TABLES = "-- Columns are masked, so that a new table or view must be granted by its name, column by column."


def role_sentences(name: str, probe: Probe) -> tuple[str, ...]:
    """One sentence where the role can write, none where it cannot."""
    if not probe.can_write:
        return ()
    who = "it" if probe.role is None else f"its role `{probe.role}`"
    shown = ", ".join(probe.can_write[:_NAMED])
    rest = len(probe.can_write) - _NAMED
    more = f", and {rest} more" if rest > 0 else ""
    advice = f"; for a role that can only read: ullage sql {name} --role-sql" if probe.setup_sql else ""
    return (f"database `{name}`: {who} {shown}{more}{advice}",)


def with_column_grants(
    setup_sql: str, dialect: Dialect, structure: Structure, readable: Iterable[tuple[Table, Sequence[str]]]
) -> str:
    """The SQL for a reading role that may not read masked columns, whichever statement comes before the database.

    Args:
        setup_sql: The SQL for a role that may read all.
        dialect: Of PostgreSQL or MySQL; that of any other comes back as it is.
        structure: Of the database, for the name of its default schema.
        readable: Every relation, with the columns that are not masked.
    """
    if dialect not in _READERS:
        return setup_sql
    reader = _READERS[dialect]
    lines = [line for line in setup_sql.splitlines() if not line.startswith(_OF_ALL[dialect])]
    lines.append(_NEW_TABLES)
    for table, columns in readable:
        schema = table.schema or structure.default_schema
        name = ".".join(quoted(dialect, part) for part in (schema, table.name) if part is not None)
        is_whole = len(columns) == len(table.columns)
        listed = ", ".join(quoted(dialect, column) for column in columns)
        if dialect == "mysql" and is_whole:
            lines.append(f"GRANT SELECT, SHOW VIEW ON {name} TO {reader};")
        if is_whole:
            continue
        if dialect == "postgres":
            lines.append(f"REVOKE SELECT ON {name} FROM {reader};")
        if columns:
            lines.append(f"GRANT SELECT ({listed}) ON {name} TO {reader};")
    return "\n".join(lines) + "\n"
