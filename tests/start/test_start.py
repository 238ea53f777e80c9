"""`ullage serve` started again and again: the first answers come from the cache, and are what they would be without."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from start.test_session import CLIENT, INITIALIZED, MODERN, ask
from ullage.cli import main
from upstreams import scripted, tool, users_file, write_json, write_toml

pytestmark = pytest.mark.requirement("U:start")

ULLAGE = (sys.executable, "-m", "ullage", "serve")
CHANGING = Path(__file__).parent.parent / "wire" / "changing_server.py"
HANDSHAKE = [ask(0, "initialize", CLIENT), INITIALIZED, ask(1, "tools/list")]
STATELESS = [ask(0, "server/discover", {"_meta": MODERN}), ask(1, "tools/list", {"_meta": MODERN})]
NOTES = scripted(tool("echo", "Says a text again.", annotations={"readOnlyHint": True}), tool("give"))


def talk(*messages: dict[str, Any], flags: tuple[str, ...] = (), **variables: str) -> list[bytes]:
    """What is answered until the input has ended, in the order of ids."""
    said = "".join(json.dumps(one) + "\n" for one in messages).encode()
    run = subprocess.run(
        [*ULLAGE, *flags], input=said, capture_output=True, timeout=60, check=False, env={**os.environ, **variables}
    )
    assert run.returncode == 0, run.stderr.decode()
    return sorted(run.stdout.splitlines(), key=lambda line: str(json.loads(line).get("id")))


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    """Variables with which nothing can be loaded, so that all that is answered comes from the cache."""
    (tmp_path / "broken" / "anyio").mkdir(parents=True)
    (tmp_path / "broken" / "anyio" / "__init__.py").write_text("raise ImportError('broken')", encoding="utf-8")
    return {"PYTHONPATH": str(tmp_path / "broken")}


def is_cached(broken: dict[str, Any], *flags: str) -> bool:
    said = "".join(json.dumps(one) + "\n" for one in HANDSHAKE).encode()
    run = subprocess.run(
        [*ULLAGE, *flags], input=said, capture_output=True, timeout=60, check=False, env={**os.environ, **broken}
    )
    assert (run.returncode == 0) == (len(run.stdout.splitlines()) == 2)
    return run.returncode == 0


def test_the_first_answers_are_the_same_bytes_with_and_without_the_cache(work: Path, broken: dict[str, Any]):
    top = 'include = ["mcp.json"]\n[gateway]\nmode = "search"\n[clients.direct]\nmode = "direct"\n'
    write_json(users_file(work.parent).with_name("mcp.json"), notes=NOTES)
    write_toml(users_file(work.parent), top)
    assert main(["tools"]) == 0
    for flags in ((), ("--client", "direct"), ("--client", "anybody")):
        for messages in (HANDSHAKE, STATELESS):
            warm = talk(*messages, flags=flags, **broken)
            loaded = talk(*messages, flags=flags, XDG_STATE_HOME=str(work / "no cache"))
            assert warm == loaded
            assert b"echo" in warm[1] or flags != ("--client", "direct")


def test_a_start_fills_the_cache_and_a_call_is_answered_by_what_is_loaded_then(work: Path, broken: dict[str, Any]):
    write_toml(users_file(work.parent), notes=NOTES)
    call = ask(2, "tools/call", {"name": "count-tokens", "arguments": {"text": "hello world"}})
    assert not is_cached(broken)
    cold = talk(*HANDSHAKE, call)
    with served() as client:
        client.until(lambda: is_cached(broken))
    warm = talk(*HANDSHAKE, call)
    # What is claimed besides tools depends on whether the server was heard by then.
    assert len({json.loads(one[0])["result"]["instructions"] for one in (cold, warm)}) == 1
    assert [json.loads(one)["result"]["content"][0]["text"] for one in (cold[2], warm[2])] == [
        json.loads(cold[2])["result"]["content"][0]["text"]
    ] * 2


def test_what_cannot_be_loaded_answers_the_requests_that_wait_with_an_error(work: Path, broken: dict[str, Any]):
    assert main(["tools"]) == 0
    said = "".join(json.dumps(one) + "\n" for one in (*HANDSHAKE, ask("c", "tools/call", {"name": "x"}))).encode()
    run = subprocess.run(ULLAGE, input=said, capture_output=True, timeout=60, check=False, env={**os.environ, **broken})
    error = json.loads(run.stdout.splitlines()[-1])["error"]
    assert run.returncode == 1
    assert b"broken" in run.stderr
    assert error["data"].keys() == {"error_code", "message", "suggestion", "available_options"}
    assert len(run.stdout.splitlines()) == 3


def test_lists_that_are_requested_at_the_same_time_wait_for_the_same_servers(work: Path):
    write_toml(users_file(work.parent), '[gateway]\nmode = "direct"\n', notes=NOTES)
    first, *others = (
        json.loads(one)["result"] for one in talk(*HANDSHAKE, *(ask(n, "tools/list") for n in (2, 3)))[1:]
    )
    assert [one["name"] for one in first["tools"]][-2:] == ["notes__echo", "notes__give"]
    assert others == [first, first]


@pytest.mark.requirement("U:shutdown")
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_requests_that_were_read_are_answered_where_a_signal_ends_ullage_before_it_is_loaded(
    work: Path, told: signal.Signals
):
    assert main(["tools"]) == 0
    slow = work.parent / "slow" / "anyio"
    slow.mkdir(parents=True)
    (slow / "__init__.py").write_text("import time\ntime.sleep(60)", encoding="utf-8")
    with served(PYTHONPATH=str(slow.parent)) as client:
        client.send(*HANDSHAKE, ask("c", "tools/call", {"name": "x"}))
        assert [client.line()["id"] for _ in range(2)] == [0, 1]
        time.sleep(0.5)
        client.process.send_signal(told)
        assert client.line()["error"]["data"]["error_code"] == "UNAVAILABLE"
        assert client.process.wait(10) == 130


class Served:
    """A gateway that runs, and what it has written."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        assert process.stdin is not None
        self.stdin = process.stdin

    def send(self, *messages: dict[str, Any]) -> None:
        self.stdin.write("".join(json.dumps(one) + "\n" for one in messages).encode())
        self.stdin.flush()

    def line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def until(self, condition: Callable[[], bool]) -> None:
        ends = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < ends
            time.sleep(0.2)


