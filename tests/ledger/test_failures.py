"""A killed process, a full disk, a locked or interrupted database and a shared one: entries may be lost, with a warning
and for half a second at most where the process is killed; a call and the cost of an answer never."""

import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ullage.ledger import read_entries, usage_report
from ullage.store import Database
from upstreams import scripted, settle_in, users_file, write_toml
from web.test_telemetry import call, serve

RECORDING = """
import sys, time
from datetime import UTC, datetime
from decimal import Decimal
from ullage.ledger import Entry, ModelUse, Recording
from ullage.models import Usage
from ullage.store import Database

recording = Recording(Database.open(sys.argv[1]))
began = time.monotonic()
for number in range(100_000):
    time.sleep(max(0.0, began + number / 200 - time.monotonic()))  # 200 a second, however loaded the machine is
    now = datetime.now(UTC)
    about = dict(time=now, principal="ada", session="s", tokens=number)
    recording.record(Entry(kind="result", server="shop", tool="query", **about))
    if number % 100 == 99:
        use = ModelUse(usage=Usage(input=1, output=1), dollars=Decimal("0.01"), key=f"r{number}")
        recording.record(Entry(kind="model", model="m", use=use, **about))
        assert recording.flush()
        print(f"paid {number} {now.timestamp()}", flush=True)
"""


@pytest.mark.requirement("U:ledger")
def test_killed_process_loses_at_most_half_a_second_of_entries_and_no_money(place: str):
    process = subprocess.Popen([sys.executable, "-c", RECORDING, place], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    paid = [process.stdout.readline().split()[1] for _ in range(2)]
    time.sleep(0.7)
    os.kill(process.pid, signal.SIGKILL)
    killed = time.time()
    paid += [line.split()[1] for line in process.stdout.read().splitlines() if line.startswith("paid")]
    process.wait()
    process.stdout.close()
    database = Database.open(place)
    entries = list(read_entries(database))
    database.close()
    results = [one.tokens for one in entries if one.kind == "result"]
    assert results == list(range(len(results))), "none is missing in between"
    last = max(one.time.timestamp() for one in entries if one.kind == "result")
    assert killed - last <= 0.5 + 0.3, "the rest is what a loaded machine takes to write and to kill"
    assert len([one for one in entries if one.kind == "model"]) >= len(paid)


CALLS = 150


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settle_in(tmp_path, monkeypatch)
    write_toml(users_file(tmp_path), '[gateway]\nmode = "search"\n', notes=scripted())
    return tmp_path / "work"


def url(place: str) -> str:
    return place if "://" in place else f"sqlite:///{place}"


def calls(count: int = CALLS):
    return [
        call(number, "call_tool_write", tool_name="notes__echo", parameters={"text": f"{number} " + "word " * 300})
        for number in range(1, count + 1)
    ]


def check_answers(answers: dict[int, dict], count: int = CALLS) -> None:
    for number in range(1, count + 1):
        result = answers[number]["result"]
        assert not result.get("isError"), result
        assert result["content"][0]["text"].startswith(f"{number} ")


def recorded(place: str | Path) -> int:
    database = Database.open(place)
    try:
        return sum(entry.kind == "result" for entry in read_entries(database))
    finally:
        database.close()


@pytest.mark.requirement("U:ledger")
def test_full_disk_loses_entries_with_a_warning_and_no_call(work: Path, monkeypatch: pytest.MonkeyPatch):
    place = work / "ledger.db"
    monkeypatch.setenv("ULLAGE_STORE", f"sqlite:///{place}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    serve(*calls(1))
    # No file may grow beyond 36 KiB from here on, as on a disk that is full. The store can be opened, for which its
    # shared memory needs 32 KiB, but a batch of entries does not fit into its log.
    limited = work / "limited.sh"
    limited.write_text(f'#!/bin/sh\nulimit -f 72\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    limited.chmod(0o700)
    answers, log, _ = serve(*calls(), program=str(limited))
    check_answers(answers)
    lost = re.findall(r"the ledger lacks (\d+) entries", log)
    assert lost, log
    assert recorded(place) >= 1, "the store is whole"


def test_locked_database_loses_entries_with_a_warning_and_no_call(work: Path, monkeypatch: pytest.MonkeyPatch):
    place = work / "ledger.db"
    monkeypatch.setenv("ULLAGE_STORE", f"sqlite:///{place}")
    serve(*calls(1))
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answers, log, _ = serve(*calls())
    other.execute("ROLLBACK")
    other.close()
    check_answers(answers)
    assert "the ledger lacks" in log
    assert recorded(place) == 1


def test_two_gateways_under_load_share_one_store_and_lose_nothing(work: Path, place: str):
    found: list[tuple[dict[int, dict], str, float]] = []
    gateways = [
        threading.Thread(target=lambda: found.append(serve(*calls(), ULLAGE_STORE=url(place)))) for _ in range(2)
    ]
    for gateway in gateways:
        gateway.start()
    for gateway in gateways:
        gateway.join()
    assert len(found) == 2
    for answers, log, _ in found:
        check_answers(answers)
        assert "the ledger lacks" not in log
    assert recorded(place) == 2 * CALLS
    database = Database.open(place)
    report, recount = usage_report(database, by="tool"), usage_report(database, by="tool", recount=True)
    assert [(one.key, one.saved, one.uses) for one in report.lines] == [
        (one.key, one.saved, one.uses) for one in recount.lines
    ]
    database.close()


def test_server_of_the_store_that_drops_its_connections_stops_no_call(
    work: Path, place: str, request: pytest.FixtureRequest
):
    if "postgresql" not in request.node.name:
        pytest.skip("a file has no server")
    database, is_over = Database.open(place), threading.Event()
    drop = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE relation = 'ullage_entries'::regclass AND granted"

    def cut() -> None:
        while not is_over.wait(0.02):
            database.read(lambda connection: connection.execute(drop).all())

    cutting = threading.Thread(target=cut)
    cutting.start()
    try:
        answers, _, _ = serve(*calls(), ULLAGE_STORE=url(place))
    finally:
        is_over.set()
        cutting.join()
        database.close()
    check_answers(answers)
