"""Allowed and denied functions of every dialect.

A `Catalogue` combines the built-in lists of one engine and decides whether a function only reads; `query_rules` finds
the calls. All lists are data:

- Standard: names of standard SQL that compute from their arguments, in every engine that has them.
- PostgreSQL: functions of pg_catalog (15 to 18) that are immutable or stable, except those that run text as SQL, dump
  whole tables or show the host's settings; and those of common extensions. An engine that knows its catalogue adds to
  them.
- MySQL: native functions of MySQL 9 and MariaDB 12 that compute or describe the session, except those that wait, lock,
  read files or move a sequence; no loaded or stored functions.
- SQLite: functions of SQLite 3.51 and its built-in extensions, except those of its shell (`readfile`, `edit`) and those
  that load, log or reorganise.
- DuckDB: scalar, aggregate and window functions and macros of DuckDB 2.0's own catalogue, except those that write, wait
  or reach outside; and the functions allowed in FROM.
- SQL Server: `RESERVED` is needed because T-SQL requires no semicolon: a reserved word that the parser takes for an
  alias begins a second statement on the server.
- Oracle: packages are user code, so allowed ones are named one by one; functions that parse XML are left out, because
  they can fetch what the XML names.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..database import Dialect, Stability
from .lexer import words

__all__ = [
    "ASKING",
    "CATALOGUES",
    "DUCKDB_DENIED",
    "DUCKDB_NAMES",
    "DUCKDB_PREFIXES",
    "DUCKDB_TABLES",
    "HINTS",
    "LIKE_COLUMNS",
    "MYSQL_DENIED",
    "MYSQL_NAMES",
    "MYSQL_PREFIXES",
    "ORACLE_DENIED",
    "ORACLE_METHODS",
    "ORACLE_NAMES",
    "ORACLE_PACKAGES",
    "POSTGRES_DENIED",
    "POSTGRES_NAMES",
    "POSTGRES_PREFIXES",
    "POSTGRES_SAFE_VOLATILE",
    "POSTGRES_SCHEMAS",
    "READING",
    "RESERVED",
    "SQLITE_DENIED",
    "SQLITE_NAMES",
    "SQLITE_TABLES",
    "STANDARD_NAMES",
    "TSQL_DENIED",
    "TSQL_METHODS",
    "TSQL_NAMES",
    "UNSAFE",
]

DUCKDB_NAMES = words(
    """
