"""What does a statement do where nothing guards it?

`Unguarded` runs one as the database's owner, each on a connection of its own and with all rights, and says in a few
words what it did that a question does not do: changed something, left something behind in its session, told what
lies outside the database, or held the connection. None means that it is harmless, or no SQL at all. The stage is
made anew after each change.
"""

import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pymysql
import pymysql.cursors
from pymysql.constants import CLIENT

from .stage import Stage, connect_mysql, connect_postgres, staged
from .traces import Traces, Watch, changes, watch

__all__ = ["CANARIES", "SESSION", "Unguarded"]

SECONDS = 3.0
"""What a statement may take before it is one that holds the connection."""
CANARIES = ("root:x:0", "/bin/", "PG_VERSION", "postgresql.conf", "SCRAM-SHA", "mysql_native_password", "('15\\n',)")
"""What only somebody reads who reads files or accounts."""
SESSION = {
    "postgres": (
        "SELECT count(*) FROM pg_settings WHERE source = 'session' AND name !~ '^(statement_timeout|client_encoding)$'",
        "SELECT count(*) FROM pg_prepared_statements WHERE from_sql",
        "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'",
        "SELECT count(*) FROM pg_class WHERE relpersistence = 't'",
        "SELECT count(*) FROM pg_listening_channels()",
        # A setting of somebody's making keeps its name for as long as the connection lasts, but not its value.
        "SELECT nullif(current_setting('a.b', true), ''), current_user, current_setting('search_path')",
    ),
    "mysql": (
        "SELECT @a, @b, @x, @@sql_mode, @@autocommit, @@character_set_client, DATABASE(), IS_USED_LOCK('a')",
        "SELECT @@sql_log_bin, @@tx_read_only, @@in_transaction, CURRENT_USER()",
    ),
    "sqlite": (
        "SELECT count(*) FROM sqlite_temp_master",
        "SELECT count(*) FROM pragma_database_list",
        "PRAGMA query_only",
        "PRAGMA foreign_keys",
        "PRAGMA synchronous",
    ),
    "duckdb": (
        "SELECT count(*) FROM duckdb_tables()",
        "SELECT count(*) FROM duckdb_databases()",
        "SELECT count(*) FROM duckdb_variables()",
        "SELECT string_agg(value, ' ') FROM duckdb_settings() WHERE name NOT LIKE 'default_secret%'",
    ),
}
"""Questions whose answers change where a statement has left something in its session."""


