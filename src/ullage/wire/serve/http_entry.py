"""Serve MCP over streamable HTTP on `/mcp`, and on `/mcp/NAME` for the client of that name.

The server listens on the loopback interface only, unless a bearer token is set; `Host` and `Origin` are checked either
way, so that no web page reaches it by DNS rebinding. It does not encrypt: outside a trusted network, put a TLS proxy in
front of it.
"""

import ipaddress
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .http_auth import LOOPBACK, AllowedHosts, Page, Tokens, refuse_beyond_loopback
from .request_handlers import Profiles, SessionEnd, Shutdown

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp

    from ullage.ledger import AuditEvent

    from .asgi_app import Front

__all__ = ["http_app", "serve_http"]

_MOST_CONNECTIONS = 1_024
"""Connections above which requests are answered with 503."""


async def serve_http(  # noqa: PLR0913
    profiles: Profiles,
    bound: socket.socket,
    *,
    client: str | None = None,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] = (),
    allow_hosts: tuple[str, ...] = (),
    clock: Callable[[], float] = time.time,
    on_session_end: SessionEnd | None = None,
    shutdown: Shutdown | None = None,
    pages: Mapping[str, Page] | None = None,
    site: "ASGIApp | None" = None,
    audit: "Callable[[AuditEvent], None] | None" = None,
) -> None:
    """Serve on a bound socket until shutdown or cancellation.

    Args:
        profiles: Returns a client's profile by name.
        bound: The bound socket.
        client: The name of a client that connects without a name in the path.
        tokens: The accepted bearer tokens; None for no authorization.
        hosts: Further names of this machine, valid on the bound port.
        allow_hosts: Names under which a proxy is reached, as `NAME` or `NAME:PORT`. Without a port it is 80, 443 or the
            bound one.
        pages: Pages served beside MCP, by path.
        site: Answers every other path, once `Host` and `Origin` are checked. It authorizes requests itself.
        audit: Called with refused requests, at most once a minute for each HTTP status.
    """
    own, port = bound.getsockname()[:2]
    if not tokens:
        refuse_beyond_loopback(own)
    # HTTP's modules are imported only here: the other verbs do not wait for them.
    from .asgi_app import Listening

    allowed = AllowedHosts.build((*_names_of(own), *hosts), allow_hosts)
    front = _front(profiles, client, tokens, allowed, port, clock, on_session_end, pages, site, audit)
    listening = Listening(front, most_connections=_MOST_CONNECTIONS)
    await listening.serve(bound, shutdown or Shutdown())


def http_app(  # noqa: PLR0913
    profiles: Profiles,
    *,
    client: str | None = None,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] | None = None,
    clock: Callable[[], float] = time.time,
    on_session_end: SessionEnd | None = None,
    pages: Mapping[str, Page] | None = None,
    site: "ASGIApp | None" = None,
    audit: "Callable[[AuditEvent], None] | None" = None,
) -> "Starlette":
    """Return the server as an ASGI application, to be mounted in another one.

    `hosts` are the names under which it is reached, as `NAME` or `NAME:PORT`; None for those of the loopback interface
    on the port that the other application listens on; `audit` is that of `serve_http`.
    """
    allowed = AllowedHosts.build(LOOPBACK) if hosts is None else AllowedHosts.build((), hosts)
    return _front(profiles, client, tokens, allowed, None, clock, on_session_end, pages, site, audit).application()


def _front(  # noqa: PLR0913, PLR0917
    profiles: Profiles,
    client: str | None,
    tokens: Tokens | None,
    hosts: AllowedHosts,
    port: int | None,
    clock: Callable[[], float],
    on_session_end: SessionEnd | None,
    pages: Mapping[str, Page] | None = None,
    site: "ASGIApp | None" = None,
    audit: "Callable[[AuditEvent], None] | None" = None,
) -> "Front":
    from .asgi_app import Front

    return Front(profiles, client, tokens, hosts, port, clock, on_session_end, pages, site, audit)


def _names_of(own: str) -> tuple[str, ...]:
    """Return the names of this machine that lead to the bound address."""
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
