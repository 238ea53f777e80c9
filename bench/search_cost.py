"""What does search cost: a query, an index, the first search of a process, memory, bytes?

Tools are those of real servers (`CATALOGUE`, a `tools.jsonl`); beyond their number they come again with other words, so
that no two are equal. Everything of ours is measured in fresh processes (`search_fresh`), in seconds of CPU over all
threads, as the middle of several. Beside it stand the peers that have the same step: fastmcp's loop over all tools and
SQLite's FTS5. What the others' encoders would cost is not measured.
"""

import json
import os
import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import search_peers
from search_elsewhere import have_encoder, python_of
from search_sets import Row, Set, catalogue_file, read_rows
from search_sizes import sizes

__all__ = ["Cost", "measure", "report"]

_SEED = 7
_FEW, _SOME, _MANY = 400, 4_000, 100_000
_QUERIES = 200
_QUERIES_OF_PEERS = 30
_PROCESSES = 7
_SLOWEST_QUERY = 20.0
"""Milliseconds of CPU that 95 of a hundred searches over 100,000 tools may take."""
_SLOWEST_START = 0.3
"""Seconds of CPU for all that the first search after a cold start needs."""
_WHOLE = ("all", "process", "loaded bytes", "indexed bytes")
_PEERS = {"fastmcp": search_peers.fastmcp_loop, "FTS5": search_peers.fts5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What searches over some number of tools took."""

    who: str
    tools: int
    build: Mapping[str, float]
    """Seconds, by part."""
    first: Sequence[float]
    """Milliseconds of each query when it was asked first."""
    again: Sequence[float] = ()
    """The same queries once more."""
    memory: int | None = None
    """Bytes that the index holds."""

    def to_json(self) -> dict[str, object]:
        return {
            "build": {name: round(value, 3) for name, value in self.build.items()},
            "p50": round(median(self.first), 3),
            "p95": round(_p95(self.first), 3),
            "p50 again": round(median(self.again), 3) if self.again else None,
            "bytes": self.memory,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    asked: Sequence[Asked]
    starts: Mapping[str, Mapping[str, Any]]
    """The first search of a process: what each step took."""
    through_gateway: Mapping[str, float]
    """The same for `find_tool`."""
    bytes: Mapping[str, int | None]

    def missed(self) -> list[str]:
        slow = [each for each in self.asked if each.who == "static" and each.tools == _MANY]
        return [
            f"a search over {each.tools:,} tools takes {_p95(each.first):.1f} ms of CPU (p95), not {_SLOWEST_QUERY:g}"
            for each in slow
            if _p95(each.first) > _SLOWEST_QUERY
        ] + [
            f"the first search, {name}, takes {start['all']:.3f} s of CPU, not {_SLOWEST_START:g}"
            for name, start in self.starts.items()
            if name.startswith("static") and start["all"] > _SLOWEST_START
        ]

    def to_json(self) -> dict[str, object]:
        return {
            "queries": {f"{each.who} {each.tools}": each.to_json() for each in self.asked},
            "first search": self.starts,
            "first find_tool": self.through_gateway,
            "bytes": self.bytes,
        }


def measure(sets: Sequence[Set]) -> Cost:
    tools, queries = _tools(sets), _queries(sets)
    kinds = ["static", *(["encoder"] if have_encoder() else [])]
    peers = [] if os.environ.get("PEERS") == "no" else [*_PEERS]
    return Cost(
        asked=[
            *(_ours("static", tools[:number], queries) for number in (_FEW, _SOME, _MANY)),
            *(_ours(kind, tools[:number], queries) for kind in kinds[1:] for number in (_FEW, _SOME)),
            *(_peer(name, tools[:number], queries) for name in peers for number in (_FEW, _SOME, _MANY)),
        ],
        starts={
            f"{kind}, {how}": _start(kind, tools[:_FEW], queries[0], is_known=how == "vectors known")
            for kind in kinds
            for how in ("vectors known", "all fresh")
        },
        through_gateway=_middle([_fresh("static", _through(tools, queries)) for _ in range(_PROCESSES)]),
        bytes=sizes(),
    )


def _tools(sets: Sequence[Set]) -> list[Row]:
    """Real ones in no order, then the same ones with words of others between theirs."""
    path, chance = catalogue_file(), random.Random(_SEED)
    real = list(read_rows(path)) if path.exists() else [row for each in sets for row in each.tools]
    chance.shuffle(real)
    tools = [{**row, "id": str(place)} for place, row in enumerate(real)]
    words = [word for row in real[:2_000] for word in (row.get("description") or "").split()] or ["tool"]
    while len(tools) < _MANY:
        row = real[len(tools) % len(real)]
        said = (row.get("description") or "").split() + chance.choices(words, k=3)
        chance.shuffle(said)
        name = f"{row['name']}_{chance.choice(words)}"
        tools.append({**row, "id": str(len(tools)), "name": name, "description": " ".join(said)})
    return tools


def _queries(sets: Sequence[Set]) -> list[str]:
    texts = sorted({query.text for each in sets for query in each.queries})
    return random.Random(_SEED).sample(texts, min(_QUERIES, len(texts)))


def _ours(kind: str, tools: Sequence[Row], queries: Sequence[str]) -> Asked:
    found = _fresh(kind, {"what": "scale", "tools": tools, "queries": queries, "kind": kind})
    return Asked(
        who=kind,
        tools=len(tools),
        build={name: found[name] for name in ("words", "vectors")},
        first=found["first"],
        again=found["again"],
        memory=found["bytes"],
    )


def _peer(name: str, tools: Sequence[Row], queries: Sequence[str]) -> Asked:
    start = time.process_time()
    search = _PEERS[name](tools)
    build = time.process_time() - start
    first = [_milliseconds(search, query) for query in queries[:_QUERIES_OF_PEERS]]
    return Asked(who=name, tools=len(tools), build={"words": build}, first=first)


def _milliseconds(search: search_peers.Search, query: str) -> float:
    start = time.process_time()
    search(query)
    return 1_000 * (time.process_time() - start)


def _start(kind: str, tools: Sequence[Row], query: str, *, is_known: bool) -> dict[str, Any]:
    """The middle of several processes, step by step."""
    vectors = _kept(kind, tools) if is_known else None
    asked = {"what": "cold", "tools": tools, "vectors": vectors, "query": query, "kind": kind}
    found = [_fresh(kind, asked) for _ in range(_PROCESSES)]
    whole = _middle([{name: each[name] for name in _WHOLE} for each in found])
    return {"steps": _middle([each["steps"] for each in found]), **whole}


def _middle(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: round(median(each[name] for each in found), 4) for name in found[0]}


def _through(tools: Sequence[Row], queries: Sequence[str]) -> dict[str, Any]:
    return {"what": "find_tool", "tools": tools[:_FEW], "query": queries[0]}


def _kept(kind: str, tools: Sequence[Row]) -> list[str]:
    """Vectors as a catalogue keeps them."""
    return _fresh(kind, {"what": "kept", "tools": tools, "kind": kind})


def _fresh(kind: str, asked: Mapping[str, Any]) -> Any:  # noqa: ANN401
    command = [python_of(kind), str(Path(__file__).with_name("search_fresh.py"))]
    done = subprocess.run(command, input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


def report(cost: Cost) -> None:
    print("seconds and milliseconds of CPU, not of the clock: other work on the machine only makes caches colder")
    print(f"{'search':14}{'tools':>8}{'p50 ms':>10}{'p95 ms':>10}{'again':>9}{'words s':>10}", end="")
    print(f"{'vectors s':>11}{'MiB':>8}{'p50 beside static':>20}")
    ours = {each.tools: median(each.first) for each in cost.asked if each.who == "static"}
    for each in cost.asked:
        again, vectors = median(each.again) if each.again else None, each.build.get("vectors")
        memory = None if each.memory is None else each.memory / 2**20
        print(f"  {each.who:12}{each.tools:>8,}{median(each.first):>10.2f}{_p95(each.first):>10.2f}", end="")
        print(_cell(again, 9, 2) + _cell(each.build["words"], 10, 3) + _cell(vectors, 11, 3), end="")
        print(_cell(memory, 8, 1) + f"{median(each.first) / ours[each.tools]:>19.1f}x")
    for name, start in cost.starts.items():
        loaded, indexed = (start[f"{part} bytes"] / 2**20 for part in ("loaded", "indexed"))
        print(f"first search over {_FEW} tools, {name}: {start['all']:.3f} s", end="")
        print(f"; {loaded:.0f} MiB after load, {indexed:.0f} with the index\n  {_steps(start['steps'])}")
    print(f"the same through the gateway, with nothing kept from before:\n  {_steps(cost.through_gateway)}")
    print("bytes: " + ", ".join(f"{name} {_size(size)}" for name, size in cost.bytes.items()))


def _cell(value: float | None, width: int, digits: int) -> str:
    return " " * width if value is None else f"{value:>{width}.{digits}f}"


def _steps(steps: Mapping[str, float]) -> str:
    return ", ".join(f"{step} {seconds:.3f}" for step, seconds in steps.items())


def _size(size: int | None) -> str:
    return "unknown" if size is None else f"{size:,}"
