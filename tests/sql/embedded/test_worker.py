"""The worker's own parts, spoken to inside this process."""

import io
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ullage.sql.embedded.worker import __main__ as program
from ullage.sql.embedded.worker.sqlite_worker import failing_as_sqlite
from ullage.sql.embedded.worker.worker_loop import confine
from ullage.sql.embedded.worker.worker_protocol import Asked, Failure, Pipe, checks, occasion, query_of, travelling

pytestmark = pytest.mark.requirement("S0:sql:engines")

Say = Callable[..., list[dict[str, Any]]]


def hello(path: Path, kind: str = "sqlite") -> dict[str, Any]:
    return {"kind": kind, "path": str(path), "uri": path.as_uri(), "within": None, "packages": str(path.parent)}


def ask(sql: str, **more: object) -> dict[str, Any]:
    return {"do": "ask", "sql": sql, **more}


@pytest.mark.parametrize(
    ("value", "most", "travels"),
    [
        (None, 9, (None, False)),
        (2**200, 9, (2**200, False)),
        (Decimal("1.50"), 9, ({"decimal": "1.50"}, False)),
        (Decimal("NaN"), 9, ("NaN", False)),
        (float("nan"), 9, ("NaN", False)),
        (float("-inf"), 9, ("-Infinity", False)),
        ("abcdef", 6, ("abcdef", False)),
        ("abcdefg", 6, ("abcdef", True)),
        (b"abc", 8, ("0x616263", False)),
        (b"abcd", 8, ("0x616263", True)),
        (datetime(2026, 1, 2, 3, 4), 99, ("2026-01-02 03:04:00", False)),  # noqa: DTZ001 - as an engine gives it
        (timedelta(hours=36), 99, ("1 day, 12:00:00", False)),
        ([1, (b"a", Decimal("1.5"))], 99, ({"marked": [1, ["0x61", {"decimal": "1.5"}]]}, False)),
        ({"a": [Decimal("1.50")]}, 99, ({"marked": {"json": {"a": [{"decimal": "1.50"}]}}}, False)),
        ([Decimal("NaN"), 1], 99, (["NaN", 1], False)),
        ({1: float("inf")}, 99, ({"json": {"1": "Infinity"}}, False)),
        ({"key": "value"}, 8, ('{"key": ', True)),
    ],
)
def test_a_value_travels_as_json_and_is_cut_where_it_is_too_long(value: object, most: int, travels: object):
    assert travelling(value, most) == travels


def test_a_question_is_answered_in_frames_and_the_worker_says_goodbye(say: Say, sqlite_file: Path):
    replies = say(hello(sqlite_file), ask("SELECT printf('%.*c', 900, 'x') FROM orders a, orders b", rows=500))
    columns, *rows, end, bye = replies
    assert columns["columns"] == ["printf('%.*c', 900, 'x')"]
    assert len(rows) > 1
    assert sum(len(frame["rows"]) for frame in rows) == 500
    assert (end, bye) == ({"more": True, "cut_cells": 0}, {"bye": True})


def test_a_worker_without_requests_ends(say: Say, sqlite_file: Path):
    assert say(hello(sqlite_file)) == [{"bye": True}]
    sink = io.BytesIO()
    from ullage.sql.embedded.worker.worker_loop import serve

    serve(io.BytesIO(b"\0\0"), sink, confine=_never, when_alone=lambda: None)
    assert sink.getvalue() == b""


def _never(*, memory: int, file_bytes: int) -> None:
    raise AssertionError(memory, file_bytes)


