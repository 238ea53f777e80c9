"""What does search cost a process that has just begun?

Run as a script in a fresh process: it is told by one JSON object on its standard input what to do and answers with one.
Nothing of search or numpy is imported before the clock runs. `search_cost` asks; all times are of the CPU, over all
threads, since other work on the machine stretches every other clock.
"""

import base64
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ullage.cli.main import use_one_thread

__all__ = ["cold", "find_tool", "kept", "scale"]

Row = dict[str, Any]


class Clock:
    """CPU seconds between marks."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}
        self._last = time.process_time()

    def mark(self, name: str) -> None:
        now = time.process_time()
        self.steps[name] = now - self._last
        self._last = now


def resident() -> int:
    """Bytes of memory that the process holds now; elsewhere than on Linux, the most that it ever held."""
    path = Path("/proc/self/statm")
    if path.exists():
        return int(path.read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1_024)


def cold(tools: Sequence[Row], vectors: Sequence[str] | None, query: str, kind: str) -> dict[str, Any]:
    """The first search ever: everything that it needs, step by step, then the memory that this took.

    `vectors` are those that a catalogue kept, in its bytes; None where all have to be made.
    """
    known = None if vectors is None else [base64.b64decode(vector) for vector in vectors]
    before, clock = resident(), Clock()
    import numpy as np  # noqa: F401

    clock.mark("numpy")
    from ullage import search

    clock.mark("our modules")
    embedder = _embedder(search, kind)
    clock.mark("weights")
    loaded = resident()
    documents = [_document(search, row) for row in tools]
    clock.mark("documents")
    vectors_by_id = _unpacked(search, documents, known, embedder.edition)
    clock.mark("vectors read")
    index = search.HybridIndex(documents, embedder, vectors=vectors_by_id)
    clock.mark("index")
    found = index.search(query, 10)
    clock.mark("search")
    return {
        "steps": clock.steps,
        "all": sum(clock.steps.values()),
        "process": time.process_time(),
        "loaded bytes": loaded - before,
        "indexed bytes": resident() - before,
        "found": [hit.document.id for hit in found],
    }


def find_tool(tools: Sequence[Row], query: str) -> dict[str, float]:
    """The first `find_tool` through `Find`, with nothing kept from an earlier start.

    What is imported and made ready before it is counted apart; the second stands beside it for comparison.
    """
    clock = Clock()
    import anyio

    from ullage.gateway import NAMES, Find, FindSettings, Member, Merge
    from ullage.models import shipped
    from ullage.testing import FakeSource
    from ullage.tokens import Meter
    from ullage.tool import Call

    clock.mark("modules")
    servers: dict[str, list[Any]] = {}
    for row in tools:
        servers.setdefault(row.get("server") or "tools", []).append(_tool(row))
    members = [Member(name=name, source=FakeSource(offered=tuple(of)), prefix=name) for name, of in servers.items()]

    async def run() -> None:
        find = Find(Merge(members, reserved=NAMES), Meter(shipped()), FindSettings(mode="search"))
        await find.prepare()
        clock.mark("definitions weighed, index made")
        for name in ("first find_tool", "second find_tool"):
            await find.call(Call(tool="find_tool", arguments={"tool_description": query}))
            clock.mark(name)

    anyio.run(run)
    return clock.steps


def kept(tools: Sequence[Row], kind: str) -> list[str]:
    """Vectors as a catalogue keeps them."""
    from ullage import search

    embedder = _embedder(search, kind)
    rows = embedder.embed_documents([_document(search, row) for row in tools])
    return [base64.b64encode(search.packed(row, embedder.edition)).decode() for row in rows]


def scale(tools: Sequence[Row], queries: Sequence[str], kind: str) -> dict[str, Any]:
    """Build and queries over many tools: each query once as it comes, then all again."""
    from ullage import search

    embedder = _embedder(search, kind)
    documents = [_document(search, row) for row in tools]
    clock = Clock()
    rows = embedder.embed_documents(documents)
    clock.mark("vectors")
    vectors = {document.id: row for document, row in zip(documents, rows, strict=True)}
    before = resident()
    clock.mark("")
    index = search.HybridIndex(documents, embedder, vectors=vectors)
    clock.mark("words")
    return {
        "vectors": clock.steps["vectors"],
        "words": clock.steps["words"],
        "bytes": resident() - before,
        "first": _times(index.search, queries),
        "again": _times(index.search, queries),
    }


def _embedder(search: Any, kind: str) -> Any:  # noqa: ANN401
    return search.load_table() if kind == "static" else search.load_encoder()


def _document(search: Any, row: Row) -> Any:  # noqa: ANN401
    return search.document_of(_tool(row), server=row.get("server") or "", document_id=row["id"])


def _tool(row: Row) -> Any:  # noqa: ANN401
    from ullage.tool import Tool

    return Tool(name=row["name"], description=row.get("description"), input_schema=row.get("inputSchema") or {})


def _unpacked(search: Any, documents: Sequence[Any], known: Sequence[bytes] | None, edition: str) -> Any:  # noqa: ANN401
    """Vectors by document, none where none are known."""
    return {
        document.id: search.unpacked(vector, edition) for document, vector in zip(documents, known or (), strict=False)
    }


def _times(search: Callable[[str, int], object], queries: Sequence[str]) -> list[float]:
    """Milliseconds of each query, ten results each."""
    found = list[float]()
    for query in queries:
        start = time.process_time()
        search(query, 10)
        found.append(1_000 * (time.process_time() - start))
    return found


_QUESTIONS: dict[str, Callable[..., object]] = {"cold": cold, "find_tool": find_tool, "kept": kept, "scale": scale}


def main() -> None:
    use_one_thread()  # as `ullage` begins
    asked = json.load(sys.stdin)
    json.dump(_QUESTIONS[asked.pop("what")](**asked), sys.stdout)


if __name__ == "__main__":
    main()
