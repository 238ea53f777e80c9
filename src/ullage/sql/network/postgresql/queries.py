"""What is PostgreSQL asked about its own tables?

A fixed number of queries, however many tables there are. Only what the role may read is listed; a partition is part of
its table. Functions are called with their schema: users may make others that fit better, and these would run here.
"""

__all__ = ["FUNCTIONS", "OWN_FIRST", "STRUCTURE"]

# For this transaction: types, tables and operators of PostgreSQL's own before whatever users called the same.
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


def _names(table: str, numbers: str) -> str:
    return (
        f"(SELECT pg_catalog.json_agg(a.attname ORDER BY k.place) "
        f"FROM pg_catalog.unnest({numbers}) WITH ORDINALITY k(number, place) "
        f"JOIN pg_attribute a ON a.attrelid = {table} AND a.attnum = k.number)"
    )


_CONSTRAINTS = f"""
SELECT o.conrelid::int8, o.contype, o.conname, {_names("o.conrelid", "o.conkey")}, fn.nspname, f.relname,
       {_names("o.confrelid", "o.confkey")}, o.confupdtype, o.confdeltype,
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

# Every relation of users, whether or not the role may read it: a view reads with its owner's rights. With nothing but
# PostgreSQL's own schema on the path, all other names in a view's definition stand with their schema.
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


def _extends(catalogue: str, thing: str) -> str:
    return (
        f"EXISTS (SELECT FROM pg_depend d WHERE d.classid = '{catalogue}'::regclass AND d.objid = {thing} "
        "AND d.deptype = 'e')"
    )


# PostgreSQL prefers what fits the arguments best, wherever it lies: so a function of somebody's making counts under the
# name of one that PostgreSQL brings, where a call without a schema can reach it. A row takes the name of a function of
# one argument for a column that it has not. An operator counts where it can be meant by values of ordinary types. A
# cast to an enumeration runs nothing, unless somebody made one.
#
# Views that show what other sessions run, which the server withholds itself only in its own tables: those that read the
# text in them, those that call the functions below, and all that read such a view. There is no record of who calls a
# function of PostgreSQL's own but the view's rule itself.
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
         n.nspname <> 'pg_catalog' AND NOT {_extends("pg_proc", "p.oid")} AS made, n.nspname = 'pg_catalog' AS own
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname = ANY ('pg_catalog'::name || pg_catalog.current_schemas(false)) OR {_extends("pg_proc", "p.oid")}
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
WHERE n.nspname <> 'pg_catalog' AND NOT {_extends("pg_operator", "o.oid")}
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
