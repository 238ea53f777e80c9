"""How do our own tools look like one server's?

Listed together, and each call goes to the source that has the tool. What they do is their own affair.
"""

from dataclasses import dataclass

from ullage.errors import UnknownTool
from ullage.tool import Call, Listing, Reply, ToolSource

__all__ = ["OwnTools"]


@dataclass(frozen=True, slots=True)
class OwnTools:
    sources: tuple[ToolSource, ...]

    async def tools(self) -> Listing:
        listings = [await source.tools() for source in self.sources]
        tools = tuple(tool for listing in listings for tool in listing.tools)
        return Listing(tools, revision=" ".join(listing.revision for listing in listings))

    async def call(self, call: Call) -> Reply:
        for source in self.sources:
            if any(call.tool in (tool.name, *tool.aliases) for tool in (await source.tools()).tools):
                return await source.call(call)
        options = tuple(tool.name for tool in (await self.tools()).tools)
        raise UnknownTool(f"no tool is called `{call.tool}`", options=options)
