"""Keeps tool results within a token budget, and stores the rest for paging and queries."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use
from ullage.options import Handling, ResultRules, ServerResults

if TYPE_CHECKING:
    from .budgeted import BUDGET, Budgeted, Holdable
    from .query import TableQuery
    from .reader import ResultReader
    from .tools import READ
    from .vault import Vault
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "BUDGET": "budgeted",
            "Budgeted": "budgeted",
            "Holdable": "budgeted",
            "READ": "tools",
            "ResultReader": "reader",
            "TableQuery": "query",
            "Vault": "vault",
        },
    )

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
