import logging
import threading
import time
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from store.databases import in_processes, opened
from ullage.ledger import Entry, Recorder, Recording, Total, Unrecorded, read_entries, totals
from ullage.store import MIGRATIONS, Database
from ullage.tokens import Method

pytestmark = pytest.mark.requirement("U:ledger")

START = datetime(2026, 11, 1, 12, 0, 0, 123456, tzinfo=UTC)
WHOLE = Entry(
    time=START,
    kind="search",
    principal="me",
    session="s1",
    session_inferred=True,
    client="claude",
    server="shop",
    tool="buy",
    model="gpt-4o",
    tokens=100,
    method=Method.CALIBRATED,
    baseline_tokens=1000,
    saved_tokens=900,
    milliseconds=1.5,
    is_error=True,
    cached=True,
    detail={"hits": 3, "ratio": 0.5, "query_language": "en", "first": True, "none": None},
)


def _entry(n: int = 0, *, session: str = "s1") -> Entry:
    return Entry(time=START + timedelta(seconds=n), kind="result", principal="me", session=session, tokens=n)


@pytest.fixture
def database(place: str):
    with opened(place, patience=1.0) as one:
        yield one


def test_an_entry_comes_back_as_it_was_written(database: Database):
    recording = Recording(database)
    recording.record(WHOLE)
    recording.record(_entry())
    assert recording.flush()
    assert list(read_entries(database)) == [WHOLE, _entry()]
    recording.stop()


def test_entries_of_every_kind_are_found_by_time_kind_and_session_and_summed(database: Database):
    recording = Recording(database)
    for n in range(2500):
        recording.record(_entry(n, session=f"s{n % 2}"))
    recording.record(WHOLE)
    recording.stop()
    assert [entry.tokens for entry in read_entries(database, kind="result")] == list(range(2500))
    assert list(read_entries(database, kind="search")) == [WHOLE]
    assert len(list(read_entries(database, session="s0"))) == 1250
    later = START + timedelta(seconds=2498)
    assert [entry.tokens for entry in read_entries(database, since=later)] == [2498, 2499]
    assert [entry.tokens for entry in read_entries(database, since=later, until=later + timedelta(seconds=1))] == [2498]
    assert totals(database) == {
        "result": Total(entries=2500, tokens=sum(range(2500)), saved_tokens=None, errors=0, milliseconds=None),
        "search": Total(entries=1, tokens=100, saved_tokens=900, errors=1, milliseconds=1.5),
    }
    assert totals(database, since=later)["result"].entries == 2
    assert totals(database, until=START) == {}


def test_nothing_of_a_prompt_an_argument_or_a_result_has_a_place_in_an_entry():
    names = {field.name for field in fields(Entry)}
    assert not names & {"prompt", "arguments", "result", "content", "text", "query"}
    wordy = Entry(
        time=START,
        kind="result",
        principal="me",
        session="s",
        tokens=1,
        detail={"reason": "x" * 5000, **{str(n): n for n in range(100)}},
    )
    kept = wordy.small_detail()
    assert len(kept) == 20
    assert kept["reason"] == "x" * 200


@pytest.mark.parametrize(
    "wrong",
    [{"tokens": -1}, {"tokens": 2**63}, {"baseline_tokens": -1}, {"saved_tokens": -(2**63)}],
)
def test_a_number_that_cannot_be_is_refused(wrong: dict[str, int]):
    with pytest.raises(ValueError, match="no number"):
        replace(_entry(), **wrong)


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="zone"):
        Entry(time=START.replace(tzinfo=None), kind="model", principal="", session="", tokens=1)


def _record_many(place: str, session: str) -> int:
    with opened(place, patience=30) as database:
        recording = Recording(database, pause=0.01)
        for n in range(300):
            recording.record(_entry(n, session=session))
        recording.stop(30)
        return recording.lost


def test_many_processes_write_to_one_ledger(place: str, database: Database):
    assert in_processes(_record_many, [(place, f"p{n}") for n in range(6)]) == [0] * 6
    assert totals(database)["result"].entries == 1800
    for n in range(6):
        assert [entry.tokens for entry in read_entries(database, session=f"p{n}")] == list(range(300))


@pytest.fixture
def broken(tmp_path: Path):
    """A database that cannot be written, until its ledger is given back."""
    with opened(str(tmp_path / "x.db")) as database:
        _rename(database, "ullage_entries", "elsewhere")
        yield database


def _rename(database: Database, old: str, new: str) -> None:
    database.write(lambda connection: connection.execute(f"ALTER TABLE {old} RENAME TO {new}"))


