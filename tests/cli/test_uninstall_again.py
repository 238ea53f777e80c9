"""`ullage uninstall` after files were edited, removed or broken, and installations at the same time."""

import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

from ullage.cli import main
from ullage.clients.configs import replace_files
from upstreams import users_file

pytestmark = pytest.mark.requirement("U:scan")

SERVERS = {"fs": {"command": "npx", "args": ["-y", "fs"]}, "hub": {"url": "http://h/mcp"}}
FILES = {"claude": ".claude.json", "gemini": ".gemini/settings.json", "cursor": ".cursor/mcp.json"}
CODEX = b'model = "gpt-5" # mine\r\n\r\n[mcp_servers.fs]\r\ncommand = "x"\r\n\r\n[[notify]]\r\na = 1\r\n'


def write(work: Path, client: str, **more: object) -> Path:
    path = work.parent / "home" / FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": SERVERS, **more}, indent=2), encoding="utf-8")
    return path


def install(client: str) -> None:
    assert main(["install", client, "--yes", "--no-start"]) == 0


def test_a_large_file_gets_its_servers_back(work: Path, monkeypatch: pytest.MonkeyPatch):
    # A record contains the file before and after, in base 64.
    monkeypatch.setattr(replace_files, "_LARGEST", 100_000)
    monkeypatch.setattr(replace_files, "_LARGEST_RECORD", 300_000)
    path = write(work, "claude", history=["x" * 100] * 600)
    before = path.read_bytes()
    install("claude")
    assert main(["uninstall", "claude"]) == 0
    assert path.read_bytes() == before


def test_without_a_readable_record_nothing_is_taken_away(work: Path, capsys: pytest.CaptureFixture[str]):
    path = write(work, "claude")
    install("claude")
    installed, own = path.read_bytes(), users_file(work.parent)
    for record in (work.parent / "home").rglob("installs/*.json"):
        if json.loads(record.read_text())["file"] == str(path):
            record.write_text("{")
    assert main(["uninstall", "claude"]) == 2
    assert "put the servers back by hand" in capsys.readouterr().err
    assert path.read_bytes() == installed
    document = json.loads(installed)
    document["mcpServers"]["late"] = {"command": "l"}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert main(["install", "claude", "--yes", "--no-start"]) == 2
    assert json.loads(path.read_text(encoding="utf-8")) == document
    assert set(tomllib.loads(own.read_text())["servers"]) == set(SERVERS)


def test_ullage_leaves_a_program_although_its_own_file_is_broken(work: Path, capsys: pytest.CaptureFixture[str]):
    path, own = write(work, "claude"), users_file(work.parent)
    before = path.read_bytes()
    install("claude")
    whole = own.read_text(encoding="utf-8")
    own.write_text(whole + "[broken", encoding="utf-8")
    assert main(["uninstall", "claude"]) == 2
    assert "ullage uninstall claude" in capsys.readouterr().err
    assert path.read_bytes() == before
    own.write_text(whole + "# mine\n", encoding="utf-8")
    assert main(["uninstall", "claude"]) == 0
    assert "fs" not in own.read_text(encoding="utf-8")


def test_servers_of_a_file_that_was_removed_are_not_lost(work: Path):
    path = write(work, "gemini")
    install("gemini")
    path.unlink()
    assert main(["uninstall", "gemini"]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == {"mcpServers": SERVERS}


def test_installing_again_changes_no_byte(work: Path):
    path = work.parent / "home" / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(CODEX)
    install("codex")
    installed = path.read_bytes()
    install("codex")
    assert path.read_bytes() == installed
    assert main(["uninstall", "codex"]) == 0
    assert path.read_bytes() == CODEX


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_programs_with_the_same_servers_are_installed_and_removed_at_once(work: Path):
    before = {client: write(work, client).read_bytes() for client in FILES}

    def together(*words: str) -> list[int]:
        started = list[int]()
        for client in (*FILES, *FILES):
            process = os.fork()
            if not process:
                sys.stderr = sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until this process ends
                os._exit(main([words[0], client, *words[1:]]))
            started.append(process)
        return [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in started]

    for _ in range(3):
        assert set(together("install", "--yes", "--no-start")) == {0}
        own = tomllib.loads(users_file(work.parent).read_text(encoding="utf-8"))
        assert {name: group["servers"] for name, group in own["groups"].items()} == {
            one: ["fs", "hub"] for one in FILES
        }
        together("uninstall")
        for client, name in FILES.items():
            assert (work.parent / "home" / name).read_bytes() == before[client]
        assert not users_file(work.parent).exists()
