"""Who weighs a message that was changed, or is new?

The seam between deciding what is let go and weighing what is left. `weighing` fulfils it, and so does a stand-in.
"""

from collections.abc import Sequence
from typing import Protocol

from ullage.messages import Format
from ullage.tokens import Steps

from .entry import Entry

__all__ = ["Remake"]


class Remake(Protocol):
    @property
    def format(self) -> Format:
        """In which every message of the history is written."""
        ...

    def entries(self, natives: Sequence[object], after: Sequence[Entry] = ()) -> Steps[tuple[Entry, ...]]:
        """Entries for new messages."""
        ...

    def remade(self, entry: Entry, native: object) -> Entry:
        """The same entry with another message in it, read and weighed; pinned, kind and record are as they were."""
        ...

    def count(self, text: str) -> int:
        """The tokens of a plain text."""
        ...
