"""What a start costs: `ullage count` of a small file, and `ullage serve` until a client has its first answers.

Run by `make bench-start`. `PEERS=no` leaves fastmcp's proxy out. CPU seconds of whole processes; the floors hold for
the least of several rounds, since whatever else the machine does only adds to it, and the median stands beside it. How
the starts of `ullage serve` are measured is in `start_serve.py`. Prints tables and one line of figures; fails where a
floor is missed.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import start_serve
from gateway_client import Era
from gateway_fronts import FASTMCP, OURS_FOUND, install
from start_serve import COLD, ERAS, MANY, ONE, STEPS, Holding, Kind, Stalls, Start, spread

ROUNDS = 7
MODELS = ("gpt-4", "gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro")
MOST_COUNT = 0.85
"""CPU seconds of `ullage count` of a small file, as part of `python -c "import mcp"`."""
MOST_WARM = {"initialize": 0.08, "tools/list": 0.1}
"""CPU seconds to an answer of a warm start."""
MOST_OF_IMPORT = 0.1
"""CPU seconds to `initialize` of a warm start, as part of `python -c "import mcp.server"`."""
MOST_COLD = 0.6
"""CPU seconds to `initialize` of a cold start."""
MOST_CALL = 0.9
"""CPU seconds to the result of the first `call_tool`, cold or warm."""
MOST_STALL = 50.0
"""Milliseconds that a ping may wait before the first call."""
MOST_SETTLED = 70.0
"""Megabytes resident five seconds after the start."""
MOST_USED = 110.0
"""Megabytes resident with 400 tools, after one search and one call."""

Starts = dict[str, list[Start]]
"""By what was started, as the table names it."""


def cpu_seconds(*command: str) -> list[float]:
    return [_once(command) for _ in range(ROUNDS)]


def _once(command: tuple[str, ...]) -> float:
    before = os.times()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


class Report:
    """Figures and missed floors, collected over the parts."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self.missed: list[str] = []

    def check(self, name: str, value: float, most: float, unit: str) -> None:
        self.figures[name] = value
        if value > most:
            self.missed.append(f"{name}: {value:.3g} {unit}, over {most:g}")

    def end(self) -> int:
        print("\n" + "\n".join(f"MISSED {line}" for line in self.missed))
        rounded = {name: round(value, 3) for name, value in self.figures.items()}
        print(json.dumps(rounded | {"missed": len(self.missed)}))
        return 1 if self.missed else 0


