"""How is a server spoken to over HTTP?

Streamable HTTP on a loopback address only, with `Host` and `Origin` checked by the SDK. It neither authenticates nor
listens to the outside world: serving beyond loopback is refused.
"""

import errno
import socket
from dataclasses import dataclass
from typing import Any, cast

import uvicorn
from starlette.requests import Request

from ullage.errors import InvalidArguments, Unavailable
from ullage.tool import Caller, ToolSource

from .serve import Context, Identity, build_server, user_name

__all__ = ["Address", "listen", "serve_http"]

PATH = "/mcp"
_PORTS_TRIED = 100
_HOSTS = ("127.0.0.1", "::1", "localhost")
_LARGEST_BODY = 64 * 1024 * 1024


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
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{PATH}"


def listen(address: Address, *, next_free: bool = False) -> tuple[socket.socket, Address]:
    """Binds the address, or with `next_free` the first port from it on that nobody holds."""
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
    """The SDK checks `Host` against these three, so another loopback address would answer nobody."""
    if host not in _HOSTS:
        raise InvalidArguments(
            f"Ullage does not serve on `{host}`, only to this machine", suggestion="use 127.0.0.1", options=_HOSTS
        )


async def serve_http(
    source: ToolSource, identity: Identity, bound: socket.socket, *, client: str | None = None
) -> None:
    """Serves on a bound socket until the process is interrupted."""
    principal = user_name()

    def who_calls(context: Context) -> Caller:
        headers = cast("Request[Any]", context.request).headers
        session = headers.get("mcp-session-id")
        return Caller(
            principal=principal, session=session or f"{principal}:http", session_inferred=session is None, client=client
        )

    server = build_server(source, identity, who_calls)
    application = server.streamable_http_app(streamable_http_path=PATH, max_request_body_size=_LARGEST_BODY)
    settings = uvicorn.Config(application, log_level="warning", lifespan="on", ws="none", timeout_graceful_shutdown=2)
    await uvicorn.Server(settings).serve(sockets=[bound])