abs acos acosh add age aggregate ago alias any_value apply approx_count_distinct approx_quantile approx_top_k
arbitrary arg_max arg_max_null arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin array
array_agg array_aggr array_aggregate array_append array_apply array_cat array_concat array_contains
array_cosine_distance array_cosine_similarity array_cross_product array_distance array_distinct array_dot_product
array_extract array_filter array_grade_up array_has array_has_all array_has_any array_indexof array_inner_product
array_intersect array_length array_negative_dot_product array_negative_inner_product array_pop_back array_pop_front
array_position array_prepend array_push_back array_push_front array_reduce array_resize array_reverse
array_reverse_sort array_select array_slice array_sort array_to_json array_to_string array_to_string_comma_default
array_transform array_unique array_value array_where array_zip ascii asin asinh assert_true atan atan2 atanh avg bar
base64 bin binom bit_and bit_count bit_length bit_or bit_position bit_xor bitstring bitstring_agg
bitstring_byte_comparable bool_and bool_or can_cast_implicitly cardinality cast cast_to_type cbrt ceil ceiling
century char_length character_length chr coalesce col_description columns combine combine_aggr concat concat_ws
constant_or_null contains corr cos cosh cot count count_if count_star countif covar_pop covar_samp
cume_dist current_catalog current_connection_id current_database current_date current_localtime
current_localtimestamp current_query current_query_id current_role current_schema current_schemas current_setting
current_time current_timestamp current_transaction_id current_user damerau_levenshtein date_add date_diff date_part
date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month
decade decimal_average decimal_division decode degrees dense_rank divide editdist3 element_at encode ends_with
entropy enum_code enum_first enum_last enum_range enum_range_boundary epoch epoch_ms epoch_ns epoch_us
equi_width_bins era error even exclude exists exp extract factorial favg fdiv fill filter finalize first first_value
flatten floor fmod format format_bytes format_pg_type format_type formatreadabledecimalsize formatreadablesize
from_base64 from_binary from_hex from_json from_json_strict fsum gamma gcd gen_random_uuid generate_series
generate_subscripts geomean geometric_mean get_bit get_block_size get_current_time get_current_timestamp get_type
getvariable grade_up greatest greatest_common_divisor group_concat grouping grouping_id hamming
has_any_column_privilege has_column_privilege has_database_privilege has_foreign_data_wrapper_privilege
has_function_privilege has_language_privilege has_schema_privilege has_sequence_privilege has_server_privilege
has_table_privilege has_tablespace_privilege hash hex histogram histogram_exact hive_partition_component hour
icu_sort_key if ifnull iif ilike_escape inet_client_addr inet_client_port inet_server_addr inet_server_port instr
invoke is_histogram_other_bin isfinite isinf isnan isnotnull isnull isodow isoyear jaccard jaro_similarity
jaro_winkler_similarity json json_array json_array_length json_contains json_copy_strftime_if_date
json_copy_strftime_if_timestamp json_deep_merge json_deserialize_sql json_exists json_extract json_extract_path
json_extract_path_text json_extract_string json_group_array json_group_object json_group_structure json_insert
json_keys json_merge_patch json_merge_patch_diff json_normalize json_object json_pretty json_quote json_remove
json_replace json_serialize_sql json_set json_strip_nulls json_structure json_transform json_transform_strict
json_type json_valid json_value julian kahan_sum kurtosis kurtosis_pop lag last last_day last_value lcase lcm lead
least least_common_multiple left left_grapheme len length length_grapheme levenshtein lgamma like_escape list
list_aggr list_aggregate list_any_value list_append list_apply list_approx_count_distinct list_avg list_bit_and
list_bit_or list_bit_xor list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance
list_cosine_similarity list_count list_distance list_distinct list_dot_product list_element list_entropy
list_extract list_filter list_first list_grade_up list_has list_has_all list_has_any list_histogram list_indexof
list_inner_product list_intersect list_kurtosis list_kurtosis_pop list_last list_mad list_max list_median list_min
list_mode list_negative_dot_product list_negative_inner_product list_pack list_position list_prepend list_product
list_reduce list_resize list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort
list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop
list_var_samp list_where list_zip listagg ln localtime localtimestamp log log10 log2 lower lpad ltrim lttb mad
make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz make_type map map_concat
map_contains map_contains_entry map_contains_value map_entries map_extract map_extract_value map_from_entries
map_keys map_to_pg_oid map_values match_bm25 max max_by md5 md5_number md5_number_lower md5_number_upper mean median
microsecond millennium millisecond min min_by minute mismatches mod mode month monthname multiply nanosecond
nextafter nfc_normalize normalized_interval not_exists not_ilike_escape not_like_escape now nth_value ntile nullif
obj_description octet_length ord overlay parse_dirname parse_dirpath parse_duckdb_log_message parse_filename
parse_formatted_bytes parse_path path_join percent_rank percentile_cont percentile_disc pg_collation_is_visible
pg_conf_load_time pg_conversion_is_visible pg_function_is_visible pg_get_constraintdef pg_get_expr pg_get_viewdef
pg_has_role pg_is_other_temp_schema pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible
pg_opfamily_is_visible pg_postmaster_start_time pg_size_pretty pg_table_is_visible pg_ts_config_is_visible
pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible pg_typeof pi position pow
power prefix printf product quantile quantile_cont quantile_disc quarter radians random range rank rank_dense reduce
regexp_escape regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace
regexp_split_to_array regexp_split_to_table regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
regr_sxx regr_sxy regr_syy repeat replace replace_type reservoir_quantile reverse right right_grapheme round
round_even roundbankers row row_number row_to_json rpad rtrim second sem session_user set_bit sha1 sha256
shobj_description sign signbit sin sinh skewness split split_part sqrt st_asbinary st_asgeojson st_astext st_aswkb
st_aswkt st_crs st_geomfromgeojson st_geomfromwkb st_intersects_extent st_point st_setcrs starts_with stddev
stddev_pop stddev_samp stem str_split str_split_regex strftime string_agg string_split string_split_regex
string_to_array strip_accents strlen strpos strptime struct struct_concat struct_contains struct_extract
struct_extract_at struct_has struct_indexof struct_insert struct_keys struct_pack struct_position struct_update
struct_values substr substring substring_grapheme subtract subtract_months suffix sum sum_no_overflow sumkahan
switch tan tanh time_bucket timetz_byte_comparable timezone timezone_hour timezone_minute to_aggregate_state to_base
to_base64 to_binary to_centuries to_days to_decades to_hex to_hours to_json to_microseconds to_millennia
to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years today
transaction_timestamp translate trim trunc try try_cast try_strptime txid_current typeof ucase unbin unhex unicode
union_extract union_tag union_value unnest unpack unpivot_list upper url_decode url_encode user uuid
uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 var_pop var_samp variance variant_array_length
variant_bytes_to_variant variant_comparator variant_contains variant_exists variant_extract variant_extract_string
variant_group_array variant_group_object variant_keys variant_normalize variant_to_parquet_variant variant_type
variant_typeof version vertex_extract wavg week weekday weekofyear weighted_avg xor year yearweek
"""
)

DUCKDB_TABLES = words(
    """
duckdb_approx_database_count duckdb_columns duckdb_connection_count duckdb_constraints duckdb_coordinate_systems
duckdb_databases duckdb_dependencies duckdb_dialects duckdb_extensions duckdb_functions duckdb_indexes
duckdb_keywords duckdb_memory duckdb_optimizers duckdb_prepared_statements duckdb_schemas duckdb_sequences
duckdb_settings duckdb_table_sample duckdb_tables duckdb_triggers duckdb_types duckdb_variables duckdb_views
generate_series generate_subscripts icu_calendar_names json_each json_tree pg_timezone_names pragma_collations
pragma_database_size pragma_metadata_info pragma_platform pragma_show pragma_storage_info pragma_table_info
pragma_user_agent pragma_version range regexp_split_to_table repeat repeat_row summary test_all_types unnest
"""
)

DUCKDB_PREFIXES = ("st_", "h3_")

DUCKDB_DENIED = "|".join(
    sorted(
        words(
            r"""
read_\w+ \w+_scan\w* (?:postgres|mysql|sqlite|bigquery|snowflake)_\w+ getenv query query_table sniff_\w+ parquet_\w+
which_secret duckdb_secrets? duckdb_logs\w* pg_sleep nextval currval setval setseed sleep_ms write_log
json_execute_serialized_sql json_serialize_plan http_\w+ glob seq_scan histogram_values checkpoint
(?:enable|disable|truncate|register|deregister|create|destroy|force|load|install|attach|python|arrow|copy|import)_\w+
"""
        )
    )
)
"""Functions that an engine may list as stable although they read files, wait, or change something."""

MYSQL_NAMES = words(
    """
