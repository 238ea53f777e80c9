"""HTTP transport to an MCP server, by the SDK's transports: streamable HTTP, and the older server-sent events.

A failed request costs only that request; a server that refuses connections, or has dropped the session, is lost. This
module does not interpret messages, and its errors contain no URL, since one may include a secret.
"""

import asyncio
import contextvars
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import Any, cast

import anyio
import httpx2
import mcp_types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import ClientMessageMetadata, SessionMessage

from ullage.errors import SourceFailed
from ullage.gateway import Server

from ..jsonrpc import INTERNAL_ERROR, Message
from .rpc_peer import SIGN_IN, UNREACHABLE, Receiver, sign_in_needed

__all__ = ["Remote", "open_remote"]

_LARGEST_EVENT = 64 * 1024 * 1024
_UNSENT = 1000
"""Maximum messages waiting to be sent."""
_CONNECTING = 30.0
_LEAVING = 3.0
"""Seconds for ending the session on the server."""
_SESSION = "mcp-session-id"
_LAST_EVENT = "last-event-id"
"""Header of a request that resumes a stream which the server ended."""
_METADATA = "/.well-known/oauth-protected-resource"
"""Path at which a server publishes how to sign in to it (RFC 9728), followed by the path of its address."""
_METADATA_SECONDS = 3.0
_MOVED = "that is not followed: where it has moved, its `url` must say so"


class Watching(httpx2.AsyncClient):
    """Sends HTTP requests, and turns a failure to reach the server into an error answer.

    The SDK would drop the whole connection, with every other call on it, for one request that failed.
    """

    def __init__(self, server: Server, receiver: Receiver) -> None:
        # No time limit on answers: the caller of a request judges how long the server may be silent.
        super().__init__(headers=dict(server.headers), timeout=httpx2.Timeout(_CONNECTING, read=None))
        self._receiver = receiver
        self._answers_apart = server.transport == "sse"
        """With this transport answers arrive on a separate stream, so that a failed request has none of its own."""
        self.refused: str | None = None
        """The reason for the server's last refusal of a request, for the user."""
        self.needs_sign_in = False
        """Whether that refusal was for want of a sign-in."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # noqa: ANN401 - handed on
        if request.method == "GET" and _LAST_EVENT in request.headers:
            self._receiver.paused()
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            reason = f"cannot be reached ({type(error).__name__})"
            if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
                self._lost_before(request, reason)
            elif self._answers_apart:
                self._receiver.lost(reason)
            return _answer(request, reason)
        if response.has_redirect_location and _leads_away(request, response):
            # Hides the redirect's target from the SDK, which would show it to the client and
            # write it to the log.
            self.refused = f"answered HTTP {response.status_code} and would send us to another address; {_MOVED}"
            if self._answers_apart and request.method == "POST":
                return await self._lost_apart(request, response)
            await response.aclose()
            return _answer(request, self.refused)
        # A server without a stream refuses the request for one, which is no failure.
        if response.status_code >= HTTPStatus.BAD_REQUEST and (request.method == "POST" or self._answers_apart):
            return await self._refused(request, response)
        return response

    async def _refused(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        self.refused = f"answered HTTP {response.status_code} ({_phrase(response.status_code)})"
        if response.status_code == HTTPStatus.UNAUTHORIZED and await self._wants_sign_in(request, response):
            self.needs_sign_in, self.refused = True, "needs a sign-in"
            if not self._answers_apart:
                await response.aclose()
                return _answer(request, self.refused, {SIGN_IN: True})
        if response.status_code == HTTPStatus.NOT_FOUND and _SESSION in request.headers:
            self._lost_before(request, f"{self.refused}: it has forgotten the session")
        if self._answers_apart and request.method == "POST":
            return await self._lost_apart(request, response)
        return response

    async def _wants_sign_in(self, request: httpx2.Request, response: httpx2.Response) -> bool:
        """Return whether the server publishes OAuth metadata, named by its challenge or at the usual address."""
        if "resource_metadata" in response.headers.get("www-authenticate", ""):
            return True
        for path in dict.fromkeys((_METADATA + request.url.path.rstrip("/"), _METADATA)):
            # Without the configured headers: a server that requires a sign-in has no use for them.
            asking = httpx2.Request(
                "GET",
                request.url.copy_with(raw_path=path.encode()),
                extensions={"timeout": httpx2.Timeout(_METADATA_SECONDS).as_dict()},
            )
            try:
                found = await super().send(asking)
                document: object = found.json() if found.status_code == HTTPStatus.OK else None
            except (httpx2.HTTPError, ValueError):
                continue
            if isinstance(document, dict) and {"authorization_servers", "resource"} & document.keys():
                return True
        return False

    async def _lost_apart(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        self._receiver.lost(self.refused or "refused a request")
        await response.aclose()
        return httpx2.Response(HTTPStatus.ACCEPTED, request=request)

    def _lost_before(self, request: httpx2.Request, reason: str) -> None:
        """Mark the connection as unusable and this request as unsent, so that another connection may carry it."""
        if request.method != "POST":
            number = None
        else:
            message: object = json.loads(request.content)
            carried = cast("Message", message) if isinstance(message, dict) else {}
            number = carried.get("id") if "method" in carried else None
        if number is not None:
            self._receiver.unsent(number, reason)
        self._receiver.lost(reason)


def _answer(request: httpx2.Request, reason: str, more: Mapping[str, bool] | None = None) -> httpx2.Response:
    body = {"code": INTERNAL_ERROR, "message": reason, "data": {UNREACHABLE: reason, **(more or {})}}
    answer = json.dumps({"jsonrpc": "2.0", "id": 0, "error": body}).encode()
    headers = {"content-type": "application/json"}
    return httpx2.Response(HTTPStatus.BAD_GATEWAY, headers=headers, content=answer, request=request)


def _leads_away(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Return whether a redirect leaves the host or would drop the request's body. Only other redirects are followed."""
    following = response.next_request
    if following is None or following.method != request.method:
        return True
    here, there = request.url, following.url
    is_elsewhere = (there.host, there.port) != (here.host, here.port) or there.scheme not in (here.scheme, "https")
    return is_elsewhere or there.userinfo not in (b"", here.userinfo)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "unknown"