def _wait_for_a_problem(recording: Recording) -> None:
    ends = time.monotonic() + 30
    while recording.problem is None and time.monotonic() < ends:
        time.sleep(0.01)
    assert recording.problem is not None


def test_what_could_not_be_written_is_written_when_it_can(broken: Database, caplog: pytest.LogCaptureFixture):
    recording = Recording(broken, pause=0.01)
    recording.record(_entry(1))
    _wait_for_a_problem(recording)
    assert not recording.flush(0.1)
    _rename(broken, "elsewhere", "ullage_entries")
    assert recording.flush()
    assert recording.problem is None
    recording.stop()
    assert [entry.tokens for entry in read_entries(broken)] == [1]
    assert recording.lost == 0
    assert not caplog.records


def test_the_oldest_are_lost_first_and_the_loss_is_said(broken: Database, caplog: pytest.LogCaptureFixture):
    recording = Recording(broken, capacity=10, pause=0.01)
    for n in range(25):
        recording.record(_entry(n))
    _wait_for_a_problem(recording)
    for n in range(25, 30):
        recording.record(_entry(n))
    _rename(broken, "elsewhere", "ullage_entries")
    with caplog.at_level(logging.WARNING):
        recording.stop()
        recording.stop()
    assert recording.lost == 20
    assert [entry.tokens for entry in read_entries(broken)] == list(range(20, 30))
    assert "the ledger lacks 20 entries" in caplog.text


def test_closing_gives_up_on_a_database_that_fails(broken: Database, caplog: pytest.LogCaptureFixture):
    recording = Recording(broken, pause=0.01)
    for n in range(1200):
        recording.record(_entry(n))
    recording.stop(30)
    assert recording.lost == 1200
    recording.record(_entry())
    assert recording.lost == 1201
    assert "1200 entries" in caplog.text
    assert "no such table" in caplog.text, "it was not for want of time that they were lost"


class Stuck:
    """A database that takes what it is given and does not come back before it is let go."""

    def __init__(self) -> None:
        self.asked, self.let_go = threading.Event(), threading.Event()
        self.is_waiting = False

    def write(self, work: object) -> None:
        self.is_waiting = True
        self.asked.set()
        self.let_go.wait(20)
        self.is_waiting = False


@pytest.fixture
def stuck():
    one = Stuck()
    yield one
    one.let_go.set()


def _recording_that_is_stuck(stuck: Stuck) -> Recording:
    recording = Recording(stuck, pause=0)  # pyright: ignore[reportArgumentType]
    recording.record(_entry())
    assert stuck.asked.wait(30)
    return recording


def test_closing_does_not_wait_for_a_database_that_hangs(stuck: Stuck):
    recording = _recording_that_is_stuck(stuck)
    recording.stop(0.1)
    assert stuck.is_waiting
    stuck.let_go.set()
    recording.stop()


def test_recording_waits_for_nothing_while_the_database_is_busy(stuck: Stuck):
    recording = _recording_that_is_stuck(stuck)
    for n in range(5000):
        recording.record(_entry(n))
    assert stuck.is_waiting
    assert recording.lost == 0
    stuck.let_go.set()
    recording.stop()


def test_an_entry_that_cannot_be_written_is_lost_and_harms_no_other(database: Database):
    recording = Recording(database)
    recording.record(Entry(time=START, kind="result", principal="", session="", tokens=1, detail={"a": object()}))  # pyright: ignore[reportArgumentType]
    assert recording.flush()
    recording.record(_entry(7))
    recording.stop()
    assert recording.lost == 1
    assert [entry.tokens for entry in read_entries(database)] == [7]


def test_a_newer_schema_is_not_written(place: str):
    with opened(place, migrations=[*MIGRATIONS, lambda _: None]):
        pass
    with opened(place) as database:
        recording = Recording(database, pause=0.01)
        recording.record(_entry())
        recording.stop()
        assert recording.lost == 1
        assert list(read_entries(database)) == []


@pytest.mark.anyio
async def test_closing_writes_what_waits(database: Database):
    recording = Recording(database, pause=60)
    recording.record(_entry(3))
    await recording.close()
    await recording.close()
    assert [entry.tokens for entry in read_entries(database)] == [3]


async def _close_unused(database: Database) -> None:
    await Recording(database).close()


@pytest.mark.anyio
async def test_a_recording_that_was_never_used_closes(database: Database):
    await _close_unused(database)


def test_where_nobody_wants_a_ledger_nothing_happens():
    recorder: Recorder = Unrecorded()
    recorder.record(WHOLE)
