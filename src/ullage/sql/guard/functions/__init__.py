"""Which functions of each engine only read?"""

from .catalogue import CATALOGUES, Catalogue

__all__ = ["CATALOGUES", "Catalogue"]
