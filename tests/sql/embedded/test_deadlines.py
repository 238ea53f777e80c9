"""Does every question end in time, and the next one find a worker?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from ullage.errors import DeadlinePassed, QueryFailed, SourceFailed
from ullage.sql import Limits, Question
from ullage.sql.embedded import EmbeddedEngine
from ullage.sql.embedded.embedded_engine import Received, Workers, crash_error, frame_message

pytestmark = pytest.mark.requirement("S0:sql:engines")

SECONDS = 0.4

ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
UNINTERRUPTIBLE = {
    "sqlite": "SELECT printf('%.*c', 1000000000, 'x')",
    "duckdb": "SELECT length(repeat('x', 500000000))",
}
CROSSED = "SELECT sum(a.id * g.id) FROM orders a, orders b, orders c, orders d, orders e, orders f, orders g"
MANY = {
    "sqlite": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10000000000) SELECT n FROM r",
    "duckdb": "SELECT * FROM range(10000000000)",
}
HUGE = {
    "sqlite": "SELECT zeroblob(100000000), 1",
    "duckdb": "SELECT repeat('x', 100000000), 1",
}


def question(sql: str, rows: int = 100, seconds: float = SECONDS) -> Question:
    return Question(sql=sql, rows=rows, seconds=seconds)


def peak_megabytes(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status")
    if not status.exists():
        pytest.skip("memory is read from /proc")
    return next(int(line.split()[1]) // 1_000 for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.anyio
@pytest.mark.requirement("S0:sql:read-only")
async def test_a_question_without_end_is_ended_at_its_deadline_and_the_next_is_answered(engine: EmbeddedEngine):
    process_id = 0
    for sql in (ENDLESS, CROSSED, UNINTERRUPTIBLE[engine.dialect]):
        await engine.ask(question("SELECT 1", seconds=30))
        process_id = engine.process_ids[0]
        began = time.monotonic()
        with pytest.raises(DeadlinePassed) as late:
            await engine.ask(question(sql))
        assert time.monotonic() - began < 10, sql
        assert late.value.suggestion
        assert (await engine.ask(question("SELECT 1", seconds=30))).rows == ((1,),)
    assert not is_running(process_id), "what cannot be interrupted ends with its process, and is not waited for"


@pytest.mark.anyio
@pytest.mark.requirement("S0:sql:read-only")
async def test_ten_thousand_million_rows_take_no_memory(engine: EmbeddedEngine):
    answer = await engine.ask(question(MANY[engine.dialect], rows=1_000, seconds=30))
    assert (len(answer.rows), answer.more) == (1_000, True)
    assert peak_megabytes(engine.process_ids[0]) < 150


@pytest.mark.anyio
async def test_a_cell_of_a_hundred_megabytes_is_cut_before_it_comes(engine: EmbeddedEngine):
    answer = await engine.ask(question(HUGE[engine.dialect], seconds=60))
    assert [len(str(cell)) for cell in answer.rows[0]] == [20_000, 1]
    assert answer.cut_cells == 1
    assert peak_megabytes(engine.process_ids[0]) < 900


@pytest.mark.anyio
async def test_a_question_that_needs_too_much_memory_fails_alone(sqlite_file: Path):
    engine = EmbeddedEngine(sqlite_file, dialect="sqlite", memory=64_000_000)
    for sql in ("SELECT length(hex(zeroblob(50000000)))", "SELECT hex(zeroblob(15000000)) FROM orders"):
        with pytest.raises(QueryFailed, match="more memory"):
            await engine.ask(question(sql, seconds=30))
        assert (await engine.ask(question("SELECT 1", seconds=30))).rows == ((1,),)
    await engine.close()


@pytest.mark.anyio
async def test_a_duckdb_question_that_needs_too_much_memory_fails_alone(duckdb_file: Path):
    engine = EmbeddedEngine(duckdb_file, dialect="duckdb", memory=400_000_000)
    with pytest.raises(QueryFailed, match="Out of Memory Error: ") as failed:
        await engine.ask(question("SELECT list(repeat('x', 1000000) || i) FROM range(1000) t(i)", seconds=30))
    assert "SET" not in failed.value.message
    assert (await engine.ask(question("SELECT 1", seconds=30))).rows == ((1,),)
    await engine.close()


@pytest.mark.anyio
async def test_waiting_for_a_turn_is_within_the_deadline(sqlite_file: Path):
    with anyio.fail_after(20):
        engine = EmbeddedEngine(sqlite_file, dialect="sqlite", limits=Limits(concurrency=1))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_late, engine, ENDLESS, 1.0)
            await anyio.sleep(0.1)
            await _late(engine, "SELECT 1", 0.2)
        assert (await engine.ask(question("SELECT 1", seconds=30))).rows == ((1,),)
        assert len(engine.process_ids) == 1
        await engine.close()


async def _late(engine: EmbeddedEngine, sql: str, seconds: float) -> None:
    with pytest.raises(DeadlinePassed):
        await engine.ask(question(sql, seconds=seconds))


@pytest.mark.anyio
async def test_as_many_questions_as_allowed_run_at_one_time(sqlite_file: Path):
    engine = EmbeddedEngine(sqlite_file, dialect="sqlite", limits=Limits(concurrency=2))
    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(engine.ask, question("SELECT count(*) FROM orders a, orders b", seconds=30))
    assert len(engine.process_ids) == 2
    await engine.close()


@pytest.mark.anyio
async def test_a_question_that_is_given_up_leaves_no_process(sqlite: EmbeddedEngine):
    await sqlite.ask(question("SELECT 1", seconds=30))
    process_id = sqlite.process_ids[0]
    with anyio.move_on_after(0.2):
        await sqlite.ask(question(UNINTERRUPTIBLE["sqlite"], seconds=30))
    assert not is_running(process_id)
    assert sqlite.process_ids == ()
    assert (await sqlite.ask(question("SELECT 1", seconds=30))).rows == ((1,),)


@pytest.mark.anyio
async def test_a_crashed_worker_is_reported_and_replaced(sqlite: EmbeddedEngine):
    await sqlite.ask(question("SELECT 1", seconds=30))
    process_id = sqlite.process_ids[0]

    async def crash() -> None:
        await anyio.sleep(0.2)
        os.kill(process_id, signal.SIGSEGV)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crash)
        with pytest.raises(SourceFailed, match="SIGSEGV"):
            await sqlite.ask(question(ENDLESS, seconds=30))
    assert (await sqlite.ask(question("SELECT 1", seconds=30))).rows == ((1,),)


@pytest.mark.anyio
async def test_a_worker_that_ended_at_rest_is_not_missed(sqlite: EmbeddedEngine):
    await sqlite.ask(question("SELECT 1", seconds=30))
    process_id = sqlite.process_ids[0]
    os.kill(process_id, signal.SIGKILL)
    with anyio.fail_after(20):
        while is_running(process_id):
            await anyio.sleep(0.01)
    await anyio.sleep(0.05)
    assert (await sqlite.ask(question("SELECT 1", seconds=30))).rows == ((1,),)


@pytest.mark.anyio
async def test_an_idle_worker_ends_and_the_next_request_starts_another(sqlite_file: Path):
    hello = {"kind": "sqlite", "path": str(sqlite_file), "uri": sqlite_file.as_uri(), "within": None}
    workers = Workers(hello, name="shop.db", limits=Limits(), idle=0.05)
    ask = frame_message({"do": "ask", "sql": "SELECT 1", "rows": 1, "cell": 9, "bytes": 99, "seconds": 30})
    assert (await workers.ask(lambda _: (ask,), 30)).rows == [(1,)]
    process_id = workers.process_ids[0]
    with anyio.fail_after(20):
        while is_running(process_id):
            await anyio.sleep(0.01)
    assert (await workers.ask(lambda _: (ask,), 30)).rows == [(1,)]
    await workers.close()


class Leaving:
    """A worker that has just said goodbye."""

    status = None

    async def exchange(self, _frames: object, *, most: int) -> Received:
        return Received(is_farewell=most > 0)

    async def end(self) -> None:
        pass


def test_a_goodbye_is_not_taken_for_an_answer():
    received = Received()
    received.take({"bye": True})
    assert (received.is_whole, received.is_farewell, received.ends_worker) == (True, True, True)


@pytest.mark.anyio
async def test_a_question_that_meets_a_worker_on_its_way_out_is_asked_of_another(sqlite: EmbeddedEngine):
    sqlite._workers._warm.append(Leaving())  # pyright: ignore[reportPrivateUsage, reportArgumentType]
    assert (await sqlite.ask(question("SELECT 1", seconds=30))).rows == ((1,),)


@pytest.mark.anyio
async def test_a_closed_database_answers_nothing(sqlite: EmbeddedEngine):
    await sqlite.ask(question("SELECT 1", seconds=30))
    process_id = sqlite.process_ids[0]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_late, sqlite, ENDLESS, 0.4)
        await anyio.sleep(0.1)
        await sqlite.close()
    assert not is_running(process_id)
    with pytest.raises(SourceFailed, match="is closed"):
        await sqlite.ask(question("SELECT 1", seconds=30))


@pytest.mark.anyio
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the environment is read from /proc")
async def test_a_worker_has_none_of_the_environments_secrets(sqlite: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_TOKEN", "secret-value")
    monkeypatch.setenv("TZ", "Europe/Lisbon")
    await sqlite.ask(question("SELECT 1", seconds=30))
    about = Path(f"/proc/{sqlite.process_ids[0]}")
    assert b"secret-value" not in (about / "environ").read_bytes()
    assert b"TZ=Europe/Lisbon" in (about / "environ").read_bytes()
    assert b"shop" not in (about / "cmdline").read_bytes()


ORPHANING = """
import anyio, pathlib, sys
from ullage.sql import Question
from ullage.sql.embedded import EmbeddedEngine

