import pytest

from ullage.errors import QueryFailed
from ullage.sql import Column, Structure, Table
from ullage.sql.run_query import is_about_a_name, suggest_names

pytestmark = pytest.mark.requirement("S0:sql:query")


def table(name: str, *columns: str) -> Table:
    return Table(name=name, columns=tuple(Column(name=column, type="int") for column in columns))


SHOP = Structure(tables=(table("customers", "id", "name"), table("orders", "id", "customer_id", "total")))


@pytest.mark.parametrize(
    "message",
    [
        "no such table: ordrs",
        'relation "ordrs" does not exist',
        "Catalog Error: Table with name ordrs does not exist!",
        "Table 'shop.ordrs' doesn't exist",
        "Invalid object name 'dbo.ordrs'.",
    ],
)
def test_a_table_that_does_not_exist_comes_with_the_nearest(message: str):
    error = QueryFailed(message)
    assert is_about_a_name(error)
    mended = suggest_names(error, SHOP, ("ordrs",))
    assert (mended.message, mended.options) == (message, ("orders",))
    assert mended.suggestion


@pytest.mark.parametrize(
    "message",
    [
        "no such column: totl",
        "no such column: o.totl",
        'column "totl" does not exist',
        "column o.totl does not exist",
        'Binder Error: Referenced column "totl" not found in FROM clause!',
        'Binder Error: Table "o" does not have a column named "totl"',
        "Unknown column 'totl' in 'field list'",
        "Invalid column name 'totl'.",
    ],
)
def test_a_column_that_does_not_exist_comes_with_the_nearest(message: str):
    assert suggest_names(QueryFailed(message), SHOP, ("orders",)).options == ("orders.total",)


def test_columns_are_those_of_the_questions_tables():
    assert suggest_names(QueryFailed("no such column: nam"), SHOP, ("main.customers",)).options == ("customers.name",)
    every = suggest_names(QueryFailed("no such column: ids"), SHOP, ()).options
    assert every == ("customers.id", "orders.id")


def test_where_no_column_is_near_all_are_named():
    assert suggest_names(QueryFailed("no such column: zzz"), SHOP, ("orders",)).options == (
        "id",
        "customer_id",
        "total",
    )


def test_any_other_error_is_unchanged():
    error = QueryFailed("division by zero")
    assert not is_about_a_name(error)
    assert suggest_names(error, SHOP, ()) is error


def test_options_that_were_there_stay_where_no_name_is_near():
    assert suggest_names(QueryFailed("no such table: zzz", options=("x",)), SHOP, ()).options == ("x",)
