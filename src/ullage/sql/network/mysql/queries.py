"""What is MySQL asked about its own tables?

A fixed number of queries, however many tables there are: of the database of the URL, or of all where it names none.
"""

__all__ = ["FUNCTIONS", "INNER", "VIEWS", "structure_queries"]

INNER = "('mysql', 'information_schema', 'performance_schema', 'sys')"
"""Databases that are the server's own."""

# A call without a database means one of these where the server brings no function of that name.
FUNCTIONS = """
SELECT DISTINCT lower(routine_name) FROM information_schema.routines
WHERE routine_type = 'FUNCTION' AND routine_schema = DATABASE()"""

# Views may show what the server itself withholds only in its own tables.
VIEWS = f"""
SELECT lower(table_schema), lower(table_name), lower(view_definition), COALESCE(table_schema = DATABASE(), 0)
FROM information_schema.views WHERE table_schema NOT IN {INNER} AND view_definition IS NOT NULL"""

_TABLES = """
SELECT t.table_schema, t.table_name, t.table_type, t.table_rows, t.table_comment, v.view_definition, t.engine
FROM information_schema.tables t
LEFT JOIN information_schema.views v ON v.table_schema = t.table_schema AND v.table_name = t.table_name
WHERE t.table_schema {here} AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED', 'VIEW')
ORDER BY 1, 2"""

_COLUMNS = """
SELECT table_schema, table_name, column_name, column_type, is_nullable, column_default, extra, column_comment,
       generation_expression
FROM information_schema.columns WHERE table_schema {here} ORDER BY table_schema, table_name, ordinal_position"""

_INDEXES = """
SELECT table_schema, table_name, index_name, non_unique, column_name
FROM information_schema.statistics WHERE table_schema {here}
ORDER BY table_schema, table_name, index_name, seq_in_index"""

_FOREIGN_KEYS = """
SELECT k.table_schema, k.table_name, k.constraint_name, k.column_name, k.referenced_table_schema,
       k.referenced_table_name, k.referenced_column_name, r.update_rule, r.delete_rule
FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r
  ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name AND r.table_name = k.table_name
WHERE k.table_schema {here} AND k.referenced_table_name IS NOT NULL
ORDER BY k.table_schema, k.table_name, k.constraint_name, k.ordinal_position"""

_CHECKS_OF_MARIADB = """
SELECT constraint_schema, table_name, constraint_name, check_clause
FROM information_schema.check_constraints WHERE constraint_schema {here} ORDER BY 1, 2, 3"""

_CHECKS_OF_MYSQL = """
SELECT t.table_schema, t.table_name, t.constraint_name, c.check_clause
FROM information_schema.table_constraints t JOIN information_schema.check_constraints c
  ON c.constraint_schema = t.constraint_schema AND c.constraint_name = t.constraint_name
WHERE t.table_schema {here} AND t.constraint_type = 'CHECK' ORDER BY 1, 2, 3"""

_TRIGGERS = """
SELECT event_object_schema, event_object_table, trigger_name, action_timing, event_manipulation, action_statement
FROM information_schema.triggers WHERE event_object_schema {here} ORDER BY 1, 2, 3"""

_ROUTINES = """
SELECT r.routine_schema, r.routine_name, r.routine_type, p.ordinal_position, p.parameter_mode, p.parameter_name,
       p.dtd_identifier
FROM information_schema.routines r LEFT JOIN information_schema.parameters p
  ON p.specific_schema = r.routine_schema AND p.specific_name = r.specific_name AND p.routine_type = r.routine_type
WHERE r.routine_schema {here} ORDER BY 1, 2, 3, 4"""


def structure_queries(*, all_databases: bool, is_mariadb: bool) -> dict[str, str]:
    here = f"NOT IN {INNER}" if all_databases else "= DATABASE()"
    queries = {
        "tables": _TABLES,
        "columns": _COLUMNS,
        "indexes": _INDEXES,
        "foreign keys": _FOREIGN_KEYS,
        "checks": _CHECKS_OF_MARIADB if is_mariadb else _CHECKS_OF_MYSQL,
        "triggers": _TRIGGERS,
        "routines": _ROUTINES,
    }
    return {name: sql.format(here=here) for name, sql in queries.items()}
