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
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from heavy.agent_programs import (
    INSTALLED,
    PROGRAMS,
    QWEN,
    Entry,
    Object,
    Program,
    claude_with_user_settings,
    run,
    weigh_request,
)
from heavy.busy import busy_cores
from ullage.models import shipped
from ullage.tokens import Meter

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


def varied_tools(count: int, seed: int) -> list[Object]:
    """Definitions of all the kinds that programs treat differently: nested and large ones, references, types that may
    be null, constants, bounds, alternatives, long descriptions."""
    chance = random.Random(seed)
    words = [
        "list",
        "create",
        "remove",
        "order",
        "customer",
        "invoice",
        "of",
        "the",
        "by",
        "each",
        "shipment",
        "with",
        "an",
        "optional",
        "and",
        "its",
        "status",
    ]

    def text(most: int) -> str:
        return " ".join(chance.choices(words, k=chance.randint(2, most)))

    def schema(depth: int) -> Object:
        kinds = ["text", "number", "null", "constant", "choice", "list", "reference", "either", "object", "free"]
        kind = chance.choice(kinds if depth else kinds[:5])
        described = {"description": text(18)} if chance.random() < 0.8 else {}
        bodies: dict[str, Callable[[], Object]] = {
            "text": lambda: {"type": "string", "minLength": 1, "maxLength": 80, "pattern": "^[a-z]+$"},
            "number": lambda: {"type": "integer", "minimum": 0, "maximum": 100, "default": 10},
            "null": lambda: {"type": ["string", "null"], "default": None},
            "constant": lambda: {"const": text(2)},
            "choice": lambda: {"type": "string", "enum": [text(2) for _ in range(4)]},
            "list": lambda: {"type": "array", "items": schema(depth - 1), "minItems": 1, "maxItems": 9},
            "reference": lambda: {"$ref": f"#/$defs/{chance.choice(['Money', 'Page'])}"},
            "either": lambda: {"anyOf": [schema(depth - 1), {"type": "null"}]},
            "object": lambda: object_of(depth - 1, 4),
            "free": lambda: {"title": text(2)},
        }
        return {**bodies[kind](), **described}

    def object_of(depth: int, most: int) -> Object:
        properties = {
            f"{text(2).replace(' ', '_')}_{number}": schema(depth) for number in range(chance.randint(1, most))
        }
        closed = {"additionalProperties": False} if chance.random() < 0.5 else {}
        return {"type": "object", "properties": properties, "required": [next(iter(properties))], **closed}

    money = {
        "type": "object",
        "properties": {"amount": {"type": "number", "title": "Amount"}, "unit": {"const": "EUR"}},
    }
    page = {
        "type": "object",
        "properties": {"size": {"type": "integer", "maximum": 50}, "of": {"$ref": "#/$defs/Money"}},
    }
    tools = list[Object]()
    for number in range(count):
        input_schema = object_of(3, chance.choice([3, 6, 40]))
        tools.append({
            "name": f"{text(2).replace(' ', chance.choice('_-'))}_{number}",
            "description": "\n\n".join(text(60) for _ in range(chance.choice([1, 2, 20]))),
            "inputSchema": {
                "$schema": "http://json-schema.org/draft-07/schema#",
                **input_schema,
                "$defs": {"Money": money, "Page": page, "Unused": page},
            },
        })  # fmt: skip
    return tools


@pytest.mark.requirement("S1:net")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("program", [*PROGRAMS, QWEN], ids=lambda one: one.name)
def test_the_net_figure_is_the_difference_of_two_first_requests(program: Program, seed: int, tmp_path: Path):
    """Within 3 %, for generated servers of varied definitions."""
    is_installed(program)
    entries = list[Entry]()
    for name, count in (("shop", 60), ("ware-house", 30)):
        about = {"package": name, "serverInfo": {"name": name, "version": "1"}, "protocolVersion": "2025-06-18"}
        catalogue = {
            **about,
            "tools": varied_tools(count, seed + count),
            "instructions": f"Use {name} with care.\n" * 9,
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(catalogue), encoding="utf-8")
        command = [sys.executable, str(HERE / "real_replay.py"), str(tmp_path / f"{name}.json")]
        entries.append(Entry(name=name, command=command, environment={}))
    settings, kept = tmp_path / "servers.json", {"HOME": str(tmp_path / "kept"), "PATH": os.environ["PATH"]}
    named = {entry.name: {"command": entry.command[0], "args": entry.command[1:]} for entry in entries}
    settings.write_text(json.dumps({"mcpServers": named}), encoding="utf-8")
    served = ["--include", str(settings), "--client", program.name.lower().replace(" ", "-")]
    query = json.dumps({"tool_description": "remove an order"})
    asked = [ULLAGE, "call", "find_tool", query, "--json", *served]
    found = subprocess.run(asked, env=kept, cwd=tmp_path, stdout=subprocess.PIPE, timeout=60, check=True)
    ullage = Entry(name="ullage", command=[ULLAGE, "serve", *served], environment=kept)
    meter = Meter(shipped())
    weights = list[int]()
    for name, ones in (("directly", entries), ("behind", [ullage])):
        (tmp_path / name).mkdir()
        outcome = run(program, tmp_path / name, ones, [END])
        assert outcome.conversation(), outcome.output
        weights.append(weigh_request(outcome.conversation()[0], lambda text: meter.count(text, "gpt-4o").tokens))
    said = json.loads(found.stdout)["_meta"]["dev.ullage/savings"]["first_request"]
    assert said["net_tokens"] == pytest.approx(weights[0] - weights[1], rel=0.03), said
