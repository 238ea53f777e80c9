"""What may an agent ask a database?"""

from .engine import Answer, Dialect, Engine, Limits, Probe, Question, Stability
from .settings import SAMPLE, DatabaseSettings
from .structure import Column, ForeignKey, Index, Routine, Structure, Table, Trigger

__all__ = [
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
    "Question",
    "Routine",
    "Stability",
    "Structure",
    "Table",
    "Trigger",
]
