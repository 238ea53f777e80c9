"""Values of SQLite and DuckDB come back as text or JSON that their own engine reads as the same value."""

import json
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ullage.sql import Answer, Question
from ullage.sql.embedded import EmbeddedEngine
from ullage.table import Cell, dump_value

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:engines")]

POOL = (
    *("0", "1", "-1", "127", "255", "-128", "65535", "4294967295", "18446744073709551615", "-9223372036854775808"),
    *("170141183460469231731687303715884105727", "0.1", "-0.1", "1.10", "3.4028235e38", "1e308", "1e-7", "5e-324"),
    *(
        "infinity",
        "-infinity",
        "nan",
        "true",
        "false",
        "abc",
        "",
        "a,b",
        'say "x"',
        "it's",
        "é🙂",
        "{",
        "NULL",
        "\\x00ff",
    ),
    *("2024-02-29", "0001-01-01", "12345-06-07", "2024-01-01 (BC)", "0044-03-15 (BC)"),
    *("00:00:00", "23:59:59.999999", "12:34:56.123456789", "10:00:00+02", "10:00:00.5-07:30"),
    *("2024-02-29 12:34:56.789", "2262-04-11 23:47:16.854775807", "2024-01-01 00:00:00+05:30"),
    *("1 month", "14 months 3 days 00:00:01.5", "-1 year", "36:00:00", "1 day", "-3 days 04:05:06"),
    *("101", "00000000-0000-0000-0000-00000000000f", "POINT (1 2)", "123456789012345678901234567890"),
    *("[1, 2]", '{"a": 1.10}', "[2024-01-01]", "happy"),
)
"""Texts; each type is tried with those that it accepts."""
WHOLE = {"ARRAY", "LIST", "STRUCT", "MAP", "UNION", "TUPLE", "NULL", "TYPE", "ENUM", "DECIMAL", "VARIANT"}
"""Types that need parameters, tried below with some, or that no column can have."""
WITH_PARAMETERS = (
    *("DECIMAL(38,10)", "DECIMAL(4,1)", "ENUM('happy', 'abc')", "DATE[]", "INTEGER[]", "DATE[1]", "VARCHAR[]"),
    *(
        "INTERVAL[]",
        "TIMESTAMP_NS[]",
        "FLOAT[]",
        "STRUCT(a DATE)",
        "MAP(VARCHAR, INTERVAL)",
    ),
    "STRUCT(a INTERVAL[], b FLOAT)",
)
NESTED = {
    "STRUCT(a DATE)": ["{'a': infinity}", "{'a': 2024-01-01}"],
    "MAP(VARCHAR, INTERVAL)": ["{k=1 month}"],
    "STRUCT(a INTERVAL[], b FLOAT)": ["{'a': [1 month, NULL], 'b': 0.1}"],
    "DATE[]": ["[infinity, NULL, 12345-06-07]"],
    "INTERVAL[]": ["[14 months, 1 day]"],
    "TIMESTAMP_NS[]": ["[2024-01-01 00:00:00.123456789]"],
    "FLOAT[]": ["[0.1, 1.5]"],
}


