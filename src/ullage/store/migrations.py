"""Migrations: the steps that bring the database's schema up to date.

Each step is run once, in order, forward only; the schema's version is the number of steps that have run. A released
step never changes: a new one is added below it. The packages that use the tables define what they mean.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from .connections import Connection

__all__ = ["MIGRATIONS", "Migration", "migrate", "version_of"]

Migration = Callable[[Connection], None]
MIGRATIONS: list[Migration] = []

_VERSION = "ullage_schema"
_LOCK = 0x756C6C616765
"""The key of the PostgreSQL advisory lock under which migrations run."""
_IS_THERE = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name",
    "postgresql": "SELECT 1 FROM pg_catalog.pg_class WHERE relname = :name AND pg_catalog.pg_table_is_visible(oid)",
}
_TYPES = {
    # In SQLite, only a column of type INTEGER, spelled exactly so, is numbered automatically.
    "sqlite": {"DOUBLE": "DOUBLE", "BINARY": "BLOB", "SERIAL": "INTEGER"},
    "postgresql": {"DOUBLE": "DOUBLE PRECISION", "BINARY": "BYTEA", "SERIAL": "BIGSERIAL"},
}
"""Types whose names differ between the two kinds of database."""


def migration(step: Migration) -> Migration:
    """Append a step to the migrations. Used as a decorator."""
    MIGRATIONS.append(step)
    return step


def version_of(connection: Connection) -> int:
    """Return how many steps have run; 0 for a database that was never used."""
    if connection.scalar(_IS_THERE[connection.kind], {"name": _VERSION}) is None:
        return 0
    return connection.scalar(f"SELECT version FROM {_VERSION}") or 0


def migrate(connection: Connection, steps: Sequence[Migration]) -> int:
    """Run the missing steps in the connection's transaction and return the version then reached. A second process that
    migrates at the same time waits for the first and finds nothing left to do."""
    if connection.kind == "postgresql":
        connection.execute("SELECT pg_advisory_xact_lock(:lock)", {"lock": _LOCK})
    version = version_of(connection)
    for step in steps[version:]:
        step(connection)
    if version < len(steps):
        connection.execute(f"CREATE TABLE IF NOT EXISTS {_VERSION} (version INTEGER NOT NULL)")
        connection.execute(f"DELETE FROM {_VERSION}")
        connection.execute(f"INSERT INTO {_VERSION} (version) VALUES (:version)", {"version": len(steps)})
    return max(version, len(steps))


def _create(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.execute(statement.format(**_TYPES[connection.kind]))


@migration
def catalogue(connection: Connection) -> None:
    _create(
        connection,
        """
        CREATE TABLE ullage_servers (
            id VARCHAR(36) NOT NULL,
            name TEXT NOT NULL,
            "key" VARCHAR(64) NOT NULL,
            introduction TEXT,
            created {DOUBLE} NOT NULL,
            updated {DOUBLE} NOT NULL,
            seen {DOUBLE} NOT NULL,
            PRIMARY KEY (id),
            UNIQUE (name, "key")
        )
        """,
        """
        CREATE TABLE ullage_tools (
            id VARCHAR(36) NOT NULL,
            server_id VARCHAR(36) NOT NULL,
            position INTEGER NOT NULL,
            name TEXT NOT NULL,
            definition TEXT NOT NULL,
            definition_hash VARCHAR(64) NOT NULL,
            token_count INTEGER DEFAULT '0' NOT NULL CHECK (token_count >= 0),
            embedding {BINARY},
            created {DOUBLE} NOT NULL,
            updated {DOUBLE} NOT NULL,
            PRIMARY KEY (id),
            FOREIGN KEY(server_id) REFERENCES ullage_servers (id) ON DELETE CASCADE
        )
        """,
        "CREATE INDEX ullage_tools_of_server ON ullage_tools (server_id, position)",
        """
        CREATE TABLE ullage_forms (
            "key" TEXT NOT NULL,
            form TEXT NOT NULL,
            created {DOUBLE} NOT NULL,
            PRIMARY KEY ("key")
        )
        """,
    )


@migration
def ledger(connection: Connection) -> None:
    _create(
        connection,
        """
        CREATE TABLE ullage_entries (
            id {SERIAL} NOT NULL,
            time {DOUBLE} NOT NULL,
            kind TEXT NOT NULL,
            principal TEXT NOT NULL,
            session TEXT NOT NULL,
            session_inferred BOOLEAN NOT NULL,
            client TEXT,
            server TEXT,
            tool TEXT,
            model TEXT,
            tokens BIGINT NOT NULL,
            method TEXT NOT NULL,
            baseline_tokens BIGINT,
            saved_tokens BIGINT,
            milliseconds {DOUBLE},
            is_error BOOLEAN NOT NULL,
            cached BOOLEAN NOT NULL,
            detail TEXT NOT NULL,
            PRIMARY KEY (id)
        )
        """,
        "CREATE INDEX ix_ullage_entries_time ON ullage_entries (time)",
    )


@migration
def results(connection: Connection) -> None:
    _create(
        connection,
        """
        CREATE TABLE ullage_results (
            handle VARCHAR(40) NOT NULL,
            principal TEXT NOT NULL,
            server TEXT NOT NULL,
            tool TEXT NOT NULL,
            created {DOUBLE} NOT NULL,
            size BIGINT NOT NULL,
            shape TEXT NOT NULL,
            PRIMARY KEY (handle)
        )
        """,
        "CREATE INDEX ix_ullage_results_created ON ullage_results (created)",
        """
        CREATE TABLE ullage_result_pieces (
            handle VARCHAR(40) NOT NULL,
            position INTEGER NOT NULL,
            first BIGINT NOT NULL,
            units INTEGER NOT NULL,
            data {BINARY} NOT NULL,
            PRIMARY KEY (handle, position),
            FOREIGN KEY(handle) REFERENCES ullage_results (handle) ON DELETE CASCADE
        )
        """,
    )


@migration
def spends(connection: Connection) -> None:
    _create(
        connection,
        """
        CREATE TABLE ullage_spends (
            id VARCHAR(40) NOT NULL,
            time {DOUBLE} NOT NULL,
            principal TEXT NOT NULL,
            session TEXT NOT NULL,
            task TEXT,
            tokens BIGINT NOT NULL,
            picodollars BIGINT,
            settled BOOLEAN NOT NULL,
            PRIMARY KEY (id)
        )
        """,
        "CREATE INDEX ix_ullage_spends_time ON ullage_spends (time)",
    )


@migration
def vectors(connection: Connection) -> None:
    """Add an index that finds a tool by the hash of its definition."""
    _create(connection, "CREATE INDEX ullage_tools_of_definition ON ullage_tools (definition_hash)")


@migration
def uses(connection: Connection) -> None:
    """Create the table that records which tool was called after which search."""
    _create(
        connection,
        """
        CREATE TABLE ullage_uses (
            id VARCHAR(64) NOT NULL,
            principal TEXT NOT NULL,
            server TEXT NOT NULL,
            tool TEXT NOT NULL,
            terms TEXT NOT NULL,
            count INTEGER NOT NULL,
            last {DOUBLE} NOT NULL,
            PRIMARY KEY (id)
        )
        """,
        "CREATE INDEX ix_ullage_uses_last ON ullage_uses (last)",
        "CREATE INDEX ullage_uses_of_principal ON ullage_uses (principal, last)",
    )


@migration
def pending_notices(connection: Connection) -> None:
    """Add the table of notices that are shown once.

    A store that already contains servers was written when servers inherited every variable, so its user is notified
    once that they no longer do. A new store has no such notice.
    """
    _create(
        connection,
        "CREATE TABLE ullage_notices (name VARCHAR(64) NOT NULL, PRIMARY KEY (name))",
        "INSERT INTO ullage_notices (name) SELECT 'server_environment' WHERE EXISTS (SELECT 1 FROM ullage_servers)",
    )


@migration
def definitions(connection: Connection) -> None:
    """Create the tables of accepted definitions of servers and of differing ones offered later. They do not reference
    the catalogue's rows, which are deleted and added again."""
    _create(
        connection,
        """
        CREATE TABLE ullage_definitions (
            id VARCHAR(64) NOT NULL,
            server TEXT NOT NULL,
            launch VARCHAR(64) NOT NULL,
            era VARCHAR(16) NOT NULL,
            kind VARCHAR(16) NOT NULL,
            name TEXT NOT NULL,
            accepted TEXT NOT NULL,
            accepted_hash VARCHAR(64) NOT NULL,
            exact VARCHAR(64) NOT NULL,
            matched VARCHAR(64) NOT NULL,
            pending TEXT,
            pending_hash VARCHAR(64),
            origin VARCHAR(16) NOT NULL,
            changes INTEGER NOT NULL,
            created {DOUBLE} NOT NULL,
            accepted_at {DOUBLE} NOT NULL,
            pending_at {DOUBLE},
            checksum VARCHAR(64) NOT NULL,
            PRIMARY KEY (id)
        )
        """,
        "CREATE INDEX ullage_definitions_of_server ON ullage_definitions (server, launch)",
    )


