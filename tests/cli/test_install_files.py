"""Generated configuration files through `install` and `uninstall`: no file is ever lost or broken.

Files have comments, odd indentation, unknown keys, CRLF and byte-order marks, and are plain, links, read-only, changed
by somebody else while they are worked on, or on a full disk. `FILES` is how many of each format are made.
"""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from clients.config_texts import JsonWriter, random_servers, random_table, write_toml
from ullage.cli import main
from ullage.clients.configs import ConfigFile, FileFormat, Put, edit_content, parse_config
from upstreams import users_file

pytestmark = pytest.mark.requirement("U:scan")

FILES = int(os.environ.get("FILES", "40"))
WHERE = {
    "json": [
        ("claude", ".claude.json", "mcpServers"),
        ("gemini", ".gemini/settings.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("opencode", "config/opencode/opencode.jsonc", "mcp"),
        ("vscode", "config/Code/User/mcp.json", "servers"),
        ("zed", "config/zed/settings.json", "context_servers"),
    ],
    "toml": [("codex", ".codex/config.toml", "mcp_servers")],
}
FORMATS: list[FileFormat] = ["json", "toml"]


def content_of(rng: Random, kind: FileFormat, table: str, servers: dict[str, Any]) -> bytes:
    if kind == "toml":
        return write_toml(rng, {"model": "m", "n": 1.5}, servers, {"tui": random_table(rng)}).encode()
    unknown = {f"x{name}": value for name, value in random_table(rng).items()}
    return JsonWriter(rng).document({**unknown, table: servers, "zz": random_table(rng)}).encode()


def proper(servers: dict[str, Any], client: str, rng: Random) -> dict[str, Any]:
    """Servers that can be moved, among some that nobody understands."""
    for name in [name for name in servers if "ullage" in name]:
        del servers[name]
    for number in range(rng.randrange(4)):
        words: object = ["x", "--of", f"ü{number}"] if client == "opencode" else f"/opt/server{number}"
        servers[f"own-{number}"] = {"command": words, "xx": {"of": "somebody's"}}
    return servers


def outcome(*words: str) -> int:
    return main([*words, "--json"])


@contextmanager
def full_disk() -> Iterator[None]:
    """Every file that this process writes may have a few bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def parsed(content: bytes, kind: FileFormat) -> dict[str, Any]:
    return parse_config(content, ConfigFile(path="f", scope="user", format=kind))


def leftovers(folder: Path) -> list[Path]:
    return list(folder.rglob(".ullage-*"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One generated file of one program, in a home."""

    kind: FileFormat
    client: str
    table: str
    way: str
    file: Path
    real: Path
    """The file itself, where `file` is a link."""
    before: bytes
    mode: int
    seed: int

    def __str__(self) -> str:
        return f"{self.kind} {self.seed}: {self.client}, {self.way}"


def make_case(kind: FileFormat, seed: int, home: Path) -> Case:
    rng = Random(seed)
    client, name, table = rng.choice(WHERE[kind])
    before = content_of(rng, kind, table, proper(random_servers(rng), client, rng))
    way = rng.choice(["plain", "plain", "link", "read-only", "changed", "full", "garbage"])
    if way == "garbage":
        before = before[: rng.randrange(1, len(before))]
    file = home / name
    real = home / "dotfiles" / f"real-{seed}" if way == "link" else file
    for path in (file, real):
        path.parent.mkdir(parents=True, exist_ok=True)
    real.write_bytes(before)
    mode = 0o444 if way == "read-only" else rng.choice([0o600, 0o644, 0o640])
    real.chmod(mode)
    if real is not file:
        file.symlink_to(real)
    return Case(
        kind=kind, client=client, table=table, way=way, file=file, real=real, before=before, mode=mode, seed=seed
    )  # fmt: skip


def check_uninstall(case: Case, own: Path) -> None:
    """Takes the installation back, after somebody else has changed the file too where the case is so."""
    if case.way == "changed":
        edits = [Put(("zz", "theirs"), case.seed), Put((case.table, "theirs"), {"command": "t"})]
        case.real.write_bytes(edit_content(case.real.read_bytes(), case.kind, edits))
    assert outcome("uninstall", case.client) == 0, str(case)
    assert not own.exists(), str(case)
    if case.way != "changed":
        assert case.real.read_bytes() == case.before, str(case)
        return
    found, was = parsed(case.real.read_bytes(), case.kind), parsed(case.before, case.kind)
    assert found[case.table].pop("theirs") == {"command": "t"}, str(case)
    assert found["zz"].pop("theirs") == case.seed, str(case)
    # A table that is empty without theirs may stay.
    was = {"zz": {}, case.table: {}, **was}
    assert found == was, str(case)


@pytest.mark.requirement("U:scan")
@pytest.mark.parametrize("kind", FORMATS)
def test_no_file_is_lost_or_broken(kind: FileFormat, work: Path, capsys: pytest.CaptureFixture[str]):
    home, own = work.parent / "home", users_file(work.parent)
    moved = 0
    for seed in range(FILES):
        case = make_case(kind, seed, home)
        if case.way == "full":
            with full_disk():
                assert outcome("install", case.client, "--yes", "--no-start") == 2, str(case)
            assert (case.file.read_bytes(), own.exists(), leftovers(home)) == (case.before, False, []), str(case)
        code = outcome("install", case.client, "--yes", "--no-start")
        assert case.file.is_symlink() == (case.way == "link"), str(case)
        assert leftovers(home) == [], str(case)
        if code != 0:
            assert case.way in ("read-only", "garbage"), f"{case} {capsys.readouterr().err}"
            assert (case.file.read_bytes(), own.exists()) == (case.before, False), str(case)
        else:
            after = case.real.read_bytes()
            assert case.real.stat().st_mode & 0o777 == case.mode, str(case)
            assert "ullage" in parsed(after, kind)[case.table], str(case)
            moved += len(parsed(own.read_bytes(), "toml").get("servers", {}))
            check_uninstall(case, own)
        capsys.readouterr()
        for path in (case.file, case.real, *home.rglob("installs/*.json"), *home.glob(".claude/*")):
            path.unlink(missing_ok=True)
    assert moved > FILES / 4


def test_a_server_that_is_changed_while_it_is_moved_is_not_lost(work: Path, capsys: pytest.CaptureFixture[str]):
    """The program writes its file between reading and moving, while the servers are started to be counted."""
    path = work.parent / "home" / ".cursor" / "mcp.json"
    path.parent.mkdir()
    code = (
        "import json, pathlib, sys, time\n"
        f"path = pathlib.Path({str(path)!r})\n"
        "document = json.loads(path.read_text())\n"
        "document['mcpServers']['fs']['env'] = {'NEW': 'token'}\n"
        "path.write_text(json.dumps(document))\n"
    )
    path.write_text(json.dumps({"mcpServers": {"fs": {"command": sys.executable, "args": ["-c", code]}}}))
    assert main(["install", "cursor", "--yes"]) == 2
    assert "changed by another program" in capsys.readouterr().err
    assert json.loads(path.read_text())["mcpServers"]["fs"]["env"] == {"NEW": "token"}
    assert not users_file(work.parent).exists()


def test_installs_at_once_lose_nothing(work: Path):
    home = work.parent / "home"
    names = {
        "cursor": ".cursor/mcp.json",
        "gemini": ".gemini/settings.json",
        "windsurf": ".codeium/windsurf/mcp_config.json",
    }
    before = dict[str, bytes]()
    for client, name in names.items():
        file = home / name
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"mcpServers": {f"of-{client}": {"command": "x"}}}))
        before[client] = file.read_bytes()

    def together(*words: str) -> list[int]:
        command = [sys.executable, "-m", "ullage", *words]
        started = [
            subprocess.Popen([*command, client, *(["--yes", "--no-start"] if words == ("install",) else [])], cwd=work,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for client in (*names, *names)
        ]  # fmt: skip
        return [one.wait(60) for one in started]

    def retried(words: str, is_done: Callable[[], bool]) -> None:
        for _ in range(10):
            assert set(together(words)) <= {0, 2}
            if is_done():
                return
        pytest.fail(f"`{words}` did not come through")

    retried("install", lambda: all("ullage" in (home / name).read_text() for name in names.values()))
    settings = users_file(work.parent).read_text(encoding="utf-8")
    assert all(f"of-{client}" in settings for client in names)
    retried("uninstall", lambda: all((home / name).read_bytes() == before[client] for client, name in names.items()))
    assert not users_file(work.parent).exists()
