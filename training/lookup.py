"""Which vector has a text, by the table alone?

Reads a finished table and needs numpy only. A query's vector is the sum of its rows, each times how much it tells in
queries; a tool's is the sum over its fields of weight times the mean of their rows. Both are brought to length one.
"""

import re
from pathlib import Path

import numpy as np
from pieces import Pieces

__all__ = ["Lookup", "nearness", "sentences_of"]

_LONGEST = (16, 24, 64, 128, 48)
"""Rows that count of each field: server, name, head, rest, parameters."""
_LONG_QUERY = 96
_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_MOST_SENTENCES = 8
_LEAST_WORDS = 3
_OF_SENTENCE = 0.7


class Lookup:
    def __init__(self, path: Path) -> None:
        with np.load(path) as file:
            self._rows = file["rows"]
            self._steps = file["steps"]
            self._telling = file["telling"].astype(np.float32)
            self._fields = file["fields"]
            self._pieces = Pieces(bytes(file["vocabulary"]).decode().split("\n"))

    def query(self, text: str) -> np.ndarray:
        rows = self._pieces.rows(text)[:_LONG_QUERY]
        return _of_length_one((self._telling[rows] * self._steps[rows]) @ self._rows[rows])

    def tool(self, fields: tuple[str, ...]) -> np.ndarray:
        total = np.zeros(self._rows.shape[1], dtype=np.float32)
        for text, longest, weight in zip(fields, _LONGEST, self._fields, strict=True):
            rows = self._pieces.rows(text)[:longest]
            if rows:
                total += weight / len(rows) * (self._steps[rows] @ self._rows[rows])
        return _of_length_one(total)


def sentences_of(query: str) -> list[str]:
    """The whole query, then its sentences where there are several."""
    found = [part for part in _END.split(query) if len(part.split()) >= _LEAST_WORDS][:_MOST_SENTENCES]
    return [query, *found] if len(found) > 1 else [query]


def nearness(queries: np.ndarray, tools: np.ndarray) -> np.ndarray:
    """How near each tool is to a query of whole and sentences: who asks for two things wants the tool of either."""
    near = queries @ tools.T
    return near[0] if len(near) == 1 else (1 - _OF_SENTENCE) * near[0] + _OF_SENTENCE * near[1:].max(axis=0)


def _of_length_one(vector: np.ndarray) -> np.ndarray:
    return vector / max(float(np.linalg.norm(vector)), 1e-9)
