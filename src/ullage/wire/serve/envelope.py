"""What a result carries besides its content, and what the server says of itself.

Every result of 2026-07-28 says its kind, who answered, and for how long a list may be kept. Capabilities and
instructions are written as they are at the moment.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ullage.tool import Json

from ..jsonrpc import Message
from ..protocol import MODERN_VERSIONS, SERVER_INFO_KEY
from .content import COMPLETE

__all__ = ["FRESH_MS", "Envelope"]

FRESH_MS: Mapping[str, int] = {
    "tools/list": 0,
    "resources/list": 0,
    "resources/templates/list": 0,
    "prompts/list": 0,
    "resources/read": 0,
    "server/discover": 60_000,
}
"""For how long a client may keep an answer, each for itself alone: lists differ by who asks. A list may change at any
moment with the servers behind, and a client that does not listen for changes would not see it; a repeated list is
answered from memory."""


class Envelope:
    """The identity of one server, and its marks on results."""

    def __init__(
        self,
        name: str,
        version: str,
        instructions: Callable[[], str | None],
        capabilities: Callable[[], dict[str, Json]],
    ) -> None:
        self._info: dict[str, Json] = {"name": name, "version": version}
        self._stamp: dict[str, Json] = {SERVER_INFO_KEY: self._info}
        self._instructions = instructions
        self._capabilities = capabilities

    def seal(self, method: str, result: Message) -> Message:
        """Add what every result of 2026-07-28 carries."""
        result.setdefault("resultType", COMPLETE)
        # Over what a server behind us said of itself: it is we who are spoken to.
        result["_meta"] = {**result.get("_meta", {}), **self._stamp}
        fresh = FRESH_MS.get(method)
        if fresh is not None and result["resultType"] == COMPLETE:
            result["ttlMs"] = fresh
            result["cacheScope"] = "private"
        return result

    def initialization(self, version: str) -> Message:
        """The result of `initialize` for a client that is spoken to in this revision."""
        return {"protocolVersion": version, **self.introduction(), "serverInfo": dict(self._info)}

    def discovery(self) -> Message:
        """The result of `server/discover`."""
        return self.seal("server/discover", {"supportedVersions": list(MODERN_VERSIONS), **self.introduction()})

    def introduction(self) -> dict[str, Any]:
        """Capabilities, and instructions where there are any."""
        told = self._instructions()
        return {"capabilities": self._capabilities(), **({} if told is None else {"instructions": told})}
