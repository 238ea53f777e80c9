"""Fifty processes that race for one day's budget, some of which die with an answer in their hands."""

import json
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from heavy.delegate_spender import OUTPUT, Race
from store.databases import ENGINES, fresh_place, opened
from ullage.store import Database

pytestmark = [pytest.mark.heavy]

SPENDERS = Path(__file__).parent / "delegate_spender.py"
PROCESSES = 50
CEILING = 25_000
"""Tokens; some 250 estimates."""


@pytest.mark.requirement("S4:budgets")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("times", [1, 2], ids=["as estimated", "twice as much"])
def test_fifty_processes_never_overspend_and_what_the_dead_spent_is_not_lost(engine: str, times: int, tmp_path: Path):
    book = tmp_path / "book"
    with fresh_place(engine, tmp_path) as place:
        Database.open(place).close()
        race = Race(place=place, book=str(book), processes=PROCESSES, ceiling=CEILING, times_billed=times)
        command = [sys.executable, str(SPENDERS), json.dumps(asdict(race))]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=600)
        with opened(place) as database:
            written, dead = database.read(
                lambda connection: connection.execute(
                    "SELECT sum(tokens), sum(CASE WHEN settled THEN 0 ELSE 1 END) FROM ullage_spends"
                ).one()
            )
    ended, billed = json.loads(done.stdout), sum(map(int, book.read_text(encoding="ascii").split()))
    assert set(ended) == {0, -signal.SIGKILL}, ended
    assert dead == ended.count(-signal.SIGKILL)
    assert billed > CEILING / 2
    if times == 1:
        assert billed <= written <= CEILING
    else:
        # Where more is billed than an answer may take, it is by no more than the calls under way were estimated at.
        assert billed <= CEILING + PROCESSES * OUTPUT