class Remote:
    """A connection to a remote server."""

    process_id = None

    def __init__(self, server: Server, receiver: Receiver) -> None:
        self._server = server
        self._receiver = receiver
        self._client = Watching(server, receiver)
        self._write: Any = None
        self._sending: set[asyncio.Task[None]] = set()
        self._leave = asyncio.Event()

    def post(self, message: Message, headers: Mapping[str, str] | None = None) -> bool:
        if self._write is None or len(self._sending) >= _UNSENT:
            return False
        metadata = ClientMessageMetadata(headers=dict(headers)) if headers else None
        outgoing = SessionMessage(mcp_types.jsonrpc_message_adapter.validate_python(message), metadata)
        # Sent in the caller's context, by which messages on this request's own answer are known to belong to it.
        task = asyncio.get_running_loop().create_task(self._send(outgoing), context=contextvars.copy_context())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return True

    async def _send(self, message: SessionMessage) -> None:
        try:
            await self._write.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._receiver.lost("closed the connection")

    def stderr_tail(self) -> str:
        return ""

    def last_words(self) -> str:
        return ""

    def printed(self) -> str:
        return ""

    def notes(self) -> tuple[str, ...]:
        return ()

    def refused(self) -> str | None:
        """The reason for which the server refused requests below the protocol level, such as a missing key."""
        return self._client.refused

    async def run(self, ready: asyncio.Future[None]) -> None:
        """Run the connection until it is lost or closed; `ready` is settled once it can be used, or has failed."""
        reason = "closed the connection"
        try:
            async with self._transport() as (read, write):
                self._write = write
                if not ready.done():
                    ready.set_result(None)
                reading = asyncio.get_running_loop().create_task(self._read(read))
                leaving = asyncio.get_running_loop().create_task(self._leave.wait())
                try:
                    await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    self._write = None
                    if reading.done():
                        reading.result()
                    reading.cancel()
                    leaving.cancel()
        except Exception as error:  # noqa: BLE001 - the SDK raises groups of its tasks' errors; all mean the same
            reason = self._client.refused or _reason(error)
        finally:
            self._receiver.lost(reason)
            if not ready.done():
                ready.set_exception(
                    sign_in_needed(self._server.name)
                    if self._client.needs_sign_in
                    else SourceFailed(f"server `{self._server.name}` {reason}")
                )

    def _transport(self) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        url = self._server.url or ""
        if self._server.transport == "sse":
            return sse_client(url, httpx_client_factory=self._return_client)
        return self._streamable(url)

    def _return_client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        """Return the one HTTP client, whatever the SDK requests."""
        del headers, timeout, auth
        return self._client

    @asynccontextmanager
    async def _streamable(self, url: str) -> AsyncGenerator[tuple[Any, Any]]:
        async with (
            self._client as client,
            streamable_http_client(url, http_client=client, max_sse_event_size=_LARGEST_EVENT) as streams,
        ):
            yield streams

    async def _read(self, read: Any) -> None:  # noqa: ANN401 - the SDK keeps the stream's type to itself
        async with read:
            async for item in read:
                if isinstance(item, SessionMessage):
                    context = read.last_context or contextvars.copy_context()
                    context.run(self._receiver.received, _plain(item.message))

    async def leave(self, running: asyncio.Task[None]) -> None:
        """End the session on the server within a time limit, and close the connection."""
        self._leave.set()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({running}, timeout=_LEAVING)
            running.cancel()
            for task in self._sending:
                task.cancel()
            await asyncio.wait({running}, timeout=1.0)


def _plain(message: mcp_types.JSONRPCMessage) -> Message:
    """Convert an SDK message to a plain mapping without copying its contents."""
    match message:
        case mcp_types.JSONRPCRequest():
            return {"id": message.id, "method": message.method, "params": message.params}
        case mcp_types.JSONRPCNotification():
            return {"method": message.method, "params": message.params}
        case mcp_types.JSONRPCResponse():
            return {"id": message.id, "result": message.result}
        case mcp_types.JSONRPCError():
            error = message.error
            return {"id": message.id, "error": {"code": error.code, "message": error.message, "data": error.data}}


def _reason(error: BaseException) -> str:
    """Describe the innermost error; its own text may contain the URL."""
    if isinstance(error, BaseExceptionGroup):
        return _reason(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    if isinstance(error, httpx2.SSEError):
        return "sent an event of more than 1 MiB, or none that can be read; streamable HTTP carries larger ones"
    return f"cannot be spoken to ({type(error).__name__})"


@asynccontextmanager
async def open_remote(server: Server, receiver: Receiver) -> AsyncGenerator[Remote]:
    """Open a connection; it runs in a task of its own, so that its failure does not raise elsewhere."""
    loop = asyncio.get_running_loop()
    remote = Remote(server, receiver)
    ready: asyncio.Future[None] = loop.create_future()
    running = loop.create_task(remote.run(ready))
    try:
        await ready
        yield remote
    finally:
        await remote.leave(running)
