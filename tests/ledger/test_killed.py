"""What a killed process had recorded is in the ledger, but for the last half second."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ullage.ledger import read_entries
from ullage.store import Database

RECORDING = """
import sys, time
from datetime import UTC, datetime
from decimal import Decimal
from ullage.ledger import Entry, ModelUse, Recording
from ullage.models import Usage
from ullage.store import Database

recording = Recording(Database.open(sys.argv[1]))
for number in range(100_000):
    now = datetime.now(UTC)
    about = dict(time=now, principal="ada", session="s", tokens=number)
    recording.record(Entry(kind="result", server="shop", tool="query", **about))
    if number % 100 == 99:
        use = ModelUse(usage=Usage(input=1, output=1), dollars=Decimal("0.01"), key=f"r{number}")
        recording.record(Entry(kind="model", model="m", use=use, **about))
        assert recording.flush()
        print(f"paid {number} {now.timestamp()}", flush=True)
    time.sleep(0.005)
"""


@pytest.mark.requirement("U:ledger")
def test_killed_process_loses_at_most_half_a_second_of_entries_and_no_money(tmp_path: Path):
    place = tmp_path / "ledger.db"
    process = subprocess.Popen([sys.executable, "-c", RECORDING, str(place)], stdout=subprocess.PIPE, text=True)
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
