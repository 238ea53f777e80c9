"""How is a database file asked so that nothing it does can hurt?"""

from .engine import EmbeddedEngine
from .table import TableWorker

__all__ = ["EmbeddedEngine", "TableWorker"]