abs acos add_months adddate addtime aes_decrypt aes_encrypt any_value area asbinary ascii asin astext aswkb aswkt
atan atan2 avg bin bin_to_uuid bit_and bit_count bit_length bit_or bit_xor boundary buffer cast ceil ceiling
centroid char char_length char_oracle character_length charset chr coalesce coercibility collation column_add
column_check column_create column_delete column_exists column_get column_json column_list compress concat
concat_operator_oracle concat_ws connection_id contains conv convert convert_tz convexhull cos cot count crc32
crc32c crosses cume_dist curdate current_date current_role current_time current_timestamp current_user curtime
database date date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear decode
decode_histogram decode_oracle default degrees dense_rank dimension disjoint distance elt encode endpoint envelope
equals exp export_set exteriorring extract extractvalue field find_in_set first_value floor format format_bytes
format_pico_time found_rows from_base64 from_days from_unixtime geomcollfromtext geometrycollection geometryfromtext
geometryn geometrytype geomfromtext get_format glength greatest group_concat grouping gtid_subset gtid_subtract hex
hour icu_version if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr interiorringn intersects interval
is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6 is_uuid isclosed isempty isnull isring issimple json json_array
json_array_append json_array_insert json_array_intersect json_arrayagg json_compact json_contains json_contains_path
json_depth json_detailed json_equals json_exists json_extract json_insert json_key_value json_keys json_length
json_loose json_merge json_merge_patch json_merge_preserve json_normalize json_object json_object_filter_keys
json_object_to_array json_objectagg json_overlaps json_pretty json_query json_quote json_remove json_replace
json_schema_valid json_schema_validation_report json_search json_set json_storage_free json_storage_size json_table
json_type json_unquote json_valid json_value kdf lag last_day last_insert_id last_value lcase lead least left length
length_oracle lengthb linefromtext linestring ln localtime localtimestamp locate log log10 log2 lower lpad
lpad_oracle ltrim ltrim_oracle make_set makedate maketime match max mbrcontains mbrcoveredby mbrcovers mbrdisjoint
mbrequal mbrequals mbrintersects mbroverlaps mbrtouches mbrwithin md5 median microsecond mid min minute mod month
monthname months_between multilinestring multipoint multipolygon name_const natural_sort_key now nth_value ntile
nullif numgeometries numinteriorrings numpoints nvl nvl2 oct octet_length ord overlaps percent_rank percentile_cont
percentile_disc period_add period_diff pi point pointfromtext pointn pointonsurface polyfromtext polygon
polygonfromtext position pow power ps_current_thread_id ps_thread_id quarter quote radians rand random_bytes rank
regexp_instr regexp_like regexp_replace regexp_substr repeat replace replace_oracle reverse right round row
row_count row_number rpad rpad_oracle rtrim rtrim_oracle schema sec_to_time second session_user sformat sha sha1
sha2 sign sin soundex space sqrt srid startpoint statement_digest statement_digest_text std stddev stddev_pop
stddev_samp str_to_date strcmp string_to_vector subdate substr substr_oracle substring substring_index subtime sum
sys_guid sysdate system_user tan time time_format time_to_sec timediff timestamp timestampadd timestampdiff
to_base64 to_char to_date to_days to_number to_seconds touches trim trim_oracle trunc truncate ucase uncompress
uncompressed_length unhex unix_timestamp updatexml upper user utc_date utc_time utc_timestamp uuid uuid_short
uuid_to_bin uuid_v4 uuid_v7 value values var_pop var_samp variance vec_distance vec_distance_cosine
vec_distance_euclidean vec_fromtext vec_totext vector_dim vector_to_string version week weekday weekofyear
weight_string within x y year yearweek
"""
)

MYSQL_PREFIXES = ("st_",)

MYSQL_DENIED = "|".join(
    sorted(
        words(
            r"""
load_file sleep benchmark get_lock release_lock release_all_locks is_free_lock is_used_lock master_\w+
source_pos_wait wait_\w+ wsrep_\w+ nextval lastval setval sys_(?:exec|eval|get|set)\w* group_replication_\w+
asynchronous_\w+ keyring_\w+ audit_\w+ version_tokens_\w+ service_\w+ mysql_\w+ lib_mysqludf\w* http_\w+
binlog_gtid_pos des_\w+ old_password encrypt
"""
        )
    )
)
"""Functions that wait, lock, read files, move sequences or run loaded code."""

ORACLE_NAMES = words(
    """
