"""Which value, and which words, does a text become?"""

from decimal import Decimal

import pytest

from ullage.sql.network.database_pool import first_line, number, real, without_data, without_secrets, written_json
from ullage.sql.network.mysql import cell as of_mysql
from ullage.sql.network.postgresql import cell as of_postgresql
from ullage.table import Cell

pytestmark = pytest.mark.requirement("S0:sql:engines")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.50, "é"]}', {"a": [1, 2.5, "é"]}),
        ("[0.1234567890123456789]", [Decimal("0.1234567890123456789")]),
        ("[1e999]", [Decimal("1e999")]),
        ("[NaN]", "[NaN]"),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ('["\\ud800"]', '["\\ud800"]'),
        ("7", "7"),
        ("null", "null"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_json_is_read_only_where_nothing_is_lost(text: str, value: Cell) -> None:
    assert written_json(text) == value


def test_numbers_that_json_has_not_stay_text() -> None:
    assert (real("Infinity"), real("0.5")) == ("Infinity", 0.5)
    assert (number("NaN"), number("1.10"), number("$1")) == ("NaN", Decimal("1.10"), "$1")


def test_a_value_that_is_too_long_is_text_of_more_than_the_limit() -> None:
    assert of_postgresql("é".encode() * 9, 25, 3) == "é" * 8
    assert of_postgresql(b"1234567", 23, 3) == "1234567"
    assert of_postgresql("💧".encode() * 4, 25, 3) == "💧" * 4
    assert of_mysql(b"1234567", 3, 63, 3) == "1234567"
    assert of_mysql(b"\x01\x00", 16, 63, 3) == 256
    assert of_mysql(b'{"a": 1}', 245, 63, 30) == {"a": 1}
    assert of_mysql(b"abcdefgh", 252, 63, 3) == "0x6162"
    assert of_mysql(b"\xff", 253, 45, 3) == "\ufffd"


@pytest.mark.parametrize(
    ("message", "sql", "shown"),
    [
        ('relation "shop" does not exist', "SELECT * FROM Shop", 'relation "shop" does not exist'),
        ('invalid input for integer: "secret"', "SELECT a::int", 'invalid input for integer: "…"'),
        ('invalid input for integer: "a"b"', "SELECT a::int", 'invalid input for integer: "…"'),
        ('invalid input: "a" and "b" here', "SELECT a", 'invalid input: "…" here'),
        ("division by zero", "SELECT 1/0", "division by zero"),
    ],
)
def test_a_message_repeats_only_what_was_asked(message: str, sql: str, shown: str) -> None:
    assert without_data(message, sql, '"') == shown


def test_a_message_is_its_first_line_without_secrets() -> None:
    assert first_line("\n one \ntwo") == "one"
    assert without_secrets("user a password hunter2", ("hunter2", "a")) == "user … p…ssword …"
