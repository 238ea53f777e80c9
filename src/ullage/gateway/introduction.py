"""How does a server introduce itself?

What it said of itself when a connection was opened: its name, its version and its instructions for the model. Nothing
here is believed: figures, rules and caches go by the name in the settings, never by this one.
"""

from dataclasses import dataclass
from typing import Protocol

from ullage.tool import JsonObject

__all__ = ["Introduced", "Introduction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    name: str
    version: str | None = None
    title: str | None = None
    instructions: str | None = None
    """What the server wants the model to know of it; shown shortened, never obeyed."""
    capabilities: JsonObject | None = None
    """What it declared to be able to do, as the protocol writes it; None where that was not kept."""


class Introduced(Protocol):
    """A source that can say who it is."""

    def introduction(self) -> Introduction | None:
        """None before the first connection."""
        ...
