"""Which statements are known to be attacks, and which to be questions?

The guard's own cases and questions, and the adversary's corpus: one JSON object a line with `id`, `engine`, `category`,
`layer` (`static`: the guard refuses it; `role`, `limits`: another lock may be the one that makes it harmless), `sql`,
`why` and `expect` (`reject` or `allow`).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ADVERSARY", "CASES", "EVERYDAY", "MORE", "Case", "read_cases"]

GUARD = Path(__file__).parent.parent / "guard"
CASES = GUARD / "cases.jsonl"
EVERYDAY = GUARD / "everyday.jsonl"
MORE = GUARD / "more.jsonl"
ADVERSARY = Path(__file__).parent.parent / "adversary.jsonl"
_DIALECTS = {"mssql": "tsql"}
"""Engines whose dialect has another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str
    engine: str
    layer: str
    sql: str
    attack: bool

    @property
    def dialect(self) -> str:
        return _DIALECTS.get(self.engine, self.engine)


def read_cases(*paths: Path) -> Iterator[Case]:
    for path in paths:
        for line in path.read_text(encoding="utf-8").strip().split("\n"):
            raw = json.loads(line)
            given = {name: raw[name] for name in ("id", "engine", "layer", "sql")}
            yield Case(**given, attack=raw["expect"] == "reject")
