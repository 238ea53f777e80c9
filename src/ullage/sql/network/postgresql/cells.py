"""Which value does PostgreSQL mean by the text of a column?

Booleans, numbers, JSON and arrays of these become values; everything else (dates, intervals, ranges, bytes, types of
the database's own) stays as PostgreSQL writes it, which loses nothing.
"""

from collections.abc import Callable
from typing import cast

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
    """Decimals may stand inside of lists, since whoever writes them writes every digit."""
    return cast("Callable[[str], Json]", reader)


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
    *(
        (own, of_arrays, _text)
        for own, of_arrays in (
            *((17, 1001), (142, 143), (600, 1017), (650, 651), (790, 791), (829, 1040), (774, 775), (869, 1041)),
            *((1266, 1270), (1560, 1561), (1562, 1563), (3614, 3643), (3615, 3645), (3220, 3221), (2970, 2949)),
            *((3904, 3905), (3906, 3907), (3908, 3909), (3910, 3911), (3912, 3913), (3926, 3927)),
        )
    ),
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
