"""What is kept of a result, and in what pieces?

A result is a row of parts, one a block of content; each part is text in units (`layout`). It is kept in packed pieces
of some thousand characters that end between units, so that a page is read without the rest. Where the pieces lie is
not known here.
"""

import json
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from ullage.table import Continued, Path

from .layout import Kind, Layout

__all__ = ["Held", "Packed", "Part", "Shape", "pack", "packed_size", "read_shapes", "unpack", "write_shapes"]

_PIECE = 65_536
"""Characters, or one unit where that is more."""
_QUICK = 1
"""zlib's level: JSON shrinks well even so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One block's text."""

    text: str
    layout: Layout
    label: str = ""
    """What stands above it when it is shown: a resource's address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A whole result, before it is packed."""

    principal: str
    server: str
    tool: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is known of a part without reading it."""

    kind: Kind
    is_json: bool
    path: Path
    units: int
    label: str
    first: int
    """Its first unit's number among those of the whole result."""
    start: int
    """Its first piece's number. Then come, in this order: what surrounds the units before them, the units, the rest."""
    head: int
    body: int
    tail: int

    @property
    def pieces(self) -> range:
        """Those of its units."""
        return range(self.start + self.head, self.start + self.head + self.body)

    @property
    def end(self) -> int:
        """The unit after its last."""
        return self.first + self.units


@dataclass(frozen=True, slots=True)
class Packed:
    """One piece."""

    first: int
    """Number of its first unit among those of the whole result."""
    units: int
    data: bytes


def pack(parts: Sequence[Part]) -> tuple[tuple[Shape, ...], list[Packed]]:
    """Everything, in pieces; may take long."""
    shapes, pieces, first = list[Shape](), list[Packed](), 0
    for part in parts:
        begin, end = part.layout.body
        head, body, tail = (
            list(_surrounding(part.text, 0, begin, first)),
            list(_body(part, first)),
            list(_surrounding(part.text, end, len(part.text), first + len(part.layout))),
        )
        shapes.append(
            Shape(
                kind=part.layout.kind,
                is_json=part.layout.is_json,
                path=part.layout.path,
                units=len(part.layout),
                label=part.label,
                first=first,
                start=len(pieces),
                head=len(head),
                body=len(body),
                tail=len(tail),
            )
        )
        pieces += [*head, *body, *tail]
        first += len(part.layout)
    return tuple(shapes), pieces


def packed_size(pieces: Sequence[Packed]) -> int:
    return sum(len(piece.data) for piece in pieces)


def _surrounding(text: str, start: int, end: int, first: int) -> Iterator[Packed]:
    for at in range(start, end, _PIECE):
        yield Packed(first, 0, _squeezed(array("I"), text[at : min(at + _PIECE, end)]))


def _body(part: Part, first: int) -> Iterator[Packed]:
    layout, unit = part.layout, 0
    while unit < len(layout):
        begin, last = layout.span(unit)[0] if unit else layout.body[0], unit
        while last < len(layout) and (last == unit or layout.span(last)[1] - begin <= _PIECE):
            last += 1
        end = layout.span(last)[0] if last < len(layout) else layout.body[1]
        marks = array("I", (place - begin for one in range(unit, last) for place in layout.span(one)))
        yield Packed(first + unit, last - unit, _squeezed(marks, part.text[begin:end]))
        unit = last


def _squeezed(marks: "array[int]", text: str) -> bytes:
    return zlib.compress(marks.tobytes() + text.encode("utf-8", "surrogatepass"), _QUICK)


def unpack(piece: Packed) -> tuple[str, list[str]]:
    """The text of a piece, and its units, those known as `Continued` that follow another on one line."""
    data = zlib.decompress(piece.data)
    marks = array("I")
    size = 2 * piece.units * marks.itemsize
    marks.frombytes(data[:size])
    text = data[size:].decode("utf-8", "surrogatepass")
    return text, [_unit(text, marks, place) for place in range(0, len(marks), 2)]


def _unit(text: str, marks: "array[int]", place: int) -> str:
    start, end = marks[place], marks[place + 1]
    return Continued(text[start:end]) if place and marks[place - 1] == start else text[start:end]


def write_shapes(shapes: Sequence[Shape]) -> str:
    return json.dumps([asdict(shape) for shape in shapes])


_FIELDS = tuple(field.name for field in fields(Shape))


def read_shapes(said: str) -> tuple[Shape, ...]:
    return tuple(_shape(one) for one in json.loads(said))


def _shape(said: dict[str, Any]) -> Shape:
    """What this version knows of what a newer one may have written."""
    known: dict[str, Any] = {name: said[name] for name in _FIELDS}
    known["path"] = tuple(known["path"])
    return Shape(**known)
