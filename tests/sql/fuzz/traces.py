"""What could a second person see of a statement after it has run?

Each engine's `Watch` gives a mapping from what was looked at to how it looked: rows, objects, roles, settings,
sequences, large objects, locks, transactions left open, files. Two that differ name the change. What other people do
on the same server is left out: databases and roles that no case names.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pymysql

from .stage import LOOT, Stage, connect_mysql, connect_postgres

__all__ = ["Traces", "Watch", "changes", "watch"]

Traces = Mapping[str, str]

ROLES = "('postgres', 'root', 'evil', 'pwned', 'a', 'b', 'r', 'x')"
"""Whom cases touch."""


class Watch(Protocol):
    def traces(self) -> Traces: ...

    def close(self) -> None: ...


def watch(stage: Stage) -> Watch:
    return {"postgres": PostgresWatch, "mysql": MysqlWatch}.get(stage.engine, FileWatch)(stage)


def changes(before: Traces, after: Traces) -> list[str]:
    return [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]


def digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def files_of(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"file {path.relative_to(folder)}": digest(path.read_bytes()) for path in paths}


def loot() -> dict[str, str]:
    return {f"loot {name}": value for name, value in files_of(LOOT).items()} if LOOT.is_dir() else {}


_OTHERS = (".coverage", ".hypothesis")
"""What tests beside these write into the working folder."""


class FileWatch:
    """SQLite and DuckDB: whatever changes, changes a file."""

    def __init__(self, stage: Stage) -> None:
        assert stage.folder is not None
        self._folder = stage.folder

    def traces(self) -> Traces:
        here = {f"working folder {path.name}": "" for path in Path.cwd().iterdir() if not path.name.startswith(_OTHERS)}
        return {**files_of(self._folder), **loot(), **here}

    def close(self) -> None:
        pass


_OBJECTS = {
    "pg_class": "relname, relnamespace, relkind, relowner, relacl, reloptions, relpersistence, relfilenode, "
    "relrowsecurity, relhastriggers",
    "pg_database": "datname, datacl, datallowconn, datconnlimit",
    **dict.fromkeys(
        (
            "pg_attrdef",
            "pg_attribute",
            "pg_cast",
            "pg_collation",
            "pg_constraint",
            "pg_default_acl",
            "pg_description",
            "pg_event_trigger",
            "pg_extension",
            "pg_foreign_server",
            "pg_index",
            "pg_init_privs",
            "pg_largeobject",
            "pg_largeobject_metadata",
            "pg_language",
            "pg_namespace",
            "pg_operator",
            "pg_policy",
            "pg_proc",
            "pg_publication",
            "pg_replication_origin",
            "pg_rewrite",
            "pg_seclabel",
            "pg_statistic_ext",
            "pg_subscription",
            "pg_tablespace",
            "pg_trigger",
            "pg_type",
            "pg_user_mapping",
        ),
        "t",
    ),
}
_HERE = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
_POSTGRES = {
    "roles": f"SELECT t::text FROM pg_authid t WHERE rolname ~ '^pg_' OR rolname IN {ROLES}",
    "memberships": "SELECT t::text FROM pg_auth_members t JOIN pg_roles r ON r.oid = t.member"
    f" WHERE r.rolname IN {ROLES}",
    "settings of roles and databases": "SELECT t::text FROM pg_db_role_setting t LEFT JOIN pg_database d ON d.oid ="
    " setdatabase LEFT JOIN pg_roles r ON r.oid = setrole WHERE d.datname IN ('postgres', current_database()) OR"
    f" r.rolname IN {ROLES} OR (setrole = 0 AND setdatabase = 0)",
    "settings": "SELECT name, setting, sourcefile, pending_restart FROM pg_settings WHERE source <> 'session'",
    "settings in files": "SELECT sourcefile, name, setting FROM pg_file_settings",
    "replication slots": "SELECT slot_name FROM pg_replication_slots",
    "prepared transactions": "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()",
    "advisory locks": f"SELECT classid, objid, mode FROM pg_locks WHERE locktype = 'advisory' AND {_HERE}",
    "locks of others": f"SELECT l.relation, l.mode FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE {_HERE}"
    " AND l.mode <> 'AccessShareLock' AND a.backend_type = 'client backend' AND pid <> pg_backend_pid()",
    "open transactions": "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
    " AND state LIKE 'idle in%'",
    "statistics": "SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()",
    "files of the server": "SELECT pg_ls_dir('.') UNION ALL SELECT pg_ls_dir('pg_twophase')"
    " UNION ALL SELECT pg_ls_dir('pg_replslot')",
}


class PostgresWatch:
    def __init__(self, stage: Stage) -> None:
        self._owner = connect_postgres(stage.url)
        self._bystander = connect_postgres(stage.url)
        self._bystander.execute("LISTEN chan")
        self._bystander.execute("LISTEN c")

    def traces(self) -> Traces:
        seen = {name: digest(sorted(map(str, self._rows(question)))) for name, question in _POSTGRES.items()}
        return {**seen, **self._objects(), **self._contents(), "another session": self._alive(), **loot()}

    def _rows(self, question: str) -> list[tuple[Any, ...]]:
        return self._owner.execute(question.encode()).fetchall()

    def _objects(self) -> dict[str, str]:
        asked = " UNION ALL ".join(
            f"SELECT '{table}', sum(hashtextextended(row({what})::text, 0))::text FROM {table} t"
            + (" WHERE datname IN ('postgres', 'pwned', current_database())" if table == "pg_database" else "")
            for table, what in _OBJECTS.items()
        )
        return {name: str(value) for name, value in self._rows(asked)}

    def _contents(self) -> dict[str, str]:
        listed = self._rows(
            "SELECT relname, relkind FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')"
        )
        return {
            f"rows of {name}": str(
                self._rows(f"SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM {name} t")
            )
            if kind == "r"
            else str(self._rows(f"SELECT last_value, is_called FROM {name}"))
            for name, kind in listed
        }

    def _alive(self) -> str:
        self._bystander.execute("SELECT 1")
        return f"alive, told {[each.payload for each in self._bystander.notifies(timeout=0)]}"

    def close(self) -> None:
        for connection in (self._owner, self._bystander):
            with suppress(psycopg.Error):
                connection.close()


_MYSQL = {
    "tables": "SELECT table_name, table_type, engine, create_options, table_comment FROM information_schema.tables"
    " WHERE table_schema = DATABASE()",
    "columns": "SELECT table_name, column_name, column_type FROM information_schema.columns"
    " WHERE table_schema = DATABASE()",
    "indexes": "SELECT table_name, index_name, column_name FROM information_schema.statistics"
    " WHERE table_schema = DATABASE()",
    "routines": "SELECT routine_name, routine_definition FROM information_schema.routines"
    " WHERE routine_schema = DATABASE()",
    "triggers": "SELECT trigger_name, action_statement FROM information_schema.triggers"
    " WHERE trigger_schema = DATABASE()",
    "events": "SELECT event_name, event_definition FROM information_schema.events WHERE event_schema = DATABASE()",
    "databases": "SELECT schema_name FROM information_schema.schemata WHERE schema_name IN ('pwned', 'mysql', 'sys')",
    "accounts": f"SELECT * FROM mysql.global_priv WHERE user IN {ROLES}",
    "privileges": f"SELECT * FROM mysql.db WHERE user IN {ROLES} OR db = DATABASE()",
    "plugins": "SELECT * FROM mysql.plugin",
    "native functions": "SELECT * FROM mysql.func",
    "servers": "SELECT * FROM mysql.servers",
    "settings": "SHOW GLOBAL VARIABLES",
    "sequence": "SELECT * FROM seq1",
    "prepared transactions": "XA RECOVER",
    "user locks": "SELECT IS_USED_LOCK('a'), IS_USED_LOCK('Ada')",
    "open transactions": "SELECT t.trx_id FROM information_schema.innodb_trx t JOIN information_schema.processlist p"
    " ON p.id = t.trx_mysql_thread_id WHERE p.db = DATABASE() AND p.id <> CONNECTION_ID()",
}
_UNSTEADY = ("gtid_", "timestamp", "innodb_buffer_pool_load", "last_gtid")


class MysqlWatch:
    def __init__(self, stage: Stage) -> None:
        self._owner = connect_mysql(stage.url)
        self._bystander = connect_mysql(stage.url)

    def traces(self) -> Traces:
        seen = {name: digest(self._steady(question)) for name, question in _MYSQL.items()}
        return {**seen, **self._contents(), "another session": self._alive(), **loot()}

    def _steady(self, question: str) -> list[str]:
        return sorted(str(row) for row in self._rows(question) if not str(row[0]).startswith(_UNSTEADY))

    def _rows(self, question: str) -> list[tuple[Any, ...]]:
        with self._owner.cursor() as cursor:
            cursor.execute(question)
            return list(cursor.fetchall())

    def _contents(self) -> dict[str, str]:
        named = self._rows(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
        )
        return {f"rows of {name}": digest(sorted(map(str, self._rows(f"SELECT * FROM `{name}`")))) for (name,) in named}

    def _alive(self) -> str:
        self._bystander.ping(reconnect=False)
        return "alive"

    def close(self) -> None:
        for connection in (self._owner, self._bystander):
            with suppress(pymysql.Error):
                connection.close()
