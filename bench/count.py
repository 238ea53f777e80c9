"""How fast is a count, at first sight and of a text seen before, beside other tokenizers?

Run by `make bench-count`. `DATA` names a folder of texts, one `.txt` a kind; `PEERS=no` leaves out all but tiktoken.
Prints a table for each vocabulary, then what fell short of a floor or the reason for it, then one line of figures;
fails where a floor is missed. Each vocabulary is judged alone.

Every figure is CPU time, the best of several runs, each in a fresh process; libraries take turns. What a library takes
to load is left out for all of them. `ullage` is the meter in a process that has counted for over a second, when its
quicker way of counting is ready (`tokens/bpe/gears.py`); `ullage-early` is the same meter before. Floors are for the
first. Peers live in an environment of their own (see `environment`).
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from environment import PINNED, SCRATCH, make_peers, python_of, write_ranks
from kinds import kinds

VOCABULARIES = ("o200k_base", "cl100k_base")
Key = Literal["first", "again"]
ROUNDS = 9
LEAST, LEAST_MEAN, LEAST_SEEN, MOST_BEHIND = 2.0, 3.0, 100.0, 3.0
REASONS = {
    "gigatoken": "its cache of pieces grows without bound (300 MB after 40 MB of text), and it needs numpy and awkward",
}
"""Why a peer that is as exact and much faster is not used instead."""


class Measured(TypedDict):
    first: float
    """CPU seconds of counting every text once, in a process that never saw them."""
    again: float
    """The same of counting them once more."""
    counts: list[int]


Figures = dict[str, Measured]
"""By kind."""
Table = dict[str, Figures]
"""Library to its figures, the best of all rounds."""


def run(library: str, vocabulary: str, texts: Path, ranks: Path) -> Figures:
    worker = str(Path(__file__).with_name("counters.py"))
    command = [python_of(library), worker, library.replace("-", "_"), vocabulary, str(texts), str(ranks)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def measure(libraries: Sequence[str], vocabulary: str, texts: Path) -> Table:
    ranks, table = write_ranks(vocabulary), dict[str, Figures]()
    for turn in range(ROUNDS):
        for library in libraries:
            if turn == 0 or library != "litellm":  # its import alone takes seconds, and it is far from any floor
                table[library] = _better(table.get(library), run(library, vocabulary, texts, ranks))
    return table


def _better(old: Figures | None, new: Figures) -> Figures:
    if old is None:
        return new
    return {
        kind: {
            "first": min(now["first"], old[kind]["first"]),
            "again": min(now["again"], old[kind]["again"]),
            "counts": now["counts"],
        }
        for kind, now in new.items()
    }


def mean(numbers: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def ratios(table: Table, library: str, key: Key) -> dict[str, float]:
    return {kind: table["tiktoken"][kind][key] / figures[key] for kind, figures in table[library].items()}


def exact(table: Table, library: str, kind: str) -> bool:
    return table[library][kind]["counts"] == table["tiktoken"][kind]["counts"]


def print_table(vocabulary: str, table: Table, sizes: Mapping[str, int]) -> None:
    print(f"\n{vocabulary}: times tiktoken at first sight (of a text seen before); * differs from tiktoken somewhere")
    print(f"{'':12}{'tiktoken MB/s':>15}" + "".join(f"{name:>18}" for name in table if name != "tiktoken"))
    for kind, size in sizes.items():
        row = f"{kind:12}{size / table['tiktoken'][kind]['first'] / 1e6:15.1f}"
        for library in table:
            if library != "tiktoken":
                first, again = ratios(table, library, "first")[kind], ratios(table, library, "again")[kind]
                row += f"{first:8.2f} ({again:6.1f}){' ' if exact(table, library, kind) else '*'}"
        print(row)


def shortfalls(vocabulary: str, table: Table) -> list[str]:
    first, seen = ratios(table, "ullage", "first"), ratios(table, "ullage", "again")
    missed = [f"{kind}: {ratio:.2f} times tiktoken at first sight" for kind, ratio in first.items() if ratio < LEAST]
    missed += [f"{kind}: {ratio:.0f} times tiktoken when seen" for kind, ratio in seen.items() if ratio < LEAST_SEEN]
    missed += [f"{kind}: not exact" for kind in first if not exact(table, "ullage", kind)]
    if mean(list(first.values())) < LEAST_MEAN:
        missed.append(f"{mean(list(first.values())):.2f} times tiktoken at first sight on average")
    return [f"{vocabulary} {line}" for line in missed + _behind(table)]


def _behind(table: Table) -> list[str]:
    lines: list[str] = []
    for library in (name for name in table if name != "ullage-early"):
        faster = {kind: table["ullage"][kind]["first"] / figures["first"] for kind, figures in table[library].items()}
        far = [kind for kind, times in faster.items() if times > MOST_BEHIND and exact(table, library, kind)]
        if far and library in REASONS:
            print(f"{library} is over {MOST_BEHIND:.0f} times faster on {', '.join(far)}: {REASONS[library]}")
        elif far:
            lines.append(f"{library} is over {MOST_BEHIND:.0f} times faster on {', '.join(far)}")
    return lines


def main() -> int:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    found = kinds()
    texts = SCRATCH / "texts.json"
    texts.write_text(json.dumps({kind: parts for kind, (parts, _) in found.items()}), "utf-8")
    sizes = {kind: sum(len(part.encode()) for part in parts) for kind, (parts, _) in found.items()}
    for kind, (parts, source) in found.items():
        print(f"{kind}: {len(parts)} texts, {sizes[kind]:,} bytes, {source}")
    wanted = ["tiktoken"] if os.environ.get("PEERS") == "no" else list(PINNED)
    libraries = ["ullage", "ullage-early", *make_peers(wanted)]
    tables: dict[str, Table] = {}
    for vocabulary in VOCABULARIES:
        tables[vocabulary] = measure(libraries, vocabulary, texts)
        print_table(vocabulary, tables[vocabulary], sizes)
    missed = [line for vocabulary, table in tables.items() for line in shortfalls(vocabulary, table)]
    print("\n" + "\n".join(f"MISSED {line}" for line in missed))
    print(json.dumps(figures(tables) | {"missed": len(missed)}))
    return 1 if missed else 0


def figures(tables: Mapping[str, Table]) -> dict[str, float]:
    found: dict[str, float] = {}
    names: dict[Key, str] = {"first": "first sight", "again": "seen before"}
    for vocabulary, table in tables.items():
        for key, name in names.items():
            each = list(ratios(table, "ullage", key).values())
            found |= {f"{vocabulary}, {name}, least": min(each), f"{vocabulary}, {name}, mean": mean(each)}
        early = list(ratios(table, "ullage-early", "first").values())
        found |= {f"{vocabulary}, early, least": min(early), f"{vocabulary}, early, mean": mean(early)}
    return {name: round(value, 2) for name, value in found.items()}


if __name__ == "__main__":
    sys.exit(main())
