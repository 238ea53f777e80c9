"""The engine for PostgreSQL.

Each call runs one statement by the extended protocol, which accepts no second one, in a read-only transaction that is
always rolled back and leaves nothing in the session. Rows are fetched one at a time, so that only the rows that are
kept use memory. The guard decides which statements may run.

The structure is read by a fixed number of queries, however many tables there are. Only what the role may read is
listed; a partition is part of its table. The queries call functions with their schema, because users can define others
that match the arguments better, which would run instead.

An error of a statement is `QueryFailed` with its SQLSTATE, position and hint; a lost connection is `SourceFailed`. The
error's DETAIL is never passed on, since it quotes rows.

`cell` converts booleans, numbers, JSON and arrays of these to values; everything else (dates, intervals, ranges, bytes,
the database's own types) stays as PostgreSQL writes it, which loses nothing.

`array` converts `{1,NULL,"a,b",{…}}` to a list of lists. An array whose first index is not one stays text, since a list
cannot express that.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, cast

import psycopg
from psycopg import errors, generators, pq
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from ullage.errors import QueryFailed, UllageError
from ullage.table import Cell, Row
from ullage.tool import Json

from ..database import (
    RAISED,
    Answer,
    Column,
    ForeignKey,
    Index,
    Limits,
    Probe,
    Question,
    Routine,
    Stability,
    Structure,
    Table,
    Trigger,
    in_order,
    quote_name,
)
from .database_pool import (
    LOCKED,
    REACH,
    Address,
    encode_statement,
    first_line,
    late,
    lost_error,
    number,
    real,
    take_rows,
    unreachable_error,
    whole,
    without_data,
    without_secrets,
    written_json,
)
from .postgresql_role import OWN_ONLY, RIGHTS, probe

__all__ = [
    "CANCELED",
    "FUNCTIONS",
    "OWN_FIRST",
    "STRUCTURE",
    "PostgreSQLSession",
    "about_question",
    "array",
    "cell",
    "functions",
    "is_loss",
    "not_opened",
    "structure",
]

_STABILITY: dict[Cell, Stability] = {"i": "immutable", "s": "stable", "v": "volatile", "m": "made"}
_ORDER: tuple[Stability, ...] = ("immutable", "stable", "volatile", "made")
_RULES: dict[Cell, str] = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
# Bits of pg_trigger.tgtype.
_EVENTS = ((4, "INSERT"), (16, "UPDATE"), (8, "DELETE"), (32, "TRUNCATE"))
_BEFORE, _INSTEAD = 2, 64


def functions(rows: Iterable[Row]) -> Mapping[str, Stability]:
    found: dict[str, Stability] = {}
    for name, letter in rows:
        stability = _STABILITY[letter]
        known = found.get(str(name), stability)
        found[str(name)] = _ORDER[max(_ORDER.index(known), _ORDER.index(stability))]
    return found


def structure(found: Mapping[str, list[Row]]) -> Structure:
    database, default = found["database"][0]
    columns, indexes, triggers = (_by_table(found[name]) for name in ("columns", "indexes", "triggers"))
    constraints = _by_table(found["constraints"])
    tables = [
        Table(
            name=str(name),
            schema=_schema(schema, default),
            kind="view" if is_view else "table",
            columns=tuple(map(_column, columns[key])),
            primary_key=next((_names(row[3]) for row in constraints[key] if row[1] == "p"), ()),
            foreign_keys=tuple(_foreign_key(row, default) for row in constraints[key] if row[1] == "f"),
            indexes=tuple(
                Index(name=str(called), columns=_names(listed), unique=bool(unique))
                for _, called, unique, listed in indexes[key]
            ),
            checks=tuple(str(row[9]) for row in constraints[key] if row[1] in ("c", "x")),
            triggers=tuple(map(_trigger, triggers[key])),
            rows=rows if isinstance(rows, int) and rows >= 0 and not is_view else None,
            definition=_text(definition),
            comment=_text(comment),
        )
        for key, schema, name, is_view, rows, comment, definition in found["tables"]
    ]
    routines = tuple(_routine(row, default) for row in found["routines"])
    return Structure(
        tables=in_order(tables),
        routines=routines,
        name=str(database),
        default_schema=_text(default),
        catalogue=_catalogue(found),
    )


def _catalogue(found: Mapping[str, list[Row]]) -> tuple[Table, ...]:
    columns = _by_table(found["every column"])
    known = {(row[1], row[2]) for row in found["every table"]}
    tables: list[Table] = []
    for key, schema, name, is_view, definition, parents, remote in found["every table"]:
        table = Table(
            name=str(name),
            schema=str(schema),
            kind="view" if is_view else "table",
            columns=tuple(
                Column(name=str(column), type="", computed=bool(computed), expression=_text(expression))
                for _, column, computed, expression, _ in columns[key]
            ),
            definition=_text(definition),
            parents=tuple(f"{one[0]}.{one[1]}" for one in parents if isinstance(one, list))
            if isinstance(parents, list)
            else (),
        )
        if isinstance(remote, list) and tuple(remote) in known - {(schema, name)}:
            # It may be the local table with its remote name, and show the same values.
            if table.parents:
                table = replace(table, parents=(*table.parents, ".".join(_names(remote))))
            else:
                listed = ", ".join(quote_name("postgres", str(there or one)) for _, one, _, _, there in columns[key])
                source = ".".join(quote_name("postgres", part) for part in _names(remote))
                table = replace(table, kind="view", definition=f"SELECT {listed} FROM {source}")
        tables.append(table)
    return tuple(tables)


def _by_table(rows: Iterable[Row]) -> Mapping[Cell, list[Row]]:
    grouped: defaultdict[Cell, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row[0]].append(row)
    return grouped


def _column(row: Row) -> Column:
    _, name, kind, nullable, default, generated, computed, comment = row
    return Column(
        name=str(name),
        type=str(kind),
        nullable=bool(nullable),
        default=_text(default),
        generated=bool(generated) or str(default).startswith("nextval("),
        computed=bool(computed),
        expression=_text(default) if computed else None,
        comment=_text(comment),
    )


def _foreign_key(row: Row, default: Cell) -> ForeignKey:
    _, _, name, columns, schema, table, to, on_update, on_delete, _ = row
    other = _schema(schema, default)
    return ForeignKey(
        columns=_names(columns),
        table=str(table) if other is None else f"{other}.{table}",
        to=_names(to),
        name=str(name),
        on_update=_RULES.get(on_update),
        on_delete=_RULES.get(on_delete),
    )


def _trigger(row: Row) -> Trigger:
    _, name, kind, statement = row
    bits = kind if isinstance(kind, int) else 0
    timing = "BEFORE" if bits & _BEFORE else "INSTEAD OF" if bits & _INSTEAD else "AFTER"
    events = " OR ".join(event for bit, event in _EVENTS if bits & bit)
    return Trigger(name=str(name), timing=timing, event=events, statement=_text(statement))


def _routine(row: Row, default: Cell) -> Routine:
    schema, name, is_procedure, arguments, returns = row
    return Routine(
        name=str(name),
        kind="procedure" if is_procedure else "function",
        schema=_schema(schema, default),
        arguments=_text(arguments),
        returns=_text(returns),
    )


def _schema(schema: Cell, default: Cell) -> str | None:
    return None if schema == default else str(schema)


def _names(listed: Cell) -> tuple[str, ...]:
    return tuple(map(str, listed)) if isinstance(listed, list) else ()


def _text(value: Cell) -> str | None:
    return None if value is None else str(value)


CANCELED = "57014"
_GONE = ("08", "57P")
"""SQLSTATE classes that end a connection."""
_LOCKED = "55P03"
_OF_NAMES = "42"
"""SQLSTATE class of syntax, rights and names; values that cannot be converted are in class 22."""
_RAISES = "exec_stmt_raise"
"""The function of the server that runs RAISE."""
_REMEDIES = (
    ("password authentication failed", "Check the user and the password in the database's URL."),
    ("no password supplied", "Put the password into the database's URL."),
    ("no pg_hba.conf entry", "Allow this machine and role in the server's pg_hba.conf."),
    ("does not exist", "Check the names of the database and the role in the database's URL."),
    ("too many", "Wait for other clients to leave, or allow the role more connections."),
)


def is_loss(error: psycopg.Error, *, is_closed: bool) -> bool:
    return is_closed or (error.sqlstate or "").startswith(_GONE)


def about_question(error: psycopg.Error, sql: str) -> UllageError:
    diagnostic = error.diag
    primary = diagnostic.message_primary or first_line(str(error)) or type(error).__name__
    code = f"{error.sqlstate}: " if error.sqlstate else ""
    place = f" (at character {diagnostic.statement_position})" if diagnostic.statement_position else ""
    hint = diagnostic.message_hint or ""
    if error.sqlstate == _LOCKED:
        hint = LOCKED
    # If the server cannot resolve a statement, what it quotes is a name, possibly one that it completed itself. Without
    # a place in the statement it may be a value that a function took for a name: `secret::regclass`.
    is_of_statement = bool(place) and (error.sqlstate or "").startswith(_OF_NAMES)
    said = primary if is_of_statement else without_data(primary, sql, '"')
    raised = RAISED if diagnostic.source_function == _RAISES else ""
    return QueryFailed(code + raised + said + place, suggestion=hint)


def not_opened(error: psycopg.Error, address: Address) -> UllageError:
    said = without_secrets(first_line(str(error)), address.secrets)
    remedy = next((remedy for sign, remedy in _REMEDIES if sign in said), REACH)
    return unreachable_error(address.shown, said, remedy)


# For this transaction, PostgreSQL's own types, tables and operators take precedence over user-defined ones of the same
# name.
OWN_FIRST = """
SELECT pg_catalog.set_config('search_path', CASE WHEN path OPERATOR(pg_catalog.=) '' THEN 'pg_catalog'
                             ELSE pg_catalog.concat('pg_catalog, ', path) END, true)
