import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from ullage.delegate import (
    Alert,
    Ceiling,
    Ceilings,
    LocalPurse,
    Scope,
    Spend,
    StoredPurse,
    Ticket,
    Unlimited,
    alerts,
    check,
    since,
)
from ullage.errors import OverBudget
from ullage.store import Database
from ullage.tool import ANONYMOUS, Caller

pytestmark = pytest.mark.requirement("S4:budgets")

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def spend(tokens: int, dollars: str | None = "0") -> Spend:
    return Spend(tokens=tokens, dollars=None if dollars is None else Decimal(dollars))


def ceilings(**by_scope: Ceiling) -> Ceilings:
    return Ceilings(by_scope=by_scope)  # type: ignore[arg-type]


@pytest.mark.requirement("S4:budgets")
def test_an_estimate_must_fit_under_every_ceiling():
    set_to = ceilings(call=Ceiling(tokens=100), day=Ceiling(dollars=Decimal(1)))
    spent: dict[Scope, Spend] = {"day": spend(5_000, "0.9")}
    check(set_to, spent, spend(100, "0.1"))
    with pytest.raises(OverBudget, match="budget of this call"):
        check(set_to, spent, spend(101, "0"))
    with pytest.raises(OverBudget, match=r"budget of this day: \$0.9 of \$1 spent"):
        check(set_to, spent, spend(1, "0.100001"))


@pytest.mark.requirement("S4:budgets")
def test_what_has_no_price_is_refused_under_a_ceiling_of_money_and_passes_under_one_of_tokens():
    with pytest.raises(OverBudget, match="is not known"):
        check(ceilings(day=Ceiling(dollars=Decimal(1))), {}, spend(1, None))
    check(ceilings(day=Ceiling(tokens=1)), {}, spend(1, None))


def test_a_day_and_a_month_begin_at_midnight_in_utc():
    eastern = datetime.fromisoformat("2026-12-01T01:00:00+05:00")
    assert since("day", eastern) == datetime(2026, 11, 30, tzinfo=UTC)
    assert since("month", eastern) == datetime(2026, 11, 1, tzinfo=UTC)
    assert since("task", eastern) is None


def test_only_the_highest_threshold_is_reported_and_only_once():
    set_to = ceilings(day=Ceiling(tokens=100, dollars=Decimal(1)), call=Ceiling(tokens=5))
    told = list(alerts(set_to, {"day": spend(40)}, {"day": spend(85)}))
    assert [(one.scope, one.part) for one in told] == [("day", Decimal("0.8"))]
    assert list(alerts(set_to, {"day": spend(85)}, {"day": spend(90)})) == []
    assert [one.part for one in alerts(set_to, {"day": spend(0)}, {"day": spend(1, "1")})] == [Decimal(1)]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database.open(tmp_path / "store.db")
    yield opened
    opened.close()


def purse(database: Database, told: list[Alert] | None = None, **by_scope: Ceiling) -> StoredPurse:
    heard = [] if told is None else told
    return StoredPurse(database=database, ceilings=lambda: ceilings(**by_scope), alert=heard.append, now=lambda: NOW)


@pytest.mark.anyio
@pytest.mark.requirement("S4:budgets")
async def test_what_is_set_aside_counts_until_it_is_settled(database: Database):
    one = purse(database, day=Ceiling(tokens=100))
    ticket = await one.reserve(spend(80), ANONYMOUS, None)
    with pytest.raises(OverBudget):
        await one.reserve(spend(30), ANONYMOUS, None)
    await one.settle(ticket, spend(10))
    await one.reserve(spend(90), ANONYMOUS, None)


@pytest.mark.anyio
@pytest.mark.requirement("S4:budgets")
async def test_the_reservation_of_a_dead_process_stays_spent(tmp_path: Path):
    first = Database.open(tmp_path / "store.db")
    await purse(first, day=Ceiling(tokens=100)).reserve(spend(80), ANONYMOUS, None)
    first.close()
    second = Database.open(tmp_path / "store.db")
    with pytest.raises(OverBudget):
        await purse(second, day=Ceiling(tokens=100)).reserve(spend(30), ANONYMOUS, None)
    second.close()


