"""How fast is a count, at first sight and of a text seen before, beside other tokenizers?

Run by `make bench-count`. `DATA` names a folder of texts, one `.txt` a kind; `PEERS=no` leaves out all but tiktoken.
Prints a table, then what fell short of a floor or the reason for it, then one line of figures; fails where a floor is
missed.

Every figure is CPU time, the best of several runs, each in a fresh process; libraries take turns. Peers live in
`.bench/peers`, made on first use; a package without a wheel for this Python is left out and said to be.
"""

import base64
import gzip
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from kinds import kinds

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".bench" / "peers"
SCRATCH = ROOT / ".bench" / "count"
PINNED = {"tiktoken": "0.14.0", "gigatoken": "0.10.0", "rs-bpe": "0.1.0", "litellm": "1.100.5"}
VOCABULARIES = ("o200k_base", "cl100k_base")
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


def python_of(library: str) -> str:
    return sys.executable if library == "ullage" else str(PEERS / "bin" / "python")


def make_peers(names: Sequence[str]) -> list[str]:
    """Those of the peers that are there, after installing what is missing."""
    if not PEERS.exists():
        print(f"making the environment of the peers in {PEERS.relative_to(ROOT)} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    return [name for name in names if _is_installed(name) or _install(name)]


def _is_installed(name: str) -> bool:
    question = f"import importlib.metadata as m; m.version({name!r})"
    return subprocess.run([python_of("peer"), "-c", question], capture_output=True, check=False).returncode == 0


def _install(name: str) -> bool:
    print(f"installing {name} {PINNED[name]} …", file=sys.stderr)
    command = [python_of("peer"), "-m", "pip", "install", "--quiet", f"{name}=={PINNED[name]}"]
    done = subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not done:
        print(f"{name} {PINNED[name]} cannot be installed here and is left out", file=sys.stderr)
    return done


def write_ranks(vocabulary: str) -> Path:
    """The vocabulary as the file OpenAI publishes, made of what the package carries: nothing is fetched."""
    packed = gzip.decompress((ROOT / "src/ullage/tokens/data" / f"{vocabulary}.gz").read_bytes())
    lines, start = list[bytes](), 0
    while start < len(packed):
        end = start + 1 + packed[start]
        lines.append(base64.b64encode(packed[start + 1 : end]) + b" %d\n" % len(lines))
        start = end
    path = SCRATCH / f"{vocabulary}.tiktoken"
    path.write_bytes(b"".join(lines))
    return path


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


def ratios(table: Table, library: str, key: Literal["first", "again"]) -> dict[str, float]:
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
    for library in table:
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
    libraries = ["ullage", *make_peers(wanted)]
    missed, figures = list[str](), dict[str, float]()
    for vocabulary in VOCABULARIES:
        table = measure(libraries, vocabulary, texts)
        print_table(vocabulary, table, sizes)
        missed += shortfalls(vocabulary, table)
        first, seen = ratios(table, "ullage", "first").values(), ratios(table, "ullage", "again").values()
        figures |= {f"{vocabulary}.first.least": min(first), f"{vocabulary}.first.mean": mean(list(first))}
        figures |= {f"{vocabulary}.seen.least": min(seen), f"{vocabulary}.seen.mean": mean(list(seen))}
    print("\n" + "\n".join(f"MISSED {line}" for line in missed))
    print(json.dumps({key: round(value, 2) for key, value in figures.items()} | {"missed": len(missed)}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
