"""What is in the database, and how did it come to be there?

A list of steps, each run once, in order, forward only; how many have run is the schema's version. A step that was ever
released is history and never changes: a new one is added below it. It names columns and types itself, for the rooms'
own tables will have moved on. What the tables mean is known where they are used.
"""

from collections.abc import Callable, Sequence

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    text,
)

__all__ = ["MIGRATIONS", "Migration", "migrate", "version_of"]

Migration = Callable[[Connection], None]
MIGRATIONS: list[Migration] = []

_VERSION = "ullage_schema"
_LOCK = 0x756C6C616765
"""Of PostgreSQL's advisory locks, the one under which migrations run."""


def migration(step: Migration) -> Migration:
    MIGRATIONS.append(step)
    return step


def version_of(connection: Connection) -> int:
    """How many steps have run; 0 for a database that was never used."""
    if not inspect(connection).has_table(_VERSION):
        return 0
    return connection.scalar(text(f"SELECT version FROM {_VERSION}")) or 0


def migrate(connection: Connection, steps: Sequence[Migration]) -> int:
    """Runs the steps that are missing, in the transaction it is given, and returns the version then reached. Whoever
    comes second waits for the first and finds nothing left to do."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    version = version_of(connection)
    for step in steps[version:]:
        step(connection)
    if version < len(steps):
        _set_version(connection, len(steps))
    return max(version, len(steps))


def _set_version(connection: Connection, version: int) -> None:
    connection.execute(text(f"CREATE TABLE IF NOT EXISTS {_VERSION} (version INTEGER NOT NULL)"))
    connection.execute(text(f"DELETE FROM {_VERSION}"))
    connection.execute(text(f"INSERT INTO {_VERSION} (version) VALUES (:version)"), {"version": version})


@migration
def catalogue(connection: Connection) -> None:
    tables = MetaData()
    Table(
        "ullage_servers",
        tables,
        Column("id", String(36), primary_key=True),
        Column("name", Text, nullable=False),
        Column("key", String(64), nullable=False),
        Column("introduction", Text),
        Column("created", Double, nullable=False),
        Column("updated", Double, nullable=False),
        Column("seen", Double, nullable=False),
        UniqueConstraint("name", "key"),
    )
    Table(
        "ullage_tools",
        tables,
        Column("id", String(36), primary_key=True),
        Column("server_id", String(36), ForeignKey("ullage_servers.id", ondelete="CASCADE"), nullable=False),
        Column("position", Integer, nullable=False),
        Column("name", Text, nullable=False),
        Column("definition", Text, nullable=False),
        Column("definition_hash", String(64), nullable=False),
        Column("token_count", Integer, CheckConstraint("token_count >= 0"), nullable=False, server_default="0"),
        Column("embedding", LargeBinary),
        Column("created", Double, nullable=False),
        Column("updated", Double, nullable=False),
        Index("ullage_tools_of_server", "server_id", "position"),
    )
    Table(
        "ullage_forms",
        tables,
        Column("key", Text, primary_key=True),
        Column("form", Text, nullable=False),
        Column("created", Double, nullable=False),
    )
    tables.create_all(connection, checkfirst=False)


@migration
def ledger(connection: Connection) -> None:
    Table(
        "ullage_entries",
        MetaData(),
        # Only a column of exactly INTEGER counts up by itself in SQLite.
        Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
        Column("time", Double, nullable=False, index=True),
        Column("kind", Text, nullable=False),
        Column("principal", Text, nullable=False),
        Column("session", Text, nullable=False),
        Column("session_inferred", Boolean, nullable=False),
        Column("client", Text),
        Column("server", Text),
        Column("tool", Text),
        Column("model", Text),
        Column("tokens", BigInteger, nullable=False),
        Column("method", Text, nullable=False),
        Column("baseline_tokens", BigInteger),
        Column("saved_tokens", BigInteger),
        Column("milliseconds", Double),
        Column("is_error", Boolean, nullable=False),
        Column("cached", Boolean, nullable=False),
        Column("detail", Text, nullable=False),
    ).create(connection, checkfirst=False)


@migration
def results(connection: Connection) -> None:
    tables = MetaData()
    Table(
        "ullage_results",
        tables,
        Column("handle", String(40), primary_key=True),
        Column("principal", Text, nullable=False),
        Column("server", Text, nullable=False),
        Column("tool", Text, nullable=False),
        Column("created", Double, nullable=False, index=True),
        Column("size", BigInteger, nullable=False),
        Column("shape", Text, nullable=False),
    )
    Table(
        "ullage_result_pieces",
        tables,
        Column("handle", String(40), ForeignKey("ullage_results.handle", ondelete="CASCADE"), primary_key=True),
        Column("position", Integer, primary_key=True, autoincrement=False),
        Column("first", BigInteger, nullable=False),
        Column("units", Integer, nullable=False),
        Column("data", LargeBinary, nullable=False),
    )
    tables.create_all(connection, checkfirst=False)


@migration
def spends(connection: Connection) -> None:
    Table(
        "ullage_spends",
        MetaData(),
        Column("id", String(40), primary_key=True),
        Column("time", Double, nullable=False, index=True),
        Column("principal", Text, nullable=False),
        Column("session", Text, nullable=False),
        Column("task", Text),
        Column("tokens", BigInteger, nullable=False),
        Column("picodollars", BigInteger),
        Column("settled", Boolean, nullable=False),
    ).create(connection, checkfirst=False)


@migration
def vectors(connection: Connection) -> None:
    """A tool's row is found by its definition."""
    connection.execute(text("CREATE INDEX ullage_tools_of_definition ON ullage_tools (definition_hash)"))


