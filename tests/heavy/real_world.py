"""Which servers that other people wrote are there to be tried, and what do they have to work on?

A folder of files, a repository with a commit, an empty memory; the entries of an `mcpServers` file for all of them.
They are installed by `make test-heavy`; nothing is downloaded here.
"""

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["STDIO", "World", "bare_world", "entries", "make_world", "serving_everything"]

BENCH = Path(__file__).parents[2] / ".bench"
NODE = BENCH / "node" / "node_modules"
PYTHON = BENCH / "servers" / "bin"
STDIO = ("everything", "files", "git", "grafana", "memory", "time")
"""The servers that are started as processes, by the names they have in our settings."""
NOBODY = "http://127.0.0.1:9"
"""Where nothing listens: a server that looks for its instance there says so in its reply."""
PATIENCE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A folder with everything that the servers need."""

    folder: Path
    settings: Path
    """An `mcpServers` file, as other programs have one."""
    environment: dict[str, str]
    """In which nothing of the user's is read or written, and the Node is found that the servers were installed with."""

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def repository(self) -> Path:
        return self.folder / "repository"

    def rewrite(self, **entries: object) -> None:
        self.settings.write_text(json.dumps({"mcpServers": entries}, indent=2), encoding="utf-8")


def bare_world(folder: Path) -> World:
    """A folder without anything in it."""
    return World(folder=folder, settings=folder / "mcp.json", environment=_environment(folder))


def make_world(folder: Path) -> World:
    world = bare_world(folder)
    world.files.mkdir()
    (world.files / "log.txt").write_text("the barometer fell\nthe wind backed\n", encoding="utf-8")
    _make_repository(world)
    world.rewrite(**entries(world))
    return world


def entries(world: World) -> dict[str, dict[str, object]]:
    """The entries of all servers that are processes."""
    return {
        "everything": {"command": _node("everything"), "args": ["stdio"]},
        "files": {"command": _node("filesystem"), "args": [str(world.files)]},
        "git": {"command": _python("git"), "args": ["--repository", str(world.repository)]},
        "grafana": {"command": _script("mcp-grafana"), "env": {"GRAFANA_URL": NOBODY}},
        "memory": {"command": _node("memory"), "env": {"MEMORY_FILE_PATH": str(world.folder / "memory.jsonl")}},
        "time": {"command": _python("time"), "args": ["--local-timezone", "UTC"]},
    }


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "GIT_", "ULLAGE_"))}
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    path = os.pathsep.join([str(NODE / "node" / "bin"), kept.get("PATH", "")])
    return {**kept, **{name: str(folder / name.lower()) for name in names}, "PATH": path, "TZ": "UTC"}


def _make_repository(world: World) -> None:
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", str(world.repository)]
    world.repository.mkdir()
    subprocess.run([*git, "init", "--quiet"], check=True, env=world.environment)
    (world.repository / "sail.txt").write_text("mainsail\n", encoding="utf-8")
    subprocess.run([*git, "add", "."], check=True, env=world.environment)
    subprocess.run([*git, "commit", "--quiet", "-m", "raise the mainsail"], check=True, env=world.environment)


def _node(name: str) -> str:
    return _there(NODE / ".bin" / f"mcp-server-{name}")


def _python(name: str) -> str:
    return _script(f"mcp-server-{name}")


def _script(name: str) -> str:
    return _there(PYTHON / name)


def _there(path: Path) -> str:
    if not path.exists():
        pytest.fail(f"`{path.name}` is not installed; run `make test-heavy`")
    return str(path)


@contextmanager
def serving_everything(world: World, transport: str) -> Iterator[str]:
    """The everything-server at an address of its own: `streamableHttp` or `sse`."""
    port = _free_port()
    process = subprocess.Popen(
        [_node("everything"), transport],
        env={**world.environment, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert process.stderr is not None
    try:
        assert any(re.search(rf"port {port}\b", line) for line in process.stderr)
        _wait_for(port)
        yield f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait_for(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < until, "nothing listens"
            time.sleep(0.05)
        else:
            return
