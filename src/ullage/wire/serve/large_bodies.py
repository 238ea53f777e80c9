"""Large bodies of HTTP requests and answers, read and written beside the SDK.

The SDK parses a request and writes a result in one call each, which takes 100 ms and more at 15 MB, and every other
client waits meanwhile. A large result is therefore encoded in pieces in a worker thread, the SDK is given a short mark
to write in its place, and `send_large` exchanges the mark for the pieces. A large request is parsed in a worker thread
too; the SDK is handed a copy of it without the large parts of `arguments` and `inputResponses`, and `withheld_params`
returns these to whoever answers the request. What passes here is kept in the request's ASGI scope.
"""

import json
import secrets
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

import anyio.lowlevel
import anyio.to_thread
from starlette.types import Message as AsgiMessage
from starlette.types import Receive, Scope, Send

from ..freeing import LEAST, keep_until_unused
from ..json_lines import LONG, TooDeep, encode_any_pieces, is_large, read_long_line
from ..jsonrpc import INVALID_REQUEST, Message, error_response

__all__ = ["TooLargeRequest", "held_result", "hold_large_request", "hold_large_result", "send_large", "withheld_params"]

_RESULT = "ullage.large_result"
_PARAMS = "ullage.withheld_params"
_MARK = "dev.ullage/large_result"
_NO_JSON = b"{"
"""A body that the SDK refuses as it would have refused the large one."""


class TooLargeRequest(Exception):
    """A request is large in more than its `arguments` and `inputResponses`; `answer` is the error to send."""

    def __init__(self, number: object) -> None:
        text = "a request may be large in its `arguments` and `inputResponses` alone"
        super().__init__(text)
        self.answer = error_response(cast("int | str", number), INVALID_REQUEST, text)


@dataclass(slots=True)
class HeldResult:
    """A result that is encoded already, and the mark that the SDK writes for it."""

    mark: bytes
    pieces: deque[bytes]
    growth: int
    """Bytes by which the answer becomes longer when the pieces take the place of the mark."""


async def hold_large_result(scope: Scope, result: Message) -> Message:
    """The result itself, or a mark in its place where writing it would take long."""
    if not is_large(result):
        return result
    pieces = await anyio.to_thread.run_sync(encode_any_pieces, result)
    marked = {_MARK: secrets.token_hex(16)}
    mark = json.dumps(marked, separators=(",", ":")).encode()
    scope[_RESULT] = HeldResult(mark, deque(pieces), sum(map(len, pieces)) - len(mark))
    return marked


def held_result(scope: Scope) -> HeldResult | None:
    return scope.get(_RESULT)


async def send_large(held: HeldResult, message: AsgiMessage, send: Send) -> None:
    """Send a part of an answer, with the held result where the mark is."""
    if message["type"] == "http.response.start":
        headers = [
            (name, str(int(value) + held.growth).encode() if name.lower() == b"content-length" else value)
            for name, value in message.get("headers", ())
        ]
        return await send({**message, "headers": headers})
    before, mark, after = message.get("body", b"").partition(held.mark)
    if not mark:
        return await send(message)
    await send({"type": "http.response.body", "body": before, "more_body": True})
    while held.pieces:
        await send({"type": "http.response.body", "body": held.pieces.popleft(), "more_body": True})
        await anyio.lowlevel.checkpoint()
    return await send({**message, "body": after})


async def hold_large_request(scope: Scope, receive: Receive, most: int) -> Receive:
    """What the SDK is to receive: the request itself, or a small copy of a large one.

    A body of more than `most` bytes is left to the SDK, which refuses it.

    Raises:
        TooLargeRequest: No small copy can be made.
    """
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    if scope["method"] != "POST" or (length.isdigit() and not LONG < int(length) <= most):
        return receive
    body, received = bytearray(), deque[AsgiMessage]()
    while len(body) <= most:
        message = await receive()
        received.append(message)
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    last = received[-1]
    if LONG < len(body) <= most and last["type"] == "http.request":
        small = await anyio.to_thread.run_sync(_read, scope, body)
        if len(body) > LEAST:
            keep_until_unused(scope.get(_PARAMS))
        if small is not None:
            received = deque[AsgiMessage]([{"type": "http.request", "body": small, "more_body": False}])

    async def receive_again() -> AsgiMessage:
        return received.popleft() if received else await receive()

    return receive_again


def _read(scope: Scope, body: bytearray) -> bytes | None:
    """A small body in place of a large request, whose large parts are withheld; None for what is no request."""
    try:
        message: object = read_long_line(body)
    except (ValueError, TooDeep):
        return _NO_JSON
    if not isinstance(message, dict):
        return None
    request = cast("Message", message)
    params: object = request.get("params")
    if "method" not in request or not isinstance(params, dict):
        return None
    small = dict(cast("Message", params))
    withheld: Message = {}
    for key in ("arguments", "inputResponses"):
        if is_large(small.get(key)):
            withheld[key] = small.pop(key)
    arguments: object = withheld.get("arguments")
    if isinstance(arguments, dict):
        # Small ones stay, since the SDK compares some of them with headers.
        rest = {name: one for name, one in cast("Message", arguments).items() if not is_large(one)}
        small["arguments"] = {} if is_large(rest) else rest
    if is_large(small):
        raise TooLargeRequest(request.get("id"))
    scope[_PARAMS] = withheld
    return json.dumps({**request, "params": small}).encode()


def withheld_params(transport: object) -> dict[str, Any]:
    """The params that the SDK was not shown, of the request that came by this HTTP request."""
    return getattr(transport, "scope", {}).get(_PARAMS) or {}
