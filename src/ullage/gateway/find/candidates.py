"""What was a tool weighed as, the last time it was found?

Of one search and the next most tools are the same, and so is what stands in a reply of them. Costs are those of the
first time: where a meter has learnt since, the whole reply is weighed anyway before it leaves.
"""

from collections.abc import Callable
from functools import partial

from .fit import Candidate
from .forms import Forms
from .reply import About, Weigh, candidate

__all__ = ["Candidates"]

_MOST = 4_096
_Key = tuple[int, About, str, int]


class Candidates:
    """Of one `Searching`. Safe between threads: what is lost is made again."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: dict[_Key, tuple[Forms, Candidate]] = {}
        """By the forms' identity, which holds as long as they are held here."""

    def of_model(self, model: str, baseline: int) -> Callable[[Forms, About, Weigh], Candidate]:
        """Finds or makes them, for one that counts so and a catalogue that weighs so much."""
        return partial(self._of, model, baseline)

    def _of(self, model: str, baseline: int, forms: Forms, about: About, weigh: Weigh) -> Candidate:
        key = id(forms), about, model, baseline
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._most:
                self._known.clear()
            known = self._known[key] = forms, candidate(forms, about, weigh, baseline=baseline)
        return known[1]