abs acos add_months any_value approx_count approx_count_distinct approx_median approx_percentile approx_rank
approx_sum ascii asciistr asin atan atan2 avg bin_to_num bit_and_agg bit_or_agg bit_xor_agg bitand
bitmap_bit_position bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg boolean_and_agg cast
catsearch ceil chartorowid checksum chr classifier cluster_id coalesce collect compose con_id_to_name concat
contains convert corr corr_k corr_s cos cosh cosine_distance count covar_pop covar_samp cube cume_dist current_date
current_timestamp cv dbtimezone decode decompose dense_rank depth domain_display dump empty_blob empty_clob
existsnode exp extract extractvalue first first_value floor from_tz fuzzy_match greatest group_id grouping
grouping_id hextoraw initcap inner_product instr instrb instrc json json_array json_arrayagg json_equal json_exists
json_mergepatch json_object json_objectagg json_query json_scalar json_serialize json_table json_transform
json_value kurtosis_pop kurtosis_samp l1_distance l2_distance lag last last_day last_value lead least length lengthb
lengthc listagg ln lnnvl localtimestamp log lower lpad ltrim match_number matches max median min mod months_between
multiset nanvl nchr near new_time next next_day nls_charset_decl_len nls_charset_id nls_charset_name nls_initcap
nls_lower nls_upper nlssort nth_value ntile nullif numtodsinterval numtoyminterval nvl nvl2 ora_dst_affected
ora_hash ora_rowscn path percent_rank percentile_cont percentile_disc phonic_encode power presentnnv presentv prev
previous rank ratio_to_report rawtohex rawtonhex regexp_count regexp_instr regexp_like regexp_replace regexp_substr
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy remainder replace rollup
round round_ties_to_even row_number rowidtochar rowidtonchar rpad rtrim scn_to_timestamp score sessiontimezone set
sign sin sinh skewness_pop skewness_samp soundex sqrt standard_hash stats_mode stddev stddev_pop stddev_samp substr
substrb substrc sum sys_connect_by_path sys_context sys_extract_utc sys_guid sys_typeid sysdate systimestamp table
tan tanh time_bucket timestamp_to_scn to_approx_count_distinct to_binary_double to_binary_float to_blob to_boolean
to_char to_clob to_date to_dsinterval to_lob to_multi_byte to_nchar to_nclob to_number to_single_byte to_timestamp
to_timestamp_tz to_vector to_yminterval translate treat trim trunc tz_offset uid unistr upper user userenv
validate_conversion var_pop var_samp variance vector_distance vsize width_bucket xmlagg xmlattributes xmlcast
xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlquery xmlserialize xmltable
"""
)

ORACLE_METHODS = words(
    """
getblobval getclobval getnumberval getstringval
"""
)
"""Methods of values, called with a dot."""

ORACLE_PACKAGES = words(
    """
dbms_lob.compare dbms_lob.getlength dbms_lob.instr dbms_lob.substr dbms_random.normal dbms_random.string
dbms_random.value
"""
)
"""Allowed functions of packages."""

ORACLE_DENIED = "|".join(
    sorted(
        words(
            r"""
dbms_\w+ utl_\w+ httpuritype dburitype xdburitype urifactory xmltype xmlparse sys_eval owa_\w+ ctx_\w+ bfilename
xmltransform updatexml deletexml insertchildxml appendchildxml sys_xmlgen sys_xmlagg sys_dburigen
"""
        )
    )
)
"""Functions that run text as SQL, reach the network or files, or parse XML that does."""

POSTGRES_NAMES = words(
    """
