"""Which value does PostgreSQL mean by the text of a column?

Booleans, numbers, JSON and arrays of these become values; everything else (dates, intervals, ranges, bytes, types of
the database's own) stays as PostgreSQL writes it, which loses nothing.
"""

from collections.abc import Callable

from ullage.table import Cell
from ullage.tool import Json

from ..faithful import number, real, whole, written_json
from .arrays import array

__all__ = ["cell"]

_Reader = Callable[[str], Cell]


def _truth(text: str) -> bool:
    return text == "t"


def _text(text: str) -> str:
    return text


def _element(reader: _Reader) -> Callable[[str], Json]:
    """Decimals cannot stand inside of a JSON value, so that they are text there."""

    def read(text: str) -> Json:
        value = reader(text)
        return value if isinstance(value, str | int | float | list | dict) or value is None else text

    return read


# By type: the type's own number in pg_type, and that of its arrays.
_TYPES: tuple[tuple[int, int, _Reader], ...] = (
    (16, 1000, _truth),
    (20, 1016, whole),
    (21, 1005, whole),
    (23, 1007, whole),
    (26, 1028, whole),
    (700, 1021, real),
    (701, 1022, real),
    (1700, 1231, number),
    (114, 199, written_json),
    (3802, 3807, written_json),
    (18, 1002, _text),
    (19, 1003, _text),
    (25, 1009, _text),
    (1042, 1014, _text),
    (1043, 1015, _text),
    (1082, 1182, _text),
    (1083, 1183, _text),
    (1114, 1115, _text),
    (1184, 1185, _text),
    (1186, 1187, _text),
    (2950, 2951, _text),
)
_READERS = {own: reader for own, _, reader in _TYPES}
_ELEMENTS = {of_arrays: _element(reader) for _, of_arrays, reader in _TYPES}


def cell(raw: bytes | None, kind: int, most: int) -> Cell:
    """Of a value of more than `most` characters at least one more than that, as text."""
    if raw is None:
        return None
    # A character has at most four bytes; those of a database without an encoding may be of any.
    text = raw[: 4 * most + 4].decode("utf-8", "replace")
    if len(text) > most:
        return text
    if (element := _ELEMENTS.get(kind)) is not None:
        return array(text, element)
    return _READERS.get(kind, _text)(text)
