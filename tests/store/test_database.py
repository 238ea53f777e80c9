import hashlib
import re
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from store.databases import in_processes, open_and_count, opened
from ullage.errors import BadConfiguration, StoreFailed
from ullage.store import MIGRATIONS, Address, Database, moment, seconds, storable

pytestmark = pytest.mark.requirement("S1:catalog", "U:ledger")

ADD = "INSERT INTO ullage_forms (key, form, created) VALUES (:key, '{}', 0)"
COUNT = "SELECT count(*) FROM ullage_forms"
SCHEMA = "d256718a778fcebf3ad753effbd8272ee1c6ab3c88a1c133d2154c50462db2c7"
"""SHA-256 of what the first eight migrations made before they were plain SQL, white space aside."""


def _add(database: Database, key: str) -> None:
    database.write(lambda connection: connection.execute(ADD, {"key": key}))


def _count(database: Database) -> int:
    return database.read(lambda connection: connection.scalar(COUNT)) or 0


def test_what_is_written_is_there_when_it_is_opened_again(place: str):
    with opened(place) as database:
        _add(database, "a")
    with opened(place) as database:
        assert _count(database) == 1
        assert not database.read_only


@pytest.mark.parametrize("rows", [0, 1, 249, 250, 251, 500, 1_100])
def test_any_number_of_rows_is_written_and_read(place: str, rows: int):
    keys = [f"{number:05}" for number in range(rows)]
    with opened(place) as database:
        if rows:
            written = database.write(lambda connection: connection.execute(ADD, [{"key": key} for key in keys]))
            assert written.rowcount == rows
        read = database.read(lambda connection: connection.execute("SELECT key FROM ullage_forms ORDER BY key"))
        assert [row[0] for row in read] == keys
        changed = database.write(lambda connection: connection.execute("UPDATE ullage_forms SET created = 1"))
        assert changed.rowcount == rows


def test_a_transaction_that_fails_leaves_nothing(place: str):
    def half(connection):
        connection.execute(ADD, {"key": "a"})
        raise KeyError("in the middle")

    with opened(place) as database:
        with pytest.raises(KeyError):
            database.write(half)
        assert _count(database) == 0


def test_a_reading_transaction_sees_one_moment(place: str):
    with opened(place) as database:

        def twice(connection):
            before = connection.scalar(COUNT)
            other = threading.Thread(target=_add, args=(database, "a"))
            other.start()
            other.join()
            return before, connection.scalar(COUNT)

        assert database.read(twice) == (0, 0)
        assert _count(database) == 1


