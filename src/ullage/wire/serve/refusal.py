"""Errors of ours as errors of the protocol.

For requests whose results have no place for an error, and for what the protocol wants refused outright. What another
program refused passes unchanged but for invisible characters.
"""

from collections.abc import Awaitable
from functools import partial
from typing import TypeVar, cast

import anyio.to_thread

from ullage.errors import BadInput, ProtocolError, UllageError, UnknownResource
from ullage.invisible_characters import escape_invisible, escape_json
from ullage.tool import Json

from ..jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

__all__ = ["RefusedRequest", "invalid_params", "or_refused", "refusal", "unknown_method"]

ResultT = TypeVar("ResultT")

_RESOURCE_NOT_FOUND = -32002
"""A resource that is not there, in the earlier era; the later one has no number of its own for it."""


class RefusedRequest(Exception):
    """A request is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def invalid_params() -> RefusedRequest:
    return RefusedRequest(INVALID_PARAMS, "Invalid request parameters", "")


def unknown_method(method: str) -> RefusedRequest:
    return RefusedRequest(METHOD_NOT_FOUND, "Method not found", method)


async def or_refused(answer: Awaitable[ResultT], *, modern: bool, uri: str | None = None) -> ResultT:
    """The answer; raises `RefusedRequest` for an error of ours."""
    try:
        return await answer
    except UllageError as error:
        if isinstance(error, ProtocolError):
            # A server wrote it, and it may be of any length: others do not wait while it is looked through.
            raise await anyio.to_thread.run_sync(partial(refusal, error, modern=modern, uri=uri)) from error
        raise refusal(error, modern=modern, uri=uri) from error


def refusal(error: UllageError, *, modern: bool, uri: str | None = None) -> RefusedRequest:
    """The protocol's own error; ours is in its `data`, with the address that was asked for."""
    if isinstance(error, ProtocolError):
        data = escape_json(cast("Json", error.data))
        return RefusedRequest(error.number, escape_invisible(error.message), data)
    number = INVALID_PARAMS if isinstance(error, BadInput) else INTERNAL_ERROR
    if isinstance(error, UnknownResource) and uri is not None and not modern:
        number = _RESOURCE_NOT_FOUND
    data = cast("dict[str, Json]", escape_json(cast("Json", dict(error.wire()))))
    return RefusedRequest(number, escape_invisible(error.message), data | ({} if uri is None else {"uri": uri}))
