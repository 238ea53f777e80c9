"""A request and the client that sent it, independent of the transport.

The core for standard input and output makes requests itself; over HTTP they are made from the SDK's contexts. What is
asked of a client and what it answers pass as they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from ullage.tool import JsonObject

from ..jsonrpc import Message

__all__ = ["Connection", "Request"]


class Connection:
    """The state of a client's connection, for as long as it lasts."""

    __slots__ = ("__weakref__", "capabilities", "exit_stack", "log_level", "notify", "state")

    def __init__(
        self,
        notify: Callable[[str, Message | None], Awaitable[None]],
        *,
        capabilities: JsonObject | None = None,
        exit_stack: AsyncExitStack | None = None,
    ) -> None:
        self.notify = notify
        """Sends a notification that belongs to no request; dropped where the client is gone."""
        self.capabilities: JsonObject = capabilities or {}
        """As declared in the handshake; a later client declares them with each request."""
        self.exit_stack = exit_stack or AsyncExitStack()
        """Callbacks for the end of the connection."""
        self.log_level: str | None = None
        """Set by `logging/setLevel`; None before that."""
        self.state: dict[str, Any] = {}


class Request(ABC):
    """One request of a client. Params have been checked by `params.check` or by the SDK."""

    __slots__ = ("connection", "is_modern", "method", "number", "params", "transport")

    def __init__(  # noqa: PLR0913 - the facts of a request
        self,
        method: str,
        params: Message,
        *,
        number: int | str | None,
        is_modern: bool,
        connection: Connection,
        transport: object = None,
    ) -> None:
        self.method = method
        self.params = params
        self.number = number
        """Its `id`; None for a notification."""
        self.is_modern = is_modern
        """Whether it is of 2026-07-28 or later."""
        self.connection = connection
        self.transport = transport
        """What the transport knows of it: the HTTP request, or None."""

    @property
    def meta(self) -> Message:
        return self.params.get("_meta") or {}

    @abstractmethod
    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send the client a request and wait for its result.

        Raises:
            ClientCannot: There is no way to ask in the middle of this request.
            ProtocolError: The client answered with an error, or is gone.
        """

    @abstractmethod
    async def notify(self, method: str, params: Message | None = None) -> None:
        """Send the client a notification beside this request; dropped where the request has been answered."""

    async def report_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell the client how far the request is, where it gave a token for that."""
        token = self.meta.get("progressToken")
        if isinstance(token, bool) or not isinstance(token, int | str):
            return
        params: Message = {"progressToken": token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self.notify("notifications/progress", params)
