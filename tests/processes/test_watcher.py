"""Ullage is killed, and nothing of its servers is left."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ullage.processes import ProcessWatcher, end_processes, find_processes, read_processes, signal_processes
from ullage.processes.end_processes import main
from upstreams import settle_in, write_toml

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc"),
    pytest.mark.requirement("U:shutdown"),
]

FAMILY = Path(__file__).with_name("family_server.py")
ULLAGE = (sys.executable, "-m", "ullage", "serve")
RELATIVES = ("child", "grandchild", "session", "orphan", "stubborn", "bare")
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settle_in(tmp_path, monkeypatch)
    return tmp_path / "work"


def family(folder: Path, *kinds: str) -> dict[str, Any]:
    """The family server at the end of a chain, as `npx` starts one: sh, sh, python."""
    folder.mkdir(exist_ok=True)
    words = [sys.executable, str(FAMILY), str(folder), *kinds]
    return {"command": "sh", "args": ["-c", 'sh -c \'"$0" "$@"; true\' "$0" "$@"; true', *words]}


def is_alive(pid: int) -> bool:
    return pid in read_processes()


def pid_in(folder: Path, kind: str) -> int:
    return int((folder / kind).read_text(encoding="ascii"))


def wait_until(condition: Callable[[], object], message: str = "") -> None:
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends, message
        time.sleep(0.02)


def survivors(pids: Iterable[int]) -> list[int]:
    """Who is still alive a while after they should have ended; they are killed now."""
    pids = list(pids)
    ends = time.monotonic() + 15
    while any(map(is_alive, pids)) and time.monotonic() < ends:
        time.sleep(0.05)
    left = [pid for pid in pids if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left


def request(number: int, method: str, **params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}}
    return json.dumps(message).encode() + b"\n"


def call(number: int, tool: str, **arguments: object) -> bytes:
    return request(number, "tools/call", name=tool, arguments=arguments)


@contextmanager
def serving(log: Path, *words: str) -> Generator["subprocess.Popen[bytes]"]:
    with (
        log.open("wb") as errors,
        subprocess.Popen([*ULLAGE, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def say(process: "subprocess.Popen[bytes]", *lines: bytes) -> None:
    assert process.stdin is not None
    for line in lines:
        process.stdin.write(line)
    process.stdin.flush()


def hear(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def relatives(pid: int) -> set[int]:
    """Descendants of a process, without the watcher."""
    table = read_processes()
    found = {pid}
    while more := {one.pid for one in table.values() if one.parent in found} - found:
        found |= more
    return found - {pid} - set(watchers_of(pid))


def watchers_of(pid: int) -> list[int]:
    """The watcher processes that a process started."""
    found: list[int] = []
    for process in read_processes().values():
        try:
            words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if process.parent == pid and any(word.endswith(b"/processes/end_processes.py") for word in words):
            found.append(process.pid)
    return found


@pytest.mark.requirement("U:shutdown")
@pytest.mark.parametrize("way", ["stdio", "http"])
def test_sigkill_of_ullage_leaves_no_server_process_behind(work: Path, way: str):
    folder = work / "family"
    write_toml(work / "ullage.toml", '[gateway]\nmode = "direct"\n', family=family(folder, *RELATIVES))
    with serving(work / "log", *(["--http", "0"] if way == "http" else [])) as process:
        if way == "http":
            # Listing the tools at the start is what starts the servers.
            wait_until(lambda: b"Ctrl-C" in (work / "log").read_bytes())
        else:
            say(process, call(1, "family__wait"))
            assert hear(process)["result"]["content"][0]["text"] == "done"
        wait_until(lambda: all((folder / kind).exists() for kind in (*RELATIVES, "server")), (work / "log").read_text())
        pids = {kind: pid_in(folder, kind) for kind in (*RELATIVES, "server")}
        everyone = {*pids.values(), *relatives(process.pid)}
        assert len(everyone) > len(pids), "the chain of shells is among them"
        assert all(map(is_alive, everyone))
        process.kill()
        process.wait()
        assert survivors(everyone) == []


@pytest.mark.requirement("U:shutdown")
def test_sigkill_while_a_server_is_starting_leaves_no_process_behind(work: Path):
    folder = work / "family"
    write_toml(work / "ullage.toml", '[gateway]\nmode = "direct"\n', family=family(folder, "mute", "child"))
    with serving(work / "log") as process:
        say(process, call(1, "family__wait"))
        wait_until((folder / "child").exists)
        everyone = {pid_in(folder, "child"), *relatives(process.pid)}
        process.kill()
        process.wait()
        assert survivors(everyone) == []


@pytest.mark.requirement("U:shutdown")
def test_sigkill_during_a_long_query_leaves_no_worker_behind(work: Path):
    write_toml(work / "ullage.toml", '[gateway]\nmode = "direct"\n[sources.shop]\ndatabase = "sample"\ntimeout = 600\n')
    with serving(work / "log") as process:
        say(process, call(1, "query", sql="SELECT 1 AS one"))
        hear(process)
        say(process, call(2, "query", sql=ENDLESS))
        wait_until(lambda: any(_cpu_ticks(pid) > 20 for pid in relatives(process.pid)), "no worker is busy")
        everyone = relatives(process.pid)
        process.kill()
        process.wait()
        assert survivors(everyone) == []


def _cpu_ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return int(fields[11])


@pytest.mark.requirement("U:shutdown")
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_end_leaves_no_server_process_behind(work: Path, told: signal.Signals):
    folder = work / "family"
    write_toml(work / "ullage.toml", '[gateway]\nmode = "direct"\n', family=family(folder, *RELATIVES))
    with serving(work / "log") as process:
        say(process, call(1, "family__wait"))
        hear(process)
        wait_until(lambda: all((folder / kind).exists() for kind in RELATIVES))
        everyone = {*(pid_in(folder, kind) for kind in RELATIVES), *relatives(process.pid), *watchers_of(process.pid)}
        process.send_signal(told)
        process.wait(20)
        left = [pid for pid in everyone if is_alive(pid)]
        assert survivors(everyone) == []
        assert set(left) <= set(watchers_of(1)), "only the watcher may end a moment after Ullage"


@pytest.mark.requirement("U:shutdown")
def test_a_killed_watcher_is_replaced_and_the_new_one_knows_every_server(work: Path):
    folder = work / "family"
    write_toml(work / "ullage.toml", '[gateway]\nmode = "direct"\n', family=family(folder, "child", "session"))
    with serving(work / "log") as process:
        say(process, call(1, "family__wait"))
        hear(process)
        (first,) = watchers_of(process.pid)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: [pid for pid in watchers_of(process.pid) if pid != first], "no other watcher was started")
        assert b"the watcher process" in (work / "log").read_bytes()
        say(process, call(2, "family__wait"))
        assert hear(process)["result"]["content"][0]["text"] == "done"
        everyone = relatives(process.pid)
        process.kill()
        process.wait()
        assert survivors(everyone) == []


def test_the_watcher_has_its_own_session_and_no_descriptor_but_its_pipe():
    watcher = ProcessWatcher()
    with watcher.registration():
        pid = watcher.process_id
        assert pid is not None
        wait_until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith((b"sh", b"/")))
        assert read_processes()[pid].session == pid
        links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
        assert sum(link != "/dev/null" for link in links) == 1
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
        time.sleep(0.2)
        assert is_alive(pid)
    watcher.reset()
    assert survivors([pid]) == []


def test_a_watcher_without_anything_registered_ends_quietly_with_its_owner():
    code = """
        from ullage.processes import process_watcher
        with process_watcher().registration():
            print(process_watcher().process_id, flush=True)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    assert survivors([int(run.stdout)]) == []