@migration
def ledger_sums(connection: Connection) -> None:
    """Replace the ledger's one wide table: names are stored once, model calls have a table and a key of their own, and
    sums by the hour are kept with the rows. Rows of the earlier table are moved."""
    serial = {"sqlite": "INTEGER", "postgresql": "BIGINT"}[connection.kind]
    clustered = {"sqlite": " WITHOUT ROWID", "postgresql": ""}[connection.kind]
    measures = ", ".join(
        f"{name} {'{DOUBLE}' if name == 'milliseconds' else 'BIGINT'} DEFAULT 0 NOT NULL" for name in _LEDGER_MEASURES
    )
    connection.execute("ALTER TABLE ullage_entries RENAME TO ullage_entries_before")
    connection.execute("DROP INDEX ix_ullage_entries_time")
    _create(
        connection,
        f"CREATE TABLE ullage_parties (id {serial} NOT NULL, principal TEXT NOT NULL, client TEXT, project TEXT, "
        "PRIMARY KEY (id))",
        f"CREATE TABLE ullage_sessions (id {serial} NOT NULL, party BIGINT NOT NULL, session TEXT NOT NULL, "
        "inferred BOOLEAN NOT NULL, PRIMARY KEY (id))",
        f"CREATE TABLE ullage_subjects (id {serial} NOT NULL, kind SMALLINT NOT NULL, server TEXT, tool TEXT, "
        "model TEXT, PRIMARY KEY (id))",
        """
        CREATE TABLE ullage_entries (
            id {SERIAL} NOT NULL,
            time {DOUBLE} NOT NULL,
            session BIGINT NOT NULL,
            subject BIGINT NOT NULL,
            tokens BIGINT NOT NULL,
            baseline BIGINT,
            saved BIGINT,
            milliseconds {DOUBLE},
            flags SMALLINT NOT NULL,
            detail TEXT,
            PRIMARY KEY (id)
        )
        """,
        "CREATE INDEX ullage_entries_by_time ON ullage_entries (time)",
        f"""
        CREATE TABLE ullage_model_calls (
            id {serial} NOT NULL,
            time {{DOUBLE}} NOT NULL,
            session BIGINT NOT NULL,
            subject BIGINT NOT NULL,
            source SMALLINT NOT NULL,
            input BIGINT,
            output BIGINT,
            cache_read BIGINT,
            cache_write BIGINT,
            reasoning BIGINT,
            missed BIGINT NOT NULL,
            picodollars BIGINT,
            missed_picodollars BIGINT NOT NULL,
            milliseconds {{DOUBLE}},
            flags SMALLINT NOT NULL,
            detail TEXT,
            PRIMARY KEY (id)
        )
        """,
        "CREATE INDEX ullage_model_calls_by_time ON ullage_model_calls (time)",
        f"CREATE TABLE ullage_hours (hour BIGINT NOT NULL, party BIGINT NOT NULL, subject BIGINT NOT NULL, {measures}, "
        f"PRIMARY KEY (hour, party, subject)){clustered}",
        f"CREATE TABLE ullage_tool_days (day BIGINT NOT NULL, party BIGINT NOT NULL, subject BIGINT NOT NULL, "
        f"{measures}, PRIMARY KEY (day, party, subject)){clustered}",
        f"CREATE TABLE ullage_session_hours (session BIGINT NOT NULL, hour BIGINT NOT NULL, kind SMALLINT NOT NULL, "
        f"{measures}, PRIMARY KEY (session, hour, kind)){clustered}",
        "CREATE TABLE ullage_log_files (path TEXT NOT NULL, size BIGINT NOT NULL, changed {DOUBLE} NOT NULL, "
        "state TEXT NOT NULL, PRIMARY KEY (path))",
        "CREATE TABLE ullage_ledger_marks (name VARCHAR(64) NOT NULL, value {DOUBLE} NOT NULL, PRIMARY KEY (name))",
    )
    _move_entries(connection)
    connection.execute("DROP TABLE ullage_entries_before")


