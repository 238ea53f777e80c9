"""What is PostgreSQL asked about its own tables?

A fixed number of queries, however many tables there are. Only what the role may read is listed; a partition is part of
its table.
"""

__all__ = ["FUNCTIONS", "STRUCTURE"]

_OF_USERS = r"n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND has_schema_privilege(n.oid, 'USAGE')"

_TABLES = f"""
SELECT c.oid::int8, n.nspname, c.relname, c.relkind IN ('v', 'm'), c.reltuples::int8,
       obj_description(c.oid, 'pg_class'),
       CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid, true) END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND {_OF_USERS}
  AND has_any_column_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname"""

_COLUMNS = f"""
SELECT a.attrelid::int8, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
       pg_get_expr(d.adbin, d.adrelid), a.attidentity <> '' OR a.attgenerated <> '',
       col_description(a.attrelid, a.attnum)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND {_OF_USERS} AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
ORDER BY a.attrelid, a.attnum"""


def _names(table: str, numbers: str) -> str:
    return (
        f"(SELECT json_agg(a.attname ORDER BY k.place) FROM unnest({numbers}) WITH ORDINALITY k(number, place) "
        f"JOIN pg_attribute a ON a.attrelid = {table} AND a.attnum = k.number)"
    )


_CONSTRAINTS = f"""
SELECT o.conrelid::int8, o.contype, o.conname, {_names("o.conrelid", "o.conkey")}, fn.nspname, f.relname,
       {_names("o.confrelid", "o.confkey")}, o.confupdtype, o.confdeltype, pg_get_constraintdef(o.oid, true)
FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_class f ON f.oid = o.confrelid LEFT JOIN pg_namespace fn ON fn.oid = f.relnamespace
WHERE o.contype IN ('p', 'f', 'c', 'x') AND {_OF_USERS}
ORDER BY o.conrelid, o.conname"""

_INDEXES = f"""
SELECT i.indrelid::int8, x.relname, i.indisunique,
       (SELECT json_agg(pg_get_indexdef(i.indexrelid, place, true) ORDER BY place)
        FROM generate_series(1, i.indnkeyatts) place)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT i.indisprimary AND NOT c.relispartition AND {_OF_USERS}
ORDER BY i.indrelid, x.relname"""

_TRIGGERS = f"""
SELECT t.tgrelid::int8, t.tgname, t.tgtype, pg_get_triggerdef(t.oid, true)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT t.tgisinternal AND NOT c.relispartition AND {_OF_USERS}
ORDER BY t.tgrelid, t.tgname"""

_ROUTINES = f"""
SELECT n.nspname, p.proname, p.prokind = 'p', pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE {_OF_USERS} AND p.prorettype <> 'pg_catalog.trigger'::regtype AND p.prorettype <> 'event_trigger'::regtype
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
ORDER BY n.nspname, p.proname, p.oid"""

STRUCTURE = {
    "database": "SELECT current_database(), current_schema()",
    "tables": _TABLES,
    "columns": _COLUMNS,
    "constraints": _CONSTRAINTS,
    "indexes": _INDEXES,
    "triggers": _TRIGGERS,
    "routines": _ROUTINES,
}

# What somebody wrote into a schema of their own may say of itself what it likes.
FUNCTIONS = """
SELECT DISTINCT lower(p.proname),
       CASE WHEN n.nspname = 'pg_catalog' OR EXISTS (
           SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
       ) THEN p.provolatile ELSE 'v' END
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"""
