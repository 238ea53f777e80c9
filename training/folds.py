"""Folds over whole servers and sets, to measure what was learnt with tools that were not learnt from.

A tool belongs to the fold of its server: all tools of a server are left out together, and so is every tool elsewhere
that has nearly the same text (`tools.Known`). A set with queries of its own lies in one fold as a whole. What is
trained for a fold has seen none of its tools, none of their look-alikes and no query that was made of either.
"""

from collections.abc import Mapping
from hashlib import sha256

import numpy as np

__all__ = ["FOLDS", "OF_NO_FOLD", "chosen", "fold_of", "without_fold"]

FOLDS = 4
OF_NO_FOLD = frozenset({"phrases"})
"""Sources of tools that are never measured with. Those of them that are like one are left out all the same."""
_OF_SETS = {"metatool": 0, "seal_dev": 1}
_NOTHING = -1


def fold_of(source: str, server: str) -> int:
    """The fold of a server, or of the set that a tool is from."""
    if source in _OF_SETS:
        return _OF_SETS[source]
    return sha256(server.encode()).digest()[0] % FOLDS


def without_fold(arrays: Mapping[str, Mapping[str, np.ndarray]], fold: int) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of a pack, less the tools that must not be learnt from and the queries that were made of them."""
    tools, pairs = arrays["tools"], arrays["pairs"]
    stays = (tools["folds"] >> fold & 1) == 0
    now = np.where(stays, np.cumsum(stays) - 1, _NOTHING)
    beside = pairs["beside"]
    asked = stays[pairs["tool"]] & ((beside == _NOTHING) | stays[beside])
    negatives = np.where(tools["negatives"] == _NOTHING, _NOTHING, now[tools["negatives"]])[stays]
    kept_tools = chosen({name: value for name, value in tools.items() if name != "negatives"}, stays)
    kept_pairs = chosen(dict(pairs), asked)
    return dict(arrays) | {  # pyright: ignore[reportReturnType]
        "tools": kept_tools | {"negatives": negatives},
        "pairs": kept_pairs | {"tool": now[kept_pairs["tool"]]},
    }


def chosen(arrays: Mapping[str, np.ndarray], stays: np.ndarray) -> dict[str, np.ndarray]:
    """The chosen ones of every array, a list of unequal length (`name` and `name_ends`) counting as one."""
    found = dict[str, np.ndarray]()
    for name, value in arrays.items():
        if f"{name}_ends" in arrays:
            lengths = np.diff(arrays[f"{name}_ends"], prepend=0)
            found[name] = value[np.repeat(stays, lengths)]
            found[f"{name}_ends"] = np.cumsum(lengths[stays], dtype=np.int32)
        elif not name.endswith("_ends"):
            found[name] = value[stays]
    return found
