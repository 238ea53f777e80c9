"""Migrations: the steps that brought the database's schema to what it is.

Each step is run once, in order, forward only; how many have run is the schema's version. A step that was ever released
is history and never changes: a new one is added below it. What the tables mean is known where they are used.
"""

from collections.abc import Callable, Sequence

from .connections import Connection

__all__ = ["MIGRATIONS", "Migration", "migrate", "version_of"]

Migration = Callable[[Connection], None]
MIGRATIONS: list[Migration] = []

_VERSION = "ullage_schema"
_LOCK = 0x756C6C616765
"""Of PostgreSQL's advisory locks, the one under which migrations run."""
_IS_THERE = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name",
    "postgresql": "SELECT 1 FROM pg_catalog.pg_class WHERE relname = :name AND pg_catalog.pg_table_is_visible(oid)",
}
_TYPES = {
    # Only a column of exactly INTEGER counts up by itself in SQLite.
    "sqlite": {"DOUBLE": "DOUBLE", "BINARY": "BLOB", "SERIAL": "INTEGER"},
    "postgresql": {"DOUBLE": "DOUBLE PRECISION", "BINARY": "BYTEA", "SERIAL": "BIGSERIAL"},
}
"""Types that the two kinds of database call differently."""


def migration(step: Migration) -> Migration:
    MIGRATIONS.append(step)
    return step


def version_of(connection: Connection) -> int:
    """How many steps have run; 0 for a database that was never used."""
    if connection.scalar(_IS_THERE[connection.kind], {"name": _VERSION}) is None:
        return 0
    return connection.scalar(f"SELECT version FROM {_VERSION}") or 0


def migrate(connection: Connection, steps: Sequence[Migration]) -> int:
    """Runs the steps that are missing, in the transaction it is given, and returns the version then reached. Whoever
    comes second waits for the first and finds nothing left to do."""
    if connection.kind == "postgresql":
        connection.execute("SELECT pg_advisory_xact_lock(:lock)", {"lock": _LOCK})
    version = version_of(connection)
    for step in steps[version:]:
        step(connection)
    if version < len(steps):
        _set_version(connection, len(steps))
    return max(version, len(steps))


def _set_version(connection: Connection, version: int) -> None:
    connection.execute(f"CREATE TABLE IF NOT EXISTS {_VERSION} (version INTEGER NOT NULL)")
    connection.execute(f"DELETE FROM {_VERSION}")
    connection.execute(f"INSERT INTO {_VERSION} (version) VALUES (:version)", {"version": version})


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
    """A tool's row is found by its definition."""
    _create(connection, "CREATE INDEX ullage_tools_of_definition ON ullage_tools (definition_hash)")


@migration
def uses(connection: Connection) -> None:
    """What was called after which search."""
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
    """Adds the table of notices to be given once.

    A store that already knows servers was written when these inherited every variable, so its user is told once that
    they no longer do. A new store has nothing to tell.
    """
    _create(
        connection,
        "CREATE TABLE ullage_notices (name VARCHAR(64) NOT NULL, PRIMARY KEY (name))",
        "INSERT INTO ullage_notices (name) SELECT 'server_environment' WHERE EXISTS (SELECT 1 FROM ullage_servers)",
    )


@migration
def definitions(connection: Connection) -> None:
    """Accepted definitions of servers, and those that were offered instead. Not bound to the catalogue's rows, which
    come and go."""
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
