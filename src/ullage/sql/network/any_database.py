"""The engine for any database that SQLAlchemy reaches.

It uses SQLAlchemy and whatever driver the URL names. Each statement has a connection of its own, which is rolled back
and closed. A read-only transaction exists only where SQL has a statement to begin one; there is no time limit in the
server. Whether a running statement can be cancelled depends on the driver.

The structure is what SQLAlchemy's inspector reads for many tables at once, without triggers, routines and row
estimates.
"""

import math
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import date, time
from decimal import Decimal
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, inspect
from sqlalchemy.engine.interfaces import ReflectedForeignKeyConstraint
from sqlalchemy.engine.reflection import Inspector, ObjectKind
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from ullage.errors import BadConfiguration, QueryFailed
from ullage.table import Cell

from ..database import Answer, Column, ForeignKey, Index, Limits, Probe, Question, Stability, Structure, Table, in_order
from .database_pool import Address, first_line, lost_error, take_rows, unreachable_error, without_data, without_secrets

__all__ = ["OtherSession", "cell", "open_engine", "structure"]

_Read = TypeVar("_Read")
_Many = Mapping[tuple[str | None, str], _Read]


def structure(connection: Connection) -> Structure:
    """Return the structure of the database."""
    inspector = inspect(connection)
    views = set(inspector.get_view_names())
    columns = inspector.get_multi_columns(kind=ObjectKind.ANY)
    tables = _read_if_supported(inspector.get_multi_pk_constraint)
    foreign_keys = _read_if_supported(inspector.get_multi_foreign_keys)
    indexes = _read_if_supported(inspector.get_multi_indexes)
    checks = _read_if_supported(inspector.get_multi_check_constraints)
    found = [
        Table(
            name=key[1],
            schema=key[0],
            kind="view" if key[1] in views else "table",
            columns=tuple(
                Column(
                    name=column["name"],
                    type=str(column["type"]),
                    nullable=column["nullable"],
                    default=column["default"],
                    generated=column.get("autoincrement") is True or "computed" in column or "identity" in column,
                    comment=column.get("comment"),
                )
                for column in listed
            ),
            primary_key=tuple(key_of["constrained_columns"]) if (key_of := tables.get(key)) else (),
            foreign_keys=tuple(map(_foreign_key, foreign_keys.get(key, ()))),
            indexes=tuple(
                Index(
                    name=index["name"] or "",
                    columns=tuple(name or "(expression)" for name in index["column_names"]),
                    unique=bool(index["unique"]),
                )
                for index in indexes.get(key, ())
            ),
            checks=tuple(f"CHECK ({check['sqltext']})" for check in checks.get(key, ())),
            definition=_definition(inspector, key[1]) if key[1] in views else None,
        )
        for key, listed in columns.items()
    ]
    return Structure(tables=in_order(found), name=connection.engine.url.database)


def _read_if_supported(read: "Callable[[], _Many[_Read]]") -> "_Many[_Read]":
    """Return what `read` reads; empty if the dialect does not support it."""
    try:
        return read()
    except NotImplementedError:
        return {}


def _definition(inspector: Inspector, name: str) -> str | None:
    try:
        return inspector.get_view_definition(name)
    except NotImplementedError:
        return None


def _foreign_key(foreign: ReflectedForeignKeyConstraint) -> ForeignKey:
    schema = foreign["referred_schema"]
    options: Mapping[str, str] = foreign.get("options", {})
    return ForeignKey(
        columns=tuple(foreign["constrained_columns"]),
        table=foreign["referred_table"] if schema is None else f"{schema}.{foreign['referred_table']}",
        to=tuple(foreign["referred_columns"]),
        name=foreign["name"],
        on_update=options.get("onupdate"),
        on_delete=options.get("ondelete"),
    )


def cell(value: object, most: int) -> Cell:
    """Return a value as a cell; one longer than `most` characters may be cut to text of at least `most` + 1."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return value if value.is_finite() else str(value)
        case bytes() | bytearray():
            return "0x" + value[: most // 2 + 1].hex()
        case date() | time():
            return value.isoformat()
        case other:
            return str(other)


_READ_ONLY = {"oracle": "SET TRANSACTION READ ONLY", "sqlite": "PRAGMA query_only = ON"}
_STOPS = ("cancel", "interrupt")
"""Drivers' names for the method that cancels a statement from another thread."""
_REACH = "Check that the server runs and that the database's URL is right."
_UNKNOWN = "is of a kind whose rights are not looked up: take a role that may only read"


def open_engine(address: Address) -> Engine:
    try:
        return create_engine(address.url, poolclass=NullPool, hide_parameters=True)
    except NoSuchModuleError:
        raise BadConfiguration(
            f"`{address.url.drivername}` is no kind of database that SQLAlchemy knows here",
            suggestion="install its SQLAlchemy dialect next to Ullage, or write another URL",
        ) from None
    except ImportError as error:
        raise BadConfiguration(
            f"`{address.shown}` needs the driver `{error.name}`, which is not installed",
            suggestion="install the driver next to Ullage",
        ) from None


class OtherSession:
    """A connection of SQLAlchemy, for one statement."""

    def __init__(self, connection: Connection, address: Address) -> None:
        self._connection = connection
        self._address = address

    @classmethod
    def open(cls, engine: Engine, address: Address) -> "OtherSession":
        try:
            return cls(engine.connect(), address)
        except SQLAlchemyError as error:
            # The cause is dropped because it may contain the password.
            raise unreachable_error(address.shown, _error_text(error, address), _REACH) from None

    def begin(self, seconds: float, rows: int | None) -> None:
        if (statement := _READ_ONLY.get(self._connection.dialect.name)) is not None:
            with self._failing(""):
                self._connection.exec_driver_sql(statement)

    def ask(self, question: Question, limits: Limits) -> Answer:
        with self._failing(question.sql):
            # Without parameters, because drivers would otherwise look for placeholders in the statement.
            straight = self._connection.execution_options(no_parameters=True, stream_results=True)
            with closing(straight.exec_driver_sql(question.sql)) as result:
                if not result.returns_rows:
                    return Answer(columns=(), rows=(), more=False)
                return take_rows(
                    tuple(result.keys()),
                    (tuple(cell(value, limits.cell) for value in row) for row in result),
                    question.rows,
                    limits,
                )

    def structure(self) -> Structure:
        with self._failing(""):
            return structure(self._connection)

    def functions(self) -> Mapping[str, Stability]:
        return {}

    def probe(self, limits: Limits) -> Probe:
        return Probe(role=self._address.url.username, can_write=(_UNKNOWN,))

    @contextmanager
    def _failing(self, sql: str) -> Generator[None]:
        try:
            yield
        except DBAPIError as error:
            if error.connection_invalidated:
                raise lost_error() from None
            said = without_data(without_data(_error_text(error, self._address), sql, "'"), sql, '"')
            raise QueryFailed(said) from None

    def clean(self) -> bool:
        """Return False: no general way exists to reset a session, so the next statement gets a new one."""
        return False

    def interrupt(self) -> None:
        driver: Any = self._connection.connection.driver_connection
        stop = next((getattr(driver, name) for name in _STOPS if hasattr(driver, name)), None)
        if stop is not None:
            with suppress(Exception):
                stop()

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        with suppress(SQLAlchemyError):
            self._connection.rollback()
        with suppress(SQLAlchemyError):
            self._connection.close()


def _error_text(error: SQLAlchemyError, address: Address) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return without_secrets(first_line(str(cause)) or type(cause).__name__, address.secrets)
