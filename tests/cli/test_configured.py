import subprocess
import sys
from pathlib import Path

import pytest

from approving import main
from upstreams import scripted, tool, unruly, write_json, write_toml


def test_what_harms_one_server_is_said_and_the_rest_goes_on(work: Path, capsys: pytest.CaptureFixture[str]):
    unset = {"command": "x", "env": {"KEY": "${NOBODY_SET_IT}"}}
    write_json(work / "mcp.json", notes=scripted(tool("echo")), unset=unset)
    assert main(["tools", "--include", "mcp.json"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("ullage: ")
    assert "NOBODY_SET_IT" in captured.err
    assert "unset" not in captured.out


def test_flags_are_above_variables_and_variables_above_files(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    write_toml(work / "ullage.toml", "[wrong]\n")
    write_toml(work / "good.toml", good=scripted(tool("echo")))
    monkeypatch.setenv("ULLAGE_CONFIG", str(work / "good.toml"))
    assert main(["tools"]) == 0
    assert "good" in capsys.readouterr().out
    write_toml(work / "better.toml", better=scripted(tool("echo")))
    assert main(["tools", "--config", "better.toml"]) == 0
    assert "better" in capsys.readouterr().out
    assert main(["tools", "--config", "nowhere.toml"]) == 2
    assert "the settings file does not exist" in capsys.readouterr().err


def test_nothing_is_written_to_a_home_when_the_store_is_elsewhere(work: Path, capsys: pytest.CaptureFixture[str]):
    write_json(work / "mcp.json", notes=scripted(tool("echo")))
    assert main(["tools", "--include", "mcp.json", "--store", f"sqlite:///{work}/kept.db"]) == 0
    assert (work / "kept.db").exists()
    assert [path.name for path in (work.parent / "home").iterdir()] == ["state"]  # the approval of the file
    assert main(["tools", "--include", "mcp.json"]) == 0
    assert [path.name for path in (work.parent / "home").rglob("*.db")] == ["ullage.db"]


def test_what_libraries_log_stays_off_standard_error():
    code = """
import logging
from ullage.cli.load_settings import log_to_stderr
log_to_stderr()
logging.getLogger("ullage.app").warning("heard")
for name in ("mcp.client.streamable_http", "mcp.server.lowlevel.server", "client", "httpx2", "httpcore2.connection"):
    logging.getLogger(name).error("unheard")
    logging.getLogger(name).info("GET https://example/?key=hush")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert run.stderr == "ullage: heard\n"


@pytest.mark.parametrize("verb", [["tools"], ["doctor"], ["find", "x"], ["serve"]])
def test_a_file_that_is_not_there_is_a_slip(work: Path, capsys: pytest.CaptureFixture[str], verb: list[str]):
    assert main([*verb, "--include", "nowhere.json"]) == 2
    assert "`nowhere.json` does not exist" in capsys.readouterr().err


def test_an_unconfigured_client_is_mentioned(work: Path, capsys: pytest.CaptureFixture[str]):
    write_toml(work / "ullage.toml", "[clients.codex]\n")
    for name, is_mentioned in (("codex", False), ("kodex", True)):
        assert main(["tools", "--client", name]) == 0
        assert ("no [clients.kodex] in the settings" in capsys.readouterr().err) is is_mentioned


class Terminal:
    """Standard output as a terminal that remembers what it showed."""

    def __init__(self) -> None:
        self.shown = ""

    def write(self, text: str) -> int:
        self.shown += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_and_not_for_those_who_decline_it(work: Path, monkeypatch: pytest.MonkeyPatch):
    write_json(work / "mcp.json", notes=scripted(tool("echo")), dead=unruly("exits"))
    shown = []
    for declined in ("", "1"):
        monkeypatch.setenv("NO_COLOR", declined)
        monkeypatch.setenv("TERM", "xterm")
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["doctor", "--include", "mcp.json"]) == 1
        shown.append(terminal.shown)
    assert "\x1b[31;1mfails\x1b[0m" in shown[0]
    assert "\x1b[" not in shown[1]
