"""What may stand in a cell?

JSON, and decimals, which JSON would round. Whoever reads a database turns everything else (dates, UUIDs, bytes) into
text before it gets here.
"""

from decimal import Decimal

from ullage.tool import Json

__all__ = ["Cell", "Row"]

Cell = Json | Decimal
Row = tuple[Cell, ...]
