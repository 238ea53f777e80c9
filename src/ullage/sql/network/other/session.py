"""How is a database of any other kind asked?

By SQLAlchemy and whatever driver it names, each question over a connection of its own that is rolled back and closed.
A transaction that only reads exists where SQL says how to begin one; the server's own limits of time do not. Whether a
statement can be ended before it is done depends on the driver.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.engine import CursorResult
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from ullage.errors import BadConfiguration, QueryFailed
from ullage.table import Row

from ...engine import Answer, Limits, Probe, Question, Stability
from ...structure import Structure
from ..address import Address
from ..intake import taken
from ..wording import first_line, lost, unreached, without_data, without_secrets
from .catalogue import structure
from .cells import cell

__all__ = ["OtherSession", "open_engine"]

_READ_ONLY = {"oracle": "SET TRANSACTION READ ONLY", "sqlite": "PRAGMA query_only = ON"}
_STOPS = ("cancel", "interrupt")
"""What drivers call the method that ends a statement from another thread."""
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
    def __init__(self, connection: Connection, address: Address) -> None:
        self._connection = connection
        self._address = address

    @classmethod
    def open(cls, engine: Engine, address: Address) -> "OtherSession":
        try:
            return cls(engine.connect(), address)
        except SQLAlchemyError as error:
            # The cause is dropped: it may know the password.
            raise unreached(address.shown, _said(error, address), _REACH) from None

    def begin(self, seconds: float, rows: int | None) -> None:
        if (statement := _READ_ONLY.get(self._connection.dialect.name)) is not None:
            with self._failing(""):
                self._connection.exec_driver_sql(statement)

    def ask(self, question: Question, limits: Limits) -> Answer:
        with self._failing(question.sql):
            # Without parameters, or drivers would look for their placeholders in the statement.
            straight = self._connection.execution_options(no_parameters=True, stream_results=True)
            with closing(straight.exec_driver_sql(question.sql)) as result:
                if not result.returns_rows:
                    return Answer(columns=(), rows=(), more=False)
                return taken(tuple(result.keys()), _rows(result, limits.cell), question.rows, limits)

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
                raise lost() from None
            said = without_data(without_data(_said(error, self._address), sql, "'"), sql, '"')
            raise QueryFailed(said) from None

    def clean(self) -> bool:
        """Nobody knows how to reset the session of any database; the next question gets one of its own."""
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


def _rows(result: CursorResult[Any], most: int) -> Iterator[Row]:
    for row in result:
        yield tuple(cell(value, most) for value in row)


def _said(error: SQLAlchemyError, address: Address) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return without_secrets(first_line(str(cause)) or type(cause).__name__, address.secrets)
