"""How are our own tools listed for a client that refuses dots and hyphens?

Under names with underscores, which are accepted in calls everywhere. Nothing else is changed.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from ullage.tool import Call, Listing, Reply, Tool, ToolSource

from .passing import Passing

__all__ = ["Underscored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Underscored(Passing[ToolSource]):
    inner: ToolSource
    own: Collection[str]
    """The names to be rewritten; other servers' names are theirs."""

    async def tools(self) -> Listing:
        listing = await self.inner.tools()
        taken = {tool.name for tool in listing.tools}
        return Listing(tuple(self._spelt(tool, taken) for tool in listing.tools), f"{listing.revision}:underscored")

    async def call(self, call: Call) -> Reply:
        return await self.inner.call(call)

    def _spelt(self, tool: Tool, taken: Collection[str]) -> Tool:
        """Under its other name, unless another tool has that one: calls by it are that tool's."""
        spelt = re.sub(r"[.-]", "_", tool.name)
        if tool.name not in self.own or spelt in taken:
            return tool
        aliases = tuple(alias for alias in (tool.name, *tool.aliases) if alias != spelt)
        return replace(tool, name=spelt, aliases=aliases)
