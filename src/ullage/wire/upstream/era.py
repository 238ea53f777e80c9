"""Which revision of the protocol does a server speak, and what does each demand of a request?

Two eras: the stateless one of 2026-07-28, found by `server/discover`, and the handshake ones before it. Both are asked
for where the server hesitates, and the first good answer decides: a server that takes long to start is not taken for
one that does not know the question. It does not start servers, nor decide what to do with one that speaks neither.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ullage import __version__
from ullage.errors import ProtocolError, SourceFailed, Unavailable
from ullage.gateway import Introduction
from ullage.tool import Asked, Era, Json, JsonObject

from ..jsonrpc import Message
from ..protocol import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    LOG_LEVEL_KEY,
    METHOD_HEADER,
    MODERN_VERSIONS,
    NAME_HEADER,
    RESERVED_PREFIX,
    SERVER_INFO_KEY,
    VERSION_HEADER,
    VERSION_KEY,
)
from .raw import as_object, as_text, introduction_of
from .rpc import Peer
from .waiting import Answer

__all__ = ["HESITATION", "Agreement", "agree", "era_of"]

HESITATION = 3.0
"""Seconds after which a server that has not answered the one question is asked the other as well."""
_NAME_BEARING = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The param of a method that is repeated in a header."""
_INFO: Message = {"name": "ullage", "version": __version__}
_ABILITIES: Message = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}
"""Declared in a handshake, which comes before any client is known; what a client then cannot do is refused."""


def era_of(version: str) -> Era:
    """`stateless` for the revisions found by `server/discover`, `handshake` for those before them."""
    return "stateless" if version in MODERN_VERSIONS else "handshake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What a server and we have agreed to speak."""

    version: str
    introduction: Introduction
    capabilities: JsonObject

    @property
    def modern(self) -> bool:
        return self.version in MODERN_VERSIONS

    def meta(self, asked: Asked, log_level: str | None) -> Message:
        """The `_meta` of a request: what the client sent along, and what this era wants to know with each."""
        meta: Message = {
            key: value
            for key, value in asked.meta.items()
            if key != "progressToken" and not key.startswith(RESERVED_PREFIX)
        }
        if not self.modern:
            return meta
        level = asked.meta.get(LOG_LEVEL_KEY) or log_level
        if level is not None:
            meta[LOG_LEVEL_KEY] = level
        return meta | _envelope(self.version, asked.capabilities)

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """What a request says of itself in HTTP's own headers."""
        headers = {VERSION_HEADER: self.version}
        if self.modern:
            headers[METHOD_HEADER] = method
            name = params.get(_NAME_BEARING.get(method, ""))
            if isinstance(name, str):
                from mcp.shared.inbound import encode_header_value  # the SDK has been loaded for HTTP already

                headers[NAME_HEADER] = encode_header_value(name)
        return headers


def _envelope(version: str, capabilities: JsonObject) -> Message:
    return {
        VERSION_KEY: version,
        CLIENT_INFO_KEY: _INFO,
        CAPABILITIES_KEY: dict(capabilities),
    }


async def agree(peer: Peer, *, patience: float, hesitation: float | None, era: Era | None = None) -> Agreement:
    """Finds out what the server speaks; raises `SourceFailed` where it is nothing we do.

    Args:
        patience: Seconds in which the server must answer.
        hesitation: Seconds after which a server that does not answer the one question is asked the other as well;
            None to greet it at once and never ask for the newer era.
        era: The era to be spoken if the server knows it; the newer one where this is None.
    """
    asking_both = _Asking(peer, patience)
    try:
        if hesitation is not None and era == "handshake":
            return await asking_both.greeted_or_discovered()
        if hesitation is not None:
            found = await asking_both.discovered(hesitation)
            if found is not None:
                return found
        return await asking_both.settled()
    finally:
        asking_both.stop()


class _Asking:
    """The two questions, and whichever is answered well first."""

    def __init__(self, peer: Peer, patience: float) -> None:
        self._peer = peer
        self._patience = patience
        self._discovering: asyncio.Task[Answer] | None = None
        self._greeting: asyncio.Task[Answer] | None = None

    async def discovered(self, hesitation: float) -> Agreement | None:
        """What discovery found; None where the server knows it not, or has not answered yet."""
        self._discovering = self._ask(
            "server/discover",
            {"_meta": _envelope(LATEST_MODERN_VERSION, _ABILITIES)},
            {VERSION_HEADER: LATEST_MODERN_VERSION, METHOD_HEADER: "server/discover"},
        )
        await asyncio.wait({self._discovering}, timeout=hesitation)
        return self._discovery() if self._discovering.done() else None

    async def greeted_or_discovered(self) -> Agreement:
        """The handshake; where the server refuses it, what discovery finds."""
        try:
            return await self.settled()
        except ProtocolError as refused:
            found = await self.discovered(self._patience)
            if found is None:
                raise refused from None
            return found

    async def settled(self) -> Agreement:
        """Greets the server, and takes the greeting or a late discovery, whichever comes well and first."""
        offer: Message = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": _ABILITIES, "clientInfo": _INFO}
        self._greeting = self._ask("initialize", offer, None)
        while True:
            open_ones = [one for one in (self._discovering, self._greeting) if one is not None and not one.done()]
            if open_ones:
                await asyncio.wait(open_ones, return_when=asyncio.FIRST_COMPLETED)
            found = self._discovery()
            if found is not None:
                return found
            if self._greeting.done() and (self._greeting.exception() is None or not self._hoping()):
                return self._greeted(self._greeting.result())

    def _hoping(self) -> bool:
        return self._discovering is not None and not self._discovering.done()

    def _ask(self, method: str, params: Message, headers: Mapping[str, str] | None) -> asyncio.Task[Answer]:
        # The protocol forbids cancelling these two.
        asking = self._peer.request(method, params, silence=self._patience, headers=headers, cancellable=False)
        return asyncio.get_running_loop().create_task(asking)

    def _discovery(self) -> Agreement | None:
        if self._discovering is None or not self._discovering.done():
            return None
        error = self._discovering.exception()
        if error is not None:
            if not isinstance(error, Unavailable):
                raise error
            return None
        result = self._discovering.result()
        spoken = result.get("supportedVersions")
        common = [one for one in MODERN_VERSIONS if isinstance(spoken, list) and one in spoken]
        if not common:
            return None
        info = as_object(result.get("_meta")).get(SERVER_INFO_KEY)
        return self._agreement(common[-1], info, result)

    def _greeted(self, result: Answer) -> Agreement:
        version = as_text(result.get("protocolVersion")) or ""
        if version not in HANDSHAKE_VERSIONS:
            known = ", ".join((*HANDSHAKE_VERSIONS, *MODERN_VERSIONS))
            raise SourceFailed(
                f"server `{self._peer.server}` speaks revision `{version[:40]}` of the protocol, which is unknown here",
                suggestion=f"known are {known}",
            )
        agreement = self._agreement(version, result.get("serverInfo"), result)
        self._peer.notify("notifications/initialized", headers=agreement.headers("notifications/initialized", {}))
        return agreement

    def _agreement(self, version: str, info: Json, result: Answer) -> Agreement:
        return Agreement(
            version=version,
            introduction=introduction_of(info, result.get("instructions"), otherwise=self._peer.server),
            capabilities=as_object(result.get("capabilities")),
        )

    def stop(self) -> None:
        for one in (self._discovering, self._greeting):
            if one is not None and not one.cancel() and not one.cancelled():
                # Looked at, so that the event loop does not report it as forgotten.
                one.exception()
