"""Keeps tool results within a token budget, and stores the rest for paging and queries."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use
from ullage.options import Handling, ResultRules, ServerResults

if TYPE_CHECKING:
    from .read_result import ResultReader
    from .result_query import TableQuery
    from .result_store import Vault
    from .shape_memory import ShapeMemory
    from .truncate_result import BUDGET, READ, Budgeted
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "BUDGET": "truncate_result",
            "Budgeted": "truncate_result",
            "READ": "truncate_result",
            "ResultReader": "read_result",
            "ShapeMemory": "shape_memory",
            "TableQuery": "result_query",
            "Vault": "result_store",
        },
    )

__all__ = [
    "BUDGET",
    "READ",
    "Budgeted",
    "Handling",
    "ResultReader",
    "ResultRules",
    "ServerResults",
    "ShapeMemory",
    "TableQuery",
    "Vault",
]