def test_a_worker_waits_only_so_long_for_a_question():
    class Silent(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            import time

            time.sleep(0.3)
            return b""

    assert Pipe(Silent(), io.BytesIO(), lambda: None).receive(0.01) is None  # pyright: ignore[reportArgumentType]


def test_a_deadline_in_the_past_ends_a_question_before_its_first_row(say: Say, sqlite_file: Path):
    replies = say(hello(sqlite_file), ask("SELECT 1", seconds=-1.0), ask("SELECT 1"))
    assert [reply["failed"] for reply in replies if "failed" in reply] == ["deadline"]
    assert {"rows": [[1]]} in replies


def test_an_endless_question_is_ended_from_inside(say: Say, sqlite_file: Path):
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
    replies = say(hello(sqlite_file), ask(endless, seconds=0.1))
    assert replies[-2] == {"failed": "deadline", "code": "SQLITE_INTERRUPT", "text": "time was up"}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("SELECT nope FROM customers", "no such column: nope"),
        ("DELETE FROM customers", "not authorized"),
        ("SELECT load_extension('x')", "not authorized to use function"),
        ("SELECT ?", "bindings"),
        ("SELECT '" + "x" * 3_000, "unrecognized token"),
        ("SELECT zeroblob(1 << 28)", "too big"),
        ("SELECT " + "(" * 2_000 + "1" + ")" * 2_000, "overflow"),
    ],
)
def test_sqlites_message_about_a_statement_is_passed_on(say: Say, sqlite_file: Path, sql: str, said: str):
    failed = say(hello(sqlite_file), ask(sql))[-2]
    assert failed["failed"] == "query"
    assert said in failed["text"]
    assert len(failed["text"]) < 1_600


def test_an_unforeseen_error_fails_the_statement_and_not_the_worker(say: Say, sqlite_file: Path):
    replies = say(hello(sqlite_file), {"do": "ask", "sql": None}, {"do": "dance"}, ask("SELECT 1"))
    assert [reply["failed"] for reply in replies if "failed" in reply] == ["query", "query"]
    assert {"rows": [[1]]} in replies


def test_a_worker_ends_when_memory_does(say: Say, sqlite_file: Path, monkeypatch: pytest.MonkeyPatch):
    def exhausted(_: object) -> Asked:
        raise MemoryError

    monkeypatch.setattr(Asked, "read", exhausted)
    replies = say(hello(sqlite_file), ask("SELECT 1"), ask("SELECT 1"))
    assert [reply.get("failed") for reply in replies] == ["memory", None]


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("SQLITE_BUSY", "query", "locked"),
        ("SQLITE_NOMEM", "memory", "memory"),
        ("SQLITE_CORRUPT_INDEX", "source", "damaged"),
        ("SQLITE_IOERR_READ", "source", "cannot be read"),
        ("SQLITE_READONLY_CANTINIT", "source", "write-ahead-log"),
        ("SQLITE_CANTOPEN", "source", "cannot be opened"),
        ("SQLITE_ERROR", "query", "as it was"),
        (None, "query", "as it was"),
    ],
)
def test_an_error_of_sqlite_becomes_the_matching_error(code: str | None, kind: str, said: str, tmp_path: Path):
    error = sqlite3.OperationalError("as it was")
    if code is not None:
        error.sqlite_errorname = code
    with pytest.raises(Failure, match=said) as failed, failing_as_sqlite(str(tmp_path / "missing")):
        raise error
    assert failed.value.kind == kind


def test_a_log_whose_index_cannot_be_made_is_told_for_what_it_is(tmp_path: Path):
    path = tmp_path / "wal.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (a)")
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorname = "SQLITE_CANTOPEN"
    with pytest.raises(Failure, match="its directory be written to"), failing_as_sqlite(str(path)):
        raise error


def test_an_unreadable_place_is_no_file(say: Say, sqlite_file: Path):
    for place in (sqlite_file / "below", sqlite_file.parent, sqlite_file.parent / "missing"):
        assert say(hello(place), ask("SELECT 1"))[0]["failed"] == "source"


