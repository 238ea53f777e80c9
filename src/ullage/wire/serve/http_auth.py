"""Bearer tokens, allowed hosts and listening addresses of the HTTP server.

Named bearer tokens come from an environment variable or a file. Only their hashes are kept, so that neither a log nor
an error can contain one. This module speaks no HTTP and generates no tokens.

An address is parsed and a socket bound to it: on the loopback interface only, unless there is a bearer token.

The `Host` and `Origin` headers are checked against the names and ports under which this server is reached. This keeps
web pages out: a page whose name was made to resolve to this machine (DNS rebinding) sends its own name as `Host`, and a
page from elsewhere sends its own `Origin`. Both must name this server exactly. A header with user information, a path,
an unusual spelling of an address or another port is refused.
"""

import errno
import hmac
import ipaddress
import re
import socket
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from ullage.errors import BadConfiguration, Denied, InvalidArguments, Unavailable, UnreadableFile

__all__ = [
    "HOW_TO_MAKE",
    "LOOPBACK",
    "PATH",
    "TOKENS_VARIABLE",
    "Address",
    "AllowedHosts",
    "Tokens",
    "bracketed",
    "listen",
    "refuse_beyond_loopback",
]

TOKENS_VARIABLE = "ULLAGE_TOKENS"
HOW_TO_MAKE = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
_SHORTEST = 16
_UNNAMED = "token"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SECRET = re.compile(r"[A-Za-z0-9._~+/=-]+")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The accepted bearer tokens."""

    hashes: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """Hashes of the tokens by name."""
    warnings: tuple[str, ...] = ()
    """Warnings for the user about how the tokens are stored."""

    @classmethod
    def read(
        cls, environment: Mapping[str, str], file: Path | None = None, *, named: Mapping[str, str] | None = None
    ) -> "Tokens":
        """Read the tokens of `ULLAGE_TOKENS`, of a file, and of the settings.

        Entries are `NAME:TOKEN`, or `TOKEN` alone, separated by lines or commas.
        """
        text, warnings = ("", ()) if file is None else _opened(file)
        hashes: dict[str, bytes] = {}
        for name, secret, where in (
            *_parted(environment.get(TOKENS_VARIABLE, ""), f"the variable {TOKENS_VARIABLE}"),
            *_parted(text, f"`{file}`"),
            *((name, secret, "the settings") for name, secret in (named or {}).items()),
        ):
            # No error repeats the content: either side of the colon may be the secret.
            if not _NAME.fullmatch(name):
                raise BadConfiguration(
                    f"{where} is not NAME:TOKEN", suggestion="a name has letters, digits, dots, dashes and underscores"
                )
            if not _SECRET.fullmatch(secret):
                raise BadConfiguration(
                    f"the token in {where} has characters that a header cannot carry", suggestion=_make()
                )
            if len(secret) < _SHORTEST:
                raise BadConfiguration(
                    f"the token in {where} is shorter than {_SHORTEST} characters", suggestion=_make()
                )
            if name in hashes:
                raise BadConfiguration(
                    f"{where} has a second token named `{name}`", suggestion="give each a name of its own"
                )
            hashes[name] = sha256(secret.encode()).digest()
        return cls(hashes, warnings)

    def __bool__(self) -> bool:
        return bool(self.hashes)

    def name_of(self, authorization: str | None) -> str | None:
        """Return the name of the token in this `Authorization` header; None for an unknown token.

        Every token is compared even after a match, so that the time taken reveals nothing.
        """
        scheme, _, presented = (authorization or "").partition(" ")
        hashed = sha256(presented.strip().encode()).digest()
        found = [name for name, known in self.hashes.items() if hmac.compare_digest(hashed, known)]
        return found[0] if found and scheme.lower() == "bearer" else None


def _opened(file: Path) -> tuple[str, tuple[str, ...]]:
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UnreadableFile(f"cannot read tokens from `{file}`: {reason}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return text, (f"others on this machine may read the tokens in `{file}`: chmod 600 {file}",)
    return text, ()


def _parted(text: str, where: str) -> Iterable[tuple[str, str, str]]:
    lines = [line.strip() for line in text.replace(",", "\n").splitlines()]
    for number, line in enumerate(lines, start=1):
        if line and not line.startswith("#"):
            before, colon, after = line.partition(":")
            name, secret = (before.strip(), after.strip()) if colon else (_UNNAMED, before)
            yield name, secret, f"entry {number} of {where}"


def _make() -> str:
    return f"make one with: {HOW_TO_MAKE}"


_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9](?:[a-z0-9._-]*[a-z0-9_-])?))(?::([0-9]{1,5}))?", re.IGNORECASE)
_ORIGIN = re.compile(r"(https?)://([^/?#]+)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Host names under which this server is reached, each with its ports."""

    ports: Mapping[str, frozenset[int] | None]
    """Ports by name; None for the default ports and the port the server listens on."""
    own: frozenset[str]
    """Names of the machine itself, valid on the listening port only."""

    @classmethod
    def build(cls, own: Iterable[str], allowed: Iterable[str] = ()) -> "AllowedHosts":
        """Parse names of this machine and further ones, as `NAME`, `NAME:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`.

        Raises:
            InvalidArguments: A further name has none of these forms.
        """
        ports: dict[str, frozenset[int] | None] = {}
        for text in allowed:
            # An IPv6 address is also accepted without brackets.
            parsed = _parse_authority(f"[{text}]" if text.count(":") > 1 and "[" not in text else text)
            if parsed is None:
                raise InvalidArguments(
                    f"`{text}` is not a name under which a server is reached",
                    suggestion="write a host name or address, with a port where it is not 80 or 443: box.lan:9000",
                )
            host, port = parsed
            known = ports.get(host, frozenset())
            ports[host] = None if port is None or known is None else known | {port}
        return cls(ports, frozenset(_normalize(name) for name in own))

    def refuse(self, hosts: list[str], origins: list[str], port: int | None) -> tuple[int, Denied] | None:
        """Return the HTTP status and the error for a request that is refused; None for one that is admitted.

        Args:
            hosts: Every `Host` header of the request.
            origins: Every `Origin` header of the request; browsers send one, other clients none.
            port: The port on which the request arrived; None where there is none, as on a Unix socket.
        """
        parsed = _parse_authority(hosts[0]) if len(hosts) == 1 else None
        # A header without a port means a default one; behind a proxy the server cannot tell which.
        if parsed is None or not self._ports_of(parsed[0], port) & (
            {parsed[1]} if parsed[1] is not None else set(_DEFAULT_PORTS.values())
        ):
            return 421, _refusal("Host", hosts)
        if not origins:
            return None
        match = _ORIGIN.fullmatch(origins[0]) if len(origins) == 1 else None
        parsed = None if match is None else _parse_authority(match[2])
        if match is None or parsed is None:
            return 403, _refusal("Origin", origins)
        named = parsed[1] if parsed[1] is not None else _DEFAULT_PORTS[match[1].lower()]
        return None if named in self._ports_of(parsed[0], port) else (403, _refusal("Origin", origins))

    def _ports_of(self, host: str, own_port: int | None) -> set[int]:
        found = {own_port} if host in self.own else set[int | None]()
        if host in self.ports:
            named = self.ports[host]
            found |= {*_DEFAULT_PORTS.values(), own_port} if named is None else named
        return {one for one in found if one is not None}


