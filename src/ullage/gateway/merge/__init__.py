"""Merges the tools, prompts and resources of many servers."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .merge import Merge
    from .tool_view import Entry, Member, Missing, View
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Entry": "tool_view",
            "Member": "tool_view",
            "Merge": "merge",
            "Missing": "tool_view",
            "View": "tool_view",
        },
    )

__all__ = ["Entry", "Member", "Merge", "Missing", "View"]
