"""How is a server spoken to over HTTP?

Streamable HTTP on `/mcp`, and on `/mcp/NAME` for the client of that name. It listens to this machine alone unless
somebody set a bearer token; `Host` and `Origin` are checked either way, so that no web page reaches it by a trick with
names. It encrypts nothing: beyond a trusted network something in front of it must.
"""

import errno
import ipaddress
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio
import uvicorn
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ullage.errors import Denied, InvalidArguments, UllageError, Unavailable
from ullage.tool import Caller

from .bearer import HOW_TO_MAKE, TOKENS_VARIABLE, Tokens
from .line import Context
from .profile import Profiles
from .serve import WhoCalls, build_server, user_name
from .sessions import InferredSessions

__all__ = ["Address", "http_app", "listen", "serve_http"]

PATH = "/mcp"
_PORTS_TRIED = 100
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LARGEST_BODY = 64 * 1024 * 1024
_MOST_PROFILES = 64
_PRINCIPAL = "ullage.principal"


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 8787

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Reads `PORT`, `HOST:PORT` or `[HOST]:PORT`."""
        host, _, port = text.rpartition(":")
        bare = host.count(":") > 0 and not host.startswith("[")
        if bare or not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise InvalidArguments(
                f"`{text}` is not an address to listen on",
                suggestion="write a port, or a host and a port: 127.0.0.1:8787",
            )
        return cls(host=host.strip("[]") or "127.0.0.1", port=int(port))

    @property
    def url(self) -> str:
        return f"http://{_bracketed(self.host)}:{self.port}{PATH}"

    def url_for(self, client: str | None) -> str:
        return self.url if client is None else f"{self.url}/{client}"


def listen(address: Address, *, next_free: bool = False, tokens: Tokens | None = None) -> tuple[socket.socket, Address]:
    """Binds the address, or with `next_free` the first port from it on that nobody holds."""
    if not tokens:
        _refuse_beyond_loopback(address.host)
    for port in range(address.port, min(address.port + (_PORTS_TRIED if next_free else 1), 65_536)):
        try:
            bound = socket.create_server(
                (address.host, port), family=socket.AF_INET6 if ":" in address.host else socket.AF_INET
            )
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise Unavailable(f"cannot listen on `{address.host}:{port}`: {error.strerror}") from error
            continue
        return bound, Address(address.host, bound.getsockname()[1])
    raise Unavailable(
        f"port `{address.port}` on `{address.host}` is in use",
        suggestion="choose another with --http PORT, or add --next-free",
    )


def _refuse_beyond_loopback(host: str) -> None:
    if host not in _LOOPBACK:
        raise InvalidArguments(
            f"without a bearer token Ullage does not serve on `{host}`, only to this machine",
            suggestion=f"use 127.0.0.1, or set {TOKENS_VARIABLE}=NAME:TOKEN with a token from: {HOW_TO_MAKE}",
            options=_LOOPBACK,
        )


async def serve_http(  # noqa: PLR0913
    profiles: Profiles,
    bound: socket.socket,
    *,
    client: str | None = None,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] = (),
    clock: Callable[[], float] = time.time,
) -> None:
    """Serves on a bound socket until the process is interrupted.

    `client` names whoever comes without a name in the path; `hosts` are further names under which this is reached.
    """
    own = bound.getsockname()[0]
    if not tokens:
        _refuse_beyond_loopback(own)
    application = http_app(profiles, client=client, tokens=tokens, hosts=(*_names_of(own), *hosts), clock=clock)
    settings = uvicorn.Config(application, log_level="warning", lifespan="on", ws="none", timeout_graceful_shutdown=2)
    await uvicorn.Server(settings).serve(sockets=[bound])


def http_app(
    profiles: Profiles,
    *,
    client: str | None = None,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] = _LOOPBACK,
    clock: Callable[[], float] = time.time,
) -> Starlette:
    """The same as an ASGI application, to be mounted in another one."""
    front = _Front(profiles, client, tokens, _security(hosts), clock)
    routes = [Route(PATH, endpoint=front), Route(f"{PATH}/{{client}}", endpoint=front)]
    return Starlette(routes=routes, lifespan=front.live)


def _names_of(own: str) -> tuple[str, ...]:
    """The names of this machine that lead to the bound address."""
    if own in _LOOPBACK:
        return _LOOPBACK
    if not ipaddress.ip_address(own).is_unspecified:
        return (own,)
    name = socket.gethostname()
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    except OSError:
        found = set[str]()
    return (*_LOOPBACK, name, *sorted(found))


def _security(hosts: tuple[str, ...]) -> TransportSecuritySettings:
    names = [f"{_bracketed(host)}{port}" for host in dict.fromkeys(hosts) for port in ("", ":*")]
    origins = [f"{scheme}://{name}" for name in names for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=names, allowed_origins=origins)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Front:
    """Lets in who may come in, and leads each client to the server that is its own; those are built as they are asked
    for."""

    def __init__(
        self,
        profiles: Profiles,
        client: str | None,
        tokens: Tokens | None,
        security: TransportSecuritySettings,
        clock: Callable[[], float],
    ) -> None:
        self._profiles = profiles
        self._client = client
        self._tokens = tokens
        self._security = security
        self._clock = clock
        self._user = user_name()
        self._sessions = InferredSessions()
        self._servers: dict[str | None, StreamableHTTPSessionManager] = {}
        self._opening = anyio.Lock()
        self._tasks: TaskGroup | None = None

    @asynccontextmanager
    async def live(self, _: Starlette) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            refusal = await TransportSecurityMiddleware(self._security).validate_request(request)
            if refusal is not None:
                return await refusal(scope, receive, send)
            self._admit(scope, request.headers.get("authorization"))
            server = await self._server(request.path_params.get("client", self._client))
        except UllageError as error:
            return await _error(error)(scope, receive, send)
        return await server.handle_request(scope, receive, send)

    def _admit(self, scope: Scope, authorization: str | None) -> None:
        if not self._tokens:
            scope[_PRINCIPAL] = self._user
            return
        name = self._tokens.name_of(authorization)
        if name is None:
            raise Denied(
                "a bearer token is needed here, and there was none that is known",
                suggestion="send the header `Authorization: Bearer TOKEN`",
            )
        scope[_PRINCIPAL] = name
        # By this the SDK binds a session of the earlier era to whoever opened it.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))

    async def _server(self, client: str | None) -> StreamableHTTPSessionManager:
        if client not in self._servers:
            async with self._opening:
                if client not in self._servers:
                    self._servers[client] = await self._open(client)
        return self._servers[client]

    async def _open(self, client: str | None) -> StreamableHTTPSessionManager:
        profile = self._profiles(client)
        if len(self._servers) >= _MOST_PROFILES:
            raise Unavailable(f"{_MOST_PROFILES} clients are served under names of their own already")
        server = build_server(profile.source, profile.identity, self._who_calls(client, profile.model))
        manager = StreamableHTTPSessionManager(
            server, security_settings=self._security, max_request_body_size=_LARGEST_BODY
        )
        await cast("TaskGroup", self._tasks).start(_run, manager)
        return manager

    def _who_calls(self, client: str | None, model: str | None) -> WhoCalls:
        def who_calls(context: Context) -> Caller:
            request = cast("Request[Any]", context.request)
            principal: str = request.scope[_PRINCIPAL]
            session = request.headers.get("mcp-session-id")
            return Caller(
                principal=principal,
                session=session or self._sessions.of(principal, client, self._clock()),
                session_inferred=session is None,
                client=client,
                model=model,
            )

        return who_calls


async def _run(
    manager: StreamableHTTPSessionManager, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    async with manager.run():
        task_status.started()
        await anyio.sleep_forever()


def _error(error: UllageError) -> Response:
    status = 401 if isinstance(error, Denied) else 503 if isinstance(error, Unavailable) else 404
    headers = {"WWW-Authenticate": 'Bearer realm="ullage"'} if status == 401 else None
    return JSONResponse(dict(error.wire()), status_code=status, headers=headers)
