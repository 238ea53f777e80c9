"""How do many sources look like one?"""

from .merge import Merge
from .view import Entry, Member, Missing, View

__all__ = ["Entry", "Member", "Merge", "Missing", "View"]
