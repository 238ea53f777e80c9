"""Which functions of MySQL and MariaDB only read?

Data only. `NAMES` are the native functions of MySQL 9 and MariaDB 12 that compute or tell of the session; those that
wait, lock, read files or move a sequence are left out, and so are all that are loaded or stored.
"""

from ..wordlist import words

__all__ = ["DENIED", "NAMES", "PREFIXES"]

NAMES = words(
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

PREFIXES = ("st_",)

DENIED = "|".join(
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
"""They wait, lock, read files, move sequences or run what was loaded."""
