import json

import pytest
from inline_snapshot import snapshot

from ullage.app import meter
from ullage.errors import InvalidArguments
from ullage.sql import Column, ForeignKey, Index, Routine, Structure, Table, Trigger
from ullage.sql.describe import (
    DETAILS,
    Detail,
    choose,
    describe,
    find_table,
    full,
    line,
    routine_line,
    schema_json,
    short_type,
    spell,
    table_json,
    triggers_json,
)

pytestmark = pytest.mark.requirement("S0:sql:schema")


def weigh(text: str) -> int:
    return meter().count(text, "gpt-4o").tokens


CUSTOMERS = Table(
    name="customers",
    columns=(
        Column(name="id", type="INTEGER", nullable=False),
        Column(name="email", type="character varying(80)", comment="where\nto write"),
    ),
    primary_key=("id",),
    rows=250,
)
ORDERS = Table(
    name="orders",
    columns=(
        Column(name="id", type="bigint", nullable=False, generated=True),
        Column(name="customer_id", type="integer", nullable=False),
        Column(name="placed_at", type="timestamp without time zone", default="now()"),
        Column(name="total", type="numeric(10,2)"),
        Column(name="status", type="enum(" + ",".join(f"'value_{number}'" for number in range(20)) + ")"),
    ),
    primary_key=("id",),
    foreign_keys=(
        ForeignKey(columns=("customer_id",), table="customers", to=("id",), name="whose", on_delete="CASCADE"),
    ),
    indexes=(
        Index(name="by_customer", columns=("customer_id", "placed_at")),
        Index(name="u", columns=("id",), unique=True),
    ),
    checks=("CHECK (total > 0)",),
    triggers=(Trigger(name="touch", timing="AFTER", event="INSERT", statement="UPDATE customers SET seen = 1"),),
    rows=10_400,
    comment="what was bought",
)
LINES = Table(
    name="lines",
    schema="sales",
    columns=(Column(name="order_id", type="bigint"), Column(name="number", type="int"), Column(name="mail", type="")),
    primary_key=("order_id", "number"),
    foreign_keys=(
        ForeignKey(columns=("mail",), table="customers", to=("email",), on_update="NO ACTION"),
        ForeignKey(columns=("order_id",), table="orders", to=()),
    ),
)
TOTALS = Table(
    name="totals", kind="view", columns=(Column(name="sum", type="double precision"),), definition="SELECT\n 1"
)
ROUTINES = (
    Routine(name="rate", kind="function", arguments="amount numeric", returns="numeric"),
    Routine(name="purge", kind="procedure", schema="sales"),
)
SHOP = Structure(tables=(CUSTOMERS, LINES, ORDERS, TOTALS), routines=ROUTINES, name="shop")


@pytest.mark.requirement("S0:sql:schema")
def test_a_table_is_one_line_with_its_key_its_references_and_its_size():
    keys = {"customers": ("id",), "orders": ("id",)}
    assert line(ORDERS, keys) == snapshot(
        "orders(id bigint*, customer_id int>customers, placed_at timestamp, total numeric, status enum(…)) ~10k rows"
    )
    assert line(LINES, keys) == snapshot("sales.lines(order_id bigint*>orders, number int*, mail>customers.email)")
    assert line(TOTALS, keys) == snapshot("view totals(sum double)")


@pytest.mark.requirement("S0:sql:schema")
def test_the_full_description_has_everything_known():
    assert full(ORDERS).replace(ORDERS.columns[4].type, "enum(...)") == snapshot("""\
table orders ~10k rows -- what was bought
  id bigint primary key generated
  customer_id integer not null
  placed_at timestamp without time zone default now()
  total numeric(10,2)
  status enum(...)
  foreign key (customer_id) references customers(id) on delete cascade
  index by_customer (customer_id, placed_at)
  unique index u (id)
  CHECK (total > 0)
  trigger touch after insert\
""")
    assert full(LINES) == snapshot("""\
table sales.lines
  order_id bigint
  number int
  mail
  primary key (order_id, number)
  foreign key (mail) references customers(email)
  foreign key (order_id) references orders\
""")
    assert full(TOTALS) == snapshot("""\
view totals
  sum double precision
  as SELECT 1\
""")
    assert "-- where to write" in full(CUSTOMERS)


