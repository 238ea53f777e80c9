"""How does an error of ours look as one of the protocol's?

For requests whose results have no place for an error, and for what the protocol wants refused outright. What another
program refused passes unchanged.
"""

from collections.abc import Awaitable
from functools import partial
from typing import TypeVar, cast

import anyio.to_thread
import mcp_types
from mcp.shared.exceptions import MCPError

from ullage.errors import BadInput, ProtocolError, UllageError, UnknownResource
from ullage.invisible import escape_invisible, escape_json
from ullage.tool import Json

__all__ = ["or_refused", "refusal"]

ResultT = TypeVar("ResultT")

_RESOURCE_NOT_FOUND = -32002
"""What the earlier era calls a resource that is not there; the later one has no number of its own for it."""


async def or_refused(answer: Awaitable[ResultT], *, modern: bool, uri: str | None = None) -> ResultT:
    try:
        return await answer
    except UllageError as error:
        if isinstance(error, ProtocolError):
            # A server wrote it, and it may be of any length: others do not wait while it is looked through.
            raise await anyio.to_thread.run_sync(partial(refusal, error, modern=modern, uri=uri)) from error
        raise refusal(error, modern=modern, uri=uri) from error


def refusal(error: UllageError, *, modern: bool, uri: str | None = None) -> MCPError:
    """The protocol's own error; ours rides along for those who read `data`, with the address that was asked for."""
    if isinstance(error, ProtocolError):
        data = escape_json(cast("Json", error.data))
        return MCPError(error.number, escape_invisible(error.message), data)
    number = mcp_types.INVALID_PARAMS if isinstance(error, BadInput) else mcp_types.INTERNAL_ERROR
    if isinstance(error, UnknownResource) and uri is not None and not modern:
        number = _RESOURCE_NOT_FOUND
    data = cast("dict[str, Json]", escape_json(cast("Json", dict(error.wire()))))
    return MCPError(number, escape_invisible(error.message), data | ({} if uri is None else {"uri": uri}))