def measure_count(report: Report) -> None:
    """One `ullage count`, beside importing the SDK, both less an empty interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.txt"
        file.write_text("A small file, of which someone wants to know the tokens.\n" * 20, encoding="utf-8")
        empty = min(cpu_seconds("-c", "pass"))
        sdk = min(cpu_seconds("-c", "import mcp")) - empty
        counts = {model: min(cpu_seconds("-m", "ullage", "count", str(file), "-m", model)) - empty for model in MODELS}
    print(f"{'import mcp':28}{sdk:8.3f} s")
    report.figures["import mcp"] = sdk
    for model, spent in counts.items():
        print(f"{'ullage count -m ' + model:28}{spent:8.3f} s  {spent / sdk:6.2f} of the import")
        report.check(f"count {model} / import mcp", spent / sdk, MOST_COUNT, "times")


def measure_starts(report: Report, *, peer: bool) -> None:
    imports = cpu_seconds("-c", "import mcp.server")
    imported = min(imports)
    report.figures["import mcp.server"] = imported
    cold, warm = start_serve.COLD_ROUNDS, start_serve.WARM_ROUNDS
    print(f"\nstarts over stdio: seconds to each answer, least/median ({cold} cold starts, {warm} warm ones)")
    print(f"{'':48}" + "".join(f"{f'{kind} {step}':>17}" for kind in ("CPU", "wall") for step in STEPS))
    print(f"{'python -c import mcp.server':48}{_pair((imported, statistics.median(imports))):>17}")
    for era in ERAS:
        every: tuple[Kind, ...] = (*COLD, "warm", "warm, new folder")
        few: tuple[Kind, ...] = ("first start", "warm")
        for servers, tools, kinds in ((ONE, "1 tool", every), (MANY, "400 tools", few)):
            for kind, starts in start_serve.measure_starts(servers, era, kinds).items():
                name = f"{era}, {tools}, {kind}"
                print_start(f"ullage, {name}", starts)
                check_start(report, name, kind, starts, imported)
            if peer:
                print_start(f"fastmcp proxy, {era}, {tools}", start_serve.measure_peer(servers, era))


def print_start(name: str, starts: Sequence[Start]) -> None:
    cpu = "".join(f"{_pair(spread(starts, step, lambda one: one.cpu)):>17}" for step in STEPS)
    wall = "".join(f"{_pair(spread(starts, step, lambda one: one.wall)):>17}" for step in STEPS)
    print(f"{name:48}{cpu}{wall}", flush=True)


def _pair(values: tuple[float, float]) -> str:
    return f"{values[0]:.3f}/{values[1]:.3f}"


def check_start(report: Report, name: str, kind: Kind, starts: Sequence[Start], imported: float) -> None:
    spent = {step: spread(starts, step, lambda one: one.cpu)[0] for step in STEPS}
    if kind in COLD:
        report.check(f"{name}, CPU to initialize", spent["initialize"], MOST_COLD, "s")
        report.figures[f"{name}, CPU to tools/list"] = spent["tools/list"]
    else:
        for step, most in MOST_WARM.items():
            report.check(f"{name}, CPU to {step}", spent[step], most, "s")
        ratio = spent["initialize"] / imported
        report.check(f"{name}, initialize / import mcp.server", ratio, MOST_OF_IMPORT, "times")
    report.check(f"{name}, CPU to first call", spent["first call"], MOST_CALL, "s")
    report.figures[f"{name}, wall to initialize"] = spread(starts, "initialize", lambda one: one.wall)[0]


def measure_stalls(report: Report) -> None:
    interval = start_serve.PING_SECONDS * 1000
    print(f"\nlongest wait of a ping in ms, one every {interval:.0f} ms, 400 tools, least/median of", end=" ")
    print(f"{start_serve.STALL_ROUNDS}\n{'':48}{'before the call':>20}{'during the call':>20}{'at s':>8}")
    for era in ERAS:
        for kind, stalls in start_serve.stalls_of(era).items():
            print_stalls(f"ullage, {era}, {kind}", stalls)
            name = f"{era}, {kind}, longest stall before the first call"
            report.check(name, min(one.before_call for one in stalls), MOST_STALL, "ms")


def print_stalls(name: str, stalls: Sequence[Stalls]) -> None:
    before, during = [one.before_call for one in stalls], [one.during_call for one in stalls]
    columns = "".join(f"{f'{min(one):.1f}/{statistics.median(one):.1f}':>20}" for one in (before, during))
    print(f"{name:48}{columns}{min(stalls, key=lambda one: one.before_call).at:8.2f}", flush=True)


def measure_memory(report: Report, *, peer: bool) -> None:
    print(f"\nmemory in MB (RSS/PSS), warm start{'':14}{'at initialize':>16}{'after 5 s':>16}{'search, call':>16}")
    found = start_serve.memory_of(OURS_FOUND)
    print_memory("ullage", found)
    if peer:
        print_memory("fastmcp proxy", start_serve.memory_of(FASTMCP))
    for (era, tools), holding in found.items():
        name = f"{era}, {tools}, MB"
        report.figures[f"{name} at initialize"] = holding.initialize.resident
        report.check(f"{name} after 5 s", holding.settled.resident, MOST_SETTLED, "MB")
        if holding.used is not None:
            report.check(f"{name} after a search and a call", holding.used.resident, MOST_USED, "MB")


def print_memory(front: str, found: Mapping[tuple[Era, str], Holding]) -> None:
    for (era, tools), holding in found.items():
        moments = (holding.initialize, holding.settled, holding.used)
        columns = "".join(f"{f'{one.resident:.0f}/{one.share:.0f}' if one else '':>16}" for one in moments)
        print(f"{f'{front}, {era}, {tools}':48}{columns}", flush=True)


def main() -> int:
    peer = os.environ.get("PEERS") != "no" and install("fastmcp") is not None
    if not peer:
        print("fastmcp's proxy is left out")
    report = Report()
    measure_count(report)
    measure_starts(report, peer=peer)
    measure_stalls(report)
    measure_memory(report, peer=peer)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
