"""What the ledger costs: recording, bytes, reports over many entries, and reading logs beside ccusage.

ENTRIES=5000000 and MEGABYTES=1000 are the sizes; ONLY=report or ONLY=logs runs one part. Times are of CPU. PostgreSQL
is left out where no server answers at ULLAGE_TEST_POSTGRESQL; its time is the client's and its backend's together.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from ledger_entries import entries
from ledger_logs import write_logs

from ullage.ledger import GROUPS, usage_report
from ullage.ledger.rows import write_entries
from ullage.store import Database

ENTRIES = int(os.environ.get("ENTRIES", "5000000"))
MEGABYTES = int(os.environ.get("MEGABYTES", "1000"))
DATA = Path(os.environ.get("DATA", "../shared/data"))
POSTGRESQL = os.environ.get("ULLAGE_TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/test")
CCUSAGE = Path(".bench/ccusage/node_modules/.bin/ccusage")
BATCH = 500


def main() -> None:
    only = os.environ.get("ONLY", "")
    with tempfile.TemporaryDirectory() as folder:
        if only in ("", "report"):
            place = Path(folder, "ledger.db")
            _reports(f"sqlite:///{place}", "SQLite", place)
            _on_postgresql()
        if only in ("", "logs"):
            _logs(Path(folder))


def _reports(url: str, name: str, place: Path | None) -> None:
    database = Database.open(url)
    found, spent = entries(ENTRIES), 0.0
    while batch := list(islice(found, BATCH)):
        began = time.process_time()
        database.write(lambda connection, batch=batch: write_entries(connection, batch))
        spent += time.process_time() - began
    print(f"{name}: {ENTRIES:,} entries, recorded in {1e6 * spent / ENTRIES:.1f} µs of CPU each")
    for by in GROUPS:
        began = _cpu(database)
        report = usage_report(database, by=by)
        took, began = _cpu(database) - began, _cpu(database)
        recount = usage_report(database, by=by, recount=True)
        recounted = _cpu(database) - began
        same = [(one.key, one.spent, one.saved, one.models) for one in report.lines] == [
            (one.key, one.spent, one.saved, one.models) for one in recount.lines
        ]
        words = "equal to" if same else "NOT EQUAL TO"
        print(f"  by {by:8} {len(report.lines):6,} lines  {took:6.3f} s, {words} a recount in {recounted:.2f} s")
    database.close()
    if place is not None:
        print(f"  {place.stat().st_size / ENTRIES:.1f} bytes an entry, sums and indexes included")


def _cpu(database: Database) -> float:
    """Seconds of CPU of this process, and of the backend of PostgreSQL that serves it."""
    spent = time.process_time()
    if "postgresql" not in database.place:
        return spent
    pid = database.read(lambda connection: connection.scalar("SELECT pg_backend_pid()"))
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return spent + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _on_postgresql() -> None:
    import psycopg

    schema = f"ullage_bench_{os.getpid()}"
    try:
        connection = psycopg.connect(POSTGRESQL, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError:
        print("PostgreSQL: no server answers")
        return
    with connection:
        connection.execute(f"CREATE SCHEMA {schema}")  # pyright: ignore[reportArgumentType, reportCallIssue]
        try:
            # In one process, since what parallel workers take is not seen.
            options = f"-csearch_path%3D{schema}%20-cmax_parallel_workers_per_gather%3D0"
            _reports(f"{POSTGRESQL}?options={options}", "PostgreSQL", None)
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")  # pyright: ignore[reportArgumentType, reportCallIssue]


def _logs(folder: Path) -> None:
    size = write_logs(DATA / "traces/pi/before-compaction.jsonl", folder / "claude", MEGABYTES * 1_000_000)
    environment = {**os.environ, "HOME": str(folder), "CLAUDE_CONFIG_DIR": str(folder / "claude"), "TZ": "UTC"}
    store = f"sqlite:///{folder}/logs.db"
    ours = [sys.executable, "-m", "ullage", "usage", "--since", "2026-01-01", "--json", "--store", store]
    first, said = _timed(ours, environment)
    second, again = _timed(ours, environment)
    total, repeated = json.loads(said)["total"]["spent"], json.loads(again)["total"]["spent"]
    assert total == repeated, "a second reading gives other figures"
    print(f"Logs: {size / 1e9:.2f} GB, {total['calls']:,} calls; first reading {first:.2f} s, second {second:.2f} s")
    if not CCUSAGE.exists():
        print("  ccusage is not installed (npm ccusage@20.0.24)")
        return
    theirs, said = _timed([str(CCUSAGE), "daily", "--offline", "--json"], environment)
    peer = json.loads(said)["totals"]
    print(f"  ccusage 20.0.24 {theirs:.2f} s: the first reading is {first / theirs:.1f} times that")
    names = {"inputTokens": "inputTokens", "outputTokens": "outputTokens", "cacheReadTokens": "cacheReadTokens"}
    names |= {"cacheWriteTokens": "cacheCreationTokens", "dollars": "totalCost"}
    for mine, other in names.items():
        same = "equal" if abs(total[mine] - peer[other]) < 0.005 else "DIFFERENT"
        print(f"  {mine:17} {total[mine]:>18,} {peer[other]:>18,}  {same}")


def _timed(words: list[str], environment: dict[str, str]) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended.stdout


if __name__ == "__main__":
    main()
