"""What JSON is in this text?

A whole value, or one a line. A line that is none is counted, and the others are read.
"""

import json
from dataclasses import dataclass

from ullage.tool import Json, JsonObject

__all__ = ["Document", "parse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    values: tuple[Json, ...]
    """One where the text is one value, else one a line."""
    broken: int = 0
    """Lines that are no JSON."""

    @property
    def objects(self) -> list[JsonObject]:
        return [value for value in self.values if isinstance(value, dict)]

    @property
    def first(self) -> JsonObject:
        """An empty one where there is none."""
        found = self.objects
        return found[0] if found else {}

    @property
    def whole(self) -> Json:
        """The only value; None where there are several."""
        return self.values[0] if len(self.values) == 1 else None


def parse(text: str) -> Document:
    try:
        return Document(values=(json.loads(text),))
    except (ValueError, RecursionError):
        return _by_line(text)


def _by_line(text: str) -> Document:
    values = list[Json]()
    broken = 0
    # Only a line feed ends a line of JSON: U+2028 and its like may stand in a string.
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            broken += 1
    return Document(values=tuple(values), broken=broken)
