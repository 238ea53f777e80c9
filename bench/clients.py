"""What does an agent program's first request weigh without servers, with three real ones, and with them behind Ullage?

Run by `make bench-clients`. The programs are real and run against a scripted model on loopback; the servers are real
ones' recorded catalogues, replayed. `DATA` names another folder of catalogues. Counted by the one meter in o200k_base,
over the request's JSON: the part `tools`, and the whole. Claude Code keeps definitions back by itself; how it would be
without stands beside it. Below it, what a first request saves, measured and as find_tool's net figure has it; there
every text but the tools is counted without the escapes of JSON. Prints tables and one line of figures; fails where
Ullage adds more than it may, or a net figure is too far off. A program that is not installed here is named and left
out.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from heavy.agent_programs import PROGRAMS, QWEN, Entry, Object, Program, Setup, Started, run, weigh_request
from ullage.models import shipped
from ullage.tokens import Meter

ROOT = Path(__file__).parent.parent
DEFAULT_DATA = ROOT.parent / "shared" / "data" / "catalogues"
CATALOGUES = {
    "github": "github_github-mcp-server.json",
    "postman": "postman_postman-mcp-server.json",
    "cloudflare": "cloudflare_mcp-server-cloudflare.json",
}
REPLAY = ROOT / "tests" / "heavy" / "real_replay.py"
MODEL = "gpt-4o"
SPOKEN_BY_ALL = "2025-06-18"
MOST_ADDED = 1_000
"""Tokens that Ullage may add to a first request: its tools, its instructions, and how a program dresses them."""
SCRIPT: Sequence[Object] = [{"text": "There is nothing to do."}]
EAGER = {"ENABLE_TOOL_SEARCH": "false"}
"""With this, Claude Code puts every definition into the first request."""
NO_SEARCH = ", no own search"
ULLAGE = [sys.executable, "-m", "ullage"]


@dataclass(frozen=True, slots=True)
class Weight:
    """Of one first request, in tokens."""

    tools: int
    whole: int
    read: int
    """As a model reads it: the tools as JSON, and every other text without the escapes of JSON."""


@dataclass(frozen=True, slots=True)
class NetFigure:
    """What Ullage says that a first request saves, beside what it saves."""

    said: int
    measured: int

    @property
    def error(self) -> float:
        return abs(self.said - self.measured) / max(1, abs(self.measured))


Row = Mapping[str, Weight]
"""By what stood behind the program."""
NET_ERROR = 0.03
"""How far the net figure of a first request may be from the difference between two real ones."""


def main() -> int:
    folder = Path(os.environ.get("DATA") or DEFAULT_DATA)
    absent = [name for name in CATALOGUES.values() if not (folder / name).is_file()]
    if absent:
        print(f"no data: `{folder}` has no {', '.join(absent)}; name another folder with DATA=path", file=sys.stderr)
        return 2
    every = (*PROGRAMS, QWEN)
    there = [program for program in (*every, eager(PROGRAMS[0])) if program.executable is not None]
    for program in every:
        if program.executable is None:
            print(f"{program.package} is not installed and left out", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="ullage-") as scratch:
        servers = list(write_servers(folder, Path(scratch)))
        homes = {program.name: Path(tempfile.mkdtemp(dir=scratch)) for program in there}
        rows = {program.name: measure(program, servers, homes[program.name]) for program in there}
        nets = {
            program.name: NetFigure(said_to_save(homes[program.name], program), saved(rows[program.name]))
            for program in there
        }
    tools = sum(len(catalogue["tools"]) for catalogue in map(read, (folder / name for name in CATALOGUES.values())))
    report(rows, tools, {program.name: program.version for program in there})
    return conclude(rows, nets, tools)


def eager(program: Program) -> Program:
    """The same with every definition in the first request."""

    def prepare(setup: Setup) -> Started:
        started = program.prepare(setup)
        return replace(started, environment={**started.environment, **EAGER})

    return replace(program, name=f"{program.name}{NO_SEARCH}", prepare=prepare)


def write_servers(folder: Path, scratch: Path) -> Iterator[Entry]:
    """The catalogues in an era that every program speaks, with the version that some programs insist on."""
    for name, file in CATALOGUES.items():
        path, catalogue = scratch / file, read(folder / file)
        catalogue |= {"protocolVersion": SPOKEN_BY_ALL, "serverInfo": {"version": "1", **catalogue["serverInfo"]}}
        path.write_text(json.dumps(catalogue), encoding="utf-8")
        yield Entry(name=name, command=[sys.executable, str(REPLAY), str(path)], environment={})


def read(path: Path) -> Object:
    return json.loads(path.read_text(encoding="utf-8"))


def measure(program: Program, servers: Sequence[Entry], home: Path) -> Row:
    print(f"running {program.name} …", file=sys.stderr)
    return {
        "no servers": first_request(program, home / "none", []),
        "directly": first_request(program, home / "directly", servers),
        "behind Ullage": first_request(program, home / "ullage", [behind_ullage(servers, home)]),
    }


def said_to_save(home: Path, program: Program) -> int:
    """The net figure of a first request, as a reply of find_tool has it for this client."""
    arguments = json.dumps({"tool_description": "create an issue"})
    name = program.name.removesuffix(NO_SEARCH).lower().replace(" ", "-")
    asked = [
        *ULLAGE,
        "call",
        "find_tool",
        arguments,
        "--json",
        "--include",
        str(home / "servers.json"),
        "--client",
        name,
    ]
    environment = {"HOME": str(home / "kept"), "PATH": os.environ["PATH"]}
    environment |= EAGER if program.name.endswith(NO_SEARCH) else {}
    done = subprocess.run(asked, env=environment, cwd=home, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["_meta"]["dev.ullage/savings"]["first_request"]["net_tokens"]


def behind_ullage(servers: Sequence[Entry], home: Path) -> Entry:
    """As on every start but the first, when the servers are not up before the program asks."""
    settings = home / "servers.json"
    named = {server.name: {"command": server.command[0], "args": server.command[1:]} for server in servers}
    settings.write_text(json.dumps({"mcpServers": named}), encoding="utf-8")
    environment = {"HOME": str(home / "kept"), "PATH": os.environ["PATH"]}
    learn = [*ULLAGE, "tools", "--json", "--include", str(settings)]
    subprocess.run(learn, env=environment, cwd=home, stdout=subprocess.DEVNULL, check=True)
    return Entry(name="ullage", command=[*ULLAGE, "serve", "--include", str(settings)], environment=environment)


def first_request(program: Program, home: Path, entries: Sequence[Entry]) -> Weight:
    home.mkdir()
    done = run(program, home, entries, SCRIPT)
    if not done.conversation():
        sys.exit(f"{program.name} asked the model nothing:\n{done.output}")
    body, meter = done.conversation()[0], Meter(shipped())

    def count(text: str) -> int:
        return meter.count(text, MODEL).tokens

    return Weight(count(compact(body["tools"])), count(compact(body)), weigh_request(body, count))


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def report(rows: Mapping[str, Row], tools: int, versions: Mapping[str, str]) -> None:
    sets = ("no servers", "directly", "behind Ullage")
    print(f"tokens of the first request (o200k_base): {tools} tools of {len(CATALOGUES)} servers")
    print(f"{'':38}" + "".join(f"{name:>22}" for name in sets) + f"{'Ullage adds':>22}")
    print(f"{'':38}" + f"{'tools':>12}{'whole':>10}" * (len(sets) + 1))
    for name, row in rows.items():
        weights = [row[one] for one in sets]
        weights.append(added(row))
        written = "".join(f"{one.tools:>12,}{one.whole:>10,}" for one in weights)
        print(f"{name + ' ' + versions[name]:38}{written}")


def added(row: Row) -> Weight:
    with_us, without = row["behind Ullage"], row["no servers"]
    return Weight(*(one - other for one, other in zip(astuple(with_us), astuple(without), strict=True)))


def saved(row: Row) -> int:
    return row["directly"].read - row["behind Ullage"].read


def conclude(rows: Mapping[str, Row], nets: Mapping[str, NetFigure], tools: int) -> int:
    print("\ntokens that a first request saves: measured between two real ones, and by the net figure of find_tool")
    for name, net in nets.items():
        print(f"{name:38}{net.measured:>12,}{net.said:>12,}  {net.error:.1%} apart")
    missed = [
        f"MISSED {name}: Ullage adds {added(row).whole:,} tokens, over {MOST_ADDED:,}"
        for name, row in rows.items()
        if added(row).whole > MOST_ADDED
    ]
    missed += [
        f"MISSED {name}: the first request is larger with Ullage than with the servers themselves"
        for name, row in rows.items()
        if row["behind Ullage"].whole >= row["directly"].whole
    ]
    missed += [
        f"MISSED {name}: the net figure is {net.error:.1%} from the measured difference, over {NET_ERROR:.0%}"
        for name, net in nets.items()
        if net.error > NET_ERROR
    ]
    print("\n" + "\n".join(missed))
    figures = {
        f"{name}, {what}": {"tools": weight.tools, "whole": weight.whole}
        for name, row in rows.items()
        for what, weight in row.items()
    }
    print(json.dumps({"servers": len(CATALOGUES), "tools": tools, **figures, "missed": len(missed)}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