def test_an_answer_stops_at_its_bytes_and_at_nothing_else(say: Say, sqlite_file: Path):
    replies = say(
        hello(sqlite_file),
        ask("SELECT name FROM customers ORDER BY id", bytes=30),
        ask("SELECT name FROM customers", bytes=5),
        ask("SELECT name FROM customers WHERE id < 0"),
    )
    assert replies[1:3] == [{"rows": [["Name 1"], ["Name 2"], ["Name 3"]]}, {"more": True, "cut_cells": 0}]
    assert "the first row alone" in replies[4]["text"]
    assert replies[5:] == [{"columns": ["name"]}, {"more": False, "cut_cells": 0}, {"bye": True}]


def test_an_error_of_duckdb_becomes_the_matching_error():
    duckdb = pytest.importorskip("duckdb")
    from ullage.sql.embedded.worker.duckdb_worker import failing_as_duckdb

    for error, kind, said in (
        (duckdb.OutOfMemoryException("full\n\nPossible solutions: SET x"), "memory", "full"),
        (duckdb.IOException('Could not set lock on file "/a/b.db": held by 7'), "source", "open for writing"),
        (duckdb.IOException("cannot read /a/b.db"), "source", "cannot read b.db"),
        (duckdb.BinderException("no such column"), "query", "no such column"),
    ):
        with pytest.raises(Failure) as failed, failing_as_duckdb("/a/b.db"):
            raise error
        assert (failed.value.kind, said in failed.value.text) == (kind, True)
        assert "SET" not in failed.value.text


def test_structure_and_functions_are_sent_in_one_frame(say: Say, sqlite_file: Path):
    structure, functions, _ = say(hello(sqlite_file), {"do": "structure"}, {"do": "functions"})
    assert [table["name"] for table in structure["value"]["tables"]] == ["customers", "keywords", "orders"]
    assert functions["value"]["printf"] == "immutable"
    assert functions["value"]["match"] == "immutable"


def test_duckdb_is_asked_in_the_same_way(say: Say, duckdb_file: Path):
    replies = say(
        hello(duckdb_file, "duckdb"),
        ask("SELECT TIMESTAMPTZ '2026-01-02 03:04:05+00' AS t, 1.50::DECIMAL(4, 2) AS d"),
        {"do": "structure"},
        {"do": "functions"},
        {"do": "dance"},
        ask("SELECT count(*) FROM range(1000000000000)", seconds=0.2),
        ask("SELECT 1; SELECT 2"),
        ask("SELECT nope"),
        ask("EXPLAIN ANALYZE DELETE FROM customers"),
        ask("PRAGMA enable_profiling"),
        ask("CHECKPOINT"),
        ask("PIVOT orders ON status USING sum(total)"),
        ask("EXPLAIN SELECT 1"),
        ask("PRAGMA show_tables"),
    )
    columns, rows, _, structure, functions, *failures, bye = replies
    assert columns == {"columns": ["t", "d"]}
    assert rows["rows"][0][1] == {"decimal": "1.50"}
    assert len(structure["value"]["tables"]) == 3
    assert functions["value"]["now"] == functions["value"]["json_group_object"] == "stable"
    assert functions["value"]["repeat"] == "immutable"
    assert (
        functions["value"]["read_csv"] == functions["value"]["pg_sleep"] == functions["value"]["nextval"] == "volatile"
    )
    kinds = [failed["failed"] for failed in failures if "failed" in failed]
    assert kinds == ["query", "deadline", "query", "query", "query", "query", "query"]
    assert len([reply for reply in failures if "more" in reply]) == 3
    assert bye == {"bye": True}


def test_a_missing_duckdb_says_how_to_get_it(say: Say, duckdb_file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "ullage.sql.embedded.worker.duckdb_worker", raising=False)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for name in [name for name in sys.modules if name.startswith("ullage.sql.embedded.worker.duckdb_")]:
        monkeypatch.delitem(sys.modules, name)
    (reply,) = say(hello(duckdb_file, "duckdb"))
    assert reply["failed"] == "source"
    assert 'pip install "ullage[duckdb]"' in reply["text"]