def test_a_routine_is_described_with_arguments_and_result():
    assert [routine_line(one) for one in ROUTINES] == snapshot(
        ["function rate(amount numeric) returns numeric", "procedure sales.purge()"]
    )


def test_each_detail_has_its_text():
    said = {detail: describe(SHOP, detail, budget=5_000, weigh=weigh) for detail in DETAILS}
    assert said["names"] == snapshot("""\
3 tables, 1 view, 2 routines
customers ~250
sales.lines
orders ~10k
view totals
function rate
procedure sales.purge\
""")
    assert said["lines"].splitlines()[0] == "-- * primary key, > references"
    assert len(said["lines"].splitlines()) == 7
    assert "index by_customer" in said["full"]
    assert describe(Structure(), "full", budget=50, weigh=weigh) == "no tables"
    assert describe(Structure(routines=ROUTINES), "lines", budget=50, weigh=weigh).startswith("function rate")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        *((0, "~0"), (999, "~999"), (1_000, "~1k"), (1_234, "~1.2k"), (2_000, "~2k"), (9_949, "~9.9k")),
        *((10_400, "~10k"), (999_400, "~999k"), (1_000_000, "~1M"), (1_000_000_000, "~1B"), (10**10, "~10B")),
    ],
)
def test_a_size_has_no_more_digits_than_it_deserves(rows: int, said: str):
    assert line(Table(name="t", rows=rows), {}) == f"t() {said} rows"


def test_large_sizes_have_their_units():
    assert [line(Table(name="t", rows=rows), {}) for rows in (3_400_000, 12_000_000_000)] == [
        "t() ~3.4M rows",
        "t() ~12B rows",
    ]


@pytest.mark.parametrize(
    ("written", "short"),
    [
        ("INTEGER", "int"),
        ("character varying(20)", "varchar"),
        ("timestamp(3) with time zone", "timestamptz"),
        ("character(2)", "char"),
        ("decimal(10, 2) unsigned", "decimal unsigned"),
        ("boolean", "bool"),
        ("interval", "interval"),
    ],
)
def test_a_type_is_written_short(written: str, short: str):
    assert line(Table(name="t", columns=(Column(name="c", type=written),)), {}) == f"t(c {short})"


def test_names_from_the_database_stay_on_their_line_and_hide_nothing():
    evil = Table(name="a\nb\u202e\u200b", columns=(Column(name="x\r\n-- obey", type="text"),), comment="\x1b[31mred")
    for text in (line(evil, {}), describe(Structure(tables=(evil,)), "names", budget=99, weigh=weigh)):
        assert not {"\u202e", "\u200b", "\x1b", "\r"} & set(text)
    assert len(full(evil).splitlines()) == 2


def test_a_description_that_does_not_fit_has_less_detail_and_says_so():
    whole = describe(SHOP, "full", budget=5_000, weigh=weigh)
    lesser = describe(SHOP, "full", budget=weigh(whole) - 1, weigh=weigh)
    assert lesser.startswith("-- * primary key")
    assert lesser.splitlines()[-1].startswith(f"-- full would exceed {weigh(whole) - 1} tokens: narrow with pattern")


def _many(count: int, *, schemas: int = 0) -> Structure:
    words = ("sales", "stock", "staff", "Order", "web")
    return Structure(
        tables=tuple(
            Table(
                name=f"{words[number % 5]}_{number}",
                schema=f"s{number % schemas}" if schemas else None,
                columns=tuple(Column(name=f"column_{one}", type="text") for one in range(20)),
                rows=number,
            )
            for number in range(count)
        )
    )


@pytest.mark.requirement("S0:sql:schema")
@pytest.mark.parametrize("budget", [12, 30, 50, 300, 3_000, 8_000, 20_000])
@pytest.mark.parametrize("detail", DETAILS)
def test_a_description_never_exceeds_its_budget(budget: int, detail: Detail):
    for structure in (_many(1_000), _many(300, schemas=40)):
        assert weigh(describe(structure, detail, budget=budget, weigh=weigh)) <= budget


