"""Read-only SQL for agents: engines, guard, descriptions and tools."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use
from ullage.options import SAMPLE, DatabaseSettings

if TYPE_CHECKING:
    from .database import (
        Answer,
        Column,
        Dialect,
        Engine,
        ForeignKey,
        Index,
        Limits,
        Probe,
        Question,
        Routine,
        Stability,
        Structure,
        Table,
        Trigger,
        dialect_of,
    )
    from .run_query import QueryResult, QueryRunner
    from .sql_source import SqlSource, open_engine
    from .sql_tools import DIALECTS, LISTED_NAMES, ORIGINAL_NAMES, shared_tools, tools_of
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Answer": "database",
            "QueryRunner": "run_query",
            "Column": "database",
            "DIALECTS": "sql_tools",
            "Dialect": "database",
            "Engine": "database",
            "ForeignKey": "database",
            "QueryResult": "run_query",
            "Index": "database",
            "LISTED_NAMES": "sql_tools",
            "Limits": "database",
            "ORIGINAL_NAMES": "sql_tools",
            "Probe": "database",
            "Question": "database",
            "Routine": "database",
            "SqlSource": "sql_source",
            "Stability": "database",
            "Structure": "database",
            "Table": "database",
            "Trigger": "database",
            "dialect_of": "database",
            "open_engine": "sql_source",
            "shared_tools": "sql_tools",
            "tools_of": "sql_tools",
        },
    )

__all__ = [
    "DIALECTS",
    "LISTED_NAMES",
    "ORIGINAL_NAMES",
    "SAMPLE",
    "Answer",
    "Column",
    "DatabaseSettings",
    "Dialect",
    "Engine",
    "ForeignKey",
    "Index",
    "Limits",
    "Probe",
    "QueryResult",
    "QueryRunner",
    "Question",
    "Routine",
    "SqlSource",
    "Stability",
    "Structure",
    "Table",
    "Trigger",
    "dialect_of",
    "open_engine",
    "shared_tools",
    "tools_of",
]
