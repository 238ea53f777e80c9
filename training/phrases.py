"""What people say in passing who want something done.

`phrases.tsv` was written for this project from general knowledge, with no catalogue at hand: a line is a kind of tool
that many servers have (its name and what it does) and then what somebody would say, in everyday words that no tool's
description uses. Each kind counts as one tool of no server. `bench/everyday.tsv` measures what comes of it, and nothing
here that shares most of its words with a line of that file is learnt from.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pairs import Pair
from tools import Described

from ullage.search import Document, terms
from ullage.search.stemming_and_synonyms import aspects

__all__ = ["SOURCE", "kinds_of_tools", "phrased"]

SOURCE = "phrases"
_COUNTED = 4
"""How often each is learnt from beside what was written for a real tool: there are few, and no others are like them."""
_ALIKE = 0.5
"""Share of terms, common to both, from which two requests are one."""


def kinds_of_tools() -> list[Described]:
    """One tool a line."""
    return [
        Described(
            source=SOURCE,
            id=f"{SOURCE}:{name}",
            server="",
            fields=aspects(Document(id=name, name=name, server="", description=description, parameter_names=())),
        )
        for name, description, *_ in _lines()
    ]


def phrased(tools: Sequence[Described], measured: Path) -> Iterator[Pair]:
    """The pairs of those kinds that are among the tools, without requests that are like those of the file measured
    with."""
    places = {tool.id: place for place, tool in enumerate(tools) if tool.source == SOURCE}
    asked = [frozenset(terms(line.split("\t")[0])) for line in measured.read_text(encoding="utf-8").splitlines()]
    for name, _, *phrases in _lines():
        for phrase in phrases:
            own = frozenset(terms(phrase))
            alike = any(len(own & other) >= _ALIKE * len(own | other) for other in asked)
            if not alike and f"{SOURCE}:{name}" in places:
                for _ in range(_COUNTED):
                    yield Pair(phrase, places[f"{SOURCE}:{name}"], written=True)


def _lines() -> list[list[str]]:
    text = Path(__file__).with_name("phrases.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines()]
