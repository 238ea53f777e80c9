"""How do our own tools look like one server's?

Listed together, and each call goes to the source that has the tool. What they do is their own affair.
"""

from collections.abc import Callable
from dataclasses import dataclass

import anyio.to_thread

from ullage.errors import UnknownTool
from ullage.tool import Call, Listing, Reply, ToolSource

__all__ = ["LateSource", "OwnTools"]


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


@dataclass(slots=True)
class LateSource:
    """A source whose tools are known, made when one of them is first called: most sessions never do."""

    listing: Listing
    make: Callable[[], ToolSource]
    """Run in a worker thread, since it imports what the source needs."""
    _made: ToolSource | None = None

    async def tools(self) -> Listing:
        return self.listing

    async def call(self, call: Call) -> Reply:
        if self._made is None:
            self._made = await anyio.to_thread.run_sync(self.make)
        return await self._made.call(call)
