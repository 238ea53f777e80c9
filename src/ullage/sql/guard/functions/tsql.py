"""Which functions and words of SQL Server only read?

Data only. `RESERVED` matters because this language needs no semicolon: a reserved word that the parser takes for an
alias begins a second statement on the server.
"""

from ..wordlist import words

__all__ = ["DENIED", "HINTS", "METHODS", "NAMES", "RESERVED"]

NAMES = words(
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

METHODS = words(
    """
exist getancestor getlevel isdescendantof lat long nodes query starea stasbinary stastext stbuffer stcontains
stdistance stequals stgeometrytype stintersection stintersects stlength stnumpoints stpointn stsrid stunion stwithin
stx sty tostring value
"""
)
"""Of values of the types xml, geography, geometry and hierarchyid; called with a dot."""

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
"""Never a plain name, and never a part of a query."""

HINTS = words(
    """
concat expand fast fastfirstrow for force forcescan forceseek group hash index join
label loop maxdop maxrecursion merge noexpand nolock nowait optimize order
readcommitted readpast readuncommitted recompile robust snapshot union
unknown views
"""
)
"""Of tables and queries; the others lock, trace or fix a plan."""

DENIED = "|".join(
    sorted(
        words(
            r"""
open(?:query|rowset|datasource|xml) xp_\w+ sp_\w+ fn_\w+ dm_\w+ ai_\w+ textptr
"""
        )
    )
)
"""They run text elsewhere, read files, or tell of the server."""
