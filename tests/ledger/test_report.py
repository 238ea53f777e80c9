"""Reports equal a recount of the rows, and a model call is counted once."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from store.databases import ENGINES, fresh_place, opened
from ullage.ledger import (
    GROUPS,
    Entry,
    Group,
    Latency,
    ModelUse,
    Recording,
    Report,
    latencies,
    ledger_revision,
    read_entries,
    usage_report,
)
from ullage.ledger.ledger import prune
from ullage.ledger.rows import MEASURES, write_entries
from ullage.models import Price, Usage
from ullage.store import Database
from ullage.store.migrations import MIGRATIONS, session_models

pytestmark = pytest.mark.requirement("U:ledger")

MODELS = ("gpt-5.2-codex", "claude-opus-4-5", None, "gpt-5.2-codex")
START = datetime(2026, 3, 27, 20, 30, tzinfo=UTC)
SPANS = ((None, None), (date(2026, 3, 28), date(2026, 3, 30)), (START + timedelta(minutes=70), None))
ZONES = (UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata"), timezone(timedelta(hours=-8)))


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest, tmp_path: Path):
    with fresh_place(request.param, tmp_path) as place, opened(place) as database:
        yield database


def call(
    number: int,
    *,
    key: str | None = None,
    dollars: str | None = "0.25",
    **about: Any,  # noqa: ANN401 - fields of an entry
) -> Entry:
    usage = Usage(input=1000 + number, output=100, cache_read=400, cache_write=50, reasoning=20)
    use = ModelUse(usage=usage, dollars=None if dollars is None else Decimal(dollars), key=key)
    entry = Entry(
        time=START + timedelta(hours=number), kind="model", principal="ada", session="s1", client="codex",
        project="/w/p", server="openai", model="gpt-5.2-codex", tokens=1100 + number, milliseconds=800.0, use=use,
    )  # fmt: skip
    return replace(entry, **about)


def mixed() -> list[Entry]:
    """Five days of entries, over the night in which Berlin's clocks change."""
    found: list[Entry] = []
    for number in range(120):
        about: dict[str, Any] = {
            "time": START + timedelta(hours=number),
            "principal": "ada" if number % 7 else "bob",
            "session": f"s{number % 9}",
            "client": ("codex", "claude-code", None)[number % 3],
            "project": f"/w/{number % 4}",
        }
        found += [
            Entry(kind="definitions", tokens=900, baseline_tokens=9000, saved_tokens=8100, model="m1", **about),
            Entry(kind="search", tool="find_tool", tokens=300, saved_tokens=-300, **about),
            Entry(
                kind="result", server="shop", tool=f"t{number % 5}", tokens=500, baseline_tokens=700 + number,
                saved_tokens=200 + number, is_error=number % 11 == 0, milliseconds=1.5, **about,
            ),
            Entry(kind="page", server="shop", tool="t1", tokens=100, saved_tokens=-100, **about),
            Entry(kind="history", tokens=100, baseline_tokens=150, saved_tokens=50, model="m2", **about),
            call(number, dollars=None if number % 10 == 0 else "0.001", **about, model=MODELS[number % 4]),
        ]  # fmt: skip
    return found


def write(database: Database, *entries: Entry) -> None:
    database.write(lambda connection: write_entries(connection, entries))


def without_hours(report: Report) -> Report:
    """Without the times of first and last entries, which of servers and tools are known by the day only."""
    if report.by not in ("server", "tool"):
        return report
    lines = [replace(line, first=None, last=None) for line in (*report.lines, report.total)]
    return replace(report, lines=tuple(lines[:-1]), total=lines[-1])


@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_sums_equal_a_recount_of_the_rows_by_every_group(database: Database, zone: tzinfo):
    write(database, *mixed())
    for by in GROUPS:
        for since, until in (
            (None, None),
            (date(2026, 3, 28), date(2026, 3, 30)),
            (START + timedelta(minutes=70), None),
        ):
            kept = usage_report(database, by=by, zone=zone, since=since, until=until)
            recounted = usage_report(database, by=by, zone=zone, since=since, until=until, recount=True)
            assert without_hours(kept) == without_hours(recounted), (by, since, until)
            assert kept.total.spent.calls > 0


def test_line_of_a_session_has_the_sums_of_each_model_that_it_called(database: Database):
    entries = mixed()
    write(database, *entries, call(200, model="gpt-4o", session="alone", dollars="0.5"))
    lines = {line.key: line for line in usage_report(database, by="session").lines}
    assert lines["alone"].models == {"gpt-4o": lines["alone"].spent}
    for name in ("s0", "s1"):
        calls = [one for one in entries if one.session == name and one.use is not None]
        assert set(lines[name].models) == {one.model for one in calls if one.model} != set()
        for model, spent in lines[name].models.items():
            mine = [one.use for one in calls if one.model == model and one.use is not None]
            assert (spent.calls, spent.input) == (len(mine), sum(one.usage.input or 0 for one in mine))
            assert spent.dollars == sum((one.dollars for one in mine if one.dollars is not None), Decimal(0))


