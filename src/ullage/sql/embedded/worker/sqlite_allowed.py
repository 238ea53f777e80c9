"""What may a SQLite statement do?

SQLite asks before it compiles each step of a statement; the answer is yes for what stands here and no for the rest.
Stops every write, every attached file, every setting, every function that is not known to be harmless, whatever the
text looked like. It knows nothing of time or size.
"""

import sqlite3

__all__ = ["TOUCHED", "is_allowed"]

_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})

_ABOUT_A_NAME = frozenset(
    {
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    }
)
"""Pragmas whose argument says what to look at, not what to set."""

_PRAGMAS = _ABOUT_A_NAME | {
    "application_id",
    "auto_vacuum",
    "collation_list",
    "compile_options",
    "data_version",
    "database_list",
    "encoding",
    "foreign_keys",
    "freelist_count",
    "function_list",
    "journal_mode",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "query_only",
    "schema_version",
    "user_version",
}

_TELLING = frozenset(
    """
    analysis_limit automatic_index busy_timeout cache_size cache_spill cell_size_check defer_foreign_keys
    journal_size_limit legacy_file_format locking_mode max_page_count mmap_size read_uncommitted recursive_triggers
    reverse_unordered_selects secure_delete stats synchronous temp_store threads trusted_schema wal_autocheckpoint
    writable_schema
    """.split()  # noqa: SIM905
)
"""Pragmas that tell how the connection is set when nothing is given, and are no tables."""

TOUCHED = ("json_each", "json_tree", *(f"pragma_{name}" for name in sorted(_PRAGMAS)))
"""Tables that SQLite makes when they are first named, which looks like a write; so they are named beforehand."""

_NAMES = """
    -> ->> abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling changes char coalesce concat concat_ws
    cos cosh count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp
    first_value floor format glob group_concat hex highlight if ifnull iif instr json json_array json_array_length
    json_error_position json_extract json_group_array json_group_object json_insert json_object json_patch
    json_pretty json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract
    jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set
    julianday lag last_insert_rowid last_value lead length like likelihood likely ln log log10 log2 lower ltrim
    match matchinfo max median min mod nth_value ntile nullif octet_length offsets percent_rank percentile
    percentile_cont percentile_disc pi pow power printf quote radians random randomblob rank replace round
    row_number rtrim sign sin sinh snippet soundex sqlite_compileoption_get sqlite_compileoption_used
    sqlite_source_id sqlite_version sqrt strftime string_agg substr substring subtype sum tan tanh time timediff
    total total_changes trim trunc typeof unhex unicode unistr unistr_quote unixepoch unlikely upper zeroblob
"""
_FUNCTIONS = frozenset(_NAMES.split())
"""Those of SQLite itself, FTS5 among them, that neither write nor reach outside."""


def is_allowed(action: int, first: str | None, second: str | None) -> bool:
    """Called for each step, with the names that SQLite gives for it."""
    if action == sqlite3.SQLITE_FUNCTION:
        return (second or "").lower() in _FUNCTIONS
    if action == sqlite3.SQLITE_PRAGMA:
        name = (first or "").lower()
        return name in _ABOUT_A_NAME or (name in _PRAGMAS | _TELLING and second is None)
    return action in _ACTIONS
