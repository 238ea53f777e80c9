"""`find_tool` and `call_tool`: tool search and calls by name."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use
from ullage.options import IndexKind

if TYPE_CHECKING:
    from .find_reply import FindToolResponse, TokenMetrics
    from .find_settings import Decision, FindSettings, Surroundings
    from .find_source import Find
    from .search_tools import Explained
    from .tool_forms import EDITION, NAMES
    from .tool_index import Embedders
    from .usage_learning import Learning
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Decision": "find_settings",
            "EDITION": "tool_forms",
            "Embedders": "tool_index",
            "Explained": "search_tools",
            "Find": "find_source",
            "FindSettings": "find_settings",
            "FindToolResponse": "find_reply",
            "Learning": "usage_learning",
            "NAMES": "tool_forms",
            "Surroundings": "find_settings",
            "TokenMetrics": "find_reply",
        },
    )

__all__ = [
    "EDITION",
    "NAMES",
    "Decision",
    "Embedders",
    "Explained",
    "Find",
    "FindSettings",
    "FindToolResponse",
    "IndexKind",
    "Learning",
    "Surroundings",
    "TokenMetrics",
]