_pg_expandarray abbrev abs aclcontains acldefault aclexplode acos acosd acosh age akeys any_value
area array_agg array_append array_cat array_dims array_fill array_length array_lower
array_ndims array_position array_positions array_prepend array_remove array_replace array_reverse
array_sort array_to_json array_to_string array_to_tsvector array_upper arraycontained arraycontains
arrayoverlap ascii asin asind asinh atan atan2 atan2d atand atanh avals avg binary_quantize bit bit_and
bit_count bit_length bit_or bit_xor bool bool_and bool_or bound_box box bpchar broadcast btrim cardinality casefold
cash_words cast cbrt ceil ceiling center char char_length character_length chr cidr circle coalesce col_description
concat concat_ws convert convert_from convert_to corr cos cosd cosh cosine_distance cot cotd count covar_pop
covar_samp crc32 crc32c crypt cube cube_dim cube_distance cume_dist current_database current_date current_schema
current_schemas current_setting current_time current_timestamp current_user daitch_mokotoff date date_add date_bin
date_part date_subtract date_trunc datemultirange daterange decode degrees dense_rank dexp diagonal diameter
difference digest div dlog1 dlog10 dmetaphone dmetaphone_alt dround dtrunc earth_box earth_distance encode
enum_first enum_last enum_range erf erfc every exp extract factorial family find_srid first_value float4 float8
floor format format_type gamma gcd generate_series generate_subscripts geometrytype get_bit get_byte
get_current_ts_config getdatabaseencoding getpgusername greatest grouping hamming_distance has_any_column_privilege
has_column_privilege has_database_privilege has_foreign_data_wrapper_privilege has_function_privilege
has_language_privilege has_parameter_privilege has_schema_privilege has_sequence_privilege has_server_privilege
has_table_privilege has_tablespace_privilege has_type_privilege hash_array hash_record hashint4 hashint8 hashtext
hashtextextended height histogram hmac host hostmask hstore hstore_to_array hstore_to_json hstore_to_jsonb
hstore_to_matrix inet inet_client_addr inet_client_port inet_merge inet_same_family inet_server_addr
inet_server_port initcap inner_product int2 int4 int4inc int4multirange int4range int8 int8_sum int8multirange
int8range interpolate interval is_normalized isclosed isempty isfinite ishorizontal isopen isparallel isperp
isvertical jaccard_distance json json_agg json_array json_array_element json_array_element_text json_array_elements
json_array_elements_text json_array_length json_arrayagg json_build_array json_build_object json_each json_each_text
json_exists json_extract_path json_extract_path_text json_object json_object_agg json_object_field
json_object_field_text json_object_keys json_objectagg json_populate_record json_populate_recordset json_query
json_scalar json_serialize json_strip_nulls json_table json_to_record json_to_recordset json_to_tsvector json_typeof
json_value jsonb jsonb_agg jsonb_array_element jsonb_array_element_text jsonb_array_elements
jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_concat jsonb_contained
jsonb_contains jsonb_delete jsonb_delete_path jsonb_each jsonb_each_text jsonb_exists jsonb_exists_all
jsonb_exists_any jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_agg
jsonb_object_field jsonb_object_field_text jsonb_object_keys jsonb_path_exists jsonb_path_exists_tz jsonb_path_match
jsonb_path_match_tz jsonb_path_query jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first
jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set
jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_to_tsvector jsonb_typeof justify_days
justify_hours justify_interval l1_distance l2_distance l2_normalize lag last_value latitude lca lcm lead least left
length levenshtein levenshtein_less_equal lgamma like like_escape line ll_to_earth ln localtime localtimestamp locf
log log10 longitude lower lower_inc lower_inf lpad lseg ltree2text ltrim macaddr macaddr8 macaddr8_set7bit make_date
make_interval make_time make_timestamp make_timestamptz makeaclitem masklen max md5 metaphone min min_scale mod mode
money multirange mxid_age name nameconcatoid netmask network nlevel normalize notlike now npoints nth_value ntile
nullif num_nonnulls num_nulls numeric numeric_div_trunc numeric_exp numeric_inc numeric_ln numeric_log numeric_sqrt
nummultirange numnode numrange obj_description octet_length oid oidvectortypes overlaps overlay parse_ident path
pclose percent_rank percentile_cont percentile_disc pg_available_extension_versions pg_available_extensions
pg_backend_pid pg_basetype pg_char_to_encoding pg_client_encoding pg_collation_for pg_collation_is_visible
pg_column_compression pg_column_is_updatable pg_column_size pg_conf_load_time pg_conversion_is_visible
pg_current_snapshot pg_current_xact_id_if_assigned pg_cursor pg_describe_object pg_encoding_max_length
pg_encoding_to_char pg_extension_update_paths pg_filenode_relation pg_function_is_visible
pg_get_catalog_foreign_keys pg_get_constraintdef pg_get_expr pg_get_function_arg_default pg_get_function_arguments
pg_get_function_identity_arguments pg_get_function_result pg_get_function_sqlbody pg_get_functiondef pg_get_indexdef
pg_get_keywords pg_get_object_address pg_get_partition_constraintdef pg_get_partkeydef pg_get_publication_tables
pg_get_replica_identity_index pg_get_replication_slots pg_get_ruledef pg_get_serial_sequence pg_get_statisticsobjdef
pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions pg_get_triggerdef pg_get_userbyid pg_get_viewdef
pg_has_role pg_identify_object pg_identify_object_as_address pg_index_column_has_property pg_index_has_property
pg_indexam_has_property pg_indexam_progress_phasename pg_input_error_info pg_input_is_valid pg_is_other_temp_schema
pg_listening_channels pg_lsn pg_mcv_list_items pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible
pg_opfamily_is_visible pg_options_to_table pg_partition_root pg_postmaster_start_time pg_prepared_statement
pg_relation_filenode pg_relation_filepath pg_relation_is_publishable pg_relation_is_updatable
pg_replication_origin_oid pg_sequence_parameters pg_settings_get_flags pg_size_bytes pg_size_pretty pg_snapshot_xip
pg_snapshot_xmax pg_snapshot_xmin pg_stat_get_activity pg_stat_get_analyze_count pg_stat_get_archiver
pg_stat_get_autoanalyze_count pg_stat_get_autovacuum_count pg_stat_get_backend_activity
pg_stat_get_backend_activity_start pg_stat_get_backend_client_addr pg_stat_get_backend_client_port
pg_stat_get_backend_dbid pg_stat_get_backend_idset pg_stat_get_backend_pid pg_stat_get_backend_start
pg_stat_get_backend_userid pg_stat_get_backend_wait_event pg_stat_get_backend_wait_event_type
pg_stat_get_backend_xact_start pg_stat_get_bgwriter_buf_written_checkpoints pg_stat_get_bgwriter_buf_written_clean
pg_stat_get_bgwriter_maxwritten_clean pg_stat_get_bgwriter_requested_checkpoints
pg_stat_get_bgwriter_stat_reset_time pg_stat_get_bgwriter_timed_checkpoints pg_stat_get_blocks_fetched
pg_stat_get_blocks_hit pg_stat_get_buf_alloc pg_stat_get_buf_fsync_backend pg_stat_get_buf_written_backend
pg_stat_get_checkpoint_sync_time pg_stat_get_checkpoint_write_time pg_stat_get_db_active_time
pg_stat_get_db_blk_read_time pg_stat_get_db_blk_write_time pg_stat_get_db_blocks_fetched pg_stat_get_db_blocks_hit
pg_stat_get_db_checksum_failures pg_stat_get_db_checksum_last_failure pg_stat_get_db_conflict_all
pg_stat_get_db_conflict_bufferpin pg_stat_get_db_conflict_lock pg_stat_get_db_conflict_snapshot
pg_stat_get_db_conflict_startup_deadlock pg_stat_get_db_conflict_tablespace pg_stat_get_db_deadlocks
pg_stat_get_db_idle_in_transaction_time pg_stat_get_db_numbackends pg_stat_get_db_session_time
pg_stat_get_db_sessions pg_stat_get_db_sessions_abandoned pg_stat_get_db_sessions_fatal
pg_stat_get_db_sessions_killed pg_stat_get_db_stat_reset_time pg_stat_get_db_temp_bytes pg_stat_get_db_temp_files
pg_stat_get_db_tuples_deleted pg_stat_get_db_tuples_fetched pg_stat_get_db_tuples_inserted
pg_stat_get_db_tuples_returned pg_stat_get_db_tuples_updated pg_stat_get_db_xact_commit pg_stat_get_db_xact_rollback
pg_stat_get_dead_tuples pg_stat_get_function_calls pg_stat_get_function_self_time pg_stat_get_function_total_time
pg_stat_get_ins_since_vacuum pg_stat_get_last_analyze_time pg_stat_get_last_autoanalyze_time
pg_stat_get_last_autovacuum_time pg_stat_get_last_vacuum_time pg_stat_get_live_tuples pg_stat_get_mod_since_analyze
pg_stat_get_numscans pg_stat_get_progress_info pg_stat_get_replication_slot pg_stat_get_slru
pg_stat_get_snapshot_timestamp pg_stat_get_subscription pg_stat_get_subscription_stats pg_stat_get_tuples_deleted
pg_stat_get_tuples_fetched pg_stat_get_tuples_hot_updated pg_stat_get_tuples_inserted pg_stat_get_tuples_returned
pg_stat_get_tuples_updated pg_stat_get_vacuum_count pg_stat_get_wal pg_stat_get_wal_receiver pg_stat_get_wal_senders
pg_statistics_obj_is_visible pg_table_is_visible pg_tablespace_databases pg_tablespace_location pg_timezone_abbrevs
pg_timezone_names pg_trigger_depth pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible
pg_ts_template_is_visible pg_type_is_visible pg_typeof pg_visible_in_snapshot pg_wal_lsn_diff pg_walfile_name
pg_walfile_name_offset phraseto_tsquery pi plainto_tsquery point polygon popen position pow power
querytree quote_ident quote_literal quote_nullable radians radius range_agg range_contains range_intersect
range_intersect_agg range_merge range_minus range_overlaps range_union rank regclass regexp_count regexp_instr
regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse
right round row row_number row_security_active row_to_json rpad rtrim satisfies_hash_partition scale session_user
set_bit set_byte set_masklen setweight sha224 sha256 sha384 sha512 shobj_description show_limit show_trgm sign
similar_escape similar_to_escape similarity sin sind sinh skeys slope soundex split_part sqrt starts_with
statement_timestamp stddev stddev_pop stddev_samp strict_word_similarity string_agg string_to_array string_to_table
strip strpos subltree subpath substr substring subvector sum svals tan tand tanh text text2ltree text_soundex
textcat textlen textlike time time_bucket time_bucket_gapfill timestamp timestamptz timetz timezone to_ascii to_bin
to_char to_date to_hex to_json to_jsonb to_number to_oct to_regclass to_regcollation to_regnamespace to_regoper
to_regoperator to_regproc to_regprocedure to_regrole to_regtype to_timestamp to_tsquery to_tsvector
to_uuidv7_timestamp transaction_timestamp translate treat trim trim_array trim_scale trunc ts_debug ts_delete
ts_filter ts_headline ts_lexize ts_parse ts_rank ts_rank_cd ts_token_type tsmultirange tsquery_and tsquery_not
tsquery_or tsquery_phrase tsrange tstzmultirange tstzrange tsvector_concat tsvector_to_array
txid_current_if_assigned txid_current_snapshot txid_snapshot_xip txid_snapshot_xmax txid_snapshot_xmin
txid_visible_in_snapshot unaccent unicode_assigned unicode_version unistr unnest upper upper_inc upper_inf
uuid_extract_timestamp uuid_extract_version uuid_nil uuid_ns_dns uuid_ns_oid uuid_ns_url uuid_ns_x500 var_pop
var_samp varbit varchar variance vector_dims vector_norm version websearch_to_tsquery width width_bucket
word_similarity xid xml xml_is_well_formed xml_is_well_formed_content xml_is_well_formed_document xmlagg
xmlattributes xmlcomment xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize
xmltable xmltext xmlvalidate xpath xpath_exists
"""
)

POSTGRES_SAFE_VOLATILE = words(
    """
