"""Which rows does an answer take, and what of each value?

Rows until one of the limits is reached, each whole or not at all; of a value that is too long, its head.
"""

from collections.abc import Iterable, Sequence

from ullage.table import Cell, Row

from ..engine import Answer, Limits

__all__ = ["taken"]


class Intake:
    def __init__(self, *, rows: int, cell: int, size: int) -> None:
        self._most_rows = rows
        self._most_characters = cell
        self._bytes_left = size
        self._rows: list[Row] = []
        self._cut_cells = 0

    def take(self, row: Sequence[Cell]) -> bool:
        """False for a row that has no room, so that there are more than were taken."""
        if len(self._rows) >= self._most_rows:
            return False
        short = tuple(self._short(cell) for cell in row)
        size = sum(map(_size, short))
        if size > self._bytes_left:
            return False
        self._bytes_left -= size
        self._cut_cells += sum(kept is not cell for kept, cell in zip(short, row, strict=True))
        self._rows.append(short)
        return True

    def _short(self, cell: Cell) -> Cell:
        return cell[: self._most_characters] if isinstance(cell, str) and len(cell) > self._most_characters else cell

    def answer(self, columns: tuple[str, ...], *, more: bool) -> Answer:
        return Answer(columns=columns, rows=tuple(self._rows), more=more, cut_cells=self._cut_cells)


def taken(columns: tuple[str, ...], rows: Iterable[Sequence[Cell]], most: int, limits: Limits) -> Answer:
    """As many of the rows as there is room for; of the rest only one is looked at."""
    intake = Intake(rows=most, cell=limits.cell, size=limits.bytes)
    more = any(not intake.take(row) for row in rows)
    return intake.answer(columns, more=more)


def _size(cell: Cell) -> int:
    if isinstance(cell, str):
        return len(cell.encode("utf-8", "surrogatepass"))
    return 0 if cell is None else len(str(cell))
