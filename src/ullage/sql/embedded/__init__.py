"""SQLite and DuckDB files, read in a confined worker process."""

from .embedded_engine import EmbeddedEngine, TableWorker

__all__ = ["EmbeddedEngine", "TableWorker"]
