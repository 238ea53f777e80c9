"""Which tools look right and are not?

For each tool, some of its own server and those that share most words with it. Twins of it, which do the same under the
same or another server, must not count against it: what equals it in name or nearly in terms is passed over here, and
what a trained model cannot tell apart from it, the training passes over.
"""

import random
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from tools import Described

from ullage.search import Document, LexicalIndex, terms

__all__ = ["WIDTH", "look_alikes"]

_OF_SERVER = 4
_LIKE = 6
WIDTH = _OF_SERVER + _LIKE
_TWIN = 0.7


def look_alikes(tools: Sequence[Described], chance: random.Random) -> np.ndarray:
    """One row a tool, of places among the tools; -1 where there are no more."""
    found = np.full((len(tools), WIDTH), -1, dtype=np.int32)
    by_source = defaultdict[str, list[int]](list)
    for place, tool in enumerate(tools):
        by_source["real" if tool.source in {"toucan_catalog", "catalogues"} else tool.source].append(place)
    for places in by_source.values():
        _fill(found, tools, places, chance)
    return found


def _fill(found: np.ndarray, tools: Sequence[Described], places: Sequence[int], chance: random.Random) -> None:
    index = LexicalIndex(_document(tools[place], place) for place in places)
    of_server = defaultdict[str, list[int]](list)
    for place in places:
        of_server[tools[place].server].append(place)
    held = {place: frozenset(terms(f"{tools[place].fields[1]} {tools[place].head}")) for place in places}
    for place in places:
        name, head = tools[place].fields[1:3]
        near = [int(hit.document.id) for hit in index.search(f"{name} {head[:160]}", 4 * _LIKE)]
        near = [each for each in near if _differ(place, each, tools, held)][:_LIKE]
        beside = [each for each in of_server[tools[place].server] if _differ(place, each, tools, held)]
        both = list(dict.fromkeys(near + chance.sample(beside, min(_OF_SERVER, len(beside)))))
        found[place, : len(both)] = both


def _differ(one: int, other: int, tools: Sequence[Described], held: dict[int, frozenset[str]]) -> bool:
    if one == other or tools[one].fields[1] == tools[other].fields[1]:
        return False
    return len(held[one] & held[other]) < _TWIN * len(held[one] | held[other])


def _document(tool: Described, place: int) -> Document:
    server, name, head, rest, parameters = tool.fields
    return Document(
        id=str(place), name=name, server=server, description=f"{head} {rest}", parameter_names=tuple(parameters.split())
    )