FROM pg_catalog.current_setting('search_path') AS path"""

_OF_USERS = (
    r"n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')"
)

_TABLES = f"""
SELECT c.oid::int8, n.nspname, c.relname, c.relkind IN ('v', 'm'), c.reltuples::int8,
       pg_catalog.obj_description(c.oid, 'pg_class'),
       CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid, true) END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND {_OF_USERS}
  AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname"""

_COLUMNS = f"""
SELECT a.attrelid::int8, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
       pg_catalog.pg_get_expr(d.adbin, d.adrelid), a.attidentity <> '' OR a.attgenerated <> '',
       a.attgenerated <> '', pg_catalog.col_description(a.attrelid, a.attnum)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND {_OF_USERS} AND pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
ORDER BY a.attrelid, a.attnum"""


def _name_list(table: str, numbers: str) -> str:
    return (
        f"(SELECT pg_catalog.json_agg(a.attname ORDER BY k.place) "
        f"FROM pg_catalog.unnest({numbers}) WITH ORDINALITY k(number, place) "
        f"JOIN pg_attribute a ON a.attrelid = {table} AND a.attnum = k.number)"
    )


_CONSTRAINTS = f"""
SELECT o.conrelid::int8, o.contype, o.conname, {_name_list("o.conrelid", "o.conkey")}, fn.nspname, f.relname,
       {_name_list("o.confrelid", "o.confkey")}, o.confupdtype, o.confdeltype,
       pg_catalog.pg_get_constraintdef(o.oid, true)
FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_class f ON f.oid = o.confrelid LEFT JOIN pg_namespace fn ON fn.oid = f.relnamespace
WHERE o.contype IN ('p', 'f', 'c', 'x') AND {_OF_USERS}
ORDER BY o.conrelid, o.conname"""

_INDEXES = f"""
SELECT i.indrelid::int8, x.relname, i.indisunique,
       (SELECT pg_catalog.json_agg(pg_catalog.pg_get_indexdef(i.indexrelid, place, true) ORDER BY place)
        FROM pg_catalog.generate_series(1, i.indnkeyatts) place)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT i.indisprimary AND NOT c.relispartition AND {_OF_USERS}
ORDER BY i.indrelid, x.relname"""

_TRIGGERS = f"""
SELECT t.tgrelid::int8, t.tgname, t.tgtype, pg_catalog.pg_get_triggerdef(t.oid, true)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT t.tgisinternal AND NOT c.relispartition AND {_OF_USERS}
ORDER BY t.tgrelid, t.tgname"""

_ROUTINES = f"""
SELECT n.nspname, p.proname, p.prokind = 'p', pg_catalog.pg_get_function_arguments(p.oid),
       pg_catalog.pg_get_function_result(p.oid)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE {_OF_USERS} AND p.prorettype <> 'pg_catalog.trigger'::regtype AND p.prorettype <> 'event_trigger'::regtype
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
ORDER BY n.nspname, p.proname, p.oid"""

# All user relations, whether or not the role may read them, because a view reads with its owner's rights. With only
# PostgreSQL's own schema in the path, all other names in a view's definition include their schema.
_QUALIFIED = "SELECT pg_catalog.set_config('search_path', 'pg_catalog', true)"
_EVERY_TABLE = r"""
SELECT c.oid::int8, n.nspname, c.relname, c.relkind IN ('v', 'm'),
       CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid) END,
       (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(pn.nspname, p.relname))
        FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace pn ON pn.oid = p.relnamespace
        WHERE i.inhrelid = c.oid),
       (SELECT pg_catalog.json_build_array(
                 COALESCE(pg_catalog.max(o.option_value) FILTER (WHERE o.option_name = 'schema_name'), n.nspname),
                 COALESCE(pg_catalog.max(o.option_value) FILTER (WHERE o.option_name = 'table_name'), c.relname))
        FROM pg_foreign_table f LEFT JOIN pg_catalog.pg_options_to_table(f.ftoptions) o ON true
        WHERE f.ftrelid = c.oid GROUP BY f.ftrelid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY n.nspname, c.relname"""
_EVERY_COLUMN = r"""
SELECT a.attrelid::int8, a.attname, a.attgenerated <> '', pg_catalog.pg_get_expr(d.adbin, d.adrelid),
       (SELECT o.option_value FROM pg_catalog.pg_options_to_table(a.attfdwoptions) o
        WHERE o.option_name = 'column_name')
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attrdef d ON a.attgenerated <> '' AND d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY a.attrelid, a.attnum"""

STRUCTURE = {
    "database": "SELECT pg_catalog.current_database(), (pg_catalog.current_schemas(false))[2]",
    "tables": _TABLES,
    "columns": _COLUMNS,
    "constraints": _CONSTRAINTS,
    "indexes": _INDEXES,
    "triggers": _TRIGGERS,
    "routines": _ROUTINES,
    "qualified": _QUALIFIED,
    "every table": _EVERY_TABLE,
    "every column": _EVERY_COLUMN,
}


def _in_extension(catalogue: str, thing: str) -> str:
    return (
        f"EXISTS (SELECT FROM pg_depend d WHERE d.classid = '{catalogue}'::regclass AND d.objid = {thing} "
        "AND d.deptype = 'e')"
    )


# PostgreSQL chooses the function that matches the arguments best, in whichever schema it is. Therefore a user-defined
# function counts under the name of a built-in one if a call without a schema can reach it. A name after a row calls a
# function of one argument if the row has no such column. An operator counts if it can apply to values of ordinary
# types. A cast to an enumeration runs nothing, unless a user defined one.
#
# Views that show what other sessions run, which the server hides only in its own tables: those that read the text in
# them, those that call the functions below, and all that read such a view. PostgreSQL records the use of its built-in
# functions only in the view's rule.
_SHOWING_STATEMENTS = """
  SELECT r.ev_class AS view FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class
  WHERE v.relnamespace <> 'pg_catalog'::regnamespace AND v.relname <> 'pg_stat_statements' AND (EXISTS (
    SELECT FROM pg_depend d JOIN pg_class c ON c.oid = d.refobjid
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'query'
    WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
      AND c.relname IN ('pg_stat_activity', 'pg_stat_statements') AND d.refobjsubid IN (0, a.attnum)
  ) OR r.ev_action::text ~ (
    SELECT pg_catalog.concat(':funcid (', pg_catalog.string_agg(p.oid::text, '|'), ') ') FROM pg_proc p
    WHERE p.proname IN ('pg_stat_get_activity', 'pg_stat_get_backend_activity', 'pg_stat_statements')
  ))
  UNION SELECT r.ev_class FROM shown JOIN pg_depend d ON d.refobjid = shown.view
  JOIN pg_rewrite r ON r.oid = d.objid
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass"""

FUNCTIONS = f"""
WITH RECURSIVE shown AS ({_SHOWING_STATEMENTS}
), called AS (
  SELECT pg_catalog.lower(p.proname::text) AS name, p.provolatile AS letter, p.proargtypes[0] AS first,
         p.pronargs - p.pronargdefaults AS least,
         n.nspname <> 'pg_catalog' AND NOT {_in_extension("pg_proc", "p.oid")} AS made, n.nspname = 'pg_catalog' AS own
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname = ANY ('pg_catalog'::name || pg_catalog.current_schemas(false)) OR {_in_extension("pg_proc", "p.oid")}
)
SELECT name, CASE WHEN made THEN 'm' ELSE letter END FROM called
UNION SELECT pg_catalog.concat('shows:', spelled), 'm'
FROM shown JOIN pg_class c ON c.oid = shown.view JOIN pg_namespace n ON n.oid = c.relnamespace,
     pg_catalog.unnest(ARRAY[pg_catalog.lower(c.relname::text),
                             pg_catalog.lower(pg_catalog.concat(n.nspname, '.', c.relname))]) spelled
UNION SELECT 'pg_catalog.' || name, letter FROM called
WHERE own AND name IN (SELECT name FROM called WHERE made)
UNION SELECT '.' || name, 'm' FROM called JOIN pg_type t ON t.oid = first
WHERE made AND least <= 1 AND t.typtype IN ('c', 'p')
UNION SELECT o.oprname, 'm' FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
WHERE n.nspname <> 'pg_catalog' AND NOT {_in_extension("pg_operator", "o.oid")}
  AND n.nspname = ANY (pg_catalog.current_schemas(false))
  AND NOT EXISTS (
    SELECT FROM pg_type t
    WHERE t.oid IN (o.oprleft, o.oprright) AND t.typnamespace <> 'pg_catalog'::regnamespace
  )
UNION SELECT pg_catalog.concat('::', spelled), 'i'
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace,
     pg_catalog.unnest(ARRAY[t.typname::text, pg_catalog.concat(n.nspname, '.', t.typname)]) spelled
WHERE t.typtype = 'e' AND NOT EXISTS (SELECT FROM pg_cast WHERE casttarget = t.oid OR castsource = t.oid)
  AND NOT EXISTS (SELECT FROM pg_type other WHERE other.typname = t.typname AND other.typtype <> 'e')"""

_TOKEN = re.compile(r'[{},]|"((?:[^"\\]|\\.)*)"|[^{},"]+', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def array(text: str, element: Callable[[str], Json]) -> Json:
    if not text.startswith("{"):
        return text
    open_lists: list[list[Json]] = [[]]
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{":
                inner: list[Json] = []
                open_lists[-1].append(inner)
                open_lists.append(inner)
            case "}":
                open_lists.pop()
            case ",":
                pass
            case word:
                quoted = token[1]
                if quoted is not None:
                    value = element(_ESCAPED.sub(r"\1", quoted))
                else:
                    value = None if word == "NULL" else element(word)
                open_lists[-1].append(value)
    return open_lists[0][0]


_Reader = Callable[[str], Cell]


def _cells_text(text: str) -> str:
    return text


# By type: the type's OID in pg_type, and that of its arrays.
_TYPES: tuple[tuple[int, int, _Reader], ...] = (
    (16, 1000, lambda text: text == "t"),
    (20, 1016, whole),
    (21, 1005, whole),
    (23, 1007, whole),
    (26, 1028, whole),
    (700, 1021, real),
    (701, 1022, real),
    (1700, 1231, number),
    (114, 199, written_json),
    (3802, 3807, written_json),
    (18, 1002, _cells_text),
    (19, 1003, _cells_text),
    (25, 1009, _cells_text),
    (1042, 1014, _cells_text),
    (1043, 1015, _cells_text),
    (1082, 1182, _cells_text),
    (1083, 1183, _cells_text),
    (1114, 1115, _cells_text),
    (1184, 1185, _cells_text),
    (1186, 1187, _cells_text),
    (2950, 2951, _cells_text),
    *(
        (own, of_arrays, _cells_text)
        for own, of_arrays in (
            *((17, 1001), (142, 143), (600, 1017), (650, 651), (790, 791), (829, 1040), (774, 775), (869, 1041)),
            *((1266, 1270), (1560, 1561), (1562, 1563), (3614, 3643), (3615, 3645), (3220, 3221), (2970, 2949)),
            *((3904, 3905), (3906, 3907), (3908, 3909), (3910, 3911), (3912, 3913), (3926, 3927)),
        )
    ),
)
_READERS = {own: reader for own, _, reader in _TYPES}
_ELEMENTS = {of_arrays: cast("Callable[[str], Json]", reader) for _, of_arrays, reader in _TYPES}
"""Converters of an array's elements; decimals are allowed, since every digit of them is written out."""


def cell(raw: bytes | None, kind: int, most: int) -> Cell:
    """Return a value as a cell; one longer than `most` characters may be cut to text of at least `most` + 1."""
    if raw is None:
        return None
    # A character has at most four bytes; in a database without an encoding, bytes may be arbitrary.
    text = raw[: 4 * most + 4].decode("utf-8", "replace")
    if len(text) > most:
        return text
    if (element := _ELEMENTS.get(kind)) is not None:
        return array(text, element)
    return _READERS.get(kind, _cells_text)(text)


_CANCEL_SECONDS = 5.0
_LEAST_CONNECT_SECONDS = 2
"""Minimum of the connection time-out, because libpq rounds smaller values up to it."""
_ENOUGH = 2**31
"""Characters of a catalogue value; enough for any."""
_LARGE = 1 << 24
"""Bytes from which a value is large."""
_ROWS = (pq.ExecStatus.SINGLE_TUPLE, pq.ExecStatus.TUPLES_OK)
_COPYING = (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH)


class PostgreSQLSession:
    """A connection to PostgreSQL."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._connection = connection
        self._ends = 0.0
        self._is_streaming = False
        self._is_swollen = False
        """Whether a row arrived for which the driver enlarged its buffer, which it never shrinks again."""

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
            # The cause is dropped because it contains the whole connection string.
            raise not_opened(error, address) from None

    def begin(self, seconds: float, rows: int | None) -> None:
        self._ends = time.monotonic() + seconds
        self._is_streaming = False
        # A server that converts no encodings would refuse to send text that is not UTF-8.
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
            # Rows are read from the server only as far as they are taken.
            rows = (row for result in chain((first,), results) for row in self._values(result, limits.cell))
            return take_rows(columns, rows, question.rows, limits)

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

    def _values(self, result: "pq.abc.PGresult", most: int) -> Iterator[Row]:
        kinds = [result.ftype(place) for place in range(result.nfields)]
        for row in range(result.ntuples):
            values = [result.get_value(row, place) for place in range(result.nfields)]
            self._is_swollen = self._is_swollen or any(value and len(value) > _LARGE for value in values)
            yield tuple(cell(value, kind, most) for value, kind in zip(values, kinds, strict=True))

    def _results(self, sql: str) -> Generator[pq.abc.PGresult]:
        """Yield one result per row and an empty one at the end, if the statement returns rows."""
        connection = self._connection.pgconn
        # At a zero byte libpq would stop, and so run something other than what was judged.
        if "\0" in sql:
            raise QueryFailed("the statement contains a zero character", suggestion="leave it out")
        connection.send_query_params(encode_statement(sql), None)
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
                raise lost_error() from None
            # The cause is dropped because its DETAIL quotes rows.
            raise about_question(error, sql) from None

    def clean(self) -> bool:
        if self._is_swollen:
            if self._is_streaming:
                self.interrupt()
            return False
        try:
            if self._is_streaming:
                connection = self._connection.pgconn
                if connection.transaction_status == pq.TransactionStatus.ACTIVE:
                    self._connection.cancel_safe(timeout=_CANCEL_SECONDS)
                while (result := self._connection.wait(generators.fetch(connection))) is not None:
                    if result.status in _COPYING:
                        raise errors.OperationalError("a COPY ends with its connection")
            self._connection.execute(b"ROLLBACK")
            self._connection.execute(b"DISCARD ALL")
        except psycopg.Error:
            return False
        return self._connection.pgconn.transaction_status == pq.TransactionStatus.IDLE

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
    """Return the statements that begin a transaction.

    They make PostgreSQL read quotes by the standard, as the parser that judged the statement does. A SELECT takes a
    snapshot, after which no statement can make the transaction writable.
    """
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
