"""Which words may stand before a parenthesis without being a call, and which types does everybody know?

Data only.
"""

from .wordlist import words

__all__ = ["ALWAYS_GRAMMAR", "BEFORE_PARENTHESIS", "TYPES"]

ALWAYS_GRAMMAR = words(
    """
all and any array as between by case columns cross cube distinct else escape except exclude exists filter for from
full group groups having ilike in inner intersect is join lateral like limit materialized not null nulls of offset on
only operator or order outer over overlaps partition passing recursive repeatable returning rollup row rows select
sets similar some table tablesample then union using values when where window with within without
"""
)
"""Words that PostgreSQL or MySQL itself puts before a parenthesis, whatever functions there are."""

BEFORE_PARENTHESIS = ALWAYS_GRAMMAR | words(
    """
against anti apply asof at before bernoulli day force hour index interval keep key match match_recognize measures
minus minute month nearest nested option overflow path pattern percent pivot positional prior qualify range regexp
rename reservoir rlike root sample second seed semi separator subpartition system top unpivot use xor year
"""
)
"""Words of the grammar; a function under one of these names is still seen in the tree."""

TYPES = words(
    """
_bool _int4 _int8 _numeric _text _uuid _varchar aclitem anyarray array bfile bigint bignum bigserial binary bit blob
bool boolean box box2d box3d bpchar bytea char character cid cidr circle citext clob cstring cube date
datemultirange daterange datetime datetime2 datetime64 datetimeoffset dec decimal double enum fixed float float4
float8 geography geometry geometrycollection halfvec hierarchyid hstore hugeint image inet int int1 int128 int16
int2 int256 int2vector int32 int4 int4multirange int4range int64 int8 int8multirange int8range integer interval json
jsonb jsonpath line linestring list long longblob longtext lquery lseg ltree ltxtquery macaddr macaddr8 map
mediumblob mediumint mediumtext money multilinestring multipoint multipolygon name national nchar nclob ntext null
number numeric nummultirange numrange nvarchar nvarchar2 object oid oidvector path pg_lsn pg_node_tree pg_snapshot
point polygon precision raster raw real refcursor regclass regcollation regconfig regdictionary regnamespace regoper
regoperator regproc regprocedure regrole regtype row rowid rowversion serial set signed smalldatetime smallfloat
smallint smallmoney smallserial sparsevec sql_variant string struct sysname text tid time time_ns timestamp
timestamp_ms timestamp_ns timestamp_s timestamp_us timestampltz timestampntz timestamptz timetz tinyblob tinyint
tinytext tsmultirange tsquery tsrange tstzmultirange tstzrange tsvector txid_snapshot ubigint uhugeint uint uint16
uint32 uint64 uint8 uinteger union uniqueidentifier unknown unsigned urowid usmallint utinyint uuid varbinary varbit
varchar varchar2 variant varint varying vector xid xid8 xml year
"""
)