@pytest.mark.anyio
@pytest.mark.requirement("S4:budgets")
async def test_tasks_and_sessions_have_budgets_of_their_own(database: Database):
    me = Caller(principal="me", session="one")
    other = Caller(principal="me", session="two")
    one = purse(database, task=Ceiling(tokens=100), session=Ceiling(tokens=150))
    await one.reserve(spend(90), me, "docs")
    with pytest.raises(OverBudget, match="this task"):
        await one.reserve(spend(20), other, "docs")
    await one.reserve(spend(20), me, "code")
    with pytest.raises(OverBudget, match="this session"):
        await one.reserve(spend(90), me, None)
    await one.reserve(spend(90), other, None)


@pytest.mark.anyio
@pytest.mark.requirement("S4:budgets")
async def test_what_a_call_has_spent_already_counts_towards_its_ceiling(database: Database):
    one = purse(database, call=Ceiling(tokens=100, dollars=Decimal(1)))
    await one.reserve(spend(60, "0.6"), ANONYMOUS, None, already=spend(40, "0.4"))
    for already in (spend(41, "0.4"), spend(40, "0.41"), Spend(tokens=40, dollars=None)):
        with pytest.raises(OverBudget, match=r"this call|a call"):
            await one.reserve(spend(60, "0.6"), ANONYMOUS, None, already=already)


@pytest.mark.anyio
async def test_yesterday_is_not_today_and_last_month_not_this(database: Database):
    one = purse(database, day=Ceiling(tokens=100), month=Ceiling(tokens=150))
    await one.reserve(spend(100), ANONYMOUS, None)
    one.now = lambda: NOW + timedelta(days=1)
    with pytest.raises(OverBudget, match="this month"):
        await one.reserve(spend(60), ANONYMOUS, None)
    await one.reserve(spend(50), ANONYMOUS, None)
    one.now = lambda: NOW + timedelta(days=30)
    await one.reserve(spend(100), ANONYMOUS, None)


@pytest.mark.anyio
async def test_the_user_is_alerted_when_a_part_of_a_budget_is_actually_spent(database: Database):
    told = list[Alert]()
    one = purse(database, told, day=Ceiling(dollars=Decimal(1)))
    await one.settle(await one.reserve(spend(1, "0.9"), ANONYMOUS, None), spend(1, "0.1"))
    assert told == []
    await one.settle(await one.reserve(spend(1, "0.5"), ANONYMOUS, None), spend(1, "0.4"))
    assert [(one.scope, one.part) for one in told] == [("day", Decimal("0.5"))]


@pytest.mark.anyio
async def test_money_is_kept_exactly(database: Database):
    one = purse(database, day=Ceiling(dollars=Decimal("0.000000000003")))
    for _ in range(3):
        ticket = await one.reserve(spend(1, "0.000000000001"), ANONYMOUS, None)
        await one.settle(ticket, spend(1, "0.000000000001"))
    with pytest.raises(OverBudget):
        await one.reserve(spend(1, "0.000000000001"), ANONYMOUS, None)


@pytest.mark.anyio
@pytest.mark.requirement("S4:budgets")
async def test_neither_a_paid_call_nor_a_session_is_forgotten_when_a_month_begins():
    times = [datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC), datetime(2026, 12, 1, 0, 0, 1, tzinfo=UTC)]
    set_to = ceilings(session=Ceiling(tokens=100), month=Ceiling(tokens=100))
    kept = LocalPurse(ceilings=lambda: set_to, now=lambda: times[0])
    ticket = await kept.reserve(spend(60), ANONYMOUS, None)
    settled = await kept.reserve(spend(10), ANONYMOUS, None)
    await kept.settle(settled, spend(10))
    del times[0]
    await kept.reserve(spend(30), replace(ANONYMOUS, session="another"), None)
    with pytest.raises(OverBudget, match="budget of this session"):
        await kept.reserve(spend(31), ANONYMOUS, None)
    await kept.settle(ticket, spend(50))
    await kept.reserve(spend(20), replace(ANONYMOUS, session="a third"), None)