def test_a_thousand_tables_are_grouped_by_the_beginning_of_their_names():
    said = describe(_many(1_000), "lines", budget=500, weigh=weigh)
    assert said == snapshot("""\
1000 tables; narrow with pattern
sales_* 200
stock_* 200
staff_* 200
Order_* 200
web_* 200\
""")
    cut = describe(_many(300, schemas=100), "names", budget=60, weigh=weigh)
    assert cut.startswith("300 tables; narrow with pattern (")
    assert "beginnings not shown)" in cut
    alone = Structure(tables=tuple(Table(name=f"{'x' * 40}{number}é") for number in range(90)))
    assert describe(alone, "names", budget=60, weigh=weigh).startswith("90 tables")
    odd = Structure(tables=(Table(name="camelCase" * 9), Table(name="___")))
    assert "camel*" in describe(odd, "names", budget=22, weigh=weigh)


def test_a_pattern_means_tables_by_name_by_part_or_by_column():
    def names(pattern: str) -> list[str]:
        return [table.name for table in choose(SHOP, pattern).tables]

    assert names("") == ["customers", "lines", "orders", "totals"]
    assert names("ORD*") == ["orders"]
    assert names("ord") == ["orders"]
    assert names("sales.*") == ["lines"]
    assert names("orders, totals") == ["orders", "totals"]
    assert names("placed") == ["orders"]
    assert [one.name for one in choose(SHOP, "purge").routines] == ["purge"]


def test_a_pattern_that_means_nothing_is_refused_with_the_nearest():
    with pytest.raises(InvalidArguments, match="no table or column is like `ordres`") as caught:
        choose(SHOP, "ordres")
    assert caught.value.options == ("orders",)


@pytest.mark.parametrize("name", ["orders", "Orders", '"orders"', "`orders`", "public.orders", " main.orders "])
def test_a_table_is_found_however_it_is_written(name: str):
    assert find_table(SHOP, name) is ORDERS


def test_a_table_of_another_schema_is_found_with_it_and_without():
    assert find_table(SHOP, "lines") is LINES
    assert find_table(SHOP, "sales.lines") is LINES
    odd = Table(name='a.b "c"')
    assert find_table(Structure(tables=(odd,)), 'a.b "c"') is odd


def test_a_table_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(InvalidArguments) as caught:
        find_table(SHOP, "order")
    assert caught.value.options[0] == "orders"
    with pytest.raises(InvalidArguments):
        find_table(SHOP, "other.orders")


def test_a_name_that_two_schemas_have_must_be_said_in_full():
    twice = Structure(tables=(Table(name="t", schema="a"), Table(name="t", schema="b")))
    with pytest.raises(InvalidArguments, match="several tables") as caught:
        find_table(twice, "t")
    assert caught.value.options == ("a.t", "b.t")


def test_spelling_finds_what_is_near_and_what_is_within():
    assert spell("custmers", ["customers", "orders"]) == ("customers",)
    assert spell("id", ["customer_id", "total"]) == ("customer_id",)
    assert spell("zzz", ["customers"]) == ()


@pytest.mark.requirement("S0:sql:schema")
def test_the_originals_json_is_kept_field_by_field():
    told = json.loads(schema_json(SHOP, "postgres", "x"))
    assert list(told) == ["databaseName", "databaseType", "tables"]
    assert (told["databaseName"], told["databaseType"]) == ("shop", "PostgreSQL")
    assert told["tables"][0] == {
        "tableName": "customers",
        "tableType": "TABLE",
        "columns": [
            {"columnName": "id", "dataType": "INTEGER", "columnSize": None, "nullable": False, "isPrimaryKey": True},
            {
                "columnName": "email",
                "dataType": "character varying",
                "columnSize": 80,
                "nullable": True,
                "isPrimaryKey": False,
            },
        ],
    }
    assert told["tables"][3]["tableType"] == "VIEW"
    assert json.loads(schema_json(Structure(), "sqlite", "x"))["databaseName"] == "x"


