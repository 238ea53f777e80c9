"""How much of a result leaves the process?

So many rows, so many characters of a value, so many bytes in all, and nothing after the deadline. Rows are taken one at
a time and sent in frames, so that neither side ever holds more than a frame of what is not wanted. Where rows come from
is not known here.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from .asked import Asked
from .cells import cut, travelling
from .failure import Failure

__all__ = ["Send", "answer", "encoded"]

Send = Callable[[bytes], None]

_FRAME = 128_000
"""Bytes of rows that are sent at once, so that the other side decodes few at a time."""


def encoded(message: object) -> bytes:
    """JSON in UTF-8, half characters as question marks."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def answer(columns: Sequence[str], rows: Iterator[Sequence[object]], asked: Asked, send: Send) -> None:
    send(encoded({"columns": [cut(name, asked.cell)[0] for name in columns]}))
    held: list[bytes] = []
    size = total = count = cells = 0
    for row in islice(rows, asked.rows):
        _refuse_when_late(asked)
        line, cut_here = _line(row, asked.cell)
        if total + len(line) > asked.bytes:
            _refuse_when_nothing_fits(count, asked)
            return _finish(held, send, more=True, cut_cells=cells)
        held.append(line)
        size, total, count, cells = size + len(line), total + len(line), count + 1, cells + cut_here
        if size > _FRAME:
            _send_rows(held, send)
            held, size = [], 0
    return _finish(held, send, more=next(rows, None) is not None, cut_cells=cells)


def _line(row: Sequence[object], most: int) -> tuple[bytes, int]:
    cells = [travelling(value, most) for value in row]
    return encoded([value for value, _ in cells]), sum(was_cut for _, was_cut in cells)


def _send_rows(lines: list[bytes], send: Send) -> None:
    if lines:
        send(b'{"rows":[' + b",".join(lines) + b"]}")


def _finish(held: list[bytes], send: Send, *, more: bool, cut_cells: int) -> None:
    _send_rows(held, send)
    send(encoded({"more": more, "cut_cells": cut_cells}))


def _refuse_when_late(asked: Asked) -> None:
    if time.monotonic() > asked.deadline:
        raise Failure("deadline", "time was up while rows were being read")


def _refuse_when_nothing_fits(count: int, asked: Asked) -> None:
    if count == 0:
        raise Failure("query", f"the first row alone is larger than the {asked.bytes} bytes that an answer may have")