amvalidate approximate_row_count array_sample array_shuffle bernoulli clock_timestamp current_query gen_random_bytes
gen_random_uuid gen_salt normal_rand pg_blocking_pids pg_collation_actual_version pg_current_wal_flush_lsn
pg_current_wal_insert_lsn pg_current_wal_lsn pg_database_collation_actual_version pg_database_size pg_indexes_size
pg_is_in_recovery pg_is_wal_replay_paused pg_jit_available pg_last_wal_receive_lsn pg_last_wal_replay_lsn
pg_last_xact_replay_timestamp pg_lock_status pg_notification_queue_usage pg_partition_ancestors pg_partition_tree
pg_relation_size pg_safe_snapshot_blocking_pids pg_sequence_last_value pg_stat_get_xact_numscans
pg_stat_get_xact_tuples_deleted pg_stat_get_xact_tuples_fetched pg_stat_get_xact_tuples_inserted
pg_stat_get_xact_tuples_returned pg_stat_get_xact_tuples_updated pg_table_size pg_tablespace_size
pg_total_relation_size pg_xact_commit_timestamp random random_normal system timeofday uuid_generate_v1
uuid_generate_v1mc uuid_generate_v3 uuid_generate_v4 uuid_generate_v5 uuidv4 uuidv7
"""
)
"""Functions that are volatile because their result varies, not because they change anything."""

POSTGRES_PREFIXES = ("st_", "postgis_", "h3_")
"""Name prefixes of extensions whose functions only compute."""

POSTGRES_SCHEMAS = frozenset({"pg_catalog", "information_schema"})
"""Schemas that a call may name; functions of any other schema are user-defined."""

UNSAFE = words(
    """
