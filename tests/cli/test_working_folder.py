"""What lies in the working folder: programs and modules are not run or imported, links are not followed out of it."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from cli.test_server_environment import dumped, dumping
from ullage.cli import main
from ullage.config import Flags, load
from ullage.errors import SourceFailed
from ullage.processes import absolute_folders, find_executable
from ullage.sql import Question, open_engine
from upstreams import users_file, write_toml

COMMAND = Path(sys.executable).with_name("ullage")
TALK = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "find_tool", "arguments": {"query": "echo"}}},
    )
)


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.requirement("U:project")
def test_status_line_imports_no_module_of_the_working_folder(work: Path, tmp_path: Path):
    canary = tmp_path / "canary"
    for name in ("ullage", "json", "anyio", "platformdirs"):
        (work / f"{name}.py").write_text(f"open({str(canary)!r}, 'w')\n", encoding="utf-8")
    store = tmp_path / "kept.db"
    subprocess.run([COMMAND, "statusline", "--store", str(store)], input="{}", text=True, check=True)
    until = time.monotonic() + 30
    while not store.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert store.exists(), "the logs are not read in the background"
    assert not canary.exists()


@pytest.mark.requirement("U:project")
@pytest.mark.parametrize("entry", ["", ".", "bin", "./node_modules/.bin", "~/bin"])
@pytest.mark.parametrize("words", [("serve",), ("doctor",), ("tools",), ("find", "echo")], ids=lambda words: words[0])
def test_server_is_no_program_of_the_working_folder(work: Path, tmp_path: Path, words: tuple[str, ...], entry: str):
    canary = tmp_path / "canary"
    program(work / entry / "some-server", f"touch '{canary}'")
    users_file(work.parent).write_text('[servers.mine]\ncommand = "some-server"\n', encoding="utf-8")
    given = {**os.environ, "PATH": f"{entry}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([COMMAND, *words], input=TALK, env=given, text=True, capture_output=True, check=False)
    assert not canary.exists()
    assert "some-server` was not found in the" in done.stdout + done.stderr


@pytest.mark.requirement("U:env")
def test_servers_inherit_no_search_path_with_the_working_folder(work: Path):
    entry, dump = dumping(work)
    write_toml(work / "ullage.toml", notes={**entry, "inherit_env": True})
    lists = ("PATH", "PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH")
    given = {name: f"{os.environ.get(name, '/usr/lib')}::.:node_modules/.bin:~/bin" for name in lists}
    subprocess.run([COMMAND, "tools"], env={**os.environ, **given}, capture_output=True, check=True)
    got = dumped(dump)
    for name in lists:
        assert got[name] == os.environ.get(name, "/usr/lib")


@pytest.mark.requirement("U:project")
def test_install_asks_the_program_for_its_list_outside_the_working_folder(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    # `claude mcp list` starts the servers of the `.mcp.json` in its working folder.
    canary = tmp_path / "canary"
    program(tmp_path / "bin" / "claude", f"[ -e .mcp.json ] && touch '{canary}'\necho ullage")
    program(work / "node_modules" / ".bin" / "claude", f"touch '{canary}'")
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": {"command": "true"}}}), encoding="utf-8")
    (tmp_path / "home" / ".claude.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("PATH", os.pathsep.join(("node_modules/.bin", str(tmp_path / "bin"), os.environ["PATH"])))
    assert main(["install", "claude", "--yes", "--no-start"]) == 0
    assert "`claude mcp list` lists Ullage" in capsys.readouterr().out
    assert not canary.exists()


def test_relative_folders_are_left_out_of_a_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    program(tmp_path / "here", "true")
    found = program(tmp_path / "bin" / "there", "true")
    path = os.pathsep.join(("", ".", "bin", str(tmp_path / "bin"), ""))
    assert absolute_folders(path) == str(tmp_path / "bin")
    assert find_executable("here", path) is None
    assert find_executable("there", path) == str(found)
    assert find_executable(str(tmp_path / "here"), path) == str(tmp_path / "here")


def secret_database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE secrets (text); INSERT INTO secrets VALUES ('under the third pot');")
    return path


@pytest.mark.requirement("U:project")
@pytest.mark.parametrize(
    "written",
    [
        "link.db",
        "folder/secret.db",
        "inner/../link.db",
        "sqlite:///link.db?timeout=5",
        "SQLite:///link.db",
        "sqlite+pysqlite:///./link.db?mode=ro",
        "sqlite:////{work}/link.db",
        "sqlite://////{work}/link.db",
    ],
)
def test_a_projects_database_is_no_link_out_of_the_project(
    work: Path, tmp_path: Path, written: str, capsys: pytest.CaptureFixture[str]
):
    (work / "link.db").symlink_to(secret_database(tmp_path / "home" / "secret.db"))
    (work / "folder").symlink_to(tmp_path / "home")
    (work / "inner").mkdir()
    write_toml(work / "ullage.toml", f"[sources.evil]\ndatabase = '{written.format(work=work)}'\n")
    assert main(["sql", "evil", "SELECT text FROM secrets"]) != 0
    shown = capsys.readouterr()
    assert "third pot" not in shown.out + shown.err


def swap_file(work: Path, secret: Path) -> None:
    (work / "data" / "shop.db").unlink()
    (work / "data" / "shop.db").symlink_to(secret)


def swap_folder(work: Path, secret: Path) -> None:
    (work / "data").rename(work / "before")
    (work / "data").symlink_to(secret.parent)


@pytest.mark.requirement("U:project")
@pytest.mark.parametrize("swap", [swap_file, swap_folder])
@pytest.mark.parametrize("written", ["data/shop.db", "sqlite:///data/shop.db"])
@pytest.mark.anyio
async def test_a_database_that_becomes_a_link_after_the_settings_were_read_is_not_opened(
    work: Path, tmp_path: Path, swap: Callable[[Path, Path], None], written: str
):
    (work / "data").mkdir()
    secret_database(work / "data" / "shop.db")
    secret = secret_database(tmp_path / "home" / "shop.db")
    write_toml(work / "ullage.toml", f"[sources.shop]\ndatabase = '{written}'\n")
    (settings,) = load(Flags(), os.environ, work).settings.databases
    engine = open_engine(settings, sample=tmp_path / "sample.db")
    try:
        await engine.ask(Question(sql="SELECT text FROM secrets", rows=5, seconds=10))
        swap(work, secret)
        with pytest.raises(SourceFailed, match="a link that leads out of the project"):
            await engine.ask(Question(sql="SELECT text FROM secrets", rows=5, seconds=10))
    finally:
        await engine.close()
