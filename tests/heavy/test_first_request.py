"""Real agent programs have Ullage's tools in the first request to their model, whether or not they wait for servers.

How long each waits, as its code and settings say. With a server that answers after two seconds, Codex left its tools
out of the first request; Gemini CLI, Qwen Code, opencode and Claude Code with `--mcp-config` had them:

- Codex 0.166 `exec`: one second for all servers together (`mcp_optional_startup_grace_ms`), counted from the first
  turn; a server that has not been initialized and listed by then is left out of the turn without a word. It waits as
  long as `startup_timeout_sec` for a server with `required = true`, which these tests do not set.
- Claude Code 2.1.325 `-p`: two seconds before the first turn for servers in the user's settings
  (`CLAUDE_CODE_MCP_STARTUP_WAIT_MS`); `MCP_TIMEOUT`, 30 seconds, for servers named by `--mcp-config`. The tests use the
  user's settings.
- Gemini CLI 0.61 `-p`: until every server has connected or failed, 10 minutes unless the server's entry says otherwise.
- Qwen Code 0.24 `-p`: until every server is ready or failed, 30 seconds for each server on standard input and output.
- opencode 1.18 `run`: until every server has connected or failed; its setting `timeout` is described as 5 seconds for a
  request.

Ullage reads its settings from the user's folder and is run as its installed command. `RUNS` limits how often each
program is run; without it, it is as often as the first line of each test says. The machine should be quiet but for the
tests.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from heavy.agent_programs import INSTALLED, PROGRAMS, QWEN, Entry, Object, Program, claude_with_user_settings, run
from heavy.busy import busy_cores

pytestmark = [pytest.mark.heavy]

HERE = Path(__file__).parent
ULLAGE = str(Path(sys.executable).parent / "ullage")
END: Object = {"text": "That was all."}
LOOKED_FOR = ("find_tool", "call_tool")
RUNS = int(os.environ.get("RUNS", "1000"))
QUIET, BUSY, EACH = min(RUNS, 20), min(RUNS, 10), min(RUNS, 5)
RUNS_IN_A_HOME = 5
"""Runs of Codex until the next fresh home. The first follows the set-up; then every second one has a new folder."""
CODEX = next(program for program in PROGRAMS if program.name == "Codex")
OTHERS = [
    replace(program, prepare=claude_with_user_settings) if program.name == "Claude Code" else program
    for program in (*PROGRAMS, QWEN)
    if program is not CODEX
]


def is_installed(program: Program) -> Program:
    if not INSTALLED.exists():
        pytest.fail("the agent programs are not installed; run `make test-heavy`")
    if program.executable is None:
        pytest.skip(f"{program.package} has nothing for this machine")
    return program


def set_up(home: Path) -> Entry:
    """What a user does once: write the settings, and see with `ullage doctor` whether they are right."""
    settings, catalogue = home / ".config" / "ullage" / "ullage.toml", home / "sums.json"
    settings.parent.mkdir(parents=True)
    number = {"type": "number"}
    schema = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
    tools = [{"name": "add", "description": "Adds two numbers.", "inputSchema": schema}]
    about = {"package": "sums", "serverInfo": {"name": "sums", "version": "1"}, "tools": tools}
    catalogue.write_text(json.dumps(about), encoding="utf-8")
    arguments = [str(HERE / "real_replay.py"), str(catalogue)]
    settings.write_text(
        '[gateway]\nmode = "search"\n'
        f"[servers.sums]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(arguments)}\n",
        encoding="utf-8",
    )
    environment = {"HOME": str(home)}
    doctor = {**environment, "PATH": os.environ["PATH"]}
    subprocess.run([ULLAGE, "doctor"], env=doctor, cwd=home, stdout=subprocess.DEVNULL, timeout=60, check=True)
    return Entry(name="ullage", command=[ULLAGE, "serve"], environment=environment, required=False)


def places(tmp_path: Path, count: int) -> Iterator[tuple[str, Path, Entry, Path]]:
    """For each run of Codex: how it is called in a message, its home, its server, and its working folder."""
    home, folder = tmp_path, tmp_path
    entry: Entry | None = None
    for number in range(count):
        turn = number % RUNS_IN_A_HOME
        if turn == 0 or entry is None:
            home = tmp_path / f"home{number}"
            home.mkdir()
            entry = set_up(home)
        if turn % 2 == 0:
            folder = home / f"folder{number}"
            folder.mkdir()
        kind = ("first after set-up", "same folder", "new folder")[0 if turn == 0 else 1 + (turn + 1) % 2]
        yield f"run {number} ({kind})", home, entry, folder


def misses(program: Program, home: Path, entry: Entry, folder: Path | None = None) -> list[str]:
    """The tools that the first request lacks."""
    outcome = run(program, home, [entry], [END], folder)
    assert outcome.conversation(), outcome.output
    names = outcome.first_tools()
    return [tool for tool in LOOKED_FOR if not any(name.endswith(tool) for name in names)]


def test_codex_has_the_tools_in_its_first_request(tmp_path: Path):
    """20 of 20 on a quiet machine, without `required = true`."""
    program = is_installed(CODEX)
    missed = [name for name, home, entry, work in places(tmp_path, QUIET) if misses(program, home, entry, work)]
    assert missed == []


def test_codex_has_the_tools_in_its_first_request_on_a_busy_machine(tmp_path: Path):
    """10 of 10 with every core busy."""
    program = is_installed(CODEX)
    where = list(places(tmp_path, BUSY))
    with busy_cores(BUSY * 90):
        missed = [name for name, home, entry, work in where if misses(program, home, entry, work)]
    assert missed == []


@pytest.mark.parametrize("program", OTHERS, ids=lambda one: one.name)
def test_other_programs_have_the_tools_in_their_first_request(program: Program, tmp_path: Path):
    """5 of 5, the first of them the first after set-up."""
    is_installed(program)
    entry = set_up(tmp_path)
    missed = [number for number in range(EACH) if misses(program, tmp_path, entry)]
    assert missed == []