def _parse_authority(text: str) -> tuple[str, int | None] | None:
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    address, name, port = match.groups()
    if port is not None and not 0 < int(port) < 65_536:
        return None
    if address is not None:
        try:
            ipaddress.IPv6Address(address)
        except ValueError:
            return None
    return _normalize(address or name), None if port is None else int(port)


def _normalize(host: str) -> str:
    try:
        return ipaddress.ip_address(host).compressed
    except ValueError:
        return host.lower()


def _refusal(header: str, values: list[str]) -> Denied:
    shown = ascii(", ".join(values))[1:-1][:100]
    return Denied(
        f"this server is not reached as `{shown}` ({header} header)"
        if values
        else f"the request has no {header} header",
        suggestion="use the address that `ullage serve` prints, or start it with --allow-host NAME[:PORT]",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page outside MCP that is fetched with GET."""

    answer: Callable[[], tuple[int, str]]
    """Returns status and text. Must not block."""
    media_type: str
    is_open: bool = False
    """Whether it needs no token, under any host name."""


PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PORTS_TRIED = 100


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on."""

    host: str = "127.0.0.1"
    port: int = 8787

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parse `PORT`, `HOST:PORT` or `[HOST]:PORT`."""
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
        """Return whether a URL, in any spelling, leads to this address."""
        try:
            found = urlsplit(url)
            host, port = found.hostname or "", found.port or (443 if found.scheme == "https" else 80)
        except ValueError:
            return False
        near = self.host in (*LOOPBACK, "0.0.0.0", "::") and host in LOOPBACK
        at_path = f"{found.path}/".startswith(f"{PATH}/")
        return port == self.port and at_path and (near or host == self.host)


def listen(address: Address, *, next_free: bool = False, tokens: Tokens | None = None) -> tuple[socket.socket, Address]:
    """Bind the address; with `next_free`, the first free port from it on."""
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
            f"to serve on `{host}`, Ullage needs a bearer token; without one it serves only this machine",
            suggestion=f"use 127.0.0.1, or set {TOKENS_VARIABLE}=NAME:TOKEN with a token from: {HOW_TO_MAKE}",
            options=LOOPBACK,
        )


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
