"""Real agent programs with Ullage in front of two servers, and a model that always does the same."""

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from heavy.agent_programs import INSTALLED, PROGRAMS, Entry, Object, Program, Run, run, texts
from heavy.notes_server import INSTRUCTIONS, KEY, TEXT, UNSEEN

pytestmark = [pytest.mark.heavy]

HERE = Path(__file__).parent
REPLAY = HERE / "real_replay.py"
NOTES = HERE / "notes_server.py"
OUTER = "quince-jelly-4711"
"""A secret that the client's configuration hands to Ullage, and Ullage to a server."""
INNER = "medlar-cheese-0815"
"""A secret that stands in Ullage's own settings."""
SPOKEN_BY_ALL = "2025-06-18"
FIND: Object = {"server": "ullage", "tool": "find_tool", "arguments": {"tool_description": "read a note on a topic"}}
CALL: Object = {
    "server": "ullage",
    "tool": "call_tool",
    "arguments": {"tool_name": "notes__read_note", "parameters": {"topic": "fruit"}},
}
READ: Object = {"server": "ullage", "tool": "notes__read_note", "arguments": {"topic": "fruit"}}
END: Object = {"text": "That was all."}
SAID = f"{TEXT} (on fruit; the key has {len(OUTER)} characters)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One program's two runs in one home: at first nothing is known of the servers, then everything."""

    program: Program
    home: Path
    first: Run
    second: Run
    settings: frozenset[Path]
    """The files in which secrets stand because they were written there."""
    processes: Sequence[int]
    """The server's and the gateway's."""


@pytest.fixture(scope="module", params=PROGRAMS, ids=[program.name for program in PROGRAMS])
def program(request: pytest.FixtureRequest) -> Program:
    if not INSTALLED.exists():
        pytest.fail("the agent programs are not installed; run `make test-heavy`")
    if request.param.executable is None:
        pytest.skip(f"{request.param.package} has nothing for this machine")
    return request.param