@migration
def shapes(connection: Connection) -> None:
    """Create the table that records what each tool returned, by principal: keys and kinds of values."""
    _create(
        connection,
        """
        CREATE TABLE ullage_shapes (
            id VARCHAR(64) NOT NULL,
            principal TEXT NOT NULL,
            server TEXT NOT NULL,
            tool TEXT NOT NULL,
            definition VARCHAR(64) NOT NULL,
            shape TEXT NOT NULL,
            last {DOUBLE} NOT NULL,
            PRIMARY KEY (id)
        )
        """,
        "CREATE INDEX ullage_shapes_of_principal ON ullage_shapes (principal, last)",
        "CREATE INDEX ix_ullage_shapes_last ON ullage_shapes (last)",
    )


@migration
def audit(connection: Connection) -> None:
    """Create the table of refusals, withheld definitions, approvals and fallbacks."""
    _create(
        connection,
        """
        CREATE TABLE ullage_audit (
            id {SERIAL} NOT NULL,
            time {DOUBLE} NOT NULL,
            kind VARCHAR(16) NOT NULL,
            principal TEXT NOT NULL,
            session TEXT,
            client TEXT,
            server TEXT,
            subject TEXT NOT NULL,
            reason TEXT NOT NULL,
            PRIMARY KEY (id)
        )
        """,
        "CREATE INDEX ix_ullage_audit_time ON ullage_audit (time)",
    )


