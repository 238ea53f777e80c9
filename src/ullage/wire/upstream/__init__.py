"""Client connections to MCP servers over stdio and HTTP, for each protocol era.

`open_upstream` opens a connection. A process is started or a URL reached, and both sides agree on a protocol revision,
all within the server's start timeout. `Upstream` makes the requests; the supervisor decides when to open a connection
and when to give up.

A process that ends at an unknown request is started again for the other era. Its last lines on standard error are part
of the error.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TypeVar

import anyio

from ullage.errors import DeadlinePassed, ProtocolError, SignInNeeded, SourceFailed
from ullage.gateway import Server
from ullage.tool import ClientDeclaration, Era

from .child_env import ChildEnvironment, WithheldVariables, redacted, secrets_of
from .rpc_peer import Peer, Questions, Receiver, Routing, Unsent, Waiting
from .server_connection import HESITATION, Agreement, Connection, ServerConnection, Upstream, agree, era_of
from .stdio_transport import open_pipe

__all__ = [
    "ChildEnvironment",
    "ServerConnection",
    "Stillborn",
    "Unsent",
    "Upstream",
    "WithheldVariables",
    "era_of",
    "open_upstream",
    "redacted",
    "secrets_of",
]


class Stillborn(SourceFailed):
    """A start that failed, with the last output that the server wrote to standard error."""

    def __init__(self, failure: SourceFailed, stderr_tail: str) -> None:
        super().__init__(failure.message, suggestion=failure.suggestion, options=failure.options)
        self.stderr_tail = stderr_tail


_Result = TypeVar("_Result")
_Reach = Callable[[Receiver], AbstractAsyncContextManager[Connection]]
_ENDING = 1.0
_AGAIN = "call again: the server is started or reached anew for it"


@asynccontextmanager
async def open_upstream(  # noqa: PLR0913 - each is a fact of the connection
    server: Server,
    *,
    environment: Mapping[str, str],
    era: Era | None = None,
    client: ClientDeclaration | None = None,
    hesitation: float = HESITATION,
    in_haste: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[Upstream]:
    """Start or reach a server and agree on a protocol revision; the context's end leaves nothing of it behind.

    Args:
        server: The server's settings.
        environment: Variables of the server's process.
        era: Used if the server supports it; the newer one by default.
        client: The client that is declared to the server.
        in_haste: Whether a server that is slow to end gets less time for it.

    Raises:
        SourceFailed: It cannot be started, reached or understood.
    """
    reach = partial(_open_transport, server, environment, in_haste)
    try:
        async with _open_peer(
            server,
            environment,
            reach,
            hesitation=None if server.transport == "sse" else hesitation,
            era=era,
            client=client,
        ) as upstream:
            yield upstream
            return
    except _DiedOfQuestion:
        # Some servers exit at an unknown request, and must be started again for the one that they know.
        pass
    other: Era | None = "stateless" if era == "handshake" else None
    async with _open_peer(
        server, environment, reach, hesitation=None if other is None else hesitation, era=other, client=client
    ) as upstream:
        yield upstream


class _DiedOfQuestion(Exception):
    """A server exited before it had answered any request."""


@asynccontextmanager
async def _open_peer(  # noqa: PLR0913 - `open_upstream` in its parts
    server: Server,
    environment: Mapping[str, str],
    reach: _Reach,
    *,
    hesitation: float | None,
    era: Era | None = None,
    client: ClientDeclaration | None = None,
) -> AsyncGenerator[Upstream]:
    waiting: dict[int | str, Waiting] = {}
    routing = Routing(waiting)
    questions = Questions(routing.answer)
    peer = Peer(server=server.name, questions=questions, heard=routing.heard, waiting=waiting)
    hush = partial(redacted, secrets=secrets_of(server, environment))
    async with AsyncExitStack() as stack:
        connection = await _in_time(server, stack.enter_async_context(reach(peer)))
        peer.channel, peer.last_words, peer.printed = connection, connection.last_words, connection.printed
        try:
            agreement = await _agree_on_revision(
                server, peer, connection, hush, hesitation=hesitation, era=era, client=client
            )
            peer.advice = _AGAIN
            upstream = Upstream(server, peer, connection, agreement, routing)
            try:
                yield upstream
            finally:
                await upstream.close()
        finally:
            peer.lost("was closed")
            await questions.close()


def _open_transport(
    server: Server, environment: Mapping[str, str], in_haste: Callable[[], bool], receiver: Receiver
) -> AbstractAsyncContextManager[Connection]:
    if server.transport == "stdio":
        return open_pipe(server, environment, receiver, in_haste=in_haste)
    # The SDK and its HTTP client are loaded only for servers that are reached by HTTP; the others need not wait.
    from .http_transport import open_remote

    return open_remote(server, receiver)


async def _agree_on_revision(  # noqa: PLR0913 - `_open_peer` in its parts
    server: Server,
    peer: Peer,
    connection: Connection,
    hush: Callable[[str], str],
    *,
    hesitation: float | None,
    era: Era | None,
    client: ClientDeclaration | None,
) -> Agreement:
    patience = server.start_timeout
    try:
        agreeing = agree(peer, patience=patience, hesitation=hesitation, era=era, client=client)
        return await _in_time(server, agreeing)
    except ProtocolError as error:
        said = connection.refused() or f"refused to be spoken to: {hush(error.message)[:200]}"
        raise Stillborn(SourceFailed(f"server `{server.name}` {said}"), connection.stderr_tail()) from error
    except SignInNeeded:
        raise
    except SourceFailed as error:
        if isinstance(error, Unsent) and not peer.is_lost:
            # It has closed its input; its exit status and last output are known in a moment.
            with anyio.move_on_after(_ENDING):
                await peer.ended()
        if peer.is_lost and server.transport == "stdio" and hesitation is not None:
            raise _DiedOfQuestion from error
        raise Stillborn(peer.failed() if peer.is_lost else error, connection.stderr_tail()) from error


async def _in_time(server: Server, work: Awaitable[_Result]) -> _Result:
    try:
        with anyio.fail_after(server.start_timeout):
            return await work
    except (TimeoutError, DeadlinePassed) as error:
        raise SourceFailed(
            f"server `{server.name}` gave no answer within {server.start_timeout:g} s of being started",
            suggestion="give it more time with `start_timeout`, or run its command by hand to see what it waits for",
        ) from error
