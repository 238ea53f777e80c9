"""Which SQL makes a PostgreSQL role that can only read?

Text for a person to read, complete and run. Rights that everybody has are taken from everybody, as PostgreSQL has no
way to refuse one role what PUBLIC may; each of these says whom it touches.
"""

from collections.abc import Iterable

from ullage.table import Row

from ...engine import Limits

__all__ = ["LARGE_OBJECTS", "READER", "setup_sql"]

READER = "ullage_reader"
LARGE_OBJECTS = (
    *("lo_creat", "lo_create", "lo_from_bytea", "lo_put", "lo_unlink"),
    *("lo_truncate", "lo_truncate64", "lowrite", "lo_import", "lo_export"),
)
"""Functions that make or change large objects; PostgreSQL lets them run in a transaction that only reads."""
_SPARE = 2
"""Connections for each question at one time: one that is ending, one that is beginning."""

_TEMPORARY = "2GB"
"""Of the server's disk, for sorting and the like, by one session; only a superuser can set it for a role."""


def setup_sql(facts: Iterable[Row], limits: Limits) -> str:
    rows = [(str(kind), str(first), str(second)) for kind, first, second in facts]
    database = next(first for kind, first, _ in rows if kind == "database")
    schemas = [first for kind, first, _ in rows if kind == "schema"]
    owners = [(first, second) for kind, first, second in rows if kind == "owner"]
    lines = [
        "-- A role that can only read. Replace <password> by a password in quotes, and run this as a superuser",
        f"-- connected to {_quoted(database)}.",
        f"CREATE ROLE {READER} LOGIN PASSWORD <password> NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS",
        f"  NOINHERIT CONNECTION LIMIT {_SPARE * limits.concurrency};",
        f"ALTER ROLE {READER} SET default_transaction_read_only = on;",
        f"ALTER ROLE {READER} SET statement_timeout = {round(limits.seconds * 1000)};",
        f"ALTER ROLE {READER} SET temp_file_limit = '{_TEMPORARY}';",
        f"GRANT CONNECT ON DATABASE {_quoted(database)} TO {READER};",
        *(line for schema in schemas for line in _reading(schema)),
        *(
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {_quoted(owner)} IN SCHEMA {_quoted(schema)} "
            f"GRANT SELECT ON TABLES TO {READER};"
            for schema, owner in owners
        ),
        *_taken_from_everybody(rows),
    ]
    return "\n".join(lines) + "\n"


def _reading(schema: str) -> tuple[str, str]:
    name = _quoted(schema)
    return f"GRANT USAGE ON SCHEMA {name} TO {READER};", f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {READER};"


def _taken_from_everybody(rows: list[tuple[str, str, str]]) -> list[str]:
    revoked = [line for kind, first, second in rows if (line := _revoked(kind, first, second))]
    if not revoked:
        return []
    return [
        "-- What follows every role may do now. Roles that need it, owners and superusers apart, must be granted it by",
        "-- name afterwards, such as: GRANT TEMPORARY ON DATABASE … TO …;",
        *revoked,
    ]


def _revoked(kind: str, first: str, second: str) -> str | None:
    match kind:
        case "temporary":
            return f"REVOKE TEMPORARY ON DATABASE {_quoted(first)} FROM PUBLIC;"
        case "create database":
            return f"REVOKE CREATE ON DATABASE {_quoted(first)} FROM PUBLIC;"
        case "create":
            return f"REVOKE CREATE ON SCHEMA {_quoted(first)} FROM PUBLIC;"
        case "table":
            return f"REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON {_quoted(first)}.{_quoted(second)} FROM PUBLIC;"
        case "sequence":
            return f"REVOKE USAGE, UPDATE ON SEQUENCE {_quoted(first)}.{_quoted(second)} FROM PUBLIC;"
        case "function" | "large object":
            return f"REVOKE EXECUTE ON ROUTINE {first} FROM PUBLIC;"
        case _:
            return None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
