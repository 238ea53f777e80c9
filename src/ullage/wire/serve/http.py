"""How is a server spoken to over HTTP?

Streamable HTTP on `/mcp`, and on `/mcp/NAME` for the client of that name. It listens to this machine alone unless
somebody set a bearer token; `Host` and `Origin` are checked either way, so that no web page reaches it by a trick with
names. It encrypts nothing: beyond a trusted network something in front of it must.
"""

import ipaddress
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from .address import LOOPBACK, refuse_beyond_loopback
from .bearer import Tokens
from .profile import Profiles, SessionEnd

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from .front import Front

__all__ = ["http_app", "serve_http"]

_MOST_CONNECTIONS = 1_024
"""Above it, requests are answered with 503 until some are gone."""


async def serve_http(  # noqa: PLR0913
    profiles: Profiles,
    bound: socket.socket,
    *,
    client: str | None = None,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] = (),
    clock: Callable[[], float] = time.time,
    on_session_end: SessionEnd | None = None,
    told_to_end: anyio.Event | None = None,
) -> None:
    """Serves on a bound socket until it is told to end, or cancelled.

    `client` names whoever comes without a name in the path; `hosts` are further names under which this is reached.
    """
    own = bound.getsockname()[0]
    if not tokens:
        refuse_beyond_loopback(own)
    # What HTTP needs is loaded where HTTP is served: the other verbs do not wait for it.
    from .listening import Listening

    front = _front(profiles, client, tokens, (*_names_of(own), *hosts), clock, on_session_end)
    listening = Listening(front.application(), front.cut_off, most_connections=_MOST_CONNECTIONS)
    await listening.serve(bound, told_to_end or anyio.Event())


def http_app(  # noqa: PLR0913
    profiles: Profiles,
    *,
    client: str | None = None,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] = LOOPBACK,
    clock: Callable[[], float] = time.time,
    on_session_end: SessionEnd | None = None,
) -> "Starlette":
    """The same as an ASGI application, to be mounted in another one."""
    return _front(profiles, client, tokens, hosts, clock, on_session_end).application()


def _front(  # noqa: PLR0913, PLR0917
    profiles: Profiles,
    client: str | None,
    tokens: Tokens | None,
    hosts: tuple[str, ...],
    clock: Callable[[], float],
    on_session_end: SessionEnd | None,
) -> "Front":
    from .front import Front, security

    return Front(profiles, client, tokens, security(hosts), clock, on_session_end)


def _names_of(own: str) -> tuple[str, ...]:
    """The names of this machine that lead to the bound address."""
    if own in LOOPBACK:
        return LOOPBACK
    if not ipaddress.ip_address(own).is_unspecified:
        return (own,)
    name = socket.gethostname()
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    except OSError:
        found = set[str]()
    return (*LOOPBACK, name, *sorted(found))