def test_a_forked_child_does_not_keep_the_watcher_from_seeing_its_parents_end():
    code = """
        import os, subprocess, time
        from ullage.processes import process_watcher
        with process_watcher().registration() as registered:
            child = subprocess.Popen(["sleep", "1000"], env=os.environ | registered.environment)
            registered.started(child.pid)
            forked = os.fork()
            if forked == 0:
                os.closerange(1, 3)
                time.sleep(1000)
            print(child.pid, forked, flush=True)
            os._exit(9)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    child, forked = map(int, run.stdout.split())
    try:
        assert survivors([child]) == []
        assert is_alive(forked)
    finally:
        os.kill(forked, signal.SIGKILL)


def test_a_process_that_only_has_the_same_number_is_left_alone():
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        try:
            table = read_processes()
            right = table[process.pid].started
            assert set(find_processes(table, {process.pid: right}, "nobody")) == {process.pid}
            assert find_processes(table, {process.pid: right - 1}, "nobody") == {}
            table[process.pid].started -= 1
            signal_processes([table[process.pid]], signal.SIGKILL)
            assert process.poll() is None
        finally:
            process.kill()


def test_a_daemon_that_a_server_started_in_passing_is_left_alone(work: Path):
    folder = work / "family"
    write_toml(work / "ullage.toml", '[gateway]\nmode = "direct"\n', family=family(folder, "daemon", "orphan"))
    with serving(work / "log") as process:
        say(process, call(1, "family__wait"))
        hear(process)
        process.kill()
        process.wait()
    assert survivors([pid_in(folder, "orphan")]) == []
    daemon = pid_in(folder, "daemon")
    assert is_alive(daemon)
    os.kill(daemon, signal.SIGKILL)


def test_without_a_shell_the_watcher_reads_the_entries_itself(work: Path):
    environment = dict(os.environ)
    sweep = [sys.executable, "-I", "-S", str(Path(find_processes.__code__.co_filename)), "--watch", "nobody"]
    with (
        subprocess.Popen(["sleep", "1000"], start_new_session=True) as server,
        subprocess.Popen(["sleep", "1000"], start_new_session=True) as other,
        subprocess.Popen(sweep, stdin=subprocess.PIPE, text=True, env=environment) as watcher,
    ):
        table = read_processes()
        entries = [f"{one.pid}:{table[one.pid].started}" for one in (server, other)]
        assert watcher.stdin is not None
        watcher.stdin.write("".join(f"+{entry}\n" for entry in entries) + f"-{entries[1]}\n+{os.getpid()}")
        watcher.stdin.close()
        assert watcher.wait(30) == 0
        assert server.wait(10) == -signal.SIGTERM
        assert other.poll() is None
        other.kill()


def test_a_stubborn_process_is_killed_after_it_was_asked_to_end():
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        main(["nobody", f"{stubborn.pid}:{read_processes()[stubborn.pid].started}", "pending-7"])
        assert stubborn.wait(10) == -signal.SIGKILL


def test_without_a_process_table_the_registered_group_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(end_processes, "_PROC", str(tmp_path / "none"))
    monkeypatch.setattr(end_processes, "_TERM_SECONDS", 0.1)
    with subprocess.Popen(["sh", "-c", "sleep 1000 & wait"], start_new_session=True) as group:
        main(["nobody", f"{group.pid}:0"])
        assert group.wait(10) == -signal.SIGTERM
