"""Values of every type of PostgreSQL and MariaDB come back as the server itself reads them."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import anyio
import psycopg
import pymysql
import pytest

from sql.network.servers import Stage, connected
from ullage.sql import Question
from ullage.table import Cell, dump_value

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:engines")]

POOL = (
    *("0", "1", "-1", "127", "255", "32767", "4294967295", "9223372036854775807", "1.10", "-0.1", "1e308", "5e-324"),
    *("1E+5", "123456789012345678901234567890.123456789", "infinity", "-infinity", "NaN", "t", "f", "abc", "", "a,b"),
    *(
        'say "x"',
        "it's",
        "é🙂",
        "NULL",
        "{}",
        "2024-02-29",
        "0044-03-15 BC",
        "12345-06-07",
        "00:00:00",
        "23:59:59.999999",
    ),
    *(
        "10:00:00+02",
        "2024-02-29 12:34:56.789",
        "2024-01-01 00:00:00+05:30",
        "1 year 2 mons 3 days 04:05:06.7",
        "-1 day",
    ),
    *('{"a": 1.10, "b": [12345678901234567890.12, null, "x"]}', "[1.0, 1e400]", "null", '"text"', "101", "\\x00ff"),
    *("00000000-0000-0000-0000-00000000000f", "192.168.0.1/24", "::1", "08:00:2b:01:02:03", "08:00:2b:01:02:03:04:05"),
    *("(1,2)", "((0,0),(1,1))", "<(1,2),3>", "{1,-1,0}", "[1,5)", "empty", "[2024-01-01,2024-02-01)", "{[1,3),[5,8)}"),
    *(
        "$12.50",
        "'fat' & 'rat'",
        "a fat cat",
        "<a>x</a>",
        "16/B374D848",
        "10:20:10,14,15",
        "$.a[*] ? (@ > 1)",
    ),
    *("838:59:59", "2155", "POINT(1 1)"),
)
"""Texts; each type is tried with those that it accepts."""


def literal(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "t" if cell else "f"
    return str(cell) if isinstance(cell, int | float | Decimal | str) else dump_value(cell)


def accepted(connection: Any, kind: str) -> Iterator[str]:  # noqa: ANN401 - statements are made here
    for text in POOL:
        try:
            connection.execute("SELECT %s::" + kind + "::text", [text])
        except psycopg.Error:
            continue
        yield text


async def test_every_type_of_postgresql_comes_back_as_it_was(postgresql: Stage):
    connection: Any = await anyio.to_thread.run_sync(connected, postgresql.owner)
    with connection:
        connection.execute("SET datestyle = 'ISO, YMD'")
        listed = connection.execute(
            "SELECT typname FROM pg_type JOIN pg_namespace n ON n.oid = typnamespace WHERE typtype IN ('b', 'r', 'm') "
            "AND typcategory <> 'A' AND n.nspname = 'pg_catalog' AND typname !~ '^(pg_|reg|gts|acl|ref)' ORDER BY 1"
        ).fetchall()
        samples = {f'pg_catalog."{kind}"': list(accepted(connection, f'pg_catalog."{kind}"')) for (kind,) in listed}
        samples = {kind: texts for kind, texts in samples.items() if texts}
        assert len(samples) > 45
        engine = postgresql.engine()
        for kind, texts in samples.items():
            quoted = ["'" + text.replace("'", "''") + "'" for text in texts]
            sql = "SELECT " + ", ".join(f"E{one.replace(chr(92), chr(92) * 2)}::{kind}" for one in quoted)
            (row,) = (await engine.ask(Question(sql=sql, rows=1, seconds=30))).rows
            for text, cell in zip(texts, row, strict=True):
                assert _same(connection, kind, text, cell), (kind, text, cell)
        await engine.close()


def _same(connection: Any, kind: str, text: str, cell: Cell) -> bool:  # noqa: ANN401
    """Compared by what the server writes; JSON without regard to space, digit by digit."""
    shown = "::jsonb::text" if kind.endswith('"json"') else "::text"
    sql = f"SELECT (%s::{kind}){shown} IS NOT DISTINCT FROM (%s::{kind}){shown}"
    found = connection.execute(sql, [text, literal(cell)]).fetchone()
    return found is not None and found[0] is True


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("'{1.10,2,NULL,NaN}'::numeric[]", [Decimal("1.10"), Decimal(2), None, "NaN"]),
        ("'{{1,2},{3,4}}'::int[]", [[1, 2], [3, 4]]),
        ("'[0:1]={1,2}'::int[]", "[0:1]={1,2}"),
        ("ARRAY['NULL', 'null', 'a,b', '', NULL, 'say \"x\"']", ["NULL", "null", "a,b", "", None, 'say "x"']),
        ("ARRAY['infinity'::date]", ["infinity"]),
        ("ARRAY['::1'::inet]", ["::1"]),
        ("ARRAY['{\"a\": 1.10}'::jsonb]", [{"a": Decimal("1.10")}]),
        ("'{\"n\": 12345678901234567890.12}'::json", {"n": Decimal("12345678901234567890.12")}),
        ("'{}'::int[]", []),
    ],
)
async def test_arrays_and_json_numbers_of_postgresql_keep_every_digit(postgresql: Stage, value: str, cell: Cell):
    engine = postgresql.engine()
    ((found,),) = (await engine.ask(Question(sql=f"SELECT {value}", rows=1, seconds=30))).rows
    await engine.close()
    assert (found, str(found)) == (cell, str(cell))


MYSQL_TYPES = (
    *(
        "TINYINT",
        "SMALLINT UNSIGNED",
        "MEDIUMINT",
        "INT",
        "BIGINT",
        "BIGINT UNSIGNED",
        "DECIMAL(65,30)",
        "FLOAT",
        "DOUBLE",
    ),
    *("BIT(1)", "BIT(64)", "DATE", "TIME(6)", "DATETIME(6)", "TIMESTAMP(6) NULL", "YEAR", "CHAR(80)", "VARCHAR(80)"),
    *(
        "TEXT",
        "LONGTEXT",
        "BINARY(20)",
        "VARBINARY(80)",
        "BLOB",
        "ENUM('abc', 'a,b')",
        "SET('abc', 'x')",
        "JSON",
        "BOOLEAN",
    ),
)


async def test_every_type_of_mysql_comes_back_as_it_was(mysql: Stage):
    connection: Any = await anyio.to_thread.run_sync(connected, mysql.owner)
    engine = mysql.engine(mysql.owner)
    with connection, connection.cursor() as cursor:
        for kind in MYSQL_TYPES:
            cursor.execute("DROP TABLE IF EXISTS typed")
            cursor.execute(f"CREATE TABLE typed (n INT AUTO_INCREMENT PRIMARY KEY, v {kind})")
            for text in POOL:
                try:
                    cursor.execute("INSERT INTO typed (v) VALUES (%s)", [text])
                except pymysql.err.Error:
                    continue
            rows = (await engine.ask(Question(sql="SELECT n, v FROM typed ORDER BY n", rows=500, seconds=30))).rows
            assert rows, kind
            for number, cell in rows:
                is_hex = isinstance(cell, str) and cell.startswith("0x") and kind.startswith(("BINARY", "VARB", "BLOB"))
                given = bytes.fromhex(str(cell)[2:]) if is_hex else cell if isinstance(cell, int) else literal(cell)
                cursor.execute("INSERT INTO typed (v) VALUES (%s)", [given])
                same = "SELECT CAST(a.v AS BINARY) <=> CAST(b.v AS BINARY) FROM typed a, typed b "
                cursor.execute(same + "WHERE a.n = %s AND b.n = %s", [number, cursor.lastrowid])
                assert cursor.fetchone()[0] == 1, (kind, cell)
        cursor.execute("DROP TABLE typed")
    await engine.close()
