"""How long the first search takes while the servers behind are still to be started.

Run by `make bench-first-search`. Recorded catalogues are replayed by processes of a few lines each, started for the
first time, so nothing is known of them. Searches are sent as soon as tools are listed. `DATA` names the folder of
the recordings, `SERVERS` and `TOOLS` how many are taken. Prints a table and one line of figures; fails where a floor is
missed.
"""

import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway_client import MODERN, Era, Session, private_environment

ROUNDS = int(os.environ.get("ROUNDS", "3"))
SERVERS = int(os.environ.get("SERVERS", "57"))
TOOLS = int(os.environ.get("TOOLS", "1764"))
MOST_COLD = 5.25
"""Seconds of the first search over all servers; half of what it once took."""
MOST_SILENT = 2.0
"""Seconds that a server which never answers may add to a search that another server answers."""
MOST_SILENT_FEW = 2.5
"""Seconds of the first search where one server answers and another never does."""
REPLAY = Path(__file__).parents[1] / "tests" / "heavy" / "real_replay.py"
SILENT = [sys.executable, "-I", "-S", "-c", "import sys; [None for line in sys.stdin]"]
WISH = {"tool_description": "search the documentation for a topic"}
ERAS: tuple[Era, ...] = ("2025-11-25", MODERN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    seconds: float
    """Of the search."""
    from_start: float
    """Seconds from the start of the process to the reply."""
    tools: int
    """That the reply shows."""
    missing: tuple[str, ...]
    """As the reply names servers that it could not search."""


def data_folder() -> Path:
    return Path(os.environ.get("DATA") or Path(__file__).parents[2] / "shared" / "data" / "catalogues")


def choose(folder: Path) -> dict[str, Path]:
    """So many catalogues that together have about so many tools; the same ones each time."""
    sizes = {path: len(json.loads(path.read_text(encoding="utf-8"))["tools"]) for path in sorted(folder.glob("*.json"))}
    filled = [path for path, size in sizes.items() if size]
    for seed in range(10_000):
        chosen = random.Random(seed).sample(filled, min(SERVERS, len(filled)))
        if abs(sum(sizes[path] for path in chosen) - TOOLS) <= TOOLS // 100 or len(filled) <= SERVERS:
            return {f"s{number}": path for number, path in enumerate(sorted(chosen))}
    raise SystemExit(f"no {SERVERS} of the catalogues in {folder} have about {TOOLS} tools")


def first_search(commands: Mapping[str, list[str]], era: Era) -> Sample:
    """Start the program with these servers for the first time, list and search at once."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        settings = Path(private_environment(folder)["XDG_CONFIG_HOME"]) / "ullage" / "ullage.toml"
        settings.parent.mkdir(parents=True)
        tables = [
            f"[servers.{server}]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\n"
            for server, (program, *arguments) in commands.items()
        ]
        settings.write_text("\n".join(['[gateway]\nmode = "search"\n', *tables]), encoding="utf-8")
        begun = time.perf_counter()
        opened = Session([sys.executable, "-m", "ullage", "serve"], era, {}, folder)
        try:
            opened.greet()
            opened.ask("tools/list")
            asked = time.perf_counter()
            reply: dict[str, Any] = json.loads(opened.call("find_tool", WISH))
            done = time.perf_counter()
        finally:
            opened.end()
    return Sample(
        seconds=done - asked,
        from_start=done - begun,
        tools=len(reply["tools"]) + len(reply["more"]),
        missing=tuple(reply.get("missing", ())),
    )


def main() -> int:
    chosen = choose(data_folder())
    replayed = {name: [sys.executable, "-I", "-S", str(REPLAY), str(path)] for name, path in chosen.items()}
    a_few = dict(list(replayed.items())[:3])
    cases: dict[str, tuple[dict[str, list[str]], float]] = {
        "cold": (replayed, MOST_COLD),
        "cold, one silent": ({"mute": SILENT, **replayed}, MOST_COLD),
        "three": (a_few, MOST_SILENT_FEW),
        "three, one silent": ({"mute": SILENT, **a_few}, MOST_SILENT_FEW),
    }
    tools = sum(len(json.loads(path.read_text(encoding="utf-8"))["tools"]) for path in chosen.values())
    print(f"{len(chosen)} servers, {tools} tools; {ROUNDS} rounds\n")
    print(f"{'servers':<20} {'era':<12} {'search':>8} {'from start':>11} {'tools':>6} missing")
    figures, missed = dict[str, float](), list[str]()
    for name, (commands, most) in cases.items():
        for era in ERAS:
            samples = [first_search(commands, era) for _ in range(ROUNDS)]
            middle = statistics.median(one.seconds for one in samples)
            last = samples[-1]
            said = ", ".join(last.missing[:3]) + (f" and {len(last.missing) - 3} more" if len(last.missing) > 3 else "")
            whole = statistics.median(one.from_start for one in samples)
            print(f"{name:<20} {era:<12} {middle:7.2f}s {whole:10.2f}s {last.tools:6} {said[:60]}")
            figures[f"{name} {era}"] = round(middle, 2)
            if middle > most:
                missed.append(f"{name} {era}: {middle:.2f} s, over {most:g}")
            if any(one.tools == 0 for one in samples):
                missed.append(f"{name} {era}: a search found nothing")
            if "silent" in name and not all("mute" in " ".join(one.missing) for one in samples if len(one.missing) < 4):
                missed.append(f"{name} {era}: the silent server is not named as missing")
    print("\n" + "\n".join(f"MISSED {line}" for line in missed))
    print(json.dumps({**figures, "missed": len(missed)}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
