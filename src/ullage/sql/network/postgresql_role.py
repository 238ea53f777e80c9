"""Rights of a PostgreSQL role, and the SQL that sets up a read-only one.

`probe` reports the role's rights from any source: its own, those of PUBLIC, and those of roles that it may become. The
rights of a superuser are not enumerated.

`setup_sql` returns text for a person to read, complete and run. It revokes rights from PUBLIC, because PostgreSQL
cannot deny one role what PUBLIC may do; each such statement says which roles it affects.
"""

from collections.abc import Iterable, Mapping

from ullage.table import Cell, Row

from ..database import Limits, Probe

__all__ = ["LARGE_OBJECTS", "OWN_ONLY", "READER", "RIGHTS", "probe", "setup_sql"]

READER = "ullage_reader"
LARGE_OBJECTS = (
    *("lo_creat", "lo_create", "lo_from_bytea", "lo_put", "lo_unlink"),
    *("lo_truncate", "lo_truncate64", "lowrite", "lo_import", "lo_export"),
)
"""Functions that create or change large objects; PostgreSQL allows them in a read-only transaction."""
_SPARE = 2
"""Connections per concurrent statement: one that is ending, one that is beginning."""

_TEMPORARY = "2GB"
"""Limit of the server's disk space for sorting and the like in one session; only a superuser can set it for a role."""


def setup_sql(facts: Iterable[Row], limits: Limits) -> str:
    rows = [(str(kind), str(first), str(second)) for kind, first, second in facts]
    database = next(first for kind, first, _ in rows if kind == "database")
    schemas = [first for kind, first, _ in rows if kind == "schema"]
    owners = [(first, second) for kind, first, second in rows if kind == "owner"]
    revoked = [line for kind, first, second in rows if (line := _revoke_statement(kind, first, second))]
    if revoked:
        revoked = [
            "-- What follows every role may do now. Roles that need it, owners and superusers apart, must be granted",
            "-- it by name afterwards, such as: GRANT TEMPORARY ON DATABASE … TO …;",
            *revoked,
        ]
    lines = [
        "-- A role that can only read. Replace <password> by a password in quotes, and run this as a superuser",
        f"-- connected to {_quote_identifier(database)}.",
        f"CREATE ROLE {READER} LOGIN PASSWORD <password> NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS",
        f"  NOINHERIT CONNECTION LIMIT {_SPARE * limits.concurrency};",
        f"ALTER ROLE {READER} SET default_transaction_read_only = on;",
        f"ALTER ROLE {READER} SET statement_timeout = {round(limits.seconds * 1000)};",
        f"ALTER ROLE {READER} SET temp_file_limit = '{_TEMPORARY}';",
        f"GRANT CONNECT ON DATABASE {_quote_identifier(database)} TO {READER};",
        *(
            f"GRANT {right} SCHEMA {_quote_identifier(schema)} TO {READER};"
            for schema in schemas
            for right in ("USAGE ON", "SELECT ON ALL TABLES IN")
        ),
        *(
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {_quote_identifier(owner)} IN SCHEMA {_quote_identifier(schema)} "
            f"GRANT SELECT ON TABLES TO {READER};"
            for schema, owner in owners
        ),
        *revoked,
    ]
    return "\n".join(lines) + "\n"


def _revoke_statement(kind: str, first: str, second: str) -> str | None:
    match kind:
        case "temporary":
            return f"REVOKE TEMPORARY ON DATABASE {_quote_identifier(first)} FROM PUBLIC;"
        case "create database":
            return f"REVOKE CREATE ON DATABASE {_quote_identifier(first)} FROM PUBLIC;"
        case "create":
            return f"REVOKE CREATE ON SCHEMA {_quote_identifier(first)} FROM PUBLIC;"
        case "table":
            name = f"{_quote_identifier(first)}.{_quote_identifier(second)}"
            return f"REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON {name} FROM PUBLIC;"
        case "sequence":
            return (
                f"REVOKE USAGE, UPDATE ON SEQUENCE {_quote_identifier(first)}.{_quote_identifier(second)} FROM PUBLIC;"
            )
        case "function" | "large object":
            return f"REVOKE EXECUTE ON ROUTINE {first} FROM PUBLIC;"
        case _:
            return None


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# For this transaction: no user-defined object is found under a name without its schema.
OWN_ONLY = "SELECT pg_catalog.set_config('search_path', 'pg_catalog', true)"