def test_sums_of_an_earlier_store_are_parted_by_the_models_that_its_sessions_called(tmp_path: Path):
    place = str(tmp_path / "earlier.db")
    alone = [call(number, model="gpt-4o", session="alone") for number in (1, 30)]
    with opened(place) as database:
        write(database, *mixed(), *alone)
        before = usage_report(database, by="session")
    with closing(sqlite3.connect(place)) as connection, connection:  # as the step before left it
        connection.executescript(
            "CREATE TABLE kept AS SELECT * FROM ullage_session_hours; DROP TABLE ullage_session_hours;"
            "CREATE TABLE ullage_session_hours AS SELECT session, hour, kind, "
            + ", ".join(f"SUM({name}) AS {name}" for name in MEASURES)
            + " FROM kept GROUP BY session, hour, kind; DROP TABLE kept;"
            f"UPDATE ullage_schema SET version = {MIGRATIONS.index(session_models)}"
        )
    with opened(place) as database:
        assert usage_report(database, by="session") == before
        write(database, call(500, model="gpt-4o", session="alone"))
        (line,) = (one for one in usage_report(database, by="session").lines if one.key == "alone")
    assert line.models["gpt-4o"].calls == 3


@pytest.mark.requirement("U:ledger")
@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_figures_of_a_day_equal_a_sum_of_its_entries(database: Database, zone: tzinfo):
    entries = mixed()
    write(database, *entries)
    report = usage_report(database, by="day", zone=zone, since=date(2026, 3, 1))
    days = {entry.time.astimezone(zone).date().isoformat() for entry in entries}
    assert {line.key for line in report.lines} == days
    for line in report.lines:
        here = [one for one in entries if one.time.astimezone(zone).date().isoformat() == line.key]
        calls = [one for one in here if one.use is not None]
        priced = [one.use.dollars for one in calls if one.use is not None and one.use.dollars is not None]
        assert line.spent.calls == len(calls)
        assert line.spent.input == sum(one.use.usage.input or 0 for one in calls if one.use is not None)
        assert line.spent.dollars == sum(priced, Decimal(0))
        assert line.saved.net == sum(one.saved_tokens or 0 for one in here)
        assert line.saved.definitions == sum(one.saved_tokens or 0 for one in here if one.kind == "definitions")
        assert line.uses == sum(one.kind == "result" for one in here)


def test_spend_is_model_calls_only(database: Database):
    entries = mixed()
    write(database, *[one for one in entries if one.kind != "model"])
    total = usage_report(database).total
    assert (total.spent.calls, total.spent.tokens, total.spent.dollars) == (0, 0, Decimal(0))


def test_principal_sees_its_own_rows(database: Database):
    write(database, *mixed())
    whole, bob = (usage_report(database, principal=one).total.spent.calls for one in (None, "bob"))
    assert (whole, bob) == (120, 18)


def test_one_model_call_is_one_row_and_the_more_direct_source_wins(database: Database):
    log = call(1, key="resp_1", dollars="0.5", session="of the log")
    assert log.use is not None
    write(database, replace(log, use=replace(log.use, source="log")))
    write(database, call(1, key="resp_1", dollars="0.75"), call(2, key="resp_2"))
    write(database, replace(log, use=replace(log.use, source="log")))
    total = usage_report(database, by="session")
    assert total.total.spent.calls == 2
    assert total.total.spent.dollars == Decimal("1.00")
    assert [line.key for line in total.lines if line.spent.calls] == ["s1"]
    assert total == replace(usage_report(database, by="session", recount=True), lines=total.lines)


def test_later_piece_of_an_answer_takes_the_place_of_the_first(database: Database):
    begun, whole = call(1, key="msg_1"), call(1, key="msg_1", time=START + timedelta(hours=3), session="fork")
    assert whole.use is not None
    whole = replace(whole, use=replace(whole.use, usage=replace(whole.use.usage, output=900)))
    write(database, begun, whole)
    write(database, whole, begun)
    report = usage_report(database, by="session")
    assert [(line.key, line.spent.calls, line.spent.output) for line in report.lines if line.spent.calls] == [
        ("fork", 1, 900)
    ]


def test_calls_without_an_id_are_told_apart_by_client_model_usage_and_time(database: Database):
    one = call(1)
    write(database, one, one, replace(one, time=START), replace(one, client="claude-code"), replace(one, model="m"))
    assert usage_report(database).total.spent.calls == 4


def test_saved_tokens_are_priced_by_kind(database: Database):
    price = Price(input=Decimal("5e-6"), output=None, cache_read=Decimal("5e-7"), source="test", date=None)
    write(database, *mixed(), call(500, model="m1"))
    total = usage_report(database, prices={"m1": price, "m2": price, "gpt-5.2-codex": price}.get).total.saved
    cached, fresh = total.definitions + total.history, total.search + total.result + total.page
    assert total.dollars == cached * Decimal("5e-7") + fresh * Decimal("5e-6")


