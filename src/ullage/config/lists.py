"""Which names are on a list in another program's file?

Every name that can be read counts: one item nobody understands must not undo the others. A list that was not
understood whole is remembered, so that somebody is told. What a list means is its reader's matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

__all__ = ["Lists", "at", "readable"]


@dataclass(slots=True)
class Lists:
    """One document, and the places in it that could not be read whole."""

    document: object = field(repr=False)
    unclear: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def names(self, *path: str) -> tuple[str, ...] | None:
        """Those on the list at this place; None where there is none. A text alone is one name."""
        value = at(self.document, path)
        if value is None:
            return None
        found, is_whole = readable(value)
        if not is_whole:
            self.unclear.append(path)
        return found

    def only(self, *path: str) -> tuple[str, ...] | None:
        """The same for a list of all that is wanted: one that is no list wants nothing."""
        names = self.names(*path)
        return names if names is None or isinstance(at(self.document, path), list) else ()

    def table(self, *path: str) -> Mapping[str, object]:
        value = at(self.document, path)
        if isinstance(value, dict):
            return cast("Mapping[str, object]", value)
        if value is not None:
            self.unclear.append(path)
        return {}


def at(document: object, path: tuple[str, ...]) -> object:
    """What stands at this place, or None."""
    for part in path:
        document = cast("Mapping[str, object]", document).get(part) if isinstance(document, dict) else None
    return document


def readable(value: object) -> tuple[tuple[str, ...], bool]:
    """The names that can be read, and whether it is a list of nothing else."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    names = tuple(item for item in items if isinstance(item, str) and item.strip())
    return names, isinstance(value, list) and len(names) == len(items)