@contextmanager
def served(*flags: str, **variables: str) -> Generator[Served]:
    process = subprocess.Popen(
        [*ULLAGE, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **variables}
    )
    try:
        yield Served(process)
    finally:
        process.kill()
        process.communicate()


def test_settings_approvals_and_variables_decide_whether_the_cache_answers(
    work: Path, broken: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    settings = write_toml(users_file(work.parent), notes={**NOTES, "env": {"TOKEN": "${TOKEN_OF_NOTES}"}})
    monkeypatch.setenv("TOKEN_OF_NOTES", "one")
    assert main(["tools"]) == 0
    assert is_cached(broken)
    monkeypatch.setenv("TOKEN_OF_NOTES", "two")
    assert not is_cached(broken)
    monkeypatch.setenv("TOKEN_OF_NOTES", "one")
    (work / "ullage.toml").write_text('[servers.mine]\ncommand = "true"\n', encoding="utf-8")
    assert not is_cached(broken)
    talk(*HANDSHAKE)
    assert is_cached(broken)
    main(["trust", "ullage.toml", "--hash", pending_digest()])
    assert not is_cached(broken)
    (work / "ullage.toml").unlink()
    assert is_cached(broken)
    settings.write_text(settings.read_text(encoding="utf-8") + '[gateway]\nmode = "direct"\n', encoding="utf-8")
    assert not is_cached(broken)
    assert main(["doctor"]) == 0
    assert is_cached(broken)


def pending_digest() -> str:
    run = subprocess.run([sys.executable, "-m", "ullage", "trust", "--json"], capture_output=True, check=True)
    return json.loads(run.stdout)["pending"][0]["sha256"]


def offer(path: Path, *names: str) -> dict[str, Any]:
    path.write_text(json.dumps({"tools": [tool(name) for name in names]}), encoding="utf-8")
    return {"command": sys.executable, "args": [str(CHANGING), str(path)]}


def test_a_catalogue_that_changed_between_two_starts_is_told_from_one_that_did_not(work: Path, broken: dict[str, Any]):
    offered = work.parent / "offered.json"
    write_toml(users_file(work.parent), '[gateway]\nmode = "direct"\n', notes=offer(offered, "first"))
    assert main(["tools"]) == 0
    before = talk(*HANDSHAKE, **broken)
    assert b"first" in before[1]
    offer(offered, "first", "second")
    assert main(["tools", "--refresh"]) == 0
    after = talk(*HANDSHAKE, **broken)
    assert b"second" in after[1]


@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_a_list_that_was_untrue_is_corrected_within_a_second(work: Path, era: str):
    offered = work.parent / "offered.json"
    write_toml(users_file(work.parent), '[gateway]\nmode = "direct"\n', notes=offer(offered, "first"))
    assert main(["tools"]) == 0
    cache = work.parent / "home" / "state" / "ullage" / "start"
    (revision,) = cache.glob("*.revision")
    kept = {path: path.read_bytes() for path in (revision, *cache.glob("*.entry"))}
    offer(offered, "first", "second")
    assert main(["tools", "--refresh"]) == 0
    for path, content in kept.items():  # as if another machine had changed a store that both share
        path.write_bytes(content)
    with served() as client:
        client.send(*(HANDSHAKE if era == "handshake" else STATELESS))
        client.line()
        assert [one["name"] for one in client.line()["result"]["tools"]][-1] == "notes__first"
        if era == "stateless":
            notifications = {"toolsListChanged": True}
            client.send(ask(2, "subscriptions/listen", {"_meta": MODERN, "notifications": notifications}))
            assert client.line()["method"] == "notifications/subscriptions/acknowledged"
        assert client.line()["method"] == "notifications/tools/list_changed"
        again = ask(3, "tools/list", None if era == "handshake" else {"_meta": MODERN})
        client.send(again)
        assert [one["name"] for one in client.line()["result"]["tools"]][-1] == "notes__second"
        client.until(lambda: any(path.read_bytes() != kept[path] for path in cache.glob("*.entry")))


def test_settings_that_are_edited_while_a_gateway_runs_are_cached_by_it(work: Path, broken: dict[str, Any]):
    settings = write_toml(users_file(work.parent), notes=NOTES)
    assert main(["tools"]) == 0
    with served() as client:
        client.send(*HANDSHAKE)
        client.line()
        client.line()
        client.send(ask(7, "resources/list"))
        client.line()
        settings.write_text(settings.read_text(encoding="utf-8") + '[gateway]\nmode = "search"\n', encoding="utf-8")
        client.until(lambda: is_cached(broken))
    assert b"find_tool" in talk(*HANDSHAKE, **broken)[1]