@migration
def session_models(connection: Connection) -> None:
    """Keep the sums of a session's model calls by model.

    Where a session called one model, its sums are that model's. Otherwise they are added up from the calls; calls that
    are no longer kept stay without a model.
    """
    clustered = {"sqlite": " WITHOUT ROWID", "postgresql": ""}[connection.kind]
    measures = ", ".join(
        f"{name} {'{DOUBLE}' if name == 'milliseconds' else 'BIGINT'} DEFAULT 0 NOT NULL" for name in _LEDGER_MEASURES
    )
    columns, called = ", ".join(_LEDGER_MEASURES), _LEDGER_KINDS.index("model")
    connection.execute("ALTER TABLE ullage_session_hours RENAME TO ullage_session_hours_before")
    _create(
        connection,
        "CREATE TABLE ullage_session_hours (session BIGINT NOT NULL, hour BIGINT NOT NULL, kind SMALLINT NOT NULL, "
        f"model BIGINT NOT NULL, {measures}, PRIMARY KEY (session, hour, kind, model)){clustered}",
    )
    models = (
        "SELECT c.session, MIN(coalesce(m.id, 0)) AS model, MAX(coalesce(m.id, 0)) AS other FROM ullage_model_calls c "
        "JOIN ullage_subjects u ON u.id = c.subject LEFT JOIN ullage_subjects m "
        "ON m.kind = u.kind AND m.server IS NULL AND m.tool IS NULL AND m.model = u.model GROUP BY c.session"
    )
    connection.execute(
        f"INSERT INTO ullage_session_hours (session, hour, kind, model, {columns}) SELECT h.session, hour, kind, "
        f"CASE WHEN kind = {called} AND x.model = x.other THEN x.model ELSE 0 END, {columns} "
        f"FROM ullage_session_hours_before h LEFT JOIN ({models}) x ON x.session = h.session"
    )
    several = connection.execute(f"SELECT session FROM ({models}) x WHERE model <> other").all()
    for (session,) in several:
        _part_by_model(connection, session, called)
    connection.execute("DROP TABLE ullage_session_hours_before")


