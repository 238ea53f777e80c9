"""`find_tool` and `call_tool`: tool search and calls by name."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use
from ullage.options import IndexKind

if TYPE_CHECKING:
    from .embedders import Embedders
    from .find import Find
    from .forms import EDITION
    from .learning import Learning
    from .reply import FindToolResponse
    from .savings import TokenMetrics
    from .searching import Explained
    from .settings import FindSettings, Surroundings
    from .surface import Decision
    from .tools import NAMES
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Decision": "surface",
            "EDITION": "forms",
            "Embedders": "embedders",
            "Explained": "searching",
            "Find": "find",
            "FindSettings": "settings",
            "FindToolResponse": "reply",
            "Learning": "learning",
            "NAMES": "tools",
            "Surroundings": "settings",
            "TokenMetrics": "savings",
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
