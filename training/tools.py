"""Which tools are learnt from, and what of each?

Reads the catalogues that may be trained on, takes out whatever looks like a tool that is measured with, and cuts each
tool into the fields that a vector is made of, as search does. Makes no pairs.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from folds import OF_NO_FOLD, fold_of

from ullage.search import Document, document_of, terms
from ullage.search.stemming_and_synonyms import aspects, parts
from ullage.tool import Tool

__all__ = [
    "Described",
    "Known",
    "Row",
    "folds_without",
    "read_rows",
    "real_tools",
    "set_documents",
    "set_tools",
    "without_twins",
]

_NO_DESCRIPTION = re.compile(r"description not available|^deploy server .* try in playground|no description", re.I)
_ALIKE = 0.6
"""Share of terms, common to all, from which two descriptions are one; with the same name, half suffices."""
_OPEN_LICENCES = frozenset({"MIT", "MIT License", "Apache-2.0", "Apache Software License", "ISC"})

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A tool, cut into fields."""

    source: str
    """The set or catalogue that it is from."""
    id: str
    server: str
    fields: tuple[str, ...]
    """One text each, in the order of `ASPECTS`."""

    @property
    def head(self) -> str:
        return self.fields[2]


def read_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def set_tools(folder: Path) -> list[Described]:
    """The tools of one search set."""
    return [_describe(document, folder.name) for document in set_documents(folder)]


def set_documents(folder: Path) -> list[Document]:
    return [_document(row, row.get("server") or "", row["id"]) for row in read_rows(folder / "tools.jsonl")]


def real_tools(data: Path) -> list[Described]:
    """The tools of real servers, those without a word on what they do left out."""
    found = set_tools(data / "search" / "train" / "toucan_catalog")
    for path in sorted((data / "catalogues").glob("*.json")):
        found += _of_catalogue(json.loads(path.read_text(encoding="utf-8")))
    return [tool for tool in found if not _NO_DESCRIPTION.search(tool.head) and len(parts(tool.head)) > 1]


def without_twins(tools: Iterable[Described], kept_back: Sequence[Described]) -> Iterator[Described]:
    """Those that are like none of the tools kept back, and of equal ones among themselves the first."""
    known = Known(kept_back)
    seen = set[tuple[str, str]]()
    for tool in tools:
        key = tool.fields[1], tool.head
        if key not in seen and not known.like(tool):
            seen.add(key)
            yield tool


class Known:
    """Finds tools that share most of their terms."""

    def __init__(self, tools: Sequence[Described]) -> None:
        self._terms = [frozenset(_terms(tool)) for tool in tools]
        self._names = [tool.fields[1] for tool in tools]
        self._holders: dict[str, list[int]] = defaultdict(list)
        for place, held in enumerate(self._terms):
            for term in held:
                self._holders[term].append(place)

    def like(self, tool: Described) -> list[int]:
        """The places of the tools that have nearly the same text."""
        own = frozenset(_terms(tool))
        shared = Counter(place for term in own for place in self._holders.get(term, ()))
        return [
            place
            for place, count in shared.items()
            if count / (len(own) + len(self._terms[place]) - count)
            >= (0.5 if self._names[place] == tool.fields[1] else _ALIKE)
        ]


def folds_without(tools: Sequence[Described]) -> np.ndarray:
    """Of each tool, in bits, the folds that it must not be learnt from in: its own, and those of its look-alikes."""
    folds = [fold_of(tool.source, tool.server) if tool.source not in OF_NO_FOLD else None for tool in tools]
    known, bits = Known(tools), np.zeros(len(tools), dtype=np.uint8)
    for place, tool in enumerate(tools):
        for each in {folds[place], *(folds[other] for other in known.like(tool))}:
            if each is not None:
                bits[place] |= 1 << each
    return bits


def _terms(tool: Described) -> list[str]:
    return terms(f"{tool.fields[1]} {tool.head} {tool.fields[3][:300]}")


def _describe(document: Document, source: str) -> Described:
    """A document in the fields that a vector is made of."""
    return Described(source=source, id=document.id, server=document.server, fields=aspects(document))


def _of_catalogue(catalogue: Row) -> list[Described]:
    if catalogue.get("license") not in _OPEN_LICENCES:
        return []
    server = catalogue["package"]
    return [_describe(_document(row, server, f"{server}:{row['name']}"), "catalogues") for row in catalogue["tools"]]


def _document(row: Row, server: str, id_: str) -> Document:
    tool = Tool(name=row["name"], description=row.get("description"), input_schema=row.get("inputSchema") or {})
    return document_of(tool, server=server, document_id=id_)
