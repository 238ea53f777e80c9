import pytest

from ullage.sql import Column, Dialect, Table
from ullage.sql.database import first_rows

pytestmark = pytest.mark.requirement("S0:sql:engines")


@pytest.mark.parametrize(
    ("dialect", "statement"),
    [
        ("sqlite", 'SELECT * FROM "a""b" LIMIT 3'),
        ("postgres", 'SELECT * FROM "a""b" LIMIT 3'),
        ("mysql", 'SELECT * FROM `a"b` LIMIT 3'),
        ("tsql", 'SELECT TOP 3 * FROM [a"b]'),
        ("oracle", 'SELECT * FROM "a""b" FETCH FIRST 3 ROWS ONLY'),
    ],
)
def test_a_table_is_named_as_its_dialect_does(dialect: Dialect, statement: str):
    assert first_rows(dialect, Table(name='a"b'), 3) == statement


def test_a_table_of_another_schema_is_named_with_it():
    assert first_rows("tsql", Table(name="t]; DROP", schema="s"), 1) == "SELECT TOP 1 * FROM [s].[t]]; DROP]"


def test_the_columns_are_named_since_a_role_may_read_only_some():
    table = Table(name="t", columns=(Column(name='a"b', type="text"), Column(name="c", type="text")))
    assert first_rows("postgres", table, 1, by_name=True) == 'SELECT "a""b", "c" FROM "t" LIMIT 1'
