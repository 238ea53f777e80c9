"""Which functions and pragmas of SQLite only read?

Data only. `NAMES` are those of SQLite 3.51 and its built-in extensions; those of its shell (`readfile`, `edit`) and
those that load, log or reorganise are left out.
"""

from ..wordlist import words

__all__ = ["ASKING", "DENIED", "NAMES", "READING", "TABLES"]

NAMES = words(
    """
abs acos acosh asin asinh atan atan2 atanh avg bm25 cast ceil ceiling changes char coalesce concat concat_ws cos
cosh count cume_dist current_date current_time current_timestamp date datetime decimal decimal_add decimal_cmp
decimal_mul decimal_sub decimal_sum degrees dense_rank exp first_value floor format fts5_source_id geopoly_area
geopoly_bbox geopoly_contains_point geopoly_json geopoly_overlap geopoly_within glob group_concat hex highlight if
ifnull iif instr json json_array json_array_insert json_array_length json_error_position json_extract
json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote json_remove
json_replace json_set json_type json_valid jsonb jsonb_array jsonb_array_insert jsonb_extract jsonb_group_array
jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set julianday lag
last_insert_rowid last_value lead length like likelihood likely ln log log10 log2 lower ltrim match matchinfo max
median min mod nth_value ntile nullif octet_length offsets percent_rank percentile percentile_cont percentile_disc
pi pow power printf quote radians random randomblob rank regexp replace round row_number rtreecheck rtreedepth
rtreenode rtrim sign sin sinh snippet soundex sqlite_compileoption_get sqlite_compileoption_used sqlite_offset
sqlite_source_id sqlite_version sqrt strftime string_agg substr substring subtype sum tan tanh time timediff total
total_changes trim trunc typeof unhex unicode unistr unistr_quote unixepoch unlikely upper zeroblob
"""
)

TABLES = words(
    """
generate_series json_each json_tree jsonb_each jsonb_tree pragma_application_id pragma_collation_list
pragma_compile_options pragma_data_version pragma_database_list pragma_encoding pragma_foreign_key_check
pragma_foreign_key_list pragma_freelist_count pragma_function_list pragma_index_info pragma_index_list
pragma_index_xinfo pragma_integrity_check pragma_module_list pragma_page_count pragma_page_size pragma_pragma_list
pragma_quick_check pragma_schema_version pragma_table_info pragma_table_list pragma_table_xinfo pragma_user_version
"""
)

ASKING = words(
    """
foreign_key_check foreign_key_list index_info index_list index_xinfo integrity_check quick_check table_info
table_list table_xinfo
"""
)
"""Pragmas whose argument is a question, not an assignment."""

READING = words(
    """
analysis_limit application_id auto_vacuum automatic_index busy_timeout cache_size cache_spill cell_size_check
collation_list compile_options data_version database_list defer_foreign_keys encoding foreign_key_check foreign_keys
freelist_count function_list integrity_check journal_mode journal_size_limit legacy_file_format locking_mode
max_page_count mmap_size module_list page_count page_size pragma_list query_only quick_check read_uncommitted
recursive_triggers reverse_unordered_selects schema_version secure_delete stats synchronous table_list temp_store
threads trusted_schema user_version wal_autocheckpoint writable_schema
"""
)
"""Pragmas that only answer when nothing is given."""

DENIED = "|".join(
    sorted(
        words(
            r"""
load_extension readfile writefile edit eval fsdir fts3_tokenizer fts5 optimize sqlite_log sqlar_\w+ zipfile\w*
shell_\w+ lsmode sqlite_filestat exec\w* system
"""
        )
    )
)
"""What an engine may list and yet loads code, touches files or reorganises an index."""
