"""What if the index that the settings want is not installed?

Then the one that comes with the package holds, and that is said. What is installed is told by whoever calls.
"""

from collections.abc import Sequence
from dataclasses import replace

from .issue import Issue
from .settings import Search

__all__ = ["installed"]


def installed(search: Search, lacking: Sequence[str], place: str) -> tuple[Search, tuple[Issue, ...]]:
    """How tools can be ranked where an encoder lacks these, and what is to be said; `place` decided it."""
    if search.index != "encoder" or not lacking:
        return search, ()
    missing = " and ".join(f"`{one}`" for one in lacking)
    issue = Issue(
        severity="problem",
        message=f"`search.index` is `encoder`, and {missing} {'are' if len(lacking) > 1 else 'is'} not installed: "
        "tools are ranked by the table that comes with Ullage",
        file=place,
        key="search.index",
        suggestion="pip install 'ullage[encoder]'",
    )
    return replace(search, index="static"), (issue,)
