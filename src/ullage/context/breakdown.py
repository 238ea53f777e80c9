"""What is the window spent on, and what is left?

Figures only: they were weighed elsewhere, and sum to what is used.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ullage.tool import Json

from .entry import Category
from .spelling import camel

__all__ = ["Breakdown", "ToolShare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolShare:
    name: str
    server: str | None
    """Whose it is; None where its name does not say."""
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    system: int
    """The system prompt, what the provider adds to it, and system messages among the others."""
    tools: tuple[ToolShare, ...] = ()
    tools_added: int = 0
    """What the presence of any tool adds, beside the definitions."""
    messages: Mapping[Category, int] = field(default_factory=dict[Category, int])
    """What the messages are spent on; what there is none of is left out. Sounds, films and documents are images."""
    free: int
    """0 where more is used than the window holds."""
    reserve: int
    """The part of it that is kept for the answer."""

    @property
    def servers(self) -> dict[str | None, int]:
        """What the tools of each server weigh, the heaviest first."""
        found: dict[str | None, int] = {}
        for tool in self.tools:
            found[tool.server] = found.get(tool.server, 0) + tool.tokens
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def to_json(self) -> dict[str, Json]:
        return {
            "system": self.system,
            "tools": [_tool_json(tool) for tool in self.tools],
            "toolsAdded": self.tools_added,
            **{camel(name): tokens for name, tokens in self._categories()},
            "free": self.free,
            "reserve": self.reserve,
        }

    def _categories(self) -> Iterable[tuple[str, int]]:
        return ((name, self.messages.get(name, 0)) for name in _CATEGORIES)


_CATEGORIES: tuple[Category, ...] = (
    "user",
    "assistant",
    "tool_calls",
    "tool_results",
    "images",
    "thinking",
    "summary",
)


def _tool_json(tool: ToolShare) -> Json:
    return {"name": tool.name, "server": tool.server, "tokens": tool.tokens}