binary_upgrade_set_next_array_pg_type_oid binary_upgrade_set_next_attribute_versions
binary_upgrade_set_next_heap_pg_class_oid binary_upgrade_set_next_heap_relfilenode
binary_upgrade_set_next_index_pg_class_oid binary_upgrade_set_next_index_relfilenode
binary_upgrade_set_next_multirange_array_pg_type_oid binary_upgrade_set_next_multirange_pg_type_oid
binary_upgrade_set_next_pg_authid_oid binary_upgrade_set_next_pg_enum_oid binary_upgrade_set_next_pg_tablespace_oid
binary_upgrade_set_next_pg_type_oid binary_upgrade_set_next_toast_pg_class_oid
binary_upgrade_set_next_toast_relfilenode binary_upgrade_set_record_init_privs brin_summarize_new_values
gin_clean_pending_list pg_backup_start pg_backup_stop pg_cancel_backend pg_create_physical_replication_slot
pg_create_restore_point pg_current_logfile pg_drop_replication_slot pg_get_multixact_members
pg_import_system_collations pg_log_backend_memory_contexts pg_promote pg_replication_origin_create
pg_replication_origin_drop pg_replication_origin_session_progress pg_replication_origin_session_setup
pg_stat_get_xact_blocks_fetched pg_stat_get_xact_blocks_hit pg_stat_get_xact_function_calls
pg_stat_get_xact_function_self_time pg_stat_get_xact_function_total_time pg_stat_get_xact_tuples_hot_updated
pg_stat_reset_replication_slot pg_stat_reset_shared pg_stat_reset_single_function_counters
pg_stat_reset_single_table_counters pg_stat_reset_slru pg_stat_reset_subscription_stats pg_terminate_backend
pg_xact_commit_timestamp_origin pg_xact_status plpgsql_validator setseed txid_status
"""
)
"""Volatile functions of one argument, which `(value).name` calls as well as `name(value)`."""

POSTGRES_DENIED = "|".join(
    sorted(
        words(
            r"""
crosstab\w* connectby xpath_table xslt_process dblink\w* \w+_to_xml\w* txid_current pg_current_xact_id pg_config
pg_show_all_\w+ pg_event_trigger_\w+ pg_read_\w+ pg_ls_\w+ pg_stat_file ts_stat ts_rewrite lo_\w+ lo(?:read|write)
pg_sleep\w* pg_stat_get_activity pg_stat_get_backend_activity pg_stat_statements
pg_file_\w+ pg_logdir_ls pg_advisory_\w+ pg_try_advisory_\w+ pg_notify set_config nextval setval currval
lastval (?:array|domain|record|range|multirange)_(?:in|recv)
pg_hba_file_rules pg_ident_file_mappings st_fromgdalraster http\w* hypopg\w* file_\w+ aws_\w+
"""
        )
    )
)
"""Functions denied whatever their volatility: they run text as SQL, dump tables, take a transaction number, lock, or
read files."""

LIKE_COLUMNS = re.compile(
    r"(?:http|file|aws|hypopg|crosstab)\w*|lo_(?!(?:get|unlink|create?|close|tell(?:64)?|import)$)\w+"
)
"""Denied names that are more often a column than a function of one argument; the engine's own list, if it has one,
decides instead."""

SQLITE_NAMES = words(
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

SQLITE_TABLES = words(
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
"""Pragmas whose argument names what to describe, not a value to set."""

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
"""Pragmas that only read when used without a value."""

SQLITE_DENIED = "|".join(
    sorted(
        words(
            r"""
load_extension readfile writefile edit eval fsdir fts3_tokenizer fts5 optimize sqlite_log sqlar_\w+ zipfile\w*
shell_\w+ lsmode sqlite_filestat exec\w* system
"""
        )
    )
)
"""Functions that an engine may list although they load code, access files or reorganise an index."""

STANDARD_NAMES = words(
    """
abs array_agg array_any avg cast ceil ceiling char_length character_length coalesce concat count cume_dist
current_date current_time current_timestamp dense_rank exp extract first_value floor greatest grouping lag
last_value lead least length ln lower ltrim max min mod nth_value ntile nullif octet_length overlay percent_rank
percentile_cont percentile_disc position power rank replace round row_number rtrim sign sqrt stddev stddev_pop
stddev_samp string_agg substr substring sum trim upper var_pop var_samp variance width_bucket
"""
)

TSQL_NAMES = words(
    """
abs acos any_value approx_count_distinct approx_percentile_cont approx_percentile_disc ascii asin atan atn2 avg
base64_decode base64_encode binary_checksum bit_count cast ceiling char charindex checksum checksum_agg choose
coalesce col_length col_name collationproperty columnproperty compress concat concat_ws connectionproperty contains
containstable convert cos cot count count_big cume_dist current_date current_request_id current_timestamp
current_timezone current_timezone_id current_user databasepropertyex datalength date_bucket dateadd datediff
datediff_big datefromparts datename datepart datetime2fromparts datetimefromparts datetimeoffsetfromparts datetrunc
day db_id db_name decompress degrees dense_rank difference edit_distance edit_distance_similarity eomonth error_line
error_message error_number error_severity error_state exp first_value floor format formatmessage freetext
freetexttable fulltextserviceproperty generate_series get_bit getdate getutcdate greatest grouping grouping_id
has_dbaccess has_perms_by_name hashbytes ident_current ident_incr ident_seed iif index_col indexkey_property
indexproperty is_member is_rolemember is_srvrolemember isdate isjson isnull isnumeric jaro_winkler_distance
jaro_winkler_similarity json_array json_arrayagg json_contains json_modify json_object json_objectagg
json_path_exists json_query json_value lag last_value lead least left left_shift len log log10 lower ltrim max min
min_active_rowversion month nchar newid nodes ntile nullif object_definition object_id object_name
object_schema_name objectproperty objectpropertyex openjson original_db_name parse parsename patindex percent_rank
percentile_cont percentile_disc pi power product quotename radians rand rank regexp_count regexp_instr regexp_like
regexp_matches regexp_replace regexp_split_to_table regexp_substr replace replicate reverse right right_shift round
row_number rowcount_big rtrim schema_id schema_name scope_identity serverproperty session_id session_user set_bit
sign sin smalldatetimefromparts soundex space sql_variant_property sqrt square stats_date stdev stdevp str
string_agg string_escape string_split stuff substring sum suser_id suser_name suser_sid suser_sname switchoffset
sysdatetime sysdatetimeoffset system_user sysutcdatetime tan timefromparts todatetimeoffset translate
trigger_nestlevel trim try_cast try_convert try_parse type_id type_name typeproperty unicode unistr upper user
user_id user_name values var varp vector_distance vector_norm vector_normalize xact_state year
"""
)

TSQL_METHODS = words(
    """