def test_a_zone_the_system_has_not_is_shown_as_utc():
    from ullage.sql.embedded.worker.duckdb_worker import ZONES

    moment = datetime(2026, 1, 2)  # noqa: DTZ001 - as DuckDB gives it
    assert str(ZONES.timezone("Nowhere/Land").localize(moment)) == "2026-01-02 00:00:00+00:00"


def test_words_in_quotes_and_comments_are_not_read():
    assert checks('CREATE TABLE t (a CHECK (a > 1), "CHECK" /* CHECK (x) */, b CHECK') == ["CHECK (a > 1)"]
    assert checks("CREATE TABLE t (a CHECK (a > (1)") == ["CHECK (a > (1)"]
    assert occasion('CREATE TRIGGER "AFTER" BEFORE INSERT ON t') == ("BEFORE", "INSERT")
    assert occasion("CREATE TRIGGER x") == ("BEFORE", None)
    assert query_of("CREATE VIEW v (a, b) AS SELECT 1 AS a;") == "SELECT 1 AS a"
    assert query_of("CREATE VIEW v") == "CREATE VIEW v"


def test_a_stored_table_shows_only_its_own_answers(say: Say):
    replies = say(
        {"kind": "table"},
        ask("SELECT 1"),
        {"do": "structure"},
        {"do": "functions"},
        {"do": "begin", "columns": ['a"b', "select"]},
        {"do": "load", "rows": [[1, "x"], [2, None]]},
        ask('SELECT "a""b", "select" FROM result'),
        {"do": "begin", "columns": ["a"]},
        {"do": "load", "rows": [[1, 2]]},
        {"do": "load", "rows": [[1]]},
        ask("SELECT 1 FROM result"),
        {"do": "begin", "columns": ["a"]},
        ask("DROP TABLE result"),
    )
    assert [reply["text"][:30] for reply in replies if "failed" in reply] == [
        "there is no table to ask",
        "a table does not take `structu",
        "a table does not take `functio",
        "Incorrect number of bindings s",
        "not authorized",
    ]
    assert {"rows": [[1, "x"], [2, None]]} in replies


def test_the_program_keeps_both_pipes_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said = tmp_path / "said"
    said.write_bytes(b"spoken")
    number = os.open(said, os.O_RDONLY)
    taken = program._take(number, os.O_RDONLY)
    assert (os.read(number, 9), os.read(taken, 9)) == (b"", b"spoken")
    os.close(number)
    nowhere = os.open(os.devnull, os.O_RDWR)
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(program, "_take", lambda number, _: (taken, nowhere)[number])
    program.main()
    assert ended == [0, 0]
    os.close(taken)
    os.close(nowhere)
    assert not [name for name in sys.modules if name.startswith("ullage_worker.duckdb")]
    for name in [name for name in sys.modules if name.startswith("ullage_worker")]:
        del sys.modules[name]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_a_process_is_given_no_more_than_was_said(monkeypatch: pytest.MonkeyPatch):
    import resource

    given: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(os, "nice", lambda _: 0)
    monkeypatch.setattr(resource, "setrlimit", given.__setitem__)
    confine(memory=5, file_bytes=7)
    assert given[resource.RLIMIT_DATA] == (5, 5)
    assert given[resource.RLIMIT_FSIZE] == (7, 7)
    monkeypatch.setattr(sys, "platform", "win32")
    given.clear()
    confine(memory=5, file_bytes=7)
    assert given == {}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_a_process_is_confined_in_memory_and_in_what_it_writes(tmp_path: Path):
    code = """
import resource, sys
from ullage.sql.embedded.worker.worker_loop import confine
confine(memory=300_000_000, file_bytes=0)
file = open(sys.argv[1], "wb", buffering=0)
try:
    file.write(b"x")
except OSError as error:
    print(type(error).__name__)
try:
    bytearray(400_000_000)
except MemoryError:
    print("MemoryError")
print(resource.getrlimit(resource.RLIMIT_CORE)[0])
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    expected = ["OSError", "MemoryError", "0"] if sys.platform == "linux" else ["OSError", "0"]
    assert run.stdout.split() == expected
