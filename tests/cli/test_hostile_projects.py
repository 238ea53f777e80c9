"""A stranger's repository: nothing in it starts, sends, reads or moves anything before the user has approved it."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cli.hostile_projects import KEY, PROJECTS, Project
from ullage.cli import main
from ullage.config import review
from upstreams import settle_in

SECRET = "the-garden-key-is-under-the-third-pot"
VERBS = (
    ("tools",),
    ("find", "anything at all"),
    ("doctor",),
    ("run", "Hello."),
    ("sql", "evil", "SELECT text FROM secrets"),
    ("call", "retrieve.search", '{"query": "garden key"}'),
)
REQUESTS = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call"},
)


@dataclass
class Recorder:
    """Accepts connections on loopback, remembers what arrives, and answers like an HTTP server that refuses."""

    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    seen: list[bytes] = field(default_factory=list)

    @property
    def port(self) -> int:
        return self.listener.getsockname()[1]

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with closing(connection), suppress(OSError):
                    connection.settimeout(2)
                    self.seen.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


@pytest.fixture
def recorder() -> Generator[Recorder]:
    recorder = Recorder()
    threading.Thread(target=recorder.serve, daemon=True).start()
    yield recorder
    recorder.listener.shutdown(socket.SHUT_RDWR)
    recorder.listener.close()


@dataclass
class Scene:
    """A hostile project on a machine with a user who has secrets."""

    root: Path
    project: Project
    recorder: Recorder

    @property
    def repository(self) -> Path:
        return self.root / "repository"

    @property
    def canary(self) -> Path:
        return self.root / "canary"

    def filled(self, text: str) -> str:
        return text.format(
            canary=self.canary,
            url=f"http://127.0.0.1:{self.recorder.port}",
            port=self.recorder.port,
            secret=self.root / "home" / "secret",
            outside=self.root,
            repository=self.repository,
        )

    def write(self) -> None:
        (self.repository / ".git").mkdir(parents=True)
        for name, text in self.project.files.items():
            path = self.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.filled(text), encoding="utf-8")
            path.chmod(0o755)
        for name, target in self.project.links.items():
            (self.repository / name).symlink_to(self.filled(target))
        secret = self.root / "home" / "secret"
        secret.mkdir()
        (secret / "diary.md").write_text(f"# Garden key\n{SECRET}\n", encoding="utf-8")
        with closing(sqlite3.connect(secret / "private.db")) as database:
            database.execute("CREATE TABLE secrets (text)")
            database.execute("INSERT INTO secrets VALUES (?)", (SECRET,))
            database.commit()
        users = self.root / "home" / "config" / "ullage" / "ullage.toml"
        users.parent.mkdir(parents=True)
        users.write_text(self.filled(self.project.users), encoding="utf-8")

    def flags(self) -> list[str]:
        return [self.filled(flag) for flag in self.project.flags]

    def approve(self) -> None:
        for name in self.project.approve:
            digest = review(Path(name), os.environ, Path.cwd()).unit.digest
            assert main(["trust", name, "--hash", digest]) == 0

    def change_one_byte(self) -> None:
        name = self.project.changed
        path = Path(name) if name.startswith("../..") else self.repository / name
        with path.open("a", encoding="utf-8") as file:
            file.write(" " if path.suffix == ".json" else "\n")

    def use_every_verb(self, capfd: pytest.CaptureFixture[str]) -> str:
        """What all verbs print."""
        self.canary.unlink(missing_ok=True)
        self.recorder.seen.clear()
        for words in VERBS:
            main([words[0], *self.flags(), *words[1:]])
        return "".join(capfd.readouterr())

    def done(self, output: str) -> set[str]:
        """Which of its effects the project had."""
        effects = {"process"} if self.canary.exists() else set[str]()
        effects |= {"request"} if self.recorder.seen else set()
        return effects | ({"read"} if SECRET in output else set())

    def leaked(self) -> bool:
        took = self.canary.read_text(encoding="utf-8") if self.canary.exists() else ""
        return KEY in took or any(KEY.encode() in one for one in self.recorder.seen)


SERVED_QUICKLY = (
    "command",
    "url_with_key",
    "flagged_mcp_json",
    "flagged_config",
    "policy_folder",
    "folders_of_the_user",
)
"""Projects for which a gateway is started in every run; for the others it is among the heavy tests."""


@pytest.fixture(params=PROJECTS, ids=lambda project: project.name)
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> Scene:
    settle_in(tmp_path, monkeypatch)
    scene = Scene(tmp_path, request.param, recorder)
    scene.write()
    monkeypatch.chdir(scene.repository / scene.project.folder)
    monkeypatch.setenv("SHOP_API_KEY", KEY)
    for name, value in scene.project.variables.items():
        monkeypatch.setenv(name, value)
    # With a key, `ullage run` would ask the real provider: nothing outside this machine is reached from here.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    return scene


def serve(scene: Scene) -> str:
    """Everything that `ullage serve` writes to a client that lists tools, searches and leaves."""
    params = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
        "tools/call": {"name": "find_tool", "arguments": {"tool_description": "do anything"}},
    }
    lines = [json.dumps({**one, "params": params.get(str(one["method"]), {})}) for one in REQUESTS]
    with subprocess.Popen(
        [sys.executable, "-m", "ullage", "serve", *scene.flags()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.flush()
        answers = [process.stdout.readline() for _ in range(3)]
        process.stdin.close()
        return "".join(answers) + process.stderr.read()


@pytest.mark.requirement("U:project")
def test_no_verb_lets_a_project_do_anything_before_it_is_approved(scene: Scene, capfd: pytest.CaptureFixture[str]):
    output = scene.use_every_verb(capfd)

    assert scene.done(output) == set()
    assert not (scene.root / "moved.db").exists()
    assert KEY not in output
    assert "ullage trust" in output


@pytest.mark.requirement("U:project")
@pytest.mark.parametrize(
    "scene",
    [
        pytest.param(one, id=one.name, marks=() if one.name in SERVED_QUICKLY else (pytest.mark.heavy,))
        for one in PROJECTS
    ],
    indirect=True,
)
def test_the_gateway_serves_nothing_of_a_project_before_it_is_approved(scene: Scene):
    output = serve(scene)

    assert scene.done(output) == set()
    assert not (scene.root / "moved.db").exists()
    answers = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    found = json.loads(answers[2]["result"]["content"][0]["text"]) if "result" in answers[2] else {}
    assert any("ullage trust" in one for one in found.get("missing", [])), answers[2]
    assert "waits" in output or "not approved" in output


@pytest.mark.requirement("U:project")
def test_an_approved_project_works_until_one_byte_changes(scene: Scene, capfd: pytest.CaptureFixture[str]):
    scene.approve()
    output = scene.use_every_verb(capfd)
    expected = set() if scene.project.effect == "nothing" else {scene.project.effect}
    assert scene.done(output) == expected
    assert not (scene.root / "moved.db").exists()
    assert scene.leaked() == scene.project.takes_key

    scene.change_one_byte()
    output = scene.use_every_verb(capfd)
    assert scene.done(output) == set()
    assert "changed after you approved it" in output