exist getancestor getlevel isdescendantof lat long nodes query starea stasbinary stastext stbuffer stcontains
stdistance stequals stgeometrytype stintersection stintersects stlength stnumpoints stpointn stsrid stunion stwithin
stx sty tostring value
"""
)
"""Methods of values of the types xml, geography, geometry and hierarchyid, called with a dot."""

RESERVED = words(
    """
add alter authorization backup begin break browse bulk checkpoint close clustered commit compute constraint
continue create cursor database dbcc deallocate declare delete deny disk distributed drop dump
errlvl exec execute exit external file fillfactor function goto grant holdlock identity_insert
identitycol if index insert into key kill lineno load merge nocheck nonclustered offsets open
opendatasource openquery openrowset openxml plan primary print proc procedure public raiserror read
readtext reconfigure references replication restore restrict return revert revoke rollback rowguidcol rule save
schema securityaudit semantickeyphrasetable semanticsimilaritydetailstable semanticsimilaritytable set setuser
shutdown statistics textsize tran transaction trigger truncate tsequal update updatetext use view waitfor while
writetext
"""
)
"""Words that are never a plain name, and never part of a query."""

HINTS = words(
    """
concat expand fast fastfirstrow for force forcescan forceseek group hash index join
label loop maxdop maxrecursion merge noexpand nolock nowait optimize order
readcommitted readpast readuncommitted recompile robust snapshot union
unknown views
"""
)
"""Allowed hints of tables and queries; all others lock, trace or fix a plan."""

TSQL_DENIED = "|".join(
    sorted(
        words(
            r"""
open(?:query|rowset|datasource|xml) xp_\w+ sp_\w+ fn_\w+ dm_\w+ ai_\w+ textptr
"""
        )
    )
)
"""Functions that run text elsewhere, read files, or reveal details of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The functions of one dialect that a statement may call."""

    certain: frozenset[str]
    """Functions that only read, even if the engine calls them volatile."""
    names: frozenset[str] = frozenset()
    """Functions that only read, unless the engine calls one of that name volatile, since a user may have made
    another."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of names that are treated like `names`."""
    denied: re.Pattern[str]
    """Functions denied even if the engine lists them as harmless."""
    tables: frozenset[str] | None = None
    """Functions allowed in FROM; None if every function is."""
    schemas: frozenset[str] | None = frozenset()
    """Schemas allowed before a function; None for any, since the qualifier may also be a value."""
    methods: frozenset[str] = frozenset()
    """Methods allowed on any value, called with a dot."""
    packages: frozenset[str] = frozenset()
    """Allowed functions of packages, with the package's name and a dot."""

    def knows(self, name: str, functions: Mapping[str, Stability]) -> bool:
        """Return whether a function only reads, by these lists or the engine's own."""
        said = functions.get(name)
        if said == "made" or self.denied.fullmatch(name):
            return False
        if name in self.certain:
            return True
        listed = name in self.names or name in STANDARD_NAMES or name.startswith(self.prefixes)
        return said in ("immutable", "stable") or (listed and said is None)


CATALOGUES: Mapping[Dialect, Catalogue] = {
    "postgres": Catalogue(
        certain=POSTGRES_SAFE_VOLATILE,
        names=POSTGRES_NAMES,
        prefixes=POSTGRES_PREFIXES,
        denied=re.compile(POSTGRES_DENIED),
        schemas=POSTGRES_SCHEMAS,
    ),
    "mysql": Catalogue(certain=MYSQL_NAMES, prefixes=MYSQL_PREFIXES, denied=re.compile(MYSQL_DENIED)),
    "sqlite": Catalogue(certain=SQLITE_NAMES | SQLITE_TABLES, denied=re.compile(SQLITE_DENIED), tables=SQLITE_TABLES),
    "duckdb": Catalogue(
        certain=DUCKDB_NAMES | DUCKDB_TABLES,
        prefixes=DUCKDB_PREFIXES,
        denied=re.compile(DUCKDB_DENIED),
        tables=DUCKDB_TABLES,
        schemas=None,
    ),
    "tsql": Catalogue(certain=TSQL_NAMES, denied=re.compile(TSQL_DENIED), methods=TSQL_METHODS),
    "oracle": Catalogue(
        certain=ORACLE_NAMES, denied=re.compile(ORACLE_DENIED), methods=ORACLE_METHODS, packages=ORACLE_PACKAGES
    ),
}
