"""How is PostgreSQL asked?

One statement by the extended protocol, which takes no second one, in a transaction that only reads, is always rolled
back, and leaves nothing in the session. Rows come one at a time, so that as much is held as is kept. What may be asked
is judged elsewhere.
"""

import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors, generators, pq
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from ullage.errors import QueryFailed
from ullage.table import Row

from ...engine import Answer, Limits, Probe, Question, Stability
from ...structure import Structure
from ..address import Address
from ..intake import taken
from ..wording import encoded, late, lost
from .catalogue import functions, structure
from .cells import cell
from .failure import CANCELED, about_question, is_loss, not_opened
from .queries import FUNCTIONS, OWN_FIRST, STRUCTURE
from .rights import OWN_ONLY, RIGHTS, probe

__all__ = ["PostgreSQLSession"]

_CANCEL_SECONDS = 5.0
_LEAST_CONNECT_SECONDS = 2
"""Less, and libpq takes it for that."""
_ENOUGH = 2**31
"""Characters of a catalogue's value: all."""
_LARGE = 1 << 24
"""Bytes of a value."""
_ROWS = (pq.ExecStatus.SINGLE_TUPLE, pq.ExecStatus.TUPLES_OK)
_COPYING = (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH)


class PostgreSQLSession:
    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._connection = connection
        self._ends = 0.0
        self._is_streaming = False
        self._is_swollen = False
        """Whether a row came for which the driver made its buffer large; it makes it no smaller again."""

    @classmethod
    def open(cls, address: Address, seconds: float) -> "PostgreSQLSession":
        dialect: Any = PGDialect_psycopg()
        wanted: dict[str, Any] = {
            "application_name": "ullage",
            **dialect.create_connect_args(address.url)[1],
            "connect_timeout": max(_LEAST_CONNECT_SECONDS, round(seconds)),
            "client_encoding": "UTF8",
        }
        try:
            return cls(psycopg.connect(**wanted, autocommit=True, prepare_threshold=None))
        except psycopg.Error as error:
            # The cause is dropped: it knows the whole connection string.
            raise not_opened(error, address) from None

    def begin(self, seconds: float, rows: int | None) -> None:
        self._ends = time.monotonic() + seconds
        self._is_streaming = False
        # A server that converts nothing would refuse to send what is no UTF-8.
        encoding = "UTF8" if self._connection.info.parameter_status("server_encoding") != "SQL_ASCII" else "SQL_ASCII"
        with self._failing(""):
            self._connection.execute(_beginning(seconds, encoding).encode())

    def ask(self, question: Question, limits: Limits) -> Answer:
        with self._failing(question.sql):
            results = self._results(question.sql)
            first = next(results, None)
            if first is None:
                return Answer(columns=(), rows=(), more=False)
            columns = tuple((first.fname(place) or b"").decode("utf-8", "replace") for place in range(first.nfields))
            return taken(columns, self._rows(first, results, limits.cell), question.rows, limits)

    def structure(self) -> Structure:
        self._read(OWN_FIRST)
        return structure({name: self._read(sql) for name, sql in STRUCTURE.items()})

    def functions(self) -> Mapping[str, Stability]:
        self._read(OWN_FIRST)
        return functions(self._read(FUNCTIONS))

    def probe(self, limits: Limits) -> Probe:
        self._read(OWN_ONLY)
        return probe({name: self._read(sql) for name, sql in RIGHTS.items()}, limits)

    def _read(self, sql: str) -> list[Row]:
        with self._failing(sql):
            results = self._results(sql)
            return [row for result in results for row in self._values(result, _ENOUGH)]

    def _rows(self, first: "pq.abc.PGresult", rest: "Iterator[pq.abc.PGresult]", most: int) -> Iterator[Row]:
        yield from self._values(first, most)
        for result in rest:
            yield from self._values(result, most)

    def _values(self, result: "pq.abc.PGresult", most: int) -> Iterator[Row]:
        kinds = [result.ftype(place) for place in range(result.nfields)]
        for row in range(result.ntuples):
            values = [result.get_value(row, place) for place in range(result.nfields)]
            self._is_swollen = self._is_swollen or any(value and len(value) > _LARGE for value in values)
            yield tuple(cell(value, kind, most) for value, kind in zip(values, kinds, strict=True))

    def _results(self, sql: str) -> Generator[pq.abc.PGresult]:
        """Results of one row each, and one without rows at the end, if it is a statement that has rows at all."""
        connection = self._connection.pgconn
        connection.send_query_params(_encoded(sql), None)
        connection.set_single_row_mode()
        self._is_streaming = True
        self._connection.wait(generators.send(connection))
        while (result := self._connection.wait(generators.fetch(connection))) is not None:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise errors.error_from_result(result, "utf-8")
            if result.status in _COPYING:
                raise QueryFailed("a COPY has no rows to answer with", suggestion="use SELECT")
            if result.status in _ROWS:
                yield result
        self._is_streaming = False

    @contextmanager
    def _failing(self, sql: str) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            if error.sqlstate == CANCELED and time.monotonic() >= self._ends:
                raise late() from None
            if is_loss(error, is_closed=self._connection.closed):
                raise lost() from None
            # The cause is dropped: its DETAIL quotes rows.
            raise about_question(error, sql) from None

    def clean(self) -> bool:
        if self._is_swollen:
            if self._is_streaming:
                self.interrupt()
            return False
        try:
            if self._is_streaming:
                self._stop()
            self._connection.execute(b"ROLLBACK")
            self._connection.execute(b"DISCARD ALL")
        except psycopg.Error:
            return False
        return self._connection.pgconn.transaction_status == pq.TransactionStatus.IDLE

    def _stop(self) -> None:
        connection = self._connection.pgconn
        if connection.transaction_status == pq.TransactionStatus.ACTIVE:
            self._connection.cancel_safe(timeout=_CANCEL_SECONDS)
        while (result := self._connection.wait(generators.fetch(connection))) is not None:
            if result.status in _COPYING:
                raise errors.OperationalError("a COPY ends with its connection")

    def interrupt(self) -> None:
        try:
            self._connection.cancel_safe(timeout=_CANCEL_SECONDS)
        except psycopg.Error:
            return

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()


def _beginning(seconds: float, encoding: str) -> str:
    """The parser that judged the statement reads quotes as the standard does, and so must PostgreSQL. SELECT takes a
    snapshot, after which no statement can make the transaction one that writes."""
    limit = max(1, round(seconds * 1000))
    return (
        "BEGIN READ ONLY; SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; "
        f"SET LOCAL statement_timeout = {limit}; SET LOCAL lock_timeout = {max(1, limit // 2)}; "
        f"SET LOCAL idle_in_transaction_session_timeout = {limit + 5_000}; "
        f"SET LOCAL client_encoding = '{encoding}'; SET LOCAL standard_conforming_strings = on; "
        "SET LOCAL datestyle = 'ISO, YMD'; "
        "SET LOCAL intervalstyle = 'postgres'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1; "
        "SELECT 1"
    )


def _encoded(sql: str) -> bytes:
    """libpq would stop at a zero, and so run something else than what was judged."""
    if "\0" in sql:
        raise QueryFailed("the statement holds a zero character", suggestion="leave it out")
    return encoded(sql)
