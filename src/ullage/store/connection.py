"""Connections to the store, alike for both kinds of database.

Statements are plain SQL that SQLite and PostgreSQL read alike, with parameters written as `:name`. SQLite is spoken to
through Python's own driver: SQLAlchemy takes a sixth of a second to import, and most stores are a file. PostgreSQL's
connections are SQLAlchemy's, which brings the driver's quirks and lost connections with it.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import sqlalchemy

__all__ = ["Answer", "Connection", "PostgresConnection", "SqliteConnection", "Values", "in_list", "upsert"]

Values = Mapping[str, object]
Kind = Literal["sqlite", "postgresql"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a statement, all of them fetched."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    rowcount: int
    """Rows that were changed."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def all(self) -> list[tuple[Any, ...]]:
        return list(self.rows)

    def mappings(self) -> list[dict[str, Any]]:
        """The rows by the names of their columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def first(self) -> dict[str, Any] | None:
        return dict(zip(self.columns, self.rows[0], strict=True)) if self.rows else None

    def one(self) -> tuple[Any, ...]:
        (row,) = self.rows
        return row


class Connection(Protocol):
    """A connection in a transaction."""

    @property
    def kind(self) -> Kind: ...

    def execute(self, sql: str, values: Values | Sequence[Values] = ()) -> Answer:
        """Runs a statement once, or once for each set of values."""
        ...

    def scalar(self, sql: str, values: Values | None = None) -> Any:  # noqa: ANN401 - whatever the column holds
        """The first column of the first row; None where there is no row."""
        ...


@dataclass(frozen=True, slots=True)
class SqliteConnection:
    inner: sqlite3.Connection

    @property
    def kind(self) -> Kind:
        return "sqlite"

    def execute(self, sql: str, values: Values | Sequence[Values] = ()) -> Answer:
        if isinstance(values, Mapping) or not values:
            cursor = self.inner.execute(sql, values)
        else:
            cursor = self.inner.executemany(sql, values)
        columns = tuple(column[0] for column in cursor.description or ())
        return Answer(columns, cursor.fetchall(), cursor.rowcount)

    def scalar(self, sql: str, values: Values | None = None) -> Any:  # noqa: ANN401
        row = self.inner.execute(sql, values or {}).fetchone()
        return None if row is None else row[0]


@dataclass(frozen=True, slots=True)
class PostgresConnection:
    inner: "sqlalchemy.Connection"

    @property
    def kind(self) -> Kind:
        return "postgresql"

    def execute(self, sql: str, values: Values | Sequence[Values] = ()) -> Answer:
        from sqlalchemy import text

        given = dict(values) if isinstance(values, Mapping) else [dict(each) for each in values]
        result = self.inner.execute(text(sql), given or None)
        if not result.returns_rows:
            return Answer((), (), result.rowcount)
        return Answer(tuple(result.keys()), [tuple(row) for row in result], result.rowcount)

    def scalar(self, sql: str, values: Values | None = None) -> Any:  # noqa: ANN401
        from sqlalchemy import text

        return self.inner.scalar(text(sql), dict(values or {}))


def in_list(name: str, values: Iterable[object]) -> tuple[str, dict[str, object]]:
    """What stands after `IN`, and its parameters, which are called by the name and a number."""
    named = {f"{name}_{number}": value for number, value in enumerate(values)}
    return f"({', '.join(f':{one}' for one in named)})", named


def upsert(table: str, columns: Sequence[str], *, key: str, update: Mapping[str, str] | None = None) -> str:
    """An insert of a row that may be there already.

    Args:
        key: Columns that are unique together, by commas.
        update: What becomes of a row that is there: the SQL of each new value, where `excluded` is the row that came
            too late. Nothing becomes of it where this is None.
    """
    names, places = ", ".join(f'"{column}"' for column in columns), ", ".join(f":{column}" for column in columns)
    again = ", ".join(f'"{column}" = {value}' for column, value in (update or {}).items())
    return (
        f"INSERT INTO {table} ({names}) VALUES ({places}) "
        f"ON CONFLICT ({key}) DO {f'UPDATE SET {again}' if update else 'NOTHING'}"
    )
