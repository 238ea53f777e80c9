import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from ullage.errors import QueryFailed, SourceFailed
from ullage.sql import Limits, Probe, Question, Structure
from ullage.sql.embedded import EmbeddedEngine
from ullage.sql.embedded.embedded_engine import read_structure

pytestmark = pytest.mark.requirement("S0:sql:engines")

Say = Callable[..., list[dict[str, Any]]]


def question(sql: str, rows: int = 100, seconds: float = 30) -> Question:
    return Question(sql=sql, rows=rows, seconds=seconds)


@pytest.mark.anyio
@pytest.mark.requirement("S0:sql:engines")
async def test_a_question_is_answered_with_names_and_values(engine: EmbeddedEngine):
    answer = await engine.ask(question("SELECT id, name, NULL AS empty, 1.5e0 AS half FROM customers WHERE id = 7"))
    assert (answer.columns, answer.rows) == (("id", "name", "empty", "half"), ((7, "Name 7", None, 1.5),))
    assert (answer.more, answer.cut_cells) == (False, 0)


@pytest.mark.anyio
@pytest.mark.requirement("S0:sql:limit")
async def test_more_rows_are_reported_at_the_limit_and_not_before(engine: EmbeddedEngine):
    for wanted, come, more in ((39, 39, True), (40, 40, False), (41, 40, False), (0, 0, True)):
        answer = await engine.ask(question("SELECT id FROM customers", rows=wanted))
        assert (len(answer.rows), answer.more) == (come, more)


@pytest.mark.anyio
async def test_the_limits_of_the_database_go_before_those_of_a_question(sqlite_file: Path):
    engine = EmbeddedEngine(sqlite_file, dialect="sqlite", limits=Limits(rows=3, cell=5))
    answer = await engine.ask(question("SELECT name FROM customers ORDER BY id", rows=9))
    await engine.close()
    assert answer.rows == (("Name ",), ("Name ",), ("Name ",))
    assert (answer.more, answer.cut_cells) == (True, 3)


@pytest.mark.anyio
async def test_rows_stop_where_the_bytes_are_used_up(sqlite_file: Path):
    engine = EmbeddedEngine(sqlite_file, dialect="sqlite", limits=Limits(bytes=300_000))
    answer = await engine.ask(question("SELECT printf('%.*c', 10000, 'x') FROM orders"))
    assert (len(answer.rows), answer.more) == (29, True)
    with pytest.raises(QueryFailed, match="the first row alone"):
        await engine.ask(question("SELECT " + ", ".join(["printf('%.*c', 15000, 'x')"] * 30)))
    await engine.close()


@pytest.mark.anyio
@pytest.mark.requirement("S0:sql:engines")
async def test_duckdbs_values_travel_whole(duck: EmbeddedEngine):
    values = {
        "170141183460469231731687303715884105727::HUGEINT": 2**127 - 1,
        "1.50::DECIMAL(5, 2)": Decimal("1.50"),
        "DATE '2026-01-02'": "2026-01-02",
        "TIMESTAMP '2026-01-02 03:04:05.6'": "2026-01-02 03:04:05.6",
        "TIME '03:04:05'": "03:04:05",
        "'abc'::BLOB": "0x616263",
        "'nan'::DOUBLE": "NaN",
        "'-inf'::FLOAT": "-Infinity",
        "'00000000-0000-0000-0000-000000000001'::UUID": "00000000-0000-0000-0000-000000000001",
        "INTERVAL 36 HOUR": "36:00:00",
        "[1, NULL]": [1, None],
        "{'a': 1, 'b': [1.5::DECIMAL(5, 2)], 'c': 'x'::BLOB}": {"a": 1, "b": [Decimal("1.50")], "c": "0x78"},
        "[{'json': 1.50::DECIMAL(5, 2), 'decimal': 'x', 'marked': {'a': 1}}]": [
            {"json": Decimal("1.50"), "decimal": "x", "marked": {"a": 1}}
        ],
        "MAP {'k': DATE '2026-01-02'}": {"k": "2026-01-02"},
        "'a'::ENUM('a', 'b')": "a",
        "true": True,
    }
    answer = await engine_row(duck, "SELECT " + ", ".join(values))
    assert answer == tuple(values.values())
    assert type(answer[1]) is Decimal
    zoned = await engine_row(duck, "SELECT (TIMESTAMPTZ '2026-01-02 03:04:05+00')::VARCHAR::TIMESTAMPTZ")
    assert str(zoned[0]).startswith("2026-01-0")


