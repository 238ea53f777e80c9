"""Speed of a count beside other tokenizers: a whole short process, unseen texts, and texts seen before.

Run by `make bench-count`; `ONLY=short` or `ONLY=long` runs one part. `DATA` names a folder of texts, one `.txt` a kind;
`PEERS=no` leaves out all but tiktoken; `ROUNDS` is how often each figure is taken. Prints a table for each part and
vocabulary, then how far the fastest exact peer is ahead, then what fell short of a floor, then one line of figures;
fails where a floor is missed. Each vocabulary is judged alone.

Every figure is CPU time, the best of several runs, each in a fresh process; libraries take turns. The first part is
what most users meet: a process that starts, imports, loads, counts ten texts of 1 to 4 KB and ends. In the second part,
what a library takes to load is left out for all of them. Peers live in an environment of their own (see `environment`).
"""

import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from counters import MODELS
from environment import PINNED, SCRATCH, make_peers, python_of, write_ranks
from kinds import kinds

VOCABULARIES = ("o200k_base", "cl100k_base")
Key = Literal["first", "again"]
ROUNDS = int(os.environ.get("ROUNDS", "9"))
LEAST, LEAST_MEAN, LEAST_SEEN = 1.4, 2.2, 100.0
"""Times tiktoken's speed: on every kind of unseen text, on average, and on texts seen before."""
MOST_SHORT = {"o200k_base": 0.65, "cl100k_base": 0.85}
"""Of tiktoken's CPU time, for a whole short process."""
MOST_IMPORTS = 40.0
"""Milliseconds of imports until the first count."""


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
    return [f"{vocabulary} {line}" for line in missed]


def print_gaps(vocabulary: str, table: Table) -> None:
    """How far the fastest exact peer is ahead of us on unseen text, kind by kind."""
    for kind, ours in table["ullage"].items():
        exact_ones = [library for library in table if library != "ullage" and exact(table, library, kind)]
        fastest = min(exact_ones, key=lambda library: table[library][kind]["first"])
        print(f"{vocabulary} {kind}: {fastest} takes {table[fastest][kind]['first'] / ours['first']:.2f} of our time")


def run_python(code: str, *arguments: str) -> str:
    """What a fresh process prints. Modules may be compiled once, as they are where a package is installed."""
    compiling = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=compiling).stdout


def cpu_of(code: str, *arguments: str) -> float:
    """CPU seconds of a whole process that runs this code, its start and end included; the best of all rounds."""
    seconds = list[float]()
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_python(code, *arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(seconds)


_READ = "import json, sys; texts = json.load(open(sys.argv[1], encoding='utf-8'));"
_SHORT_PROCESSES = {
    "ullage": f"{_READ} from ullage import count; print([count(text, sys.argv[2]).tokens for text in texts])",
    "tiktoken": (
        f"{_READ} sys.path.insert(0, sys.argv[3]); import counters, pathlib; "
        "count = counters.tiktoken(sys.argv[4], pathlib.Path(sys.argv[5])); print([count(text) for text in texts])"
    ),
}
_NAMES = (
    "import sys; seen = set(sys.modules); from ullage import count; count('Hello'); "
    "print(*(name for name in sys.modules if name not in seen))"
)
_IMPORTS = (
    "import sys; from importlib import import_module; from time import process_time; begin = process_time()\n"
    "for name in sys.argv[1:]: import_module(name)\n"
    "print(process_time() - begin)"
)


def measure_short(texts: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """The figures of a whole short process beside tiktoken's, both in this environment, and of our imports."""
    path = SCRATCH / "short.json"
    path.write_text(json.dumps(texts), "utf-8")
    found, missed = dict[str, float](), list[str]()
    for vocabulary, most in MOST_SHORT.items():
        arguments = [
            str(path),
            MODELS[vocabulary],
            str(Path(__file__).parent),
            vocabulary,
            str(write_ranks(vocabulary)),
        ]
        ours, theirs = (cpu_of(_SHORT_PROCESSES[library], *arguments) for library in ("ullage", "tiktoken"))
        print(f"{vocabulary}: {ours * 1e3:.0f} ms, tiktoken {theirs * 1e3:.0f} ms: {ours / theirs:.2f} of it")
        found[f"{vocabulary}, short process"] = round(ours / theirs, 2)
        if ours / theirs > most:
            missed.append(f"{vocabulary}: a short process takes {ours / theirs:.2f} of tiktoken's")
    names = run_python(_NAMES).split()
    imports = 1e3 * min(float(run_python(_IMPORTS, *names)) for _ in range(ROUNDS))
    print(f"imports of a count: {imports:.0f} ms")
    if imports > MOST_IMPORTS:
        missed.append(f"imports of a count take {imports:.0f} ms")
    return found | {"imports in ms": round(imports, 1)}, missed


def measure_long(found: Mapping[str, tuple[list[str], str]]) -> tuple[dict[str, float], list[str]]:
    """The figures of unseen and of seen texts beside all peers, with everything loaded."""
    texts = SCRATCH / "texts.json"
    texts.write_text(json.dumps({kind: parts for kind, (parts, _) in found.items()}), "utf-8")
    sizes = {kind: sum(len(part.encode()) for part in parts) for kind, (parts, _) in found.items()}
    for kind, (parts, source) in found.items():
        print(f"{kind}: {len(parts)} texts, {sizes[kind]:,} bytes, {source}")
    wanted = ["tiktoken"] if os.environ.get("PEERS") == "no" else list(PINNED)
    libraries = ["ullage", *make_peers(wanted)]
    tables: dict[str, Table] = {}
    for vocabulary in VOCABULARIES:
        tables[vocabulary] = measure(libraries, vocabulary, texts)
        print_table(vocabulary, tables[vocabulary], sizes)
        print_gaps(vocabulary, tables[vocabulary])
    return figures(tables), [line for vocabulary, table in tables.items() for line in shortfalls(vocabulary, table)]


def short_texts(found: Mapping[str, tuple[list[str], str]]) -> list[str]:
    """Ten texts of 1 to 4 KB, of all kinds in turn."""
    whole = ["\n".join(parts[:4]) for parts, _ in found.values()]
    return [whole[turn % len(whole)][: 1_000 + 333 * turn] for turn in range(10)]


def main() -> int:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    found = kinds()
    parts = {"short": lambda: measure_short(short_texts(found)), "long": lambda: measure_long(found)}
    only = os.environ.get("ONLY")
    measured, missed = dict[str, float](), list[str]()
    for part in [parts[only]] if only else parts.values():
        some, short = part()
        measured |= some
        missed += short
    print("\n" + "\n".join(f"MISSED {line}" for line in missed))
    print(json.dumps(measured | {"missed": len(missed)}))
    return 1 if missed else 0


def figures(tables: Mapping[str, Table]) -> dict[str, float]:
    found: dict[str, float] = {}
    names: dict[Key, str] = {"first": "first sight", "again": "seen before"}
    for vocabulary, table in tables.items():
        for key, name in names.items():
            each = list(ratios(table, "ullage", key).values())
            found |= {f"{vocabulary}, {name}, least": min(each), f"{vocabulary}, {name}, mean": mean(each)}
    return {name: round(value, 2) for name, value in found.items()}


if __name__ == "__main__":
    sys.exit(main())