def test_many_threads_write_side_by_side(place: str):
    with opened(place) as database:
        threads = [
            threading.Thread(target=lambda n=n: [_add(database, f"{n}-{i}") for i in range(10)]) for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert _count(database) == 80


def test_twenty_processes_start_together_on_nothing(place: str):
    assert in_processes(open_and_count, [(place,)] * 20) == [len(MIGRATIONS)] * 20


def test_twenty_processes_start_together_on_an_old_schema(place: str):
    with opened(place, migrations=MIGRATIONS[:1]) as database:
        _add(database, "from before")
    assert in_processes(open_and_count, [(place,)] * 20) == [len(MIGRATIONS)] * 20
    with opened(place) as database:
        assert _count(database) == 1


def test_a_migration_that_fails_leaves_the_old_schema(place: str):
    def broken(connection):
        connection.execute("CREATE TABLE half_done (a INTEGER)")
        connection.execute("SELECT nothing FROM nowhere")

    with pytest.raises(StoreFailed):
        Database.open(place, migrations=[*MIGRATIONS, broken])
    with opened(place) as database:
        assert not database.read_only
        with pytest.raises(StoreFailed, match="half_done"):
            database.read(lambda connection: connection.scalar("SELECT count(*) FROM half_done"))


def test_a_newer_schema_is_read_and_never_written(place: str):
    with opened(place, migrations=[*MIGRATIONS, lambda _: None]) as newer:
        _add(newer, "a")
    with opened(place) as database:
        assert database.read_only
        assert _count(database) == 1
        with pytest.raises(StoreFailed, match="newer Ullage") as refused:
            _add(database, "b")
        assert "Restart" in refused.value.suggestion


def test_a_schema_that_becomes_newer_while_it_is_open_stops_the_writing(place: str):
    with opened(place) as database:
        _add(database, "a")
        with opened(place, migrations=[*MIGRATIONS, lambda _: None]) as newer:
            _add(newer, "b")
        with pytest.raises(StoreFailed, match="newer Ullage"):
            _add(database, "c")
        assert database.read_only
        assert _count(database) == 2


def _hold(database: Database, begun: threading.Event, let_go: threading.Event) -> None:
    def hold(connection):
        connection.execute("DELETE FROM ullage_schema")
        begun.set()
        let_go.wait(10)
        raise KeyError("undone")

    with pytest.raises(KeyError):
        database.write(hold)


def test_a_database_that_another_holds_fails_in_time(place: str):
    begun, let_go = threading.Event(), threading.Event()
    update = "UPDATE ullage_schema SET version = version"
    with opened(place) as other, opened(place, patience=0.2) as database:
        holder = threading.Thread(target=_hold, args=(other, begun, let_go))
        holder.start()
        begun.wait(5)
        with pytest.raises(StoreFailed) as failed:
            database.write(lambda connection: connection.execute(update))
        assert _count(database) == 0, "reading goes on"
        let_go.set()
        holder.join()
        database.write(lambda connection: connection.execute(update))
    assert failed.value.suggestion


def test_a_thread_that_writes_for_too_long_fails_the_next_one(tmp_path: Path):
    begun, let_go = threading.Event(), threading.Event()
    with opened(str(tmp_path / "x.db"), patience=0.1) as database:
        holder = threading.Thread(target=_hold, args=(database, begun, let_go))
        holder.start()
        begun.wait(5)
        with pytest.raises(StoreFailed, match="another thread"):
            _add(database, "a")
        let_go.set()
        holder.join()


@pytest.mark.anyio
async def test_blocking_work_is_done_off_the_event_loop(place: str):
    with opened(place) as database:

        async def write(key: str) -> None:
            await database.aside(lambda: _add(database, key))

        async with anyio.create_task_group() as tasks:
            for n in range(20):
                tasks.start_soon(write, str(n))
        assert await database.aside(lambda: _count(database)) == 20
        assert await database.aside(threading.get_ident) != threading.get_ident()


def test_folder_and_file_are_their_owners_alone(tmp_path: Path):
    path = tmp_path / "one" / "two" / "ullage.db"
    with opened(str(path)) as database:
        _add(database, "a")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert {"ullage.db", "ullage.db-wal"} <= modes.keys()
    assert set(modes.values()) == {0o600}
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)} == {0o700}


def test_a_file_that_is_no_database_is_named_with_a_way_out(tmp_path: Path):
    path = tmp_path / "ullage.db"
    path.write_text("not a database, whatever its name says" * 100, encoding="utf-8")
    with pytest.raises(StoreFailed, match=r"ullage\.db` failed: file is not a database") as failed:
        Database.open(path)
    assert f"mv '{path}'" in failed.value.suggestion


def test_a_damaged_file_is_named_with_a_way_out(tmp_path: Path):
    path = tmp_path / "ullage.db"
    with opened(str(path)) as database:
        for n in range(200):
            _add(database, f"{n}" * 50)
    whole = bytearray(path.read_bytes())
    whole[4096:] = b"\xa5" * (len(whole) - 4096)
    path.write_bytes(whole)
    with pytest.raises(StoreFailed, match="malformed") as failed, opened(str(path)) as database:
        _count(database)
    assert "Move it away" in failed.value.suggestion


def test_a_place_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreFailed, match=r"file/ullage\.db"):
        Database.open(tmp_path / "file" / "ullage.db")
    with pytest.raises(StoreFailed, match="unable to open") as failed:
        Database.open(tmp_path)
    assert "may be read and written" in failed.value.suggestion


def test_a_full_disk_fails_and_says_so(tmp_path: Path):
    def fill(connection):
        connection.execute("PRAGMA max_page_count = 30")
        connection.execute(ADD, {"key": "x" * 1_000_000})

    with opened(str(tmp_path / "x.db")) as database:
        with pytest.raises(StoreFailed, match="full") as failed:
            database.write(fill)
        assert failed.value.suggestion == "Make room on the disk."
        assert _count(database) == 0


def test_a_statement_that_cannot_be_run_says_to_restart(tmp_path: Path):
    with opened(str(tmp_path / "x.db")) as database, pytest.raises(StoreFailed) as failed:
        database.read(lambda connection: connection.execute("SELECT nothing FROM nowhere"))
    assert failed.value.suggestion.startswith("Restart")