def literal(cell: Cell) -> str:
    """A cell as the text of a literal of its engine."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, list):
        return "[" + ", ".join("NULL" if one is None else literal(one) for one in cell) + "]"
    return str(cell) if isinstance(cell, int | float | Decimal | str) else dump_value(cell)


async def asked(engine: EmbeddedEngine, sql: str) -> Answer:
    return await engine.ask(Question(sql=sql, rows=1000, seconds=30))


async def test_every_type_of_duckdb_comes_back_as_it_was(tmp_path: Path):
    path = tmp_path / "values.duckdb"
    with duckdb.connect(str(path)) as connection:
        known = connection.execute("SELECT DISTINCT logical_type FROM duckdb_types()").fetchall()
        types = [*sorted({name for (name,) in known} - WHOLE), *WITH_PARAMETERS]
        tried = 0
        made: dict[str, list[str]] = {}
        for place, kind in enumerate(types):
            found = []
            for text in (*POOL, *NESTED.get(kind, ())):
                try:
                    connection.execute(f"SELECT CAST($1 AS {kind})", [text]).fetchall()
                except (duckdb.Error, ValueError, OverflowError):
                    continue
                found.append(text)
            assert found, f"no text is tried as {kind}"
            made[kind] = found
            connection.execute(f"CREATE TABLE t{place} (n INTEGER, v {kind})")
            for number, text in enumerate(found):
                connection.execute(f"INSERT INTO t{place} VALUES ($1, CAST($2 AS {kind}))", [number, text])
    engine = EmbeddedEngine(path, dialect="duckdb")
    cells = {
        kind: [row[0] for row in (await asked(engine, f"SELECT v FROM t{place} ORDER BY n")).rows]
        for place, kind in enumerate(types)
    }
    await engine.close()
    with duckdb.connect(str(path), read_only=True) as connection:
        for place, kind in enumerate(types):
            for number, cell in enumerate(cells[kind]):
                assert _is_same(connection, place, kind, number, cell), (kind, made[kind][number], cell)
                tried += 1
    assert tried > 200


def _is_same(connection: duckdb.DuckDBPyConnection, place: int, kind: str, number: int, cell: Cell) -> bool:
    """Whether DuckDB reads a cell as the value that was stored, by the text that it writes for both."""
    if kind in ("BLOB", "GEOMETRY") and isinstance(cell, str) and cell.startswith("0x"):
        back: Any = "unhex($1)" + ("" if kind == "BLOB" else "::GEOMETRY")
        given = cell[2:]
    elif isinstance(cell, dict) or "STRUCT" in kind or "MAP" in kind:
        return _texts(cell) == _texts_of(connection, place, number)
    else:
        back, given = f"CAST($1 AS {kind})", literal(cell)
    sql = f"SELECT CAST(v AS VARCHAR) IS NOT DISTINCT FROM CAST({back} AS VARCHAR) FROM t{place} WHERE n = {number}"
    found = connection.execute(sql, [given]).fetchone()
    return found is not None and found[0] is True


def _texts(cell: Cell) -> str:
    """The leaves of a nested value, as they would be written."""
    if isinstance(cell, dict):
        return " ".join(f"{key} {_texts(value)}" for key, value in cell.items())
    if isinstance(cell, list):
        return " ".join(map(_texts, cell))
    return "NULL" if cell is None else str(cell)


def _texts_of(connection: duckdb.DuckDBPyConnection, place: int, number: int) -> str:
    found = connection.execute(f"SELECT CAST(v AS VARCHAR) FROM t{place} WHERE n = {number}").fetchone()
    assert found is not None
    text = str(found[0])
    for sign in ("': ", "'", "{", "}", "[", "]", ","):
        text = text.replace(sign, " " if sign == "': " else "")
    return text.replace("=", " ").strip()


async def test_intervals_infinite_dates_and_nanoseconds_of_duckdb_are_written_by_duckdb(tmp_path: Path):
    path = tmp_path / "values.duckdb"
    duckdb.connect(str(path)).close()
    engine = EmbeddedEngine(path, dialect="duckdb")
    answer = await asked(
        engine,
        "SELECT INTERVAL 14 MONTH, DATE 'infinity', DATE '12345-06-07', "
        "TIMESTAMP_NS '2024-01-01 00:00:00.123456789', [INTERVAL 1 MONTH], 0.1::FLOAT",
    )
    await engine.close()
    moment = "2024-01-01 00:00:00.123456789"
    assert answer.rows == (("1 year 2 months", "infinity", "12345-06-07", moment, ["1 month"], 0.1),)


async def test_every_kind_of_value_in_sqlite_comes_back_as_it_was(tmp_path: Path):
    path = tmp_path / "values.db"
    values: list[object] = [None, 0, -1, 2**63 - 1, -(2**63), 0.1, -1e308, 5e-324, "", "é🙂", "a\nb", b"", b"\x00\xff"]
    values += [text for text in POOL if text]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v)")
        connection.executemany("INSERT INTO t (v) VALUES (?)", [(value,) for value in values])
    engine = EmbeddedEngine(path, dialect="sqlite")
    answer = await asked(engine, "SELECT v FROM t ORDER BY n")
    await engine.close()
    back = [bytes.fromhex(cell[2:]) if isinstance(was, bytes) else cell for (cell,), was in _pairs(answer, values)]
    assert back == values
    assert [type(cell) for cell in back] == [type(value) for value in values]


def _pairs(answer: Answer, values: list[object]) -> "list[tuple[tuple[Any], object]]":
    return list(zip(answer.rows, values, strict=True))  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize(
    "value",
    [
        [*range(1_001)],
        [[1, 2]] * 1_234,
        {f"key {number}": [number] for number in range(1_234)},
        [{"rows": [[*range(700)], {"a": "x"}]}, *range(1_000)],
    ],
)
def test_a_long_value_is_written_like_a_short_one(value: Cell):
    assert dump_value(value) == json.dumps(value, separators=(",", ":"), ensure_ascii=False)
