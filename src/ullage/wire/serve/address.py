"""Where is a server listened for over HTTP?

An address a person may write, and a socket bound to it: on this machine alone unless there is a bearer token. What is
said on it is not known here.
"""

import errno
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from ullage.errors import InvalidArguments, Unavailable

from .bearer import HOW_TO_MAKE, TOKENS_VARIABLE, Tokens

__all__ = ["LOOPBACK", "PATH", "Address", "bracketed", "listen", "refuse_beyond_loopback"]

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PORTS_TRIED = 100


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
        return f"http://{bracketed(self.host)}:{self.port}{PATH}"

    def is_reached_by(self, url: str) -> bool:
        """Whether a URL, however spelt, leads to what is served here."""
        try:
            found = urlsplit(url)
            host, port = found.hostname or "", found.port or (443 if found.scheme == "https" else 80)
        except ValueError:
            return False
        near = self.host in (*LOOPBACK, "0.0.0.0", "::") and host in LOOPBACK
        at_path = f"{found.path}/".startswith(f"{PATH}/")
        return port == self.port and at_path and (near or host == self.host)


def listen(address: Address, *, next_free: bool = False, tokens: Tokens | None = None) -> tuple[socket.socket, Address]:
    """Binds the address, or with `next_free` the first port from it on that nobody holds."""
    if not tokens:
        refuse_beyond_loopback(address.host)
    for port in range(address.port, min(address.port + (_PORTS_TRIED if next_free else 1), 65_536)):
        try:
            bound = socket.create_server(
                (address.host, port), family=socket.AF_INET6 if ":" in address.host else socket.AF_INET
            )
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise Unavailable(f"cannot listen on `{address.host}:{port}`: {error.strerror}") from error
            continue
        # Connections inherit it. asyncio sets it only on sockets made with IPPROTO_TCP, and without it the body of each
        # answer waits up to 40 ms for the client to acknowledge the headers.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bound, Address(address.host, bound.getsockname()[1])
    raise Unavailable(
        f"port `{address.port}` on `{address.host}` is in use",
        suggestion="choose another with --http PORT, or add --next-free",
    )


def refuse_beyond_loopback(host: str) -> None:
    if host not in LOOPBACK:
        raise InvalidArguments(
            f"without a bearer token Ullage does not serve on `{host}`, only to this machine",
            suggestion=f"use 127.0.0.1, or set {TOKENS_VARIABLE}=NAME:TOKEN with a token from: {HOW_TO_MAKE}",
            options=LOOPBACK,
        )


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
