"""How is a text counted exactly, with the vocabulary of its model?"""

from .engine import BytePairEngine, default_engine

__all__ = ["BytePairEngine", "default_engine"]