class Unguarded:
    """The four engines, those that answer; to be closed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._stages = dict[str, tuple[ExitStack, Stage | None, Watch | None]]()

    def effect(self, engine: str, sql: str) -> str | None:
        """None where it is harmless; `cannot tell` where no such engine answers."""
        return self.effects(engine, [sql])[0]

    def effects(self, engine: str, texts: Sequence[str]) -> list[str | None]:
        """Of each; changes are looked for after all of them, and only then one by one."""
        _, stage, watcher = self._stage(engine)
        if stage is None or watcher is None:
            return ["cannot tell"] * len(texts)
        before = watcher.traces()
        found = [_RUN[engine](stage, sql) for sql in texts]
        changed = _changed(watcher, before)
        if not changed:
            return found
        self._drop(engine)
        if len(texts) == 1:
            return [f"changes {', '.join(changed)}"]
        return [self.effect(engine, sql) for sql in texts]

    def _stage(self, engine: str) -> tuple[ExitStack, Stage | None, Watch | None]:
        if engine not in self._stages:
            self._number += 1
            stack = ExitStack()
            known = engine in _RUN
            stage = stack.enter_context(staged(engine, self._folder / f"s{self._number}")) if known else None
            watcher = watch(stage) if stage else None
            if watcher:
                stack.callback(watcher.close)
            self._stages[engine] = (stack, stage, watcher)
        return self._stages[engine]

    def _drop(self, engine: str) -> None:
        stack, stage, _ = self._stages.pop(engine)
        stack.close()
        if stage and stage.folder:
            shutil.rmtree(stage.folder, ignore_errors=True)

    def close(self) -> None:
        for engine in list(self._stages):
            self._drop(engine)


def _changed(watcher: Watch, before: Traces) -> list[str]:
    try:
        return changes(before, watcher.traces())
    except (psycopg.Error, pymysql.Error) as error:
        return [f"another session: {error}"]


def _told(sql: str, started: float, session: tuple[object, object], rows: object) -> str | None:
    if session[0] != session[1]:
        return "leaves its session changed"
    shown = str(rows)
    leaked = [each for each in CANARIES if each in shown and each not in sql]
    if leaked:
        return f"tells {leaked[0]}"
    return "holds the connection" if time.monotonic() - started > SECONDS else None


def _run_postgres(stage: Stage, sql: str) -> str | None:
    connection = connect_postgres(stage.url)
    with suppress(psycopg.Error), connection:
        connection.execute(f"SET statement_timeout = '{1.5 * SECONDS}s'".encode())
        before = [connection.execute(each.encode()).fetchall() for each in SESSION["postgres"]]
        started, rows = time.monotonic(), list[Any]()
        try:
            cursor = connection.execute(sql.encode())
            while True:
                rows += cursor.fetchmany(50) if cursor.description else []
                if not cursor.nextset():
                    break
        except (psycopg.Error, ValueError) as error:
            rows.append(str(error))
        return _told(
            sql, started, (before, [connection.execute(each.encode()).fetchall() for each in SESSION["postgres"]]), rows
        )
    return None


def _run_mysql(stage: Stage, sql: str) -> str | None:
    connection = connect_mysql(stage.url, client_flag=CLIENT.MULTI_STATEMENTS, read_timeout=4 * SECONDS)
    with suppress(pymysql.Error), connection, connection.cursor() as cursor:
        cursor.execute(f"SET SESSION max_statement_time = {1.5 * SECONDS}")
        before = _asked(cursor)
        started, rows = time.monotonic(), list[Any]()
        try:
            cursor.execute(sql)
            rows += cursor.fetchmany(50)
            while cursor.nextset():
                rows += cursor.fetchmany(50)
        except (pymysql.Error, ValueError) as error:
            rows.append(str(error))
        return _told(sql, started, (before, _asked(cursor)), rows)
    return None


def _run_sqlite(stage: Stage, sql: str) -> str | None:
    connection = sqlite3.connect(stage.url.removeprefix("sqlite:///"), isolation_level=None)
    deadline = time.monotonic() + 1.5 * SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    before = [connection.execute(each).fetchall() for each in SESSION["sqlite"]]
    started, rows = time.monotonic(), list[Any]()
    try:
        rows += connection.execute(sql).fetchmany(50)
    except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError) as error:
        rows.append(str(error))
    connection.set_progress_handler(None, 0)
    try:
        return _told(sql, started, (before, [connection.execute(each).fetchall() for each in SESSION["sqlite"]]), rows)
    finally:
        connection.close()


def _run_duckdb(stage: Stage, sql: str) -> str | None:
    with duckdb.connect(stage.url.removeprefix("duckdb:///"), config={"autoinstall_known_extensions": "false"}) as made:
        before = [made.execute(each).fetchall() for each in SESSION["duckdb"]]
        started, rows = time.monotonic(), list[Any]()
        try:
            rows += made.execute(sql).fetchmany(50)
        except (duckdb.Error, RuntimeError, ValueError) as error:
            rows.append(str(error))
        return _told(sql, started, (before, [made.execute(each).fetchall() for each in SESSION["duckdb"]]), rows)


def _asked(cursor: "pymysql.cursors.Cursor") -> list[object]:
    answers = list[object]()
    for question in SESSION["mysql"]:
        cursor.execute(question)
        answers.append(cursor.fetchall())
    return answers


_RUN = {"postgres": _run_postgres, "mysql": _run_mysql, "sqlite": _run_sqlite, "duckdb": _run_duckdb}