_NAMED = 3
"""Tables, schemas or functions named for each right; the rest are counted."""

_MINE = """
WITH mine AS MATERIALIZED (
    SELECT r.oid FROM pg_roles r, pg_roles me
    WHERE me.rolname = current_user AND NOT me.rolsuper AND pg_has_role(current_user, r.oid, 'MEMBER')
)"""
_OF_USERS = "n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'"

_ROLE = """
SELECT rolname, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls
FROM pg_roles WHERE rolname = current_user"""

_MEMBER = (
    _MINE
    + """
SELECT r.rolname, r.rolsuper FROM mine JOIN pg_roles r USING (oid)
WHERE r.rolname <> current_user AND (
    r.rolsuper OR r.rolcreatedb OR r.rolcreaterole OR r.rolreplication OR r.rolname IN (
    'pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program',
    'pg_signal_backend', 'pg_checkpoint', 'pg_maintain', 'pg_create_subscription'))
ORDER BY 1"""
)

_TABLES = (
    _MINE
    + f"""
SELECT p.word, n.nspname, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN (VALUES (1, 'INSERT'), (2, 'UPDATE'), (3, 'DELETE'), (4, 'TRUNCATE')) p(place, word)
WHERE c.relkind IN ('r', 'p', 'v', 'f') AND {_OF_USERS} AND EXISTS (
    SELECT FROM mine WHERE has_schema_privilege(mine.oid, n.oid, 'USAGE') AND (
        has_table_privilege(mine.oid, c.oid, p.word)
        OR p.place < 3 AND has_any_column_privilege(mine.oid, c.oid, p.word)))
ORDER BY p.place, n.nspname, c.relname"""
)

_SEQUENCES = (
    _MINE
    + f"""
SELECT 'advance', n.nspname, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND {_OF_USERS} AND EXISTS (
    SELECT FROM mine WHERE has_schema_privilege(mine.oid, n.oid, 'USAGE')
    AND has_sequence_privilege(mine.oid, c.oid, 'USAGE, UPDATE'))
ORDER BY n.nspname, c.relname"""
)

_SCHEMAS = (
    _MINE
    + f"""
SELECT n.nspname FROM pg_namespace n
WHERE {_OF_USERS} AND EXISTS (SELECT FROM mine WHERE has_schema_privilege(mine.oid, n.oid, 'CREATE'))
ORDER BY 1"""
)

_DATABASE = (
    _MINE
    + """
SELECT COALESCE(bool_or(has_database_privilege(mine.oid, current_database(), 'CREATE')), false),
       COALESCE(bool_or(has_database_privilege(mine.oid, current_database(), 'TEMPORARY')), false),
       COALESCE((SELECT d.datdba IN (SELECT oid FROM mine) FROM pg_database d
                 WHERE d.datname = current_database()), false)
FROM mine"""
)

_SIGNATURE = "format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid))"

# Such a function acts as another role, on another server or as the server's own user, in any transaction.
_REACHING = f"""
SELECT n.nspname, p.proname, p.oid, {_SIGNATURE},
       CASE WHEN p.proname LIKE 'dblink%' THEN 'which reaches other servers'
            WHEN NOT l.lanpltrusted AND l.lanname NOT IN ('internal', 'c') THEN 'which is bound by no right'
            ELSE 'which acts as its owner' END,
       has_function_privilege('public', p.oid, 'EXECUTE')
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
WHERE n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' AND p.prorettype <> 'pg_catalog.trigger'::regtype
  AND (p.prosecdef OR p.proname LIKE 'dblink%' OR NOT l.lanpltrusted AND l.lanname NOT IN ('internal', 'c'))"""

_FUNCTIONS = (
    _MINE
    + f""", reaching(schema, name, oid, signature, why, is_public) AS ({_REACHING})
SELECT why, schema, name FROM reaching
WHERE EXISTS (SELECT FROM mine WHERE has_function_privilege(mine.oid, reaching.oid, 'EXECUTE')
              AND has_schema_privilege(mine.oid, schema, 'USAGE'))
ORDER BY why, schema, name"""
)