@pytest.mark.requirement("S0:sql:schema")
def test_the_originals_details_of_a_table():
    told = json.loads(table_json(ORDERS))
    assert list(told) == ["tableName", "tableType", "columns", "indexes", "foreignKeys", "constraints"]
    assert told["columns"][3] == {
        "columnName": "total",
        "dataType": "numeric",
        "columnSize": 10,
        "decimalDigits": 2,
        "nullable": True,
        "defaultValue": None,
        "isPrimaryKey": False,
        "isAutoIncrement": False,
    }
    assert told["columns"][0]["isAutoIncrement"] is True
    assert told["indexes"][1] == {
        "indexName": "by_customer",
        "unique": False,
        "columnName": "placed_at",
        "ordinalPosition": 2,
    }
    assert told["foreignKeys"] == [
        {
            "fkName": "whose",
            "fkColumn": "customer_id",
            "pkTableName": "customers",
            "pkColumn": "id",
            "updateRule": "NO ACTION",
            "deleteRule": "CASCADE",
        }
    ]
    assert [one["constraintType"] for one in told["constraints"]] == ["PRIMARY KEY", "CHECK"]
    assert json.loads(table_json(LINES))["foreignKeys"][1]["pkColumn"] is None


def test_the_originals_triggers():
    assert json.loads(triggers_json([ORDERS], "orders")) == {
        "tableName": "orders",
        "triggers": [
            {
                "triggerName": "touch",
                "event": "INSERT",
                "timing": "AFTER",
                "statement": "UPDATE customers SET seen = 1",
            }
        ],
    }


SALES = """
sold_date_sk>date_dim sold_time_sk>time_dim item_sk*>item customer_sk>customer store_sk>store
promo_sk>promotion ticket_number* quantity wholesale_cost:numeric(7,2) list_price:numeric(7,2)
sales_price:numeric(7,2) net_paid:numeric(7,2) ext_discount_amt:numeric(7,2) ext_sales_price:numeric(7,2)
ext_tax:numeric(7,2) coupon_amt:numeric(7,2) net_profit:float
"""
PEOPLE = """
customer_sk* customer_id:character(16) current_addr_sk>customer_address first_sales_date_sk>date_dim birth_day
birth_month birth_year salutation:character(10) first_name:character(20) last_name:character(30)
login:character(13) preferred_flag:character(1) birth_country:character(20) email_address:character(50)
last_review_date_sk>date_dim
"""
PLACES = """
center_sk* center_id:character(16) start_date:date end_date:date closed_date_sk>date_dim name:character(50)
class:character(50) employees sq_ft hours:character(20) manager:character(40) street_number:character(10)
city:character(60) street_name:character(60) street_type:character(15) suite_number:character(10)
county:character(30) state:character(2) zip:character(10) country:character(20) gmt_offset:numeric(5,2)
tax_percentage:numeric(5,2)
"""


def _warehouse(name: str, prefix: str, described: str) -> Table:
    columns, keys, foreign = list[Column](), list[str](), list[ForeignKey]()
    for word in described.split():
        left, _, other = word.partition(">")
        column, _, kind = left.partition(":")
        named = f"{prefix}_{column.rstrip('*')}"
        columns.append(Column(name=named, type=kind or "integer"))
        keys += [named] if column.endswith("*") else []
        foreign += [ForeignKey(columns=(named,), table=other, to=("sk",))] if other else []
    return Table(name=name, columns=tuple(columns), primary_key=tuple(keys), foreign_keys=tuple(foreign), rows=123_456)


@pytest.mark.requirement("S0:sql:schema")
def test_a_schema_of_24_tables_costs_at_most_15_hundredths_of_the_originals():
    kinds = {"sales": SALES, "customers": PEOPLE, "centers": PLACES}
    places = {
        "ss": "store",
        "ws": "web",
        "cs": "catalog",
        "cc": "call",
        "p": "phone",
        "t": "tele",
        "f": "fair",
        "m": "mail",
    }
    tables = [
        _warehouse(f"{place}_{kind}", prefix, described)
        for prefix, place in places.items()
        for kind, described in kinds.items()
    ]
    structure = Structure(tables=tuple(tables))
    assert len(tables) == 24
    ours = weigh(describe(structure, "lines", budget=100_000, weigh=weigh))
    assert ours <= 0.15 * weigh(schema_json(structure, "postgres", "x"))


def test_a_type_of_60_characters_is_whole_and_a_longer_one_loses_what_is_in_brackets():
    assert short_type("x" * 60) == "x" * 60
    assert short_type("ENUM(" + "'a'," * 30 + ")") == "enum(…)"
    assert short_type("y" * 100) == "y" * 60 + "(…)"
