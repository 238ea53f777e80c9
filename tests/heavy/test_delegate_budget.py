"""Fifty processes that race for one day's budget, some of which die with an answer in their hands."""

import multiprocessing
import signal
from pathlib import Path

import pytest
from sqlalchemy import text

from heavy.delegate_spender import OUTPUT, Spender, spend
from store.databases import ENGINES, fresh_place, opened
from ullage.store import Database

pytestmark = [pytest.mark.heavy]

PROCESSES = 50
CEILING = 25_000


def race(spenders: list[Spender]) -> list[int | None]:
    """How each ended, all of them having begun at one moment."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["heavy.delegate_spender"])
    start = context.Barrier(len(spenders))
    processes = [context.Process(target=spend, args=(spender, start)) for spender in spenders]
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)
    ended = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
        process.join()
        process.close()
    return ended


@pytest.mark.requirement("S4:budgets")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("times", [1, 2], ids=["as estimated", "twice as much as estimated"])
def test_fifty_processes_never_spend_more_than_there_is_and_what_the_dead_spent_is_not_lost(
    engine: str, times: int, tmp_path: Path
):
    book = tmp_path / "book"
    with fresh_place(engine, tmp_path) as place:
        Database.open(place).close()
        spenders = [
            Spender(number=number, place=place, book=book, ceiling=CEILING, times_billed=times, dies=number % 5 == 0)
            for number in range(PROCESSES)
        ]
        ended = race(spenders)
        with opened(place) as database:
            written, dead = database.read(
                lambda connection: connection.execute(
                    text("SELECT sum(tokens), sum(CASE WHEN settled THEN 0 ELSE 1 END) FROM ullage_spends")
                ).one()
            )
    billed = sum(map(int, book.read_text(encoding="ascii").split()))
    assert ended == [-signal.SIGKILL if spender.dies else 0 for spender in spenders]
    assert dead == sum(spender.dies for spender in spenders)
    assert billed > CEILING / 2
    if times == 1:
        assert billed <= written <= CEILING
    else:
        # A provider that bills more than an answer may take costs at most that of the calls under way.
        assert billed <= CEILING + PROCESSES * OUTPUT
