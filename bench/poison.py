"""Poison flags: how many attacks they catch, and how many honest definitions they flag.

Run by `make bench-poison`. `ATTACKS` names another attack set (JSON lines shaped like `tests/gateway/poison.jsonl`),
`DATA` another folder of catalogues (one .json a server, with its `tools`), `ONLY=dev` or `ONLY=held` one half of the
set, and `SHOW=1` prints the flags on catalogues. Attacks and near misses that are judged wrongly are printed for the
development half only. Prints a table of attack
classes, what the flags cost, and one line of figures; fails below 90 % of the held half, or above 1 % of the honest
definitions.
"""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ullage.gateway.poison import Flag, find_flags, flag_line
from ullage.invisible_characters import escape_invisible
from ullage.tool import Tool

DEFAULT_DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "catalogues"
DEFAULT_ATTACKS = Path(__file__).parent.parent / "tests" / "gateway" / "poison.jsonl"
LEAST_CAUGHT = 0.9
MOST_FLAGGED = 0.01
TYPICAL_RESULT = 2_048


def tool_of(raw: Mapping[str, Any]) -> Tool:
    return Tool(
        name=raw["name"],
        description=raw.get("description"),
        title=raw.get("title"),
        input_schema=raw.get("inputSchema") or {},
        output_schema=raw.get("outputSchema"),
        annotations=raw.get("annotations") or {},
    )


def flags_of_row(row: Mapping[str, Any]) -> tuple[Flag, ...]:
    """Flags on the definition of one line of an attack set; its siblings stand beside it, the others behind."""
    siblings = [Tool(name=name, input_schema={}) for name in row.get("siblings", ())]
    others = {
        server: [tool_of({"inputSchema": {}, **one}) for one in tools]
        for server, tools in row.get("others", {}).items()
    }
    prompts = [row["prompt"]] if "prompt" in row else []
    return find_flags(
        row["server"],
        [tool_of(row["tool"]), *siblings],
        instructions=row.get("instructions"),
        prompts=prompts,
        others=others,
    )


def judge_attacks(path: Path, only: str | None) -> dict[str, Any]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    rows = [row for row in rows if only in (None, row.get("split", "held"))]
    total: Counter[tuple[str, str, str]] = Counter()
    flagged: Counter[tuple[str, str, str]] = Counter()
    wrong: list[str] = []
    for row in rows:
        place = row.get("split", "held"), row["label"], row.get("class", "")
        flags = flags_of_row(row)
        total[place] += 1
        flagged[place] += bool(flags)
        if bool(flags) != (row["label"] == "attack") and place[0] == "dev":
            said = flag_line(flags[0]) if flags else escape_invisible(str(row["tool"].get("description")))[:200]
            wrong.append(f"{'MISSED' if not flags else 'WRONG '}  {row['id']}: {said}")
    print(f"{'class':18}{'label':>8}{'dev':>12}{'held':>12}")
    for label, kind in sorted({(label, kind) for _, label, kind in total}):
        cells = [
            f"{flagged[split, label, kind]}/{total[split, label, kind]}" if total[split, label, kind] else "-"
            for split in ("dev", "held")
        ]
        print(f"{kind:18}{label:>8}{cells[0]:>12}{cells[1]:>12}")
    print("\n".join(wrong))

    def share(split: str, label: str) -> float | None:
        places = [place for place in total if place[:2] == (split, label)]
        whole = sum(total[place] for place in places)
        return round(sum(flagged[place] for place in places) / whole, 4) if whole else None

    return {
        f"{split}_{name}": share(split, label)
        for split in ("dev", "held")
        for label, name in (("attack", "caught"), ("benign", "flagged"))
    }


def judge_catalogues(folder: Path, *, shown: bool) -> dict[str, Any]:
    """Each server's definitions alone, and all servers side by side, as behind one gateway."""
    servers = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    tools = {name: [tool_of(one) for one in server["tools"]] for name, server in servers.items()}
    count = sum(map(len, tools.values()))
    alone: list[Flag] = []
    together: list[Flag] = []
    started = time.perf_counter()
    for name, server in servers.items():
        alone += find_flags(name, tools[name], instructions=server.get("instructions"), prompts=prompts_of(server))
    seconds = time.perf_counter() - started
    for name, server in servers.items():
        prompts = prompts_of(server)
        together += find_flags(
            name, tools[name], instructions=server.get("instructions"), prompts=prompts, others=tools
        )
    if shown:
        for flag in together:
            print(f"FLAGGED  {flag.server}: {flag_line(flag)}")
    alone_count, together_count = count_definitions(alone), count_definitions(together)
    print(f"\n{count:,} definitions of {len(servers)} servers: {alone_count} flagged, {together_count} side by side")
    return {
        "definitions": count,
        "flagged": alone_count,
        "flagged_together": together_count,
        "flagged_share": round(alone_count / count, 4) if count else 0.0,
        "flagged_together_share": round(together_count / count, 4) if count else 0.0,
        "ms_per_definition": round(seconds / count * 1_000, 3) if count else 0.0,
    }


def prompts_of(server: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Some recordings hold names in place of definitions."""
    return [one if isinstance(one, dict) else {"name": one} for one in server.get("prompts") or ()]


def count_definitions(flags: Sequence[Flag]) -> int:
    return len({(flag.server, flag.tool, flag.where if flag.tool is None else "") for flag in flags})


def time_results() -> dict[str, float]:
    """Microseconds that looking for invisible characters adds to a call with a result of two kilobytes."""
    row = json.dumps({"id": 17, "name": "a name of some length", "note": "words as results have them"})
    texts = {
        "ascii": row * 40,
        "accents": f"{row} é " * 40,
        "cjk": "検索結果はこちらです。" * 200,
        "emoji": f"{row} ❤️‍🔥 👩‍💻 " * 40,
    }
    figures: dict[str, float] = {}
    for name, text in texts.items():
        typical = text[:TYPICAL_RESULT]
        rounds: list[float] = []
        for _ in range(20):
            started = time.perf_counter()
            for _ in range(100):
                escape_invisible(typical)
            rounds.append((time.perf_counter() - started) * 10_000)
        figures[name] = round(min(rounds), 2)
    print("µs to check a result of 2 KB: " + ", ".join(f"{name} {value}" for name, value in figures.items()))
    return figures


def main() -> int:
    only = os.environ.get("ONLY") or None
    figures = judge_attacks(Path(os.environ.get("ATTACKS") or DEFAULT_ATTACKS), only)
    folder = Path(os.environ.get("DATA") or DEFAULT_DATA)
    figures |= judge_catalogues(folder, shown=bool(os.environ.get("SHOW"))) if folder.is_dir() else {}
    figures["result_us"] = time_results()
    print(json.dumps(figures))
    caught = figures["held_caught"]
    is_low = caught is not None and caught < LEAST_CAUGHT
    is_noisy = max(figures.get("flagged_share", 0), figures.get("flagged_together_share", 0)) > MOST_FLAGGED
    for wrong, words in ((is_low, "too few attacks are caught"), (is_noisy, "too many honest definitions are flagged")):
        if wrong:
            print(f"FAILED: {words}", file=sys.stderr)
    return 1 if is_low or is_noisy else 0


if __name__ == "__main__":
    sys.exit(main())
