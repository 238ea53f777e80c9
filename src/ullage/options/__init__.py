"""Settings that the packages take, as plain values.

Configuration makes them and the packages go by them. They stand apart so that reading the settings imports none of the
packages: `ullage serve` and `ullage config` read them first.
"""

from .database import SAMPLE, DatabaseSettings, Limits
from .finding import FIND_NAMES, MOST_USES, IndexKind, encoder_lacks
from .results import Handling, ResultRules, ServerResults
from .server import Access, DefinitionChanges, Origin, Rules, Server, Transport

__all__ = [
    "FIND_NAMES",
    "MOST_USES",
    "SAMPLE",
    "Access",
    "DatabaseSettings",
    "DefinitionChanges",
    "Handling",
    "IndexKind",
    "Limits",
    "Origin",
    "ResultRules",
    "Rules",
    "Server",
    "ServerResults",
    "Transport",
    "encoder_lacks",
]
