"""How does a result become a table that SQL can be asked of?

Names are made ones that a table can have, values ones that SQLite can hold. Nothing is sent or kept here.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from ullage.table import Cell, Row, written

__all__ = ["batches", "storable", "unique_names"]

_BATCH = 16_000
"""Characters that are sent at once: each batch is made in the event loop, in a few milliseconds."""
_LARGEST = 2**63
_LONGEST_NAME = 200


def unique_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Each name once, whatever its case: the second `id` is `id_2`. A column without a name is called by its place."""
    taken: set[str] = set()
    names: list[str] = []
    for place, column in enumerate(columns, 1):
        wanted = column.replace("\0", "")[:_LONGEST_NAME].strip() or f"column_{place}"
        names.append(_free(wanted, taken))
        taken.add(names[-1].casefold())
    return tuple(names)


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name.casefold() in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def storable(cell: Cell) -> int | float | str | None:
    """A decimal becomes a number, so that it can be summed and compared; a list or an object its JSON."""
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() and abs(cell) < _LARGEST else float(cell)
    if isinstance(cell, (list, dict)):
        try:
            return json.dumps(cell, ensure_ascii=False)
        except TypeError:  # a decimal stands in it
            return written(cell)
    if isinstance(cell, int) and abs(cell) >= _LARGEST:
        return str(cell)
    return cell


def batches(rows: Iterable[Row]) -> Iterator[list[list[int | float | str | None]]]:
    batch: list[list[int | float | str | None]] = []
    size = 0
    for row in rows:
        batch.append([storable(cell) for cell in row])
        size += sum(len(cell) if isinstance(cell, str) else 8 for cell in batch[-1])
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
