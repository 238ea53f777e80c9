"""How do rows cost least?"""

from .cell import Cell, Row

__all__ = ["Cell", "Row"]