async def main():
    engine = EmbeddedEngine(pathlib.Path(sys.argv[1]), dialect="sqlite")
    await engine.ask(Question(sql="SELECT 1", rows=1, seconds=30))
    print(engine.process_ids[0], flush=True)
    await engine.ask(Question(sql=sys.argv[2], rows=1, seconds=30))

anyio.run(main)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a process's state is read from /proc")
def test_no_worker_outlives_the_process_that_started_it(sqlite_file: Path):
    command = [sys.executable, "-c", ORPHANING, str(sqlite_file), ENDLESS]
    # Measured, it would leave half a file of figures behind.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    ends = time.monotonic() + 20
    while _state(worker) not in ("", "Z") and time.monotonic() < ends:
        time.sleep(0.02)
    assert _state(worker) in ("", "Z")


def _state(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().split()[2]
    except FileNotFoundError:
        return ""


LIES = {
    "no JSON": b"\0\0\0\1[",
    "no object": b"\0\0\0\2[]",
    "without end": b"\xff\xff\xff\xff",
    "half a frame": b"\0\0\0\x09{",
    "rows that are none": frame_message({"rows": [1]}),
    "columns that are none": frame_message({"columns": 1}),
    "a decimal that is none": frame_message({"rows": [[{"decimal": "x"}]]}),
    "an end that is none": frame_message({"more": True}),
    "more than was asked for": frame_message({"columns": ["x" * 1_200_000]}) * 15,
}


@pytest.mark.anyio
@pytest.mark.parametrize("lie", LIES)
async def test_what_no_worker_says_is_not_believed(
    lie: str, sqlite: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    said = tmp_path / "said"
    said.write_bytes(LIES[lie])
    program = tmp_path / "liar.py"
    program.write_text(f"import sys; sys.stdout.buffer.write(open({str(said)!r}, 'rb').read())", encoding="utf-8")
    monkeypatch.setattr("ullage.sql.embedded.embedded_engine._PROGRAM", program)
    monkeypatch.setattr("ullage.sql.embedded.embedded_engine._SLACK", 0)
    with pytest.raises(SourceFailed, match="ended in the middle"):
        await sqlite.ask(question("SELECT 1", seconds=30))


def test_the_error_says_how_a_worker_ended_if_known():
    for status, words in (
        (None, "question"),
        (0, "question"),
        (3, "with status 3"),
        (-9, "by SIGKILL"),
        (-99, "by signal 99"),
    ):
        assert crash_error("shop.db", status).message.endswith(words)
