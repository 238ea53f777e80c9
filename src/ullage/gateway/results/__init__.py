"""How is a result held to a budget, with nothing lost and nothing run twice?"""

from typing import TYPE_CHECKING

from ullage.deferred import import_on_use
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