def test_a_file_under_exclusive_lock_is_given_up_in_time(tmp_path: Path):
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE a (b)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreFailed, match="locked") as failed:
            Database.open(path, patience=0.1)
    assert "fuser" in failed.value.suggestion


def test_closing_twice_is_harmless(place: str):
    database = Database.open(place)
    database.close()
    database.close()


SECRET = "hunter2"


def test_a_password_is_never_shown():
    url = f"postgresql://someone:{SECRET}@127.0.0.1:1/nowhere?password={SECRET}"
    address = Address.of(url)
    assert SECRET not in repr(address) + address.shown
    assert address.shown == "postgresql://127.0.0.1:1/nowhere"
    with pytest.raises(StoreFailed, match=r"127\.0\.0\.1") as failed:
        Database.open(url, patience=1)
    assert SECRET not in str(failed.value) + str(failed.value.__cause__) + str(failed.value.wire())


@pytest.mark.parametrize("url", [f"postgresql://a:b@c:{SECRET}/d", "mysql://a/b", "sqlite://", "sqlite:///:memory:"])
def test_an_address_that_cannot_be_meant_is_refused_without_a_secret(url: str):
    with pytest.raises(BadConfiguration) as refused:
        Address.of(url)
    assert refused.value.options
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_file_can_be_named_as_a_path_or_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "x.db"
    assert {Address.of(where).path for where in (path, str(path), f"sqlite:///{path}", "~/x.db")} == {path}
    url = Address.of("postgres://u@h/d").url
    assert url is not None
    assert url.drivername == "postgresql+psycopg"


def test_without_its_driver_postgresql_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreFailed) as failed:
        Database.open("postgresql://127.0.0.1/test")
    assert failed.value.suggestion == "pip install 'ullage[postgresql]'"


def test_a_database_shows_its_place_alone(tmp_path: Path):
    with opened(str(tmp_path / "x.db")) as database:
        assert repr(database) == f"Database('{tmp_path}/x.db')"


def test_counting_imports_no_database():
    code = "import sys; from ullage import count; count('a', 'gpt-4o'); sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_text_is_made_storable_and_times_come_back():
    assert storable("a\0b\ud800c é") == "ab?c é"
    assert moment(seconds(moment(1_790_000_000.123456))) == moment(1_790_000_000.123456)
    with pytest.raises(ValueError, match="zone"):
        seconds(moment(0).replace(tzinfo=None))


def test_a_file_is_used_without_sqlalchemy(tmp_path: Path):
    code = (
        "import sys; from ullage.store import Database; database = Database.open(sys.argv[1]);"
        "database.write(lambda it: it.execute('DELETE FROM ullage_forms')); database.close();"
        "sys.exit('sqlalchemy' in sys.modules)"
    )
    for place in (str(tmp_path / "x.db"), f"sqlite:///{tmp_path / 'y.db'}"):
        subprocess.run([sys.executable, "-c", code, place], check=True)
    assert (tmp_path / "y.db").exists()


def test_the_schema_of_a_file_is_that_of_earlier_versions(tmp_path: Path):
    """Its statements were written by SQLAlchemy before; a database made then and one made now are the same."""
    with opened(str(tmp_path / "x.db"), migrations=MIGRATIONS[:8]):
        pass
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        written = "\n".join(re.sub(r"\s+", " ", row[0]).replace("( ", "(").replace(" )", ")") for row in rows)
    assert hashlib.sha256(written.encode()).hexdigest() == SCHEMA


def test_connections_are_shared_by_more_threads_than_there_are(tmp_path: Path):
    with opened(str(tmp_path / "x.db"), patience=5.0) as database:
        inside, most, lock = 0, 0, threading.Lock()

        def look(connection):
            nonlocal inside, most
            with lock:
                inside += 1
                most = max(most, inside)
            connection.scalar(COUNT)
            time.sleep(0.02)
            with lock:
                inside -= 1

        threads = [threading.Thread(target=database.read, args=(look,)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 1 <= most <= 4


def test_a_connection_that_is_never_free_fails_in_time(tmp_path: Path):
    let_go = threading.Event()
    with opened(str(tmp_path / "x.db"), patience=0.1) as database:
        holders = [threading.Thread(target=database.read, args=(lambda _: let_go.wait(10),)) for _ in range(4)]
        for holder in holders:
            holder.start()
        time.sleep(0.2)
        with pytest.raises(StoreFailed, match="in use"):
            _count(database)
        let_go.set()
        for holder in holders:
            holder.join()
        assert _count(database) == 0
