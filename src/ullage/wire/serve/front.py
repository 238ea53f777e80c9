"""Who comes in over HTTP, and to which server?

Whoever has the right `Host`, `Origin` and token is led to the server that is the client's own. Sessions are the SDK's
where the protocol has them, and inferred where it has none. Connections and sockets are others' affair.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from ullage.errors import Denied, UllageError, Unavailable
from ullage.tool import Caller

from .address import PATH, bracketed
from .bearer import Tokens
from .line import Context, connection_of, is_modern
from .profile import Profiles, SessionEnd
from .serve import WhoCalls, build_server, user_name
from .sessions import InferredSessions

__all__ = ["Front", "security"]

_LARGEST_BODY = 64 * 1024 * 1024
_MOST_PROFILES = 64
_PRINCIPAL = "ullage.principal"
_ENDS = "ullage.session_end"


def security(hosts: tuple[str, ...]) -> TransportSecuritySettings:
    names = [f"{bracketed(host)}{port}" for host in dict.fromkeys(hosts) for port in ("", ":*")]
    origins = [f"{scheme}://{name}" for name in names for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=names, allowed_origins=origins)


class Front:
    """Lets in who may come in, and leads each client to the server that is its own; those are built as they are asked
    for."""

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        profiles: Profiles,
        client: str | None,
        tokens: Tokens | None,
        security: TransportSecuritySettings,
        clock: Callable[[], float],
        on_session_end: SessionEnd | None = None,
    ) -> None:
        self._profiles = profiles
        self._client = client
        self._tokens = tokens
        self._security = security
        self._clock = clock
        self._on_session_end = on_session_end
        self._user = user_name()
        self._sessions = InferredSessions()
        self._servers: dict[str | None, StreamableHTTPSessionManager] = {}
        self._opening = anyio.Lock()
        self._tasks: TaskGroup | None = None
        self._handling: set[anyio.CancelScope] = set()

    def application(self) -> Starlette:
        routes = [Route(PATH, endpoint=self), Route(f"{PATH}/{{client}}", endpoint=self)]
        return Starlette(routes=routes, lifespan=self._live)

    @asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncGenerator[None]:
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
        return await self._handle(server, scope, receive, send)

    async def _handle(self, server: StreamableHTTPSessionManager, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def sent(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        with anyio.CancelScope() as handling:
            self._handling.add(handling)
            try:
                await server.handle_request(scope, receive, sent)
            finally:
                self._handling.discard(handling)
        if handling.cancelled_caught and is_begun:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        elif handling.cancelled_caught:
            await _error(Unavailable("this server is ending"))(scope, receive, send)

    def cut_off(self) -> None:
        """Ends every request that is still open, as streams are that wait for news."""
        for handling in tuple(self._handling):
            handling.cancel()

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
            session = self._session(context, request, principal)
            return Caller(
                principal=principal,
                session=session or self._sessions.of(principal, client, self._clock()),
                session_inferred=session is None,
                client=client,
                model=model,
            )

        return who_calls

    def _session(self, context: Context, request: "Request[Any]", principal: str) -> str | None:
        """The session that the SDK opened for this principal. In the later era nobody checks such a header, and what
        it names may be somebody else's."""
        session = None if is_modern(context) else request.headers.get("mcp-session-id")
        if session is not None and self._on_session_end is not None:
            connection = connection_of(context)
            if _ENDS not in connection.state:
                connection.state[_ENDS] = session
                connection.exit_stack.callback(self._on_session_end, principal, session)
        return session


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
