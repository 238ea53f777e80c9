"""What is being read of a held result?

A `Document` is a row of units of one kind: a part of the result, several parts of lines that follow one another, or
what a JSON path picks from it. Its units are read as far as they are wanted; everything here may block and is to be run
in a thread. Which units are shown, and how, is the reader's affair.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from typing import cast

from ullage.errors import InvalidArguments
from ullage.table import Path, read_pieces, write_path, written
from ullage.tokens import Steps
from ullage.tool import Json

from .held import Shape
from .json_path import Below, Every, Step, is_definite, read_steps, select
from .layout import Kind, survey
from .paging import Numbered, header_of
from .sheet import footer_rows
from .vault import Opened
from .wording import named_by

__all__ = ["Document", "at_offset", "at_path", "records_of"]

_DEEPEST = 500
_PORTION = 1_000
"""Values freed at once."""
_MOST_KEYS = 20
"""Named to whoever asked for one that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    kind: Kind
    total: int
    """Units of it, or of the whole result where it is a part of that."""
    units: Callable[[int], Iterator[Numbered]]
    """From one on, each with its number."""
    first: int = 0
    """The number of its first unit."""
    rest: int | None = None
    """The unit to go on with behind the last; None where there is none."""
    named: Callable[[int], str] | None = None
    """The path of a record, by its number."""
    header: Callable[[int, int], str] = lambda begun, budget: ""
    """What stands above the units of a page that begins with one, within a budget."""


def at_offset(opened: Opened, unit: int) -> Document:
    """The part that holds the unit, with those behind it that are lines too if it is."""
    shapes = [shape for shape in opened.shapes if shape.end > unit]
    if not shapes:
        return Document(kind="lines", total=opened.units, units=lambda first: iter(()))
    if shapes[0].kind == "lines":
        shapes = list(takewhile(lambda shape: shape.kind == "lines" and not shape.label, shapes)) or shapes[:1]
    else:
        shapes = shapes[:1]
    return _of_shapes(opened, shapes)


def records_of(opened: Opened) -> Document:
    """The first part that has records, else the first."""
    shapes = [*(shape for shape in opened.shapes if shape.kind == "records"), *opened.shapes]
    return _of_shapes(opened, shapes[:1]) if shapes else at_offset(opened, 0)


def _of_shapes(opened: Opened, shapes: Sequence[Shape]) -> Document:
    def units(first: int) -> Iterator[Numbered]:
        for one in shapes:
            yield from opened.read(one, max(first, one.first))

    def header(begun: int, budget: int) -> str:
        shape = shapes[0]
        if begun != shape.first:
            return _heading(opened, shape) if len(shapes) == 1 and begun < shape.end - 1 else ""
        around = opened.around(shape) if shape.path else ("", "")
        return header_of(shape.label, write_path(shape.path), around, shape.units, budget)

    shape, end = shapes[0], shapes[-1].end
    has_path = shape.kind == "records" and shape is _json_of(opened)
    return Document(
        kind=shape.kind,
        total=opened.units,
        units=units,
        first=shape.first,
        rest=end if end < opened.units else None,
        named=named_by(shape.path, shape.first) if has_path else None,
        header=header,
    )


def _heading(opened: Opened, shape: Shape) -> str:
    """Of one of our tables, whose last line counts its rows; not where some are so long as to be in parts."""
    if shape.kind != "lines" or shape.label:
        return ""
    last, first = (next(opened.read(shape, unit))[1] for unit in (shape.end - 1, shape.first))
    return first if footer_rows(last) == shape.units - 2 else ""


def _json_of(opened: Opened) -> Shape | None:
    """The part that a path is about: the first that is JSON."""
    return next((shape for shape in opened.shapes if shape.is_json), None)


def at_path(opened: Opened, path: str) -> Steps[Document]:
    """What a path picks; raises `InvalidArguments` where that is nothing."""
    steps, shape = read_steps(path), _json_of(opened)
    if shape is None:
        raise InvalidArguments("this result is no JSON", suggestion="Use `offset` or `grep`.")
    if steps == shape.path and shape.kind == "records":
        return _of_shapes(opened, [shape])
    values = yield from _values(opened, shape, steps)
    if not is_definite(steps):
        text = written(values)
        _release(values)
        return (yield from _of_text(text, None))
    value = values[0] if values else _missing(opened, shape, steps, path)
    return (yield from _of_text(value if isinstance(value, str) else written(value), path))


