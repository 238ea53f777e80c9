"""Programs and modules that lie in the working folder: no command runs or imports them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.test_server_environment import dumped, dumping
from ullage.cli import main
from ullage.processes import absolute_folders, find_executable
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
