"""Which functions of Oracle only read?

Data only. A package is somebody's code, so those are named one by one; what parses XML can fetch what the XML names, so
it is left out.
"""

from ..wordlist import words

__all__ = ["DENIED", "METHODS", "NAMES", "PACKAGES"]

NAMES = words(
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

METHODS = words(
    """
getblobval getclobval getnumberval getstringval
"""
)
"""Of values; called with a dot."""

PACKAGES = words(
    """
dbms_lob.compare dbms_lob.getlength dbms_lob.instr dbms_lob.substr dbms_random.normal dbms_random.string
dbms_random.value
"""
)
"""What may be called of a package."""

DENIED = "|".join(
    sorted(
        words(
            r"""
dbms_\w+ utl_\w+ httpuritype dburitype xdburitype urifactory xmltype xmlparse sys_eval owa_\w+ ctx_\w+ bfilename
xmltransform updatexml deletexml insertchildxml appendchildxml sys_xmlgen sys_xmlagg sys_dburigen
"""
        )
    )
)
"""They run text, reach the network or files, or parse XML that does."""
