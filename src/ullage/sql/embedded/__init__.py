"""SQLite and DuckDB files, read in a confined worker process."""

from .engine import EmbeddedEngine
from .table import TableWorker

__all__ = ["EmbeddedEngine", "TableWorker"]
