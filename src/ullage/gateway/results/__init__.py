"""How is a result held to a budget, with nothing lost and nothing run twice?"""

from ullage.options import Handling, ResultRules, ServerResults

from .budgeted import BUDGET, Budgeted, Holdable
from .query import TableQuery
from .reader import ResultReader
from .tools import READ
from .vault import Vault

__all__ = [
    "BUDGET",
    "READ",
    "Budgeted",
    "Handling",
    "Holdable",
    "ResultReader",
    "ResultRules",
    "ServerResults",
    "TableQuery",
    "Vault",
]
