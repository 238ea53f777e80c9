"""Which value does MySQL mean by the bytes of a column?

Numbers and JSON become values, bytes are written in hexadecimal, and everything else (dates such as `0000-00-00` among
it) stays as the server writes it.
"""

from collections.abc import Callable

from ullage.table import Cell

from ..faithful import number, real, whole, written_json

__all__ = ["cell"]

# Numbers of the protocol's column types.
_WHOLE = (1, 2, 3, 8, 9, 13)
_REAL = (4, 5)
_DECIMAL = (0, 246)
_JSON = 245
_BIT = 16
_BYTES = (249, 250, 251, 252, 253, 254, 255)
"""Types of text as well, told apart by their character set."""
_BINARY = 63

_READERS: dict[int, Callable[[str], Cell]] = {
    **dict.fromkeys(_WHOLE, whole),
    **dict.fromkeys(_REAL, real),
    **dict.fromkeys(_DECIMAL, number),
    _JSON: written_json,
}


def cell(raw: bytes | None, kind: int, character_set: int, most: int) -> Cell:
    """Of a value of more than `most` characters at least one more than that, as text."""
    if raw is None:
        return None
    if kind == _BIT:
        return int.from_bytes(raw, "big")
    if kind in _BYTES and character_set == _BINARY:
        return "0x" + raw[: most // 2 + 1].hex()
    text = raw[: 4 * most + 4].decode("utf-8", "replace")
    reader = _READERS.get(kind)
    return text if reader is None or len(text) > most else reader(text)
