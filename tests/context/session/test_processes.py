import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from threading import Event, Thread

import pytest

from context.session.crashing import Quick
from context.session.sessions import opened, talked, user
from ullage.context.session import Session
from ullage.context.session.session_file import locked
from ullage.errors import StoreFailed

pytestmark = pytest.mark.requirement("S2:compact:persist")

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def working(*arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, str(HERE / "working.py"), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.requirement("S2:compact:persist")
def test_four_processes_append_while_another_compacts_and_nothing_is_lost(tmp_path: Path):
    path, stop = tmp_path / "s.jsonl", tmp_path / "stop"
    writers, compactor = [working("write", path, name, 40) for name in "abcd"], working("compact", path, stop)
    said = [writer.communicate(timeout=60)[0] for writer in writers]
    stop.touch()
    compactor.communicate(timeout=60)
    assert {process.returncode for process in (*writers, compactor)} == {0}
    told = [line.split() for line in "".join(said).splitlines()]
    session = Session.open(path)
    found = [[str(record.seq), *str(record.message["content"]).split()[:2]] for record in session.history(full=True)]
    assert [int(number) for number, _, _ in found] == list(range(1, 161))
    assert found == sorted(told, key=lambda one: int(one[0]))
    assert [place for _, name, place in found if name == "a"] == [str(place) for place in range(40)]
    assert session.generation
    assert session.verify().ok
    session.restore(0)
    assert len(session.records) == 160


@pytest.mark.requirement("S2:compact:persist")
def test_processes_killed_at_random_moments_lose_nothing():
    """The benchmark of a thousand kills, in small."""
    run = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "context_crash.py"), "12", "5"],
        capture_output=True,
        text=True,
        check=False,
    )
    figures = json.loads(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    assert figures["kills"] == 12
    assert figures["acknowledged"]
    assert figures["lost"] == 0
    assert figures["faults"] == []


HOLDING = """
import sys, time
from pathlib import Path
from ullage.context.session.session_file import locked
with locked(Path(sys.argv[1]), 5):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_does_not_outlive_whoever_holds_it(tmp_path: Path):
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDING, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(TimeoutError), locked(path, 0.02):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    with locked(path, 0):
        pass


def test_a_lock_whose_file_was_tidied_away_is_taken_anew(tmp_path: Path):
    """Whoever waited for the old one must not go ahead beside whoever has the new one."""
    path, entered = tmp_path / "lock", Event()

    def wait() -> None:
        with locked(path, 30):
            entered.set()

    with contextlib.ExitStack() as old, contextlib.ExitStack() as new:
        old.enter_context(locked(path, 1))
        waiter = Thread(target=wait)
        waiter.start()
        assert not entered.wait(0.05)
        path.unlink()
        new.enter_context(locked(path, 1))
        old.close()
        assert not entered.wait(0.05)
        new.close()
        assert entered.wait(30)
        waiter.join()


def test_a_lock_whose_file_is_gone_is_made_anew(tmp_path: Path):
    path, entered = tmp_path / "lock", Event()

    def wait() -> None:
        with locked(path, 30):
            entered.set()

    with locked(path, 1):
        waiter = Thread(target=wait)
        waiter.start()
        assert not entered.wait(0.05)
        path.unlink()
    assert entered.wait(30)
    waiter.join()


def test_a_lock_that_cannot_be_had_is_an_error_of_its_own(tmp_path: Path):
    with pytest.raises(FileNotFoundError), locked(tmp_path / "nowhere" / "lock", 1):
        pass


class Impatient(Quick):
    @contextlib.contextmanager
    def locked(self, path: Path) -> Generator[None]:
        with locked(path, 0.01):
            yield


def test_who_waits_too_long_is_told_why_and_who_only_reads_does_not_wait(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 1, files=Impatient())
    with locked(session.path.with_name("s.jsonl.lock"), 1):
        assert len(session.refresh()) == 1
        with pytest.raises(StoreFailed, match="another process holds the lock"):
            session.append([user("x")])
    assert len(session.append([user("x")])) == 1


def test_threads_share_a_session(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl")
    threads = [Thread(target=lambda: [session.append([user("x")]) for _ in range(25)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [record.seq for record in opened(session.path).records] == list(range(1, 101))
