"""Read-only SQL for agents: engines, guard, descriptions and tools."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use
from ullage.options import SAMPLE, DatabaseSettings

if TYPE_CHECKING:
    from .asking import Asking, Given
    from .dialect import dialect_of
    from .engine import Answer, Dialect, Engine, Limits, Probe, Question, Stability
    from .opening import open_engine
    from .source import SqlSource
    from .structure import Column, ForeignKey, Index, Routine, Structure, Table, Trigger
    from .tools import DIALECTS, LISTED_NAMES, ORIGINAL_NAMES, shared_tools, tools_of
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Answer": "engine",
            "Asking": "asking",
            "Column": "structure",
            "DIALECTS": "tools",
            "Dialect": "engine",
            "Engine": "engine",
            "ForeignKey": "structure",
            "Given": "asking",
            "Index": "structure",
            "LISTED_NAMES": "tools",
            "Limits": "engine",
            "ORIGINAL_NAMES": "tools",
            "Probe": "engine",
            "Question": "engine",
            "Routine": "structure",
            "SqlSource": "source",
            "Stability": "engine",
            "Structure": "structure",
            "Table": "structure",
            "Trigger": "structure",
            "dialect_of": "dialect",
            "open_engine": "opening",
            "shared_tools": "tools",
            "tools_of": "tools",
        },
    )

__all__ = [
    "DIALECTS",
    "LISTED_NAMES",
    "ORIGINAL_NAMES",
    "SAMPLE",
    "Answer",
    "Asking",
    "Column",
    "DatabaseSettings",
    "Dialect",
    "Engine",
    "ForeignKey",
    "Given",
    "Index",
    "Limits",
    "Probe",
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
