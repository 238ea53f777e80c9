"""`ullage install` with the real programs, each with nothing but that one command, and `ullage uninstall` after it.

The servers stand in the user's own configuration of each program. In the first request after the installation are
Ullage's tools and none of the servers' own, a call reaches the server, and after `uninstall` the configuration has the
bytes that it had. `CATALOGUES` names a folder of recorded catalogues to serve in place of the made ones.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from heavy.agent_programs import (
    INSTALLED,
    NODE,
    PROGRAMS,
    QWEN,
    Entry,
    Object,
    Program,
    Run,
    Setup,
    Started,
    claude_with_user_settings,
    free_port,
    run,
    texts,
)
from ullage.app import count

pytestmark = [pytest.mark.heavy, pytest.mark.requirement("U:scan")]

HERE = Path(__file__).parent
ULLAGE = str(Path(sys.executable).parent / "ullage")
REPLAY = HERE / "real_replay.py"
END: Object = {"text": "That was all."}
MOST_TOKENS = 1_100
"""Of a first request, beyond one without any server."""
CLIENTS = {
    "Claude Code": "claude",
    "Codex": "codex",
    "Gemini CLI": "gemini",
    "opencode": "opencode",
    "Qwen Code": "qwen",
}
FILES = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "qwen": ".qwen/settings.json",
}
EVERY = [replace(one, prepare=claude_with_user_settings) if one.name == "Claude Code" else one for one in PROGRAMS]
RECORDED = (
    "github_github-mcp-server", "kubernetes-mcp-server", "playwright_mcp", "notionhq_notion-mcp-server",
    "chrome-devtools-mcp", "mcp-server-git", "upstash_context7-mcp",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A user's home in which one or several programs are configured."""

    path: Path
    port: int

    @property
    def folder(self) -> Path:
        """The working folder: in the home folder itself, the user's files would be a project's."""
        work = self.path / "work"
        work.mkdir(exist_ok=True)
        return work

    def file(self, program: Program) -> Path:
        return self.path / FILES[CLIENTS[program.name]]

    def configure(self, program: Program, entries: Sequence[Entry]) -> None:
        """Writes the program's configuration as a user has it."""
        program.prepare(Setup(home=self.path, port=self.port, entries=entries))
        if program.name == "opencode":
            self.file(program).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(self.path / "opencode.json", self.file(program))

    def visit(self, program: Program, script: Sequence[Object]) -> Run:
        """Runs the program with its configuration as it is."""
        return run(replace(program, prepare=self._start(program)), self.path, [], script, self.folder, port=self.port)

    def _start(self, program: Program):
        def start(setup: Setup) -> Started:
            # The flags and variables as ever; what it writes is thrown away.
            aside = self.path / "aside"
            aside.mkdir(exist_ok=True)
            gateway = Entry(name="ullage", command=[ULLAGE], environment={})
            started = program.prepare(Setup(home=aside, port=setup.port, entries=[gateway]))
            shutil.rmtree(aside)
            return started

        return start

    def ullage(self, *words: str) -> str:
        environment = {"HOME": str(self.path), "PATH": f"{NODE}:/usr/bin:/bin"}
        done = subprocess.run(
            [ULLAGE, *words], env=environment, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(params=[*EVERY, QWEN], ids=lambda one: one.name)
def program(request: pytest.FixtureRequest) -> Program:
    if not INSTALLED.exists():
        pytest.fail("the agent programs are not installed; run `make test-heavy`")
    if request.param.executable is None:
        pytest.skip(f"{request.param.package} has nothing for this machine")
    return request.param


@pytest.fixture
def home(tmp_path: Path) -> Home:
    path = tmp_path / "home"
    path.mkdir()
    return Home(path=path, port=free_port())


def server(home: Home, name: str, tools: Sequence[Object]) -> Entry:
    """A server that answers a call with what it was called with."""
    about = {"package": name, "serverInfo": {"name": name, "version": "1"}, "protocolVersion": "2025-06-18"}
    catalogue = home.path / f"{name}.json"
    catalogue.write_text(json.dumps({**about, "tools": tools}), encoding="utf-8")
    return Entry(name=name, command=[sys.executable, str(REPLAY), str(catalogue)], environment={}, required=False)


def deposit(number: int) -> Object:
    text = {"type": "string", "description": "Which account, by its number or by the name it was given."}
    schema = {"type": "object", "properties": {"account": text, "amount": text, "reason": text}}
    described = f"Deposits an amount with the bank of branch {number}, with a reason that is shown on the statement."
    return {"name": f"deposit_{number}", "description": described, "inputSchema": schema}


def servers(home: Home) -> list[Entry]:
    folder = Path(os.environ.get("CATALOGUES", "")).resolve()  # servers are started in another folder
    made = [server(home, "bank", [deposit(number) for number in range(150)])]
    if not os.environ.get("CATALOGUES"):
        return made
    files = [path for path in (folder / f"{name}.json" for name in RECORDED) if path.is_file()]
    command = [sys.executable, str(REPLAY)]
    return [
        *made,
        *(
            Entry(name=f"s{at}", command=[*command, str(one)], environment={}, required=False)
            for at, one in enumerate(files)
        ),
    ]


def told(body: Object) -> str:
    return "\n".join(texts(body))


def weight(body: Object, model: str = "gpt-4o") -> int:
    """Return the tokens of a request. Identifiers that differ in every run, which no model sees, all count the same."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return count(re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text), model).tokens


def names_of(run: Run) -> Iterator[str]:
    return (name.replace("-", "_") for name in run.first_tools())


def test_after_nothing_but_install_a_program_has_ullage_alone(program: Program, home: Home):
    client, file = CLIENTS[program.name], home.file(program)
    home.configure(program, [])
    without = first_request(home.visit(program, [END]))
    home.configure(program, servers(home))
    with_servers = first_request(home.visit(program, [END]))
    (scan,) = json.loads(home.ullage("scan", client, "--json"))["clients"]
    model = scan["model"] or "gpt-4o"
    added = weight(with_servers, model) - weight(without, model)
    # The bodies have keys around each definition that a model is not shown as such. Of many servers, not every program
    # waits for all.
    assert os.environ.get("CATALOGUES") or 0.75 * added <= scan["tokens"]["now"] <= 1.05 * added
    # The program has completed its own file by now.
    before = file.read_bytes()
    home.ullage("install", client, "--yes")
    installed = file.read_bytes()
    call: Object = {
        "server": "ullage",
        "tool": "call_tool_write",
        "arguments": {"tool_name": "bank__deposit_7", "parameters": {"account": "quince"}},
    }
    seen = home.visit(program, [call, END])
    first = first_request(seen)
    names = list(names_of(seen)) if program.name != "Qwen Code" else re.findall(r"mcp__\w+", told(first))
    assert any(name.endswith("find_tool") for name in names), names
    assert any(name.endswith("call_tool") for name in names), names
    assert not any("deposit_" in name for name in names)
    assert weight(first) - weight(without) <= MOST_TOKENS
    said = [{key: part for key, part in body.items() if key != "tools"} for body in seen.conversation()]
    answers = "".join(map(told, said)).replace('\\"', '"')
    assert '"tool": "deposit_7", "arguments": {"account": "quince"}' in answers, (answers[-2000:], seen.output[-1000:])
    left = file.read_bytes()
    home.ullage("uninstall", client)
    if left == installed:
        assert file.read_bytes() == before
        return
    # Claude Code counts its runs in the file: that stays, and the servers are back.
    found, was, ran = (json.loads(one) for one in (file.read_bytes(), before, left))
    assert found.pop("mcpServers") == was.pop("mcpServers")
    ran.pop("mcpServers")
    assert found == ran


def first_request(run: Run) -> Object:
    """The first request of the conversation."""
    assert run.conversation(), run.output
    return run.conversation()[0]


def test_uninstall_gives_the_bytes_back(program: Program, home: Home):
    home.configure(program, servers(home))
    home.visit(program, [END])
    client, file = CLIENTS[program.name], home.file(program)
    before = {path: path.read_bytes() for path in home.path.glob(".*/*.json")} | {file: file.read_bytes()}
    home.ullage("install", client, "--yes")
    assert file.read_bytes() != before[file]
    home.ullage("uninstall", client)
    assert {path: path.read_bytes() for path in before} == before
    assert not (home.path / ".config" / "ullage" / "ullage.toml").exists()


def test_two_programs_each_see_their_own_servers(home: Home):
    claude, codex = EVERY[0], EVERY[1]
    if claude.executable is None or codex.executable is None:
        pytest.skip("a program has nothing for this machine")
    home.configure(claude, [server(home, "bank", [deposit(1)])])
    home.configure(codex, [server(home, "notes", [{**deposit(2), "name": "read_note"}])])
    before = home.file(claude).read_bytes(), home.file(codex).read_bytes()
    for client in ("claude", "codex"):
        home.ullage("install", client, "--yes")
    found = {}
    for program in (claude, codex):
        seen = home.visit(program, [END])
        assert seen.conversation(), seen.output
        found[program.name] = json.dumps(seen.conversation()[0])
    assert "bank__deposit_1" in found["Claude Code"]
    assert "read_note" not in found["Claude Code"]
    assert "notes__read_note" in found["Codex"]
    assert "deposit_1" not in found["Codex"]
    home.ullage("uninstall", "codex")
    home.ullage("uninstall", "claude")
    assert json.loads(home.file(claude).read_bytes())["mcpServers"] == json.loads(before[0])["mcpServers"]
    assert home.file(codex).read_bytes() == before[1]
    assert not (home.path / ".config" / "ullage" / "ullage.toml").exists()
