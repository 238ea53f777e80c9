"""The client of a request, reached while the request is being answered.

A call that is held open while its client is asked changes from one request to the next. What a client is to be asked is
decided elsewhere.
"""

from typing import cast

from ullage.errors import ClientCannot
from ullage.tool import JsonObject

from ..protocol import CAPABILITIES_KEY
from .ability import require
from .loudness import LEVEL_KEY, LEVELS, is_heard
from .request import Request

__all__ = ["Line"]


class Line:
    """The client at the other end; between two requests of a held call nobody listens."""

    __slots__ = ("capabilities", "modern", "request")

    def __init__(self, request: Request) -> None:
        self.request: Request | None = request
        self.modern = request.is_modern
        declared = request.meta.get(CAPABILITIES_KEY) if request.is_modern else request.connection.capabilities
        self.capabilities: JsonObject = cast("JsonObject", declared) if isinstance(declared, dict) else {}

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask by a request of the protocol, as a client before 2026-07-28 expects."""
        require(self.capabilities, method, params)
        if self.request is None:
            raise ClientCannot(f"nobody is there to answer `{method}`")
        return await self.request.ask(method, params)

    async def tell(self, method: str, params: JsonObject) -> None:
        request = self.request
        if request is None or (method == "notifications/message" and not is_heard(params, _threshold(request))):
            return
        await request.notify(method, dict(params))

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        if self.request is not None:
            await self.request.report_progress(done, total, message)


def _threshold(request: Request) -> str | None:
    """The level from which this client is sent log messages; None for no messages."""
    if not request.is_modern:
        return request.connection.log_level or LEVELS[0]
    level = request.meta.get(LEVEL_KEY)
    return level if isinstance(level, str) else None