def test_price_that_nobody_knows_leaves_dollars_unknown(database: Database):
    write(database, *mixed()[:6])
    total = usage_report(database).total
    assert total.saved.dollars is None
    assert total.spent.dollars is None
    assert total.spent.unpriced == 1


def test_pruned_entries_stay_in_daily_totals(database: Database):
    write(database, *mixed())
    zone = ZoneInfo("Europe/Berlin")
    groups: Sequence[Group] = ("day", "session", "tool", "project")
    before = {by: _figures(database, by, zone) for by in groups}
    now = START + timedelta(hours=120)
    assert prune(database, keep_days=2, now=now, zone=zone) > 200
    assert prune(database, keep_days=2, now=now, zone=zone) == 0
    assert {by: _figures(database, by, zone) for by in groups} == before
    assert sum(one.kind == "model" for one in read_entries(database)) == 120, "calls are kept for their keys"
    hours = database.read(lambda connection: connection.scalar("SELECT COUNT(DISTINCT hour) FROM ullage_hours"))
    assert hours < 80


@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_uses_of_tools_on_pruned_days_are_each_of_one_day(database: Database, zone: tzinfo):
    write(database, *mixed())
    prune(database, keep_days=2, now=START + timedelta(hours=120), zone=zone)
    first = (START - timedelta(days=1)).date()
    days = [first + timedelta(days=number) for number in range(8)]
    reports = [
        usage_report(database, by="tool", since=day, until=day + timedelta(days=1), zone=zone).total for day in days
    ]
    assert sum(one.uses for one in reports) == 120
    assert sum(one.spent.calls for one in reports) == 120


def test_calls_from_before_the_pruning_are_not_counted_again(database: Database):
    old = call(1, key="old")
    write(database, old)
    prune(database, keep_days=900, now=START + timedelta(days=901))
    assert list(read_entries(database)) == []
    write(database, old)
    assert usage_report(database).total.spent.calls == 1


def _figures(database: Database, by: Group, zone: tzinfo) -> list[tuple[object, ...]]:
    report = usage_report(database, by=by, zone=zone)
    return [(line.key, line.spent, line.saved, line.models, line.uses, line.requests) for line in report.lines]


def test_recording_prunes_by_itself(database: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ullage.ledger.ledger._FIRST_PRUNE", 0.0)
    recording = Recording(database, pause=0, keep_days=30)
    recording.record(Entry(time=START, kind="search", principal="ada", session="s", tokens=1, saved_tokens=-1))
    assert recording.flush()
    recording.record(Entry(time=datetime.now(UTC), kind="search", principal="ada", session="s", tokens=1))
    recording.flush()
    recording.stop()
    assert len(list(read_entries(database))) <= 1


def test_latencies_are_percentiles_of_one_principals_rows(database: Database):
    results = [
        Entry(
            time=START + timedelta(minutes=number), kind="result", principal="ada", session="s", server="shop",
            tool=f"t{number % 2}", tokens=1, milliseconds=float(number),
        )
        for number in range(1, 101)
    ]  # fmt: skip
    others = [replace(results[0], principal="bob", milliseconds=9999.0), replace(results[0], milliseconds=None)]
    timed = [call(number, milliseconds=float(number)) for number in (3, 1, 2)]
    write(database, *results, *others, *timed, call(9, milliseconds=None))
    even, odd = Latency(timed=50, median=50.0, p95=96.0), Latency(timed=50, median=49.0, p95=95.0)
    assert latencies(database, by="tool", principal="ada") == {"t0": even, "t1": odd}
    assert latencies(database, by="server", principal="ada") == {"shop": Latency(timed=100, median=50.0, p95=95.0)}
    assert latencies(database, by="model") == {"gpt-5.2-codex": Latency(timed=3, median=2.0, p95=3.0)}
    since, until = START + timedelta(minutes=11), START + timedelta(minutes=21)
    assert latencies(database, by="server", since=since, until=until) == {
        "shop": Latency(timed=10, median=15.0, p95=20.0)
    }
    assert latencies(database, by="tool", principal="eve") == {}


def test_a_revision_changes_with_the_rows_of_its_principal_only(database: Database):
    now = START + timedelta(days=2)
    before = ledger_revision(database, principal="ada", now=now)
    write(database, call(1, principal="bob"))
    assert ledger_revision(database, principal="ada", now=now) == before
    write(database, call(2, key="one", dollars=None))
    priced = ledger_revision(database, principal="ada", now=now)
    assert priced != before
    more = ModelUse(usage=Usage(input=1002, output=100), dollars=Decimal(1), key="one", source="proxy")
    write(database, replace(call(2), use=more))
    assert ledger_revision(database, principal="ada", now=now) != priced
    assert ledger_revision(database, principal="ada", now=now + timedelta(days=40)) == before
