"""What did a worker answer?

Puts its frames together. A worker reads files that anyone may have made, so what it says is looked at like any other
input: whatever does not fit raises `Nonsense`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import cast

from ullage.table import Cell, Row
from ullage.tool import Json

from ..engine import Answer

__all__ = ["Failed", "Nonsense", "Received"]


class Nonsense(Exception):
    """A frame that no worker of ours sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    kind: str
    code: str | None
    text: str


@dataclass(slots=True, kw_only=True)
class Received:
    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list[Row])
    more: bool = False
    cut_cells: int = 0
    value: Json = None
    failed: Failed | None = None
    is_farewell: bool = False
    """Whether the worker had ended for want of questions, and has not seen this one."""
    is_whole: bool = False

    @property
    def ends_worker(self) -> bool:
        return self.is_farewell or (self.failed is not None and self.failed.kind == "memory")

    def take(self, frame: Json) -> None:
        if not isinstance(frame, dict):
            raise Nonsense("a frame that is no object")
        try:
            self._take(frame)
        except (KeyError, TypeError, ValueError, InvalidOperation) as error:
            raise Nonsense(f"a frame that does not fit: {type(error).__name__}") from error

    def _take(self, frame: Mapping[str, Json]) -> None:
        if "rows" in frame:
            self.rows.extend(tuple(_cell(cell) for cell in row) for row in _lists(frame["rows"]))
            return
        if "columns" in frame:
            self.columns = tuple(str(name) for name in _list(frame["columns"]))
            return
        self.is_whole = True
        if "failed" in frame:
            code = frame["code"]
            self.failed = Failed(
                kind=str(frame["failed"]), code=None if code is None else str(code), text=str(frame["text"])
            )
        elif "value" in frame:
            self.value = frame["value"]
        elif "bye" in frame:
            self.is_farewell = True
        else:
            self.more, self.cut_cells = bool(frame["more"]), int(cast("int", frame["cut_cells"]))

    def answer(self) -> Answer:
        return Answer(columns=self.columns, rows=tuple(self.rows), more=self.more, cut_cells=self.cut_cells)


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _lists(value: Json) -> list[list[Json]]:
    return [_list(inner) for inner in _list(value)]


def _cell(value: Json) -> Cell:
    """An object is always a mark: a decimal, or an object that was one before it travelled."""
    if not isinstance(value, dict):
        return value
    return Decimal(str(value["decimal"])) if "decimal" in value else value["json"]
