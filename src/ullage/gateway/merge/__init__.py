"""Merges the tools, prompts and resources of many servers."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .merge import Merge
    from .view import Entry, Member, Missing, View
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Entry": "view",
            "Member": "view",
            "Merge": "merge",
            "Missing": "view",
            "View": "view",
        },
    )

__all__ = ["Entry", "Member", "Merge", "Missing", "View"]
