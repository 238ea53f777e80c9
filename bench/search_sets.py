"""Which tools were needed for which query, and how good is an answer?

A set is a folder with `tools.jsonl` and `queries.jsonl`; `DATA` names a folder of sets. A tool is needed or not, with
no grades. What cannot be found because no tool of the set has its id is not asked for.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ullage.search import Document, document_of
from ullage.tool import Tool

__all__ = [
    "DEPTH",
    "MEASURES",
    "Maker",
    "NothingMeasured",
    "Query",
    "Row",
    "Search",
    "Set",
    "data_folder",
    "document",
    "judge",
    "read_rows",
    "read_set",
    "read_sets",
    "shared_folder",
]

_SHARED = Path(__file__).parents[2] / "shared" / "data" / "search"
DEPTH = 10
RECALLS = (1, 5, 8, 10)
MEASURES = (*(f"recall@{depth}" for depth in RECALLS), f"nDCG@{DEPTH}")

Row = dict[str, Any]
Search = Callable[[str], Sequence[str]]
"""The ids of the nearest tools, best first, ten at the most."""
Maker = Callable[[Sequence[Row]], Search]


class NothingMeasured(Exception):
    """What a part of the benchmark needs is not there."""


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    needed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Set:
    name: str
    tools: list[Row]
    queries: list[Query]


def shared_folder() -> Path:
    """The folder with `train`, beside that of the catalogues."""
    return Path(os.environ.get("SHARED") or _SHARED)


def data_folder() -> Path:
    return Path(os.environ.get("DATA") or _SHARED / "dev")


def catalogue_file() -> Path:
    """Tools of real servers, in number; no query belongs to them."""
    return Path(os.environ.get("CATALOGUE") or _SHARED / "train" / "toucan_catalog" / "tools.jsonl")


def read_sets(folder: Path) -> list[Set]:
    sets = (read_set(path.parent) for path in sorted(folder.glob("*/queries.jsonl")))
    return [each for each in sets if each.queries]


def read_set(folder: Path) -> Set:
    tools = list({row["id"]: row for row in read_rows(folder / "tools.jsonl")}.values())
    ids = {row["id"] for row in tools}
    rows = ((row["query"], ids.intersection(row["relevant"])) for row in read_rows(folder / "queries.jsonl"))
    return Set(folder.name, tools, [Query(text, frozenset(needed)) for text, needed in rows if needed])


def read_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def document(row: Row) -> Document:
    schema = row.get("inputSchema")
    tool = Tool(
        name=row["name"],
        description=row.get("description"),
        input_schema=schema if isinstance(schema, dict) else {},
    )
    return document_of(tool, server=row.get("server") or "", document_id=row["id"])


def judge(found: Sequence[str], needed: frozenset[str]) -> tuple[float, ...]:
    """The measures of one answer, in points, in the order of `MEASURES`."""
    recalls = (sum(id_ in needed for id_ in found[:depth]) / len(needed) for depth in RECALLS)
    gain = sum(1 / math.log2(rank + 2) for rank, id_ in enumerate(found[:DEPTH]) if id_ in needed)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(needed))))
    return tuple(100 * value for value in (*recalls, gain / ideal))