def _of_text(text: str, path: str | None) -> Steps[Document]:
    layout = yield from survey(text)

    def units(first: int) -> Iterator[Numbered]:
        for unit in range(first, len(layout)):
            yield unit, layout.unit(text, unit)

    def header(begun: int, budget: int) -> str:
        around = text[: layout.body[0]], text[layout.body[1] :]
        return header_of("", write_path(layout.path), around, len(layout), budget) if begun == 0 else ""

    inside = write_path(layout.path)
    inside = f".{inside}" if inside[:1] not in ("", "[") else inside
    is_named = path is not None and layout.kind == "records"
    return Document(
        kind=layout.kind,
        total=len(layout),
        units=units,
        named=(lambda number: f"{path}{inside}[{number}]") if is_named else None,
        header=header,
    )


def _values(opened: Opened, shape: Shape, steps: tuple[Step, ...]) -> Steps[list[Json]]:
    """What is picked: from the records that are meant where the path leads to them, else from the whole."""
    depth, found = len(shape.path), list[Json]()
    if shape.kind == "records" and not depth and steps[:1] == (Below(),) and isinstance(steps[1], str):
        # A list has no keys of its own, so that each record can be looked through and dropped.
        for _, record in opened.read(shape, shape.first):
            found += select(_read(record), steps)
            yield
        return found
    if shape.kind != "records" or steps[:depth] != shape.path or not _picks_records(steps[depth:]):
        whole = yield from _whole(opened, shape)
        found = list(select(whole, steps))
        _release_records(whole, shape.path, found)
        return found
    for record in _records(opened, shape, steps[depth]):
        found += select(_read(record), steps[depth + 1 :])
        yield
    return found


def _release_records(whole: Json, path: Path, found: list[Json]) -> None:
    """Empties the list at a path of a document of which only what was found is still needed."""
    holders = [whole]
    for key in path:
        holders.append(cast("dict[str, Json]", holders[-1]).get(str(key)) if isinstance(holders[-1], dict) else None)
    kept = {id(one) for one in found}
    if isinstance(holders[-1], list) and not any(id(one) in kept for one in holders):
        _release(holders[-1])


def _release(values: list[Json]) -> None:
    """Empties a long list a little at a time: freeing a million objects in one go holds up every other thread."""
    while values:
        del values[-_PORTION:]


def _picks_records(steps: Sequence[Step]) -> bool:
    return bool(steps) and isinstance(steps[0], int | Every)


def _records(opened: Opened, shape: Shape, step: Step) -> Iterator[str]:
    wanted = range(shape.units)[step.part] if isinstance(step, Every) else _single(step, shape.units)
    if not wanted:
        return
    for number, record in opened.read(shape, shape.first + wanted[0]):
        place = number - shape.first
        if place > wanted[-1]:
            return
        if place in wanted:
            yield record


def _single(step: Step, count: int) -> range:
    place = step if isinstance(step, int) else 0
    place += count if place < 0 else 0
    return range(place, place + 1) if 0 <= place < count else range(0)


def _whole(opened: Opened, shape: Shape) -> Steps[Json]:
    """The document; a long one record by record, so that nobody waits for the parser."""
    if shape.kind != "records":
        return _read(opened.text(shape))
    records = list[Json]()
    for _, record in opened.read(shape, shape.first):
        records.append(_read(record))
        yield
    return _put_in(_read("".join(opened.around(shape))), shape.path, records)


def _put_in(value: Json, path: Path, records: list[Json]) -> Json:
    if not path:
        return records
    outer, key = cast("dict[str, Json]", value), str(path[0])
    return {**outer, key: _put_in(outer[key], path[1:], records)}


def _read(text: str) -> Json:
    try:
        # Digit by digit, since a float would round.
        return read_pieces(text, _DEEPEST, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments("this result is no JSON", suggestion="Use `offset` or `grep`.") from error


def _missing(opened: Opened, shape: Shape, steps: tuple[Step, ...], path: str) -> Json:
    """Says which keys there are, where the path may have gone wrong."""
    keys, whose = tuple[str, ...](), "a record" if steps[:1] == shape.path[:1] or not shape.path else "the document"
    if shape.kind == "records":
        first = next((unit for _, unit in opened.read(shape, shape.first)), "null")
        value = _read("".join(opened.around(shape)) if whose == "the document" else first)
        keys = tuple(value)[:_MOST_KEYS] if isinstance(value, dict) else ()
    raise InvalidArguments(
        f"nothing is at `{path[:100]}`",
        suggestion=f"The options are the keys of {whose}." if keys else "Read the beginning of the result first.",
        options=keys,
    )