_LARGE_OBJECTS = (
    _MINE
    + f"""
SELECT p.proname FROM pg_proc p
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname IN ({", ".join(f"'{one}'" for one in LARGE_OBJECTS)})
  AND EXISTS (SELECT FROM mine WHERE has_function_privilege(mine.oid, p.oid, 'EXECUTE'))
ORDER BY 1"""
)

# Rights of PUBLIC, which a read-only role would inherit, and the owners of future tables.
_PUBLIC = f"""
SELECT 'temporary', current_database()::text, NULL::text
WHERE has_database_privilege('public', current_database(), 'TEMPORARY')
UNION ALL SELECT 'create database', current_database()::text, NULL
WHERE has_database_privilege('public', current_database(), 'CREATE')
UNION ALL SELECT 'create', n.nspname::text, NULL FROM pg_namespace n
WHERE {_OF_USERS} AND has_schema_privilege('public', n.oid, 'CREATE')
UNION ALL SELECT CASE c.relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, n.nspname::text, c.relname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE {_OF_USERS} AND (
    c.relkind IN ('r', 'p', 'v', 'f') AND (has_table_privilege('public', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
        OR has_any_column_privilege('public', c.oid, 'INSERT, UPDATE'))
    OR c.relkind = 'S' AND has_sequence_privilege('public', c.oid, 'USAGE, UPDATE'))
UNION ALL SELECT 'function', signature, NULL FROM ({_REACHING}) r(schema, name, oid, signature, why, is_public)
WHERE is_public
UNION ALL SELECT 'large object', {_SIGNATURE}, NULL FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'pg_catalog' AND p.proname IN ({", ".join(f"'{one}'" for one in LARGE_OBJECTS)})
  AND has_function_privilege('public', p.oid, 'EXECUTE')
UNION ALL SELECT DISTINCT 'owner', n.nspname::text, pg_get_userbyid(c.relowner)::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE {_OF_USERS} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
UNION ALL SELECT 'schema', n.nspname::text, NULL FROM pg_namespace n WHERE {_OF_USERS}
UNION ALL SELECT 'database', current_database()::text, NULL
ORDER BY 1, 2, 3"""

RIGHTS = {
    "role": _ROLE,
    "member": _MEMBER,
    "tables": _TABLES,
    "sequences": _SEQUENCES,
    "schemas": _SCHEMAS,
    "database": _DATABASE,
    "functions": _FUNCTIONS,
    "large objects": _LARGE_OBJECTS,
    "public": _PUBLIC,
}


def probe(found: Mapping[str, list[Row]], limits: Limits) -> Probe:
    role, *attributes = found["role"][0]
    words = (
        "is a superuser",
        "may create databases",
        "may create roles",
        "may replicate the server",
        "sees rows that row security hides",
    )
    said = [word for word, has in zip(words, attributes, strict=True) if has]
    said += [f"may act as {'the superuser ' if is_super else ''}`{name}`" for name, is_super in found["member"]]
    words = ("may create schemas", "may create temporary tables", "owns the database")
    said += [word for word, has in zip(words, found["database"][0], strict=True) if has]
    if found["schemas"]:
        said.append(f"may create tables in {_shorten_list([str(name) for (name,) in found['schemas']], 'schemas')}")
    if found["large objects"]:
        said.append("may make and change large objects")
    said += [
        f"may {word} {'into' if word == 'INSERT' else 'in'} {_shorten_list(names, 'tables')}"
        for word, names in _group_names(found["tables"]).items()
    ]
    said += [f"may advance {_shorten_list(names, 'sequences')}" for names in _group_names(found["sequences"]).values()]
    said += [
        f"may call {_shorten_list(names, 'functions')}, {why}"
        for why, names in _group_names(found["functions"]).items()
    ]
    return Probe(
        role=str(role),
        can_write=tuple(said),
        setup_sql=setup_sql(found["public"], limits),
    )


def _group_names(rows: list[Row]) -> dict[Cell, list[str]]:
    grouped: dict[Cell, list[str]] = {}
    for word, schema, name in rows:
        grouped.setdefault(str(word), []).append(f"{schema}.{name}")
    return grouped


def _shorten_list(names: list[str], what: str) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more {what}" if rest > 0 else "")
