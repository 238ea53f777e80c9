"""Which tools does the model see, and whose is the one that it calls?

The tools of several sources under names that every provider takes. What a source offers may change from one step to the
next; as long as it does not, the definitions are the same objects, and a prompt cache holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ullage.errors import Unavailable, UnknownTool
from ullage.messages import ToolDefinition
from ullage.tool import Call, JsonObject, Listing, Reply, Tool, ToolSource

from .naming import acceptable_names

__all__ = ["Offered", "Offering"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """What is offered at one moment."""

    definitions: tuple[ToolDefinition, ...] = ()
    natives: tuple[JsonObject, ...] = ()
    """The same as a context takes them."""
    behind: Mapping[str, tuple[ToolSource, Tool]] = field(default_factory=dict[str, tuple[ToolSource, Tool]])
    """By the name that the model sees, and by those that its source would take too."""
    revisions: tuple[str, ...] = ()

    def name_of(self, called: str) -> str:
        """As its source calls it; unchanged where nobody has it."""
        return self.behind[called][1].name if called in self.behind else called

    async def call(self, call: Call) -> Reply:
        """Of a tool by the name that the model used."""
        if call.tool not in self.behind:
            seen = tuple(one.name for one in self.definitions)
            raise UnknownTool(f"no tool is called `{call.tool}`", options=seen)
        source, tool = self.behind[call.tool]
        return await source.call(replace(call, tool=tool.name))


@dataclass(slots=True)
class Offered:
    sources: Sequence[ToolSource]
    _last: Offering = field(default_factory=Offering)

    async def now(self) -> Offering:
        """What was offered before, where a source cannot say for the moment what it has."""
        try:
            listings = [await source.tools() for source in self.sources]
        except Unavailable:
            if not self._last.revisions:
                raise
            return self._last
        revisions = tuple(listing.revision for listing in listings)
        if revisions != self._last.revisions:
            self._last = _offering(self.sources, listings, revisions)
        return self._last


def _offering(sources: Sequence[ToolSource], listings: Sequence[Listing], revisions: tuple[str, ...]) -> Offering:
    pairs = zip(sources, listings, strict=True)
    offered = [(source, tool) for source, listing in pairs for tool in listing.tools]
    names = acceptable_names(tool.name for _, tool in offered)
    behind = dict(zip(names, offered, strict=True))
    # Written in texts that the model reads (a masked result, another tool's description), names stand as they are.
    for source, tool in offered:
        for name in (tool.name, *tool.aliases):
            behind.setdefault(name, (source, tool))
    definitions = tuple(_definition(name, tool) for name, (_, tool) in zip(names, offered, strict=True))
    return Offering(
        definitions=definitions, natives=tuple(map(_native, definitions)), behind=behind, revisions=revisions
    )


def _definition(name: str, tool: Tool) -> ToolDefinition:
    return ToolDefinition(name=name, description=tool.description, schema=dict(tool.input_schema))


def _native(definition: ToolDefinition) -> JsonObject:
    return {"name": definition.name, "description": definition.description, "schema": dict(definition.schema)}