def _part_by_model(connection: Connection, session: int, called: int) -> None:
    """Move the sums of a session's calls to their models. One hour of old sums contains the sums of a whole day."""
    hours = connection.execute(
        "SELECT hour FROM ullage_session_hours WHERE session = :session AND kind = :kind ORDER BY hour",
        {"session": session, "kind": called},
    ).all()
    marks = [hour for (hour,) in hours]
    calls = connection.execute(
        "SELECT c.*, u.model FROM ullage_model_calls c JOIN ullage_subjects u ON u.id = c.subject "
        "WHERE c.session = :session AND u.model IS NOT NULL",
        {"session": session},
    ).mappings()
    for call in calls:
        place = bisect_right(marks, int(call["time"] // 3600)) - 1
        if place < 0:
            continue
        measured: dict[str, Any] = {name: call[name] or 0 for name in (*_OF_CALLS, "missed", "missed_picodollars")} | {
            "entries": 1,
            "errors": call["flags"] & 1,
            "tokens": (call["input"] or 0) + (call["output"] or 0),
            "milliseconds": call["milliseconds"] or 0,
            "unpriced": int(call["picodollars"] is None),
        }
        key = {"session": session, "hour": marks[place], "kind": called}
        model = _ledger_id("model", None, None, call["model"])
        _add_sums(connection, "ullage_session_hours", {**key, "model": model}, measured)
        taken = {name: -value for name, value in measured.items()}
        _add_sums(connection, "ullage_session_hours", {**key, "model": 0}, taken)
    connection.execute(
        "DELETE FROM ullage_session_hours WHERE session = :session AND kind = :kind AND model = 0 AND entries = 0",
        {"session": session, "kind": called},
    )


_LEDGER_KINDS = ("definitions", "search", "result", "page", "history", "model")
_LEDGER_MEASURES = (
    "entries", "errors", "cached", "tokens", "baseline", "saved", "unmeasured", "milliseconds", "input", "output",
    "cache_read", "cache_write", "reasoning", "missed", "picodollars", "missed_picodollars", "unpriced",
)  # fmt: skip
_LEDGER_METHODS = ("exact", "anchored", "calibrated", "estimated")


def _ledger_id(*names: str | None) -> int:
    text = "\x1f".join("\x00" if name is None else name for name in names)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 1


def _move_entries(connection: Connection) -> None:
    """Move the rows of the ledger's first table. There, a search counted the whole catalogue as saved, which its
    definitions had already counted; now its reply is counted as a cost."""
    for row in connection.execute("SELECT * FROM ullage_entries_before ORDER BY id").mappings():
        is_call, detail = row["kind"] == "model", json.loads(row["detail"])
        party = _ledger_id(row["principal"], row["client"], None)
        session = _ledger_id(row["principal"], row["session"], row["client"], None)
        subject = _ledger_id(row["kind"], row["server"], row["tool"], row["model"])
        is_search = row["kind"] == "search"
        saved = -row["tokens"] if is_search else row["saved_tokens"]
        cost = detail.get("cost")
        values: dict[str, object] = {
            "id": _ledger_id("moved", str(row["id"])),
            "time": row["time"],
            "session": session,
            "subject": subject,
            "tokens": row["tokens"],
            "baseline": None if is_search else row["baseline_tokens"],
            "saved": saved,
            "source": 2,
            "input": detail.get("input_tokens"),
            "output": detail.get("output_tokens"),
            "cache_read": detail.get("cached_input_tokens"),
            "cache_write": detail.get("cache_write_tokens"),
            "reasoning": detail.get("reasoning_tokens"),
            "missed": 0,
            "picodollars": None if cost is None else round(Decimal(cost).scaleb(12)),
            "missed_picodollars": 0,
            "milliseconds": row["milliseconds"],
            "flags": int(row["is_error"]) | int(row["cached"]) << 1 | _LEDGER_METHODS.index(row["method"]) << 2,
            "detail": row["detail"] if detail else None,
        }
        _add_names(connection, row, party=party, session=session, subject=subject)
        left_out = {"tokens", "baseline", "saved"} if is_call else _ONLY_OF_CALLS
        kept = {name: value for name, value in values.items() if name not in left_out}
        table = "ullage_model_calls" if is_call else "ullage_entries"
        connection.execute(
            f"INSERT INTO {table} ({', '.join(kept)}) VALUES ({', '.join(f':{name}' for name in kept)})", kept
        )
        measured: dict[str, object] = {
            "entries": 1,
            "errors": int(row["is_error"]),
            "cached": int(row["cached"]),
            "tokens": row["tokens"],
            "baseline": values["baseline"] or 0,
            "saved": saved or 0,
            "unmeasured": int(saved is None and not is_call),
            "milliseconds": row["milliseconds"] or 0,
            "unpriced": int(is_call and cost is None),
        } | ({name: values[name] or 0 for name in _OF_CALLS} if is_call else {})
        hour, kind = int(row["time"] // 3600), _LEDGER_KINDS.index(row["kind"])
        broad = _ledger_id(row["kind"], None, None, row["model"])
        _add_sums(connection, "ullage_hours", {"hour": hour, "party": party, "subject": broad}, measured)
        days = {"day": int(row["time"] // 86_400), "party": party, "subject": subject}
        _add_sums(connection, "ullage_tool_days", days, measured)
        _add_sums(connection, "ullage_session_hours", {"session": session, "hour": hour, "kind": kind}, measured)


_OF_CALLS = ("input", "output", "cache_read", "cache_write", "reasoning", "picodollars")
_ONLY_OF_CALLS = {"id", "source", "missed", "missed_picodollars", *_OF_CALLS}


def _add_names(connection: Connection, row: Mapping[str, Any], *, party: int, session: int, subject: int) -> None:
    again = "ON CONFLICT (id) DO NOTHING"
    connection.execute(
        f"INSERT INTO ullage_parties (id, principal, client) VALUES (:id, :principal, :client) {again}",
        {"id": party, "principal": row["principal"], "client": row["client"]},
    )
    connection.execute(
        f"INSERT INTO ullage_sessions (id, party, session, inferred) VALUES (:id, :party, :session, :inferred) {again}",
        {"id": session, "party": party, "session": row["session"], "inferred": row["session_inferred"]},
    )
    names = {name: row[name] for name in ("server", "tool", "model")}
    broad = {"server": None, "tool": None, "model": row["model"]}
    for number, named in ((subject, names), (_ledger_id(row["kind"], None, None, row["model"]), broad)):
        connection.execute(
            "INSERT INTO ullage_subjects (id, kind, server, tool, model) "
            f"VALUES (:id, :kind, :server, :tool, :model) {again}",
            {"id": number, "kind": _LEDGER_KINDS.index(row["kind"]), **named},
        )


def _add_sums(connection: Connection, table: str, key: Mapping[str, object], measured: Mapping[str, object]) -> None:
    columns = (*key, *measured)
    again = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in measured)
    connection.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)}) "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {again}",
        {**key, **measured},
    )
