"""How is a row written that may be there already?

Each kind of database spells it its own way, in its own part of SQLAlchemy. That of PostgreSQL takes long to import, and
most of those who start Ullage have none, so it is imported where there is one.
"""

from typing import Any

from sqlalchemy import Connection, TableClause
from sqlalchemy.dialects import sqlite

__all__ = ["insert_into"]


def insert_into(connection: Connection, table: TableClause) -> Any:  # noqa: ANN401 - both kinds look alike and share no class
    """An `insert` that knows `on_conflict_do_nothing` and `on_conflict_do_update`."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    return sqlite.insert(table)
