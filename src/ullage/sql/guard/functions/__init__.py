"""Which functions of each engine only read?"""

from .catalogue import CATALOGUES

__all__ = ["CATALOGUES"]
