"""How is the client of a request reached while the request is being answered?

Raw, both ways: what is asked of it and what it answers pass as they are. The SDK offers only typed ways to a client, so
the two places where its private parts are touched are in this file. What a client is to be asked is decided elsewhere.
"""

from collections.abc import Mapping
from typing import Any, cast

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import Outbound
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ullage.errors import ClientCannot, ProtocolError
from ullage.tool import JsonObject

from .ability import require
from .loudness import LEVEL_KEY, LEVELS, is_heard

__all__ = ["Context", "Line", "connection_of", "is_modern", "set_threshold"]

Context = ServerRequestContext[Any, Any]

_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_CAPABILITIES_KEPT = "ullage.capabilities"
_LEVEL_KEPT = "ullage.log_level"


def is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def connection_of(context: Context) -> Connection:
    """What lives as long as the client's connection does; the SDK hands out only the request's own view of it."""
    return context.session._connection  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001


def _channel(context: Context) -> Outbound:
    """What is sent here arrives beside the answer of this request, not on a stream that may not exist."""
    return context.session._request_outbound  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001


class Line:
    """The client at the other end. A call that is held open while its client is asked changes from one request to the
    next; between them nobody listens."""

    __slots__ = ("capabilities", "context", "modern")

    def __init__(self, context: Context, meta: JsonObject) -> None:
        self.context: Context | None = context
        self.modern = is_modern(context)
        self.capabilities = _declared(meta) if self.modern else _agreed(connection_of(context))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Asks by a request of the protocol, as a client before 2026-07-28 expects."""
        require(self.capabilities, method, params)
        if self.context is None:
            raise ClientCannot(f"nobody is there to answer `{method}`")
        try:
            return await _channel(self.context).send_raw_request(method, params)
        except NoBackChannelError as error:
            raise ClientCannot(f"this client cannot be asked for `{method}` in the middle of a request") from error
        except MCPError as error:
            raise ProtocolError(error.message, number=error.code, data=error.data) from error

    async def tell(self, method: str, params: JsonObject) -> None:
        if self.context is None or (method == "notifications/message" and not is_heard(params, self._threshold())):
            return
        await _channel(self.context).notify(method, params)

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        if self.context is not None:
            await self.context.session.report_progress(done, total, message)

    def _threshold(self) -> str | None:
        context = cast("Context", self.context)
        if self.modern:
            level = _meta_of(context).get(LEVEL_KEY)
            return level if isinstance(level, str) else None
        return connection_of(context).state.get(_LEVEL_KEPT, LEVELS[0])


def set_threshold(context: Context, level: str) -> None:
    connection_of(context).state[_LEVEL_KEPT] = level


def _meta_of(context: Context) -> Mapping[str, Any]:
    return (context.params or {}).get("_meta") or {}


def _declared(meta: JsonObject) -> JsonObject:
    declared = meta.get(_CAPABILITIES_KEY)
    return declared if isinstance(declared, dict) else {}


def _agreed(connection: Connection) -> JsonObject:
    """What an earlier client said when it connected, written out once for all its requests."""
    kept = connection.state.get(_CAPABILITIES_KEPT)
    if kept is None and connection.client_capabilities is not None:
        kept = connection.client_capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)
        connection.state[_CAPABILITIES_KEPT] = kept
    return kept or {}
