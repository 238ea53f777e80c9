"""What the heavy tests share: the conformance suite, and `ullage serve` in front of given servers."""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SUITE = Path(__file__).parents[2] / ".bench" / "node" / "node_modules" / ".bin" / "conformance"
EVERYTHING = Path(__file__).parents[2] / ".bench" / "interaction" / "examples" / "servers" / "everything-server"
FIXTURE = Path(__file__).parent / "fixture_server.py"
BRIDGE = Path(__file__).parent / "stdio_bridge.py"

Suite = Callable[[str, str], "Outcome"]
"""Address and revision to what came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the suite found at one address."""

    passed: Mapping[str, int]
    """Scenario to the checks it passed, of those scenarios that failed none."""
    required: frozenset[str]
    output: str


@pytest.fixture(scope="session")
def suite() -> Suite:
    if shutil.which("node") is None or not SUITE.exists():
        pytest.fail("the conformance suite is not installed; run `make test-heavy`")

    def run(url: str, revision: str) -> Outcome:
        asked = [SUITE, "server", "--url", url, "--requirements", revision]
        done = subprocess.run(asked, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)
        listed = subprocess.run(
            [SUITE, "list", "--requirements", revision], capture_output=True, text=True, encoding="utf-8", check=True
        )
        return Outcome(
            passed={
                name: int(count) for name, count in re.findall(r"^✓ (\S+): (\d+) passed, 0 failed", done.stdout, re.M)
            },
            required=_server_scenarios(listed.stdout),
            output=done.stdout + done.stderr,
        )

    return run


def _server_scenarios(listing: str) -> frozenset[str]:
    section = listing.split("Server scenarios")[1].split("\n\n", maxsplit=1)[0]
    return frozenset(re.findall(r"^  - (\S+)$", section, re.M))


@contextmanager
def serving(command: list[str], environment: Mapping[str, str], folder: Path) -> Iterator[str]:
    """The address that a server says on standard error, while it serves."""
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env={**os.environ, **environment}, cwd=folder
    )
    assert process.stderr is not None
    said: list[str] = []
    try:
        url = _address(process.stderr, said)
        # Read on, or the server would wait for room in the pipe.
        reading = threading.Thread(target=said.extend, args=[process.stderr])
        reading.start()
        yield url
        process.terminate()
        process.wait(15)
        reading.join(15)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def _address(stream: Iterable[str], said: list[str]) -> str:
    for line in stream:
        said.append(line)
        if found := re.search(r"http://127\.0\.0\.1:\d+/mcp\b", line):
            return found[0]
    pytest.fail(f"it said no address: {''.join(said)}")


@pytest.fixture(scope="session")
def fixture_url() -> Iterator[str]:
    """The fixture server itself, over HTTP."""
    with serving([sys.executable, str(FIXTURE), "--http", "0"], {}, Path.cwd()) as url:
        yield url


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing of the user's is read or written."""
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    return {name: str(tmp_path / name.lower()) for name in names}


@pytest.fixture
def gateway_command(home: dict[str, str]) -> list[str]:
    """`ullage serve` with the fixture server behind it, passed on as it is."""
    return _gateway_command(home, f"command = {str(sys.executable)!r}\nargs = [{str(FIXTURE)!r}]")


def _gateway_command(home: dict[str, str], entry: str) -> list[str]:
    settings = Path(home["HOME"]) / "settings" / "ullage.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[gateway]\nmode = "direct"\n\n[servers.behind]\n{entry}\nprefix = ""\n', encoding="utf-8")
    return [sys.executable, "-m", "ullage", "serve", "--config", str(settings)]


@pytest.fixture
def everything_url(tmp_path: Path) -> Iterator[str]:
    """The SDK's own everything-server, over HTTP."""
    if not EVERYTHING.exists():
        pytest.fail("the everything-server is not there; run `make test-heavy`")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    command = [sys.executable, "-m", "mcp_everything_server", "--port", str(port)]
    with (tmp_path / "everything.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=EVERYTHING, stdout=log, stderr=log)
    try:
        _wait_for_port(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def _wait_for_port(port: int) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


@pytest.fixture
def everything_gateway_url(everything_url: str, home: dict[str, str], working_folder: Path) -> Iterator[str]:
    """Ullage over HTTP with the everything-server behind it, reached over HTTP and passed on as it is."""
    command = _gateway_command(home, f'url = "{everything_url}"')
    with serving([*command, "--http", "0"], home, working_folder) as url:
        yield url


@pytest.fixture
def working_folder(tmp_path: Path) -> Path:
    """A folder beside the settings: what is below it would be a project's, and wait for approval."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def gateway_url(gateway_command: list[str], home: dict[str, str], working_folder: Path) -> Iterator[str]:
    """Ullage over HTTP."""
    with serving([*gateway_command, "--http", "0"], home, working_folder) as url:
        yield url


@pytest.fixture
def stdio_url(gateway_command: list[str], home: dict[str, str], working_folder: Path) -> Iterator[str]:
    """Ullage on standard input and output, behind a bridge that speaks HTTP."""
    with serving([sys.executable, str(BRIDGE), *gateway_command], home, working_folder) as url:
        yield url
