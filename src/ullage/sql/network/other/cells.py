"""Which cell does a driver's value become?"""

import math
from datetime import date, time
from decimal import Decimal

from ullage.table import Cell

__all__ = ["cell"]


def cell(value: object, most: int) -> Cell:
    """Of a value of more than `most` characters at least one more than that, as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return value if value.is_finite() else str(value)
        case bytes() | bytearray():
            return "0x" + value[: most // 2 + 1].hex()
        case date() | time():
            return value.isoformat()
        case other:
            return str(other)
