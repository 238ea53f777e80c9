"""How does a result reach the client whole?

The SDK rebuilds every result from its own types: keys those do not know vanish, and a result that does not fit them
becomes an internal error. Its last word belongs to a server's middleware, though; so a handler leaves the real result
here, returns an empty one for the SDK to look at, and the middleware puts the real one in its place. Requests are still
checked by the SDK. It also writes what the SDK cannot know: instructions as they are now, and capabilities as they are.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, SERVER_INFO_META_KEY
from pydantic import ValidationError

from ullage.tool import Json

from .content import COMPLETE
from .line import Context, is_modern

__all__ = ["FRESH_MS", "Envelope"]

_log = logging.getLogger(__name__)

FRESH_MS: Mapping[str, int] = {
    "tools/list": 60_000,
    "resources/list": 60_000,
    "resources/templates/list": 60_000,
    "prompts/list": 60_000,
    "resources/read": 0,
    "server/discover": 60_000,
}
"""For how long a client may keep an answer, each for itself alone: lists differ by who asks."""

_EMPTY: Mapping[str, Mapping[str, Any]] = {
    "tools/list": {"tools": []},
    "tools/call": {"content": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": []},
    "prompts/list": {"prompts": []},
    "prompts/get": {"messages": []},
    "completion/complete": {"completion": {"values": []}},
}
_INTRODUCTIONS = ("initialize", "server/discover")


class Envelope:
    """The middleware of one server."""

    def __init__(
        self,
        name: str,
        version: str,
        instructions: Callable[[], str | None],
        capabilities: Callable[[], dict[str, Json]],
    ) -> None:
        self._stamp: dict[str, Json] = {SERVER_INFO_META_KEY: {"name": name, "version": version}}
        self._instructions = instructions
        self._capabilities = capabilities
        self._whole: dict[int, dict[str, Any] | None] = {}

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        key = id(ctx)
        self._whole[key] = None
        try:
            seen = await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except Exception as error:
            # The edge: what no one foresaw is logged here, and the client learns no more than that it happened.
            _log.exception("answering `%s` failed", ctx.method)
            raise MCPError(INTERNAL_ERROR, "Internal error") from error
        finally:
            whole = self._whole.pop(key)
        if ctx.method in _INTRODUCTIONS and isinstance(seen, dict):
            return self._introduced(seen)
        return seen if whole is None else whole

    def leave(self, context: Context, result: dict[str, Any]) -> dict[str, Any]:
        """Keeps a result for the client; returns what to show to the SDK."""
        if is_modern(context):
            self._seal(context.method, result)
        if id(context) not in self._whole:
            return result
        self._whole[id(context)] = result
        return {"resultType": COMPLETE, **_EMPTY[context.method]}

    def _seal(self, method: str, result: dict[str, Any]) -> None:
        """Adds what every result of 2026-07-28 carries."""
        result.setdefault("resultType", COMPLETE)
        # Over what a server behind us said of itself: it is we who are spoken to.
        result["_meta"] = {**result.get("_meta", {}), **self._stamp}
        fresh = FRESH_MS.get(method)
        if fresh is not None and result["resultType"] == COMPLETE:
            result["ttlMs"] = fresh
            result["cacheScope"] = "private"

    def _introduced(self, result: dict[str, Any]) -> dict[str, Any]:
        told = self._instructions()
        rest = {key: value for key, value in result.items() if key != "instructions"}
        return rest | {"capabilities": self._capabilities()} | ({} if told is None else {"instructions": told})
