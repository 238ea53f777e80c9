"""What may an agent ask a database?"""

from ullage.options import SAMPLE, DatabaseSettings

from .asking import Asking, Given
from .dialect import dialect_of
from .engine import Answer, Dialect, Engine, Limits, Probe, Question, Stability
from .opening import open_engine
from .source import SqlSource
from .structure import Column, ForeignKey, Index, Routine, Structure, Table, Trigger
from .tools import DIALECTS, LISTED_NAMES, ORIGINAL_NAMES, tools_of

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
    "tools_of",
]