@pytest.fixture(scope="module")
def visit(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    home = tmp_path_factory.mktemp("home")
    sums = {"name": "sums", "version": "1"}
    number = {"type": "number"}
    schema = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
    tools = [{"name": "add", "description": "Adds two numbers.", "inputSchema": schema}]
    (home / "sums.json").write_text(json.dumps({"package": "sums", "serverInfo": sums, "tools": tools}))
    # The user's own file: one in the working folder would be a project's, and wait for approval.
    settings = home / ".config" / "ullage" / "ullage.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        f"""
        [servers.notes]
        command = {sys.executable!r}
        args = [{str(NOTES)!r}, {str(home / "processes")!r}]
        env = {{ {KEY} = "${{OUTER}}", OTHER = "{INNER}" }}

        [servers.sums]
        command = {sys.executable!r}
        args = [{str(REPLAY)!r}, {str(home / "sums.json")!r}]
        """,
        encoding="utf-8",
    )
    first = run(program, home, [ullage(settings, home, "--mode", "search")], [FIND, CALL, END])
    holding = frozenset(path for path in home.rglob("*") if path.suffix in (".json", ".toml") and OUTER in read(path))
    processes = [int(one) for one in (home / "processes").read_text(encoding="ascii").split()]
    second = run(program, home, [ullage(settings, home)], [READ, END])
    return Visit(
        program=program,
        home=home,
        first=first,
        second=second,
        settings=holding | {settings},
        processes=processes,
    )


def ullage(settings: Path, home: Path, *flags: str) -> Entry:
    command = [sys.executable, "-m", "ullage", "serve", "--config", str(settings), *flags]
    return Entry(name="ullage", command=command, environment={"HOME": str(home), "OUTER": OUTER})


def read(path: Path) -> str:
    return path.read_bytes().decode(errors="replace") if path.is_file() else ""


def told(body: Object) -> str:
    """Everything a request tells the model, as it reads it; how far lines are indented is the program's affair."""
    return "\n".join(line.strip() for text in texts(body) for line in text.splitlines())


@pytest.mark.requirement("S1:find", "S1:call")
def test_the_model_finds_a_tool_and_calls_it(visit: Visit):
    asked = [told(body) for body in visit.first.conversation()]
    assert END["text"] in visit.first.output, visit.first.output
    assert visit.first.code == 0, visit.first.output
    assert '"name":"notes__read_note"' not in asked[0]
    assert any('"name":"notes__read_note","description":"Reads the note on a topic."' in one for one in asked)
    assert SAID in asked[-1]


def test_the_instructions_reach_the_model_with_the_first_request(visit: Visit):
    first, second = (told(one.conversation()[0]) for one in (visit.first, visit.second))
    assert "The tools of these servers are found with find_tool:\n- notes\n- sums" in first
    assert f"Tools of these servers:\n- notes (1 tool): {INSTRUCTIONS.rstrip('.')}" in second


@pytest.mark.requirement("S1:surface")
def test_few_tools_are_shown_as_they_are_once_they_are_known(visit: Visit):
    asked = [told(body) for body in visit.second.conversation()]
    assert "notes__read_note" in asked[0]
    assert "find_tool" not in asked[0]
    assert SAID in asked[-1], visit.second.output


def test_what_is_meant_for_the_client_does_not_reach_the_model(visit: Visit):
    everything = json.dumps([*visit.first.requests, *visit.second.requests])
    assert [word for word in ("dev.ullage/", "example.org/", UNSEEN) if word in everything] == []


def test_no_secret_reaches_the_model_or_is_written_down(visit: Visit):
    written = [path for path in visit.home.rglob("*") if path not in visit.settings]
    seen = [(path, secret) for path in written for secret in (OUTER, INNER) if secret in read(path)]
    assert visit.settings
    assert seen == []
    assert not any(secret in one.output for one in (visit.first, visit.second) for secret in (OUTER, INNER))


def test_nothing_runs_on_when_the_program_has_ended(visit: Visit):
    give_up = time.monotonic() + 10
    while (running := [one for one in visit.processes if is_running(one)]) and time.monotonic() < give_up:
        time.sleep(0.1)
    assert running == []


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.requirement("S1:surface")
def test_with_many_tools_the_first_request_is_smaller(program: Program, tmp_path: Path):
    tools = [many(number) for number in range(150)]
    about: Object = {"package": "many", "serverInfo": {"name": "many", "version": "1"}, "tools": tools}
    about["protocolVersion"] = SPOKEN_BY_ALL
    (tmp_path / "many.json").write_text(json.dumps(about), encoding="utf-8")
    replay = [sys.executable, str(REPLAY), str(tmp_path / "many.json")]
    settings = tmp_path / "mcp.json"
    settings.write_text(json.dumps({"mcpServers": {"many": {"command": replay[0], "args": replay[1:]}}}))
    command = [sys.executable, "-m", "ullage", "serve", "--include", str(settings)]
    fronts = {
        "directly": Entry(name="many", command=replay, environment={}),
        "ullage": Entry(name="ullage", command=command, environment={"HOME": str(tmp_path / "ullage")}),
    }
    first = dict[str, Object]()
    for front, entry in fronts.items():
        home = tmp_path / front
        home.mkdir()
        outcome = run(program, home, [entry], [END])
        assert outcome.conversation(), outcome.output
        first[front] = outcome.conversation()[0]
    assert "direct_deposit_149" in told(first["directly"])
    assert "find_tool" in told(first["ullage"])
    assert "direct_deposit" not in told(first["ullage"])
    assert size(first["ullage"]) < size(first["directly"])
    if "Deposits an amount" in json.dumps(first["directly"]["tools"]):
        # Claude Code keeps definitions back by itself and only names the tools.
        assert size(first["ullage"]["tools"]) < size(first["directly"]["tools"]) / 2


def many(number: int) -> Object:
    text = {"type": "string", "description": "Which account, by its number or by the name it was given."}
    schema = {"type": "object", "properties": {"account": text, "amount": text, "reason": text}}
    described = f"Deposits an amount with the bank of branch {number}, with a reason that is shown on the statement."
    return {"name": f"direct_deposit_{number}", "description": described, "inputSchema": schema}


def size(value: object) -> int:
    return len(json.dumps(value))
