"""What does earlier use say for one search, and what will it say for later ones?

Stands around the index for the time of one search: ranks with what was learnt, and notes which tools the reply really
showed. What the query names was found by its name, and what is always listed needs no search: neither teaches
anything. How it is remembered, `learning` knows.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ullage.search import Hit, HybridIndex, Need, Used, need_of, restrained
from ullage.tool import Caller

from ..merge.view import Entry, View
from .learning import Learning
from .query import Ranked

__all__ = ["Lesson", "begin"]

_NAMES = re.compile(r'[^\s"\\,()\[\]]+')
"""What may be a tool's name in a reply; the few names that have such characters are not learnt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    index: HybridIndex
    learning: Learning | None = None
    caller: Caller
    need: Need = field(default_factory=Need)
    gains: Mapping[str, float] = field(default_factory=dict[str, float])
    """By listed name."""

    def search(self, text: str, limit: int) -> Sequence[Hit]:
        if not self.gains:
            return self.index.search(text, limit)
        return restrained(self.index.search(text, limit, learnt=self.gains), self.gains)

    def note(self, reply: str, found: Iterable[Ranked], entries: Mapping[str, Entry]) -> None:
        """The reply to this search, and what it was made of."""
        if self.learning is None or not self.need:
            return
        said = frozenset(_NAMES.findall(reply))
        near = (listed for each in found if not each.named for listed in (each.listed, *each.also) if listed in said)
        shown = (entries[listed] for listed in near)
        self.learning.showed(self.caller, self.need, map(_used, (entry for entry in shown if not entry.is_pinned)))


async def begin(learning: Learning | None, text: str, index: HybridIndex, view: View, caller: Caller) -> Lesson:
    """The lesson of a search for a text; one that says nothing where nobody learns."""
    need = Need() if learning is None else need_of(text, index.holds)
    if learning is None or not need:
        return Lesson(index=index, caller=caller)
    gains = {
        listed: gain for used, gain in (await learning.bonuses(caller, need)).items() for listed in _listed(view, used)
    }
    return Lesson(index=index, learning=learning, caller=caller, need=need, gains=gains)


def _used(entry: Entry) -> Used:
    return entry.server, entry.original


def _listed(view: View, used: Used) -> list[str]:
    """None for a tool that is gone."""
    assert view.book is not None
    return [entry.listed for entry in view.book.find(used[1], used[0]) if _used(entry) == used]