@migration
def uses(connection: Connection) -> None:
    """What was called after which search."""
    Table(
        "ullage_uses",
        MetaData(),
        Column("id", String(64), primary_key=True),
        Column("principal", Text, nullable=False),
        Column("server", Text, nullable=False),
        Column("tool", Text, nullable=False),
        Column("terms", Text, nullable=False),
        Column("count", Integer, nullable=False),
        Column("last", Double, nullable=False, index=True),
        Index("ullage_uses_of_principal", "principal", "last"),
    ).create(connection, checkfirst=False)


@migration
def pending_notices(connection: Connection) -> None:
    """Adds the table of notices to be given once.

    A store that already knows servers was written when these inherited every variable, so its user is told once that
    they no longer do. A new store has nothing to tell.
    """
    Table("ullage_notices", MetaData(), Column("name", String(64), primary_key=True)).create(
        connection, checkfirst=False
    )
    connection.execute(
        text(
            "INSERT INTO ullage_notices (name) SELECT 'server_environment' WHERE EXISTS (SELECT 1 FROM ullage_servers)"
        )
    )


@migration
def definitions(connection: Connection) -> None:
    """Accepted definitions of servers, and those that were offered instead. Not bound to the catalogue's rows, which
    come and go."""
    Table(
        "ullage_definitions",
        MetaData(),
        Column("id", String(64), primary_key=True),
        Column("server", Text, nullable=False),
        Column("launch", String(64), nullable=False),
        Column("era", String(16), nullable=False),
        Column("kind", String(16), nullable=False),
        Column("name", Text, nullable=False),
        Column("accepted", Text, nullable=False),
        Column("accepted_hash", String(64), nullable=False),
        Column("exact", String(64), nullable=False),
        Column("matched", String(64), nullable=False),
        Column("pending", Text),
        Column("pending_hash", String(64)),
        Column("origin", String(16), nullable=False),
        Column("changes", Integer, nullable=False),
        Column("created", Double, nullable=False),
        Column("accepted_at", Double, nullable=False),
        Column("pending_at", Double),
        Column("checksum", String(64), nullable=False),
        Index("ullage_definitions_of_server", "server", "launch"),
    ).create(connection, checkfirst=False)