async def engine_row(engine: EmbeddedEngine, sql: str):
    return (await engine.ask(question(sql))).rows[0]


@pytest.mark.anyio
async def test_sqlites_values_travel_whole(sqlite: EmbeddedEngine):
    row = await engine_row(
        sqlite, "SELECT 9223372036854775807, x'00ff', 9e999, -9e999, CAST(x'61ff' AS TEXT), char(0, 65)"
    )
    assert row == (2**63 - 1, "0x00ff", "Infinity", "-Infinity", "a\ufffd", "\0A")


def told_inside(say: Say, path: Path, kind: str) -> Structure:
    """The same, by a worker inside this process."""
    replies = say({"kind": kind, "path": str(path), "uri": path.as_uri(), "within": None}, {"do": "structure"})
    return read_structure(replies[0]["value"], name=path.name)


@pytest.mark.anyio
@pytest.mark.requirement("S0:sql:schema")
async def test_sqlites_structure_is_complete(tmp_path: Path, say: Say):
    path = tmp_path / "whole.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE makers (name TEXT PRIMARY KEY, a INTEGER, b INTEGER, UNIQUE (a, b)) WITHOUT ROWID;
            CREATE TABLE parts (
                id INTEGER PRIMARY KEY, -- CHECK (not this)
                maker TEXT NOT NULL DEFAULT 'CHECK (nor this)' REFERENCES makers ON DELETE CASCADE ON UPDATE SET NULL,
                a INTEGER, b INTEGER CHECK (b > (a + 1)), twice INTEGER AS (a * 2) STORED,
                FOREIGN KEY (a, b) REFERENCES makers (a, b), CONSTRAINT sound CHECK ("a" <> ')')
            );
            CREATE INDEX by_maker ON parts (maker, lower(maker));
            CREATE VIEW few (x) AS SELECT id FROM parts WHERE id < 3;
            CREATE VIEW broken AS SELECT x FROM nowhere;
            CREATE TRIGGER watch AFTER UPDATE OF a ON parts BEGIN SELECT 1; END;
            CREATE TRIGGER "instead" INSTEAD OF INSERT ON few BEGIN SELECT 1; END;
            CREATE TRIGGER plain DELETE ON parts BEGIN SELECT 1; END;
            INSERT INTO parts (maker) VALUES ('m'), ('n');
            CREATE VIRTUAL TABLE words USING fts5(text);
            ANALYZE;
            """
        )
    engine = EmbeddedEngine(path, dialect="sqlite")
    structure = await engine.structure()
    found = await engine.ask(question("SELECT highlight(words, 0, '<', '>') FROM words WHERE words MATCH 'x'"))
    await engine.close()
    assert found.rows == ()
    assert structure == told_inside(say, path, "sqlite")
    tables = {table.name: table for table in structure.tables}
    assert (structure.name, list(tables)) == ("whole.db", ["broken", "few", "makers", "parts", "words"])
    parts = tables["parts"]
    assert [(one.name, one.type, one.nullable, one.default, one.generated) for one in parts.columns] == [
        ("id", "INTEGER", False, None, True),
        ("maker", "TEXT", False, "'CHECK (nor this)'", False),
        ("a", "INTEGER", True, None, False),
        ("b", "INTEGER", True, None, False),
        ("twice", "INTEGER", True, None, True),
    ]
    assert (parts.primary_key, parts.rows, parts.kind) == (("id",), 2, "table")
    assert {(key.columns, key.table, key.to, key.on_update, key.on_delete) for key in parts.foreign_keys} == {
        (("maker",), "makers", ("name",), "SET NULL", "CASCADE"),
        (("a", "b"), "makers", ("a", "b"), "NO ACTION", "NO ACTION"),
    }
    assert [(index.name, index.columns, index.unique) for index in parts.indexes] == [
        ("by_maker", ("maker", "(expression)"), False)
    ]
    assert parts.checks == ("CHECK (b > (a + 1))", "CHECK (\"a\" <> ')')")
    assert [(one.name, one.timing, one.event) for one in parts.triggers] == [
        ("plain", "BEFORE", "DELETE"),
        ("watch", "AFTER", "UPDATE"),
    ]
    assert [(one.timing, one.event) for one in tables["few"].triggers] == [("INSTEAD OF", "INSERT")]
    assert tables["few"].definition == "SELECT id FROM parts WHERE id < 3"
    assert [column.name for column in tables["few"].columns] == ["x"]
    assert (tables["broken"].columns, tables["broken"].kind) == ((), "view")
    assert [(index.columns, index.unique) for index in tables["makers"].indexes] == [(("a", "b"), True)]
    assert not tables["makers"].columns[0].generated


@pytest.mark.anyio
@pytest.mark.requirement("S0:sql:schema")
async def test_duckdbs_structure_is_complete(tmp_path: Path, say: Say):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "whole.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            """
            CREATE SCHEMA other;
            CREATE SEQUENCE numbers;
            CREATE TABLE makers (name VARCHAR PRIMARY KEY);
            CREATE TABLE parts (
                id INTEGER DEFAULT nextval('numbers') PRIMARY KEY, maker VARCHAR REFERENCES makers (name),
                price DECIMAL(10, 2) NOT NULL CHECK (price > 0), twice INTEGER AS (id * 2), UNIQUE (maker, price)
            );
            COMMENT ON TABLE parts IS 'what we sell';
            COMMENT ON COLUMN parts.price IS 'in euros';
            CREATE INDEX by_maker ON parts (maker, price);
            CREATE TABLE other.parts (id INTEGER);
            CREATE VIEW few AS SELECT id FROM parts WHERE id < 3;
            CREATE MACRO doubled(x, y) AS x * 2 + y;
            CREATE MACRO listed() AS TABLE SELECT 1;
            CREATE MACRO other.abs(x) AS random();
            INSERT INTO makers VALUES ('m');
            """
        )
    engine = EmbeddedEngine(path, dialect="duckdb")
    structure = await engine.structure()
    functions = await engine.functions()
    await engine.close()
    assert structure == told_inside(say, path, "duckdb")
    assert [(table.schema, table.name, table.kind) for table in structure.tables] == [
        (None, "few", "view"),
        (None, "makers", "table"),
        (None, "parts", "table"),
        ("other", "parts", "table"),
    ]
    few, makers, parts, _ = structure.tables
    assert few.definition is not None
    assert few.definition.startswith("SELECT id FROM")
    assert makers.rows == 1
    assert [(one.name, one.type, one.nullable, one.generated, one.comment) for one in parts.columns] == [
        ("id", "INTEGER", False, True, None),
        ("maker", "VARCHAR", True, False, None),
        ("price", "DECIMAL(10,2)", False, False, "in euros"),
        ("twice", "INTEGER", True, True, None),
    ]
    assert (parts.primary_key, parts.comment) == (("id",), "what we sell")
    assert [(key.columns, key.table, key.to) for key in parts.foreign_keys] == [(("maker",), "makers", ("name",))]
    assert [(index.name, index.columns, index.unique) for index in parts.indexes] == [
        ("by_maker", ("maker", "price"), False)
    ]
    assert len(parts.checks) == 2
    assert any("price > 0" in check for check in parts.checks)
    assert [(one.name, one.kind, one.arguments, one.returns) for one in structure.routines] == [
        ("abs", "function", "x", None),
        ("doubled", "function", "x, y", None),
        ("listed", "function", "", "table"),
    ]
    assert functions["doubled"] == functions["abs"] == "volatile"


@pytest.mark.anyio
async def test_an_engine_reports_the_stability_of_its_functions(engine: EmbeddedEngine):
    functions = await engine.functions()
    assert functions["random"] == "volatile"
    assert functions["abs"] == functions["sum"] == "immutable"
    assert functions["current_date" if engine.dialect == "sqlite" else "now"] == "stable"
    unsafe = "load_extension" if engine.dialect == "sqlite" else "read_csv"
    assert functions[unsafe] == "volatile"
    assert await engine.functions() is functions


@pytest.mark.anyio
async def test_a_file_has_no_role_to_warn_of(engine: EmbeddedEngine):
    assert await engine.probe() == Probe(role=None)
    assert repr(engine) == f"EmbeddedEngine('shop.{engine.dialect}')"


@pytest.mark.anyio
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
async def test_a_file_that_cannot_be_read_says_so_by_its_name_only(tmp_path: Path, dialect: str):
    if dialect == "duckdb":
        pytest.importorskip("duckdb")
    (tmp_path / "text.db").write_text("this is no database, and long enough to look like one\n" * 100, encoding="utf-8")
    (tmp_path / "folder.db").mkdir()
    for name, why in (("text.db", "not a"), ("folder.db", "it is not a file"), ("missing.db", "there is no such file")):
        engine = EmbeddedEngine(tmp_path / name, dialect=dialect)  # pyright: ignore[reportArgumentType]
        with pytest.raises(SourceFailed, match=why) as failed:
            await engine.ask(question("SELECT 1 FROM t"))
        await engine.close()
        assert f"`{name}`" in failed.value.message
        assert str(tmp_path) not in failed.value.message
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.anyio
async def test_a_locked_sqlite_file_is_waited_for_and_then_reported(sqlite_file: Path, sqlite: EmbeddedEngine):
    with closing(sqlite3.connect(sqlite_file, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(QueryFailed, match="locked by another program"):
            await sqlite.ask(question("SELECT 1 FROM customers", seconds=4))
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sqlite.ask, question("SELECT 1 FROM customers"))
                await anyio.sleep(0.2)
                writer.execute("ROLLBACK")


@pytest.mark.anyio
async def test_a_duckdb_file_open_for_writing_elsewhere_is_reported(duckdb_file: Path, duck: EmbeddedEngine):
    import duckdb

    with duckdb.connect(str(duckdb_file)), pytest.raises(SourceFailed, match="open for writing"):
        await duck.ask(question("SELECT 1"))
    assert (await duck.ask(question("SELECT 1"))).rows == ((1,),)


@pytest.mark.anyio
async def test_a_database_in_write_ahead_log_mode_is_read_with_and_without_a_writer(tmp_path: Path):
    path = tmp_path / "a %20?#b.db"
    engine = EmbeddedEngine(path, dialect="sqlite")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE t (a)")
        writer.execute("INSERT INTO t VALUES (1)")
        writer.commit()
        assert (await engine.ask(question("SELECT a FROM t"))).rows == ((1,),)
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        assert len((await engine.ask(question("SELECT a FROM t"))).rows) == 2
    assert len((await engine.ask(question("SELECT a FROM t"))).rows) == 2
    await engine.close()
    with closing(sqlite3.connect(path)) as writer:
        assert writer.execute("SELECT count(*) FROM t").fetchone() == (2,)


@pytest.mark.anyio
async def test_nothing_of_one_question_is_left_for_the_next(duck: EmbeddedEngine):
    for sql in ("SET VARIABLE kept = 1", "SELECT set_config('threads', '1')", "CREATE TEMP TABLE kept (a INTEGER)"):
        with pytest.raises(QueryFailed):
            await duck.ask(question(sql))
    assert await engine_row(duck, "SELECT getvariable('kept')") == (None,)