@pytest.mark.anyio
async def test_who_has_no_budget_is_asked_for_none():
    ticket = await Unlimited().reserve(spend(1), ANONYMOUS, None)
    assert await Unlimited().settle(ticket, spend(1)) is None
    assert ticket == Ticket("none")


_RACER = """
import sys
from datetime import UTC, datetime
from decimal import Decimal
import anyio
from ullage.delegate.shared_budget import StoredPurse
from ullage.delegate.spend_limits import Ceiling, Ceilings
from ullage.delegate.spend_limits import Spend
from ullage.errors import OverBudget
from ullage.store import Database
from ullage.tool import ANONYMOUS

async def main():
    database = Database.open(sys.argv[1], patience=60)
    set_to = Ceilings(by_scope={"day": Ceiling(tokens=1000)})
    told = lambda alert: print(alert.scope, alert.part, flush=True)
    purse = StoredPurse(database=database, ceilings=lambda: set_to, alert=told)
    for _ in range(40):
        try:
            ticket = await purse.reserve(Spend(tokens=10, dollars=Decimal(0)), ANONYMOUS, None)
        except OverBudget:
            break
        await purse.settle(ticket, Spend(tokens=10, dollars=Decimal(0)))
    database.close()

anyio.run(main)
"""


@pytest.mark.requirement("S4:budgets")
def test_processes_that_race_for_one_budget_spend_it_and_no_more(tmp_path: Path):
    place = tmp_path / "store.db"
    Database.open(place).close()
    command = [sys.executable, "-c", _RACER, str(place)]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    told = "".join(racer.communicate(timeout=60)[0] for racer in racers)
    assert [racer.returncode for racer in racers] == [0] * 4
    assert sorted(told.splitlines()) == ["day 0.5", "day 0.8", "day 1"]
    with sqlite3.connect(place) as connection:
        (total,) = connection.execute("SELECT sum(tokens) FROM ullage_spends").fetchone()
    connection.close()
    assert total == 1000


@pytest.mark.anyio
@pytest.mark.requirement("S4:budgets")
async def test_each_threshold_is_reported_once_across_sessions_principals_and_restarts(tmp_path: Path):
    told = list[Alert]()

    async def heard(*spends: tuple[str, list[int]]) -> list[str]:
        """What is told while each principal spends, all of them by connections of their own."""
        told.clear()
        for name, each in spends:
            opened = Database.open(tmp_path / "store.db")
            one = purse(opened, told, month=Ceiling(tokens=500), session=Ceiling(tokens=100))
            for tokens in each:
                # What a call really takes may be more than what was set aside for it.
                ticket = await one.reserve(spend(1), Caller(principal=name, session="one"), None)
                await one.settle(ticket, spend(tokens))
            opened.close()
        return [f"{alert.scope} {alert.part}" for alert in told]

    assert await heard(("ann", [10] * 7), ("ben", [10] * 7), ("cem", [10] * 7)) == ["session 0.5"] * 3
    assert await heard(("ann", [10]), ("dan", [10] * 7)) == ["session 0.8", "month 0.5", "session 0.5"]
    # From 70 % to 120 % at once: the highest that was passed is told.
    assert await heard(("ben", [50])) == ["session 1"]
    assert await heard(("eva", [70]), ("fay", [30]), ("fay", [1])) == ["month 0.8", "session 0.5"]
    assert await heard(("cem", [120])) == ["month 1", "session 1"]
    with pytest.raises(OverBudget):
        await heard(("gus", [1]))
