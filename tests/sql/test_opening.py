import subprocess
import sys
from pathlib import Path

import pytest

from ullage.errors import BadConfiguration
from ullage.sql import SAMPLE, DatabaseSettings, dialect_of, open_engine
from ullage.sql.sql_source import lock_sentences

pytestmark = pytest.mark.requirement("S0:sql:engines")


def settings(url: str | Path) -> DatabaseSettings:
    return DatabaseSettings(name="shop", url=str(url))


@pytest.mark.requirement("S0:sql:engines")
@pytest.mark.parametrize(
    ("url", "dialect", "engine"),
    [
        ("sqlite:///shop.db", "sqlite", "EmbeddedEngine"),
        ("sqlite+pysqlite:////tmp/shop.db?mode=ro", "sqlite", "EmbeddedEngine"),
        ("duckdb:///shop.db", "duckdb", "EmbeddedEngine"),
        ("nowhere/shop.sqlite3", "sqlite", "EmbeddedEngine"),
        ("nowhere/shop.duckdb", "duckdb", "EmbeddedEngine"),
        ("postgresql://reader:secret@host/shop", "postgres", "NetworkEngine"),
        ("postgres+psycopg://host/shop", "postgres", "NetworkEngine"),
        ("mysql://host/shop", "mysql", "NetworkEngine"),
        ("mariadb+pymysql://host/shop", "mysql", "NetworkEngine"),
    ],
)
def test_the_url_decides_which_engine_asks(url: str, dialect: str, engine: str, tmp_path: Path):
    opened = open_engine(settings(url), sample=tmp_path / "shop.db")
    assert (type(opened).__name__, opened.dialect, dialect_of(settings(url))) == (engine, dialect, dialect)
    assert "secret" not in repr(opened)
    assert not (tmp_path / "shop.db").exists()


@pytest.mark.parametrize(
    ("url", "dialect"),
    [("mssql+pyodbc://host/shop", "tsql"), ("oracle://host/shop", "oracle"), ("clickhouse://host/shop", "postgres")],
)
def test_other_databases_are_judged_by_the_nearest_dialect(url: str, dialect: str):
    assert dialect_of(settings(url)) == dialect
    (said,) = lock_sentences(settings(url))
    assert "only some locks" in said


def test_a_database_whose_locks_all_hold_needs_no_word():
    assert [lock_sentences(settings(url)) for url in (SAMPLE, "a.db", "mysql://host/x")] == [(), (), ()]


def test_sample_is_the_sample_shop(tmp_path: Path):
    opened = open_engine(settings(SAMPLE), sample=tmp_path / "shop.db")
    assert (opened.dialect, dialect_of(settings(SAMPLE))) == ("sqlite", "sqlite")
    assert (tmp_path / "shop.db").exists()


@pytest.mark.parametrize(
    ("name", "content", "dialect"),
    [
        ("a.db", b"SQLite format 3\x00....", "sqlite"),
        ("a.db", b"12345678DUCK....", "duckdb"),
        ("data.bin", b"12345678DUCK....", "duckdb"),
        ("a.duckdb", b"", "duckdb"),
    ],
)
def test_a_file_is_what_its_first_bytes_say(tmp_path: Path, name: str, content: bytes, dialect: str):
    (tmp_path / name).write_bytes(content)
    assert dialect_of(settings(tmp_path / name)) == dialect


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "duckdb:///", "", "letters.txt"])
def test_what_is_no_database_is_refused(url: str, tmp_path: Path):
    with pytest.raises(BadConfiguration) as caught:
        open_engine(settings(url), sample=tmp_path / "x.db")
    assert caught.value.suggestion


def test_whoever_reads_settings_does_not_wait_for_a_parser_or_a_driver():
    code = "import sys, ullage.sql; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"sqlglot", "duckdb", "psycopg", "pymysql"} & set(loaded)
