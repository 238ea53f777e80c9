"""Check of the `Host` and `Origin` headers against the names and ports under which this server is reached.

It keeps web pages out: a page whose name was made to resolve to this machine (DNS rebinding) sends its own name as
`Host`, and a page from elsewhere sends its own `Origin`. Both must name this server exactly. A header with user
information, a path, an unusual spelling of an address or a port that is not ours is refused.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ullage.errors import Denied, InvalidArguments

__all__ = ["AllowedHosts"]

_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9](?:[a-z0-9._-]*[a-z0-9_-])?))(?::([0-9]{1,5}))?", re.IGNORECASE)
_ORIGIN = re.compile(r"(https?)://([^/?#]+)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Names under which this server is reached, each with its ports."""

    ports: Mapping[str, frozenset[int] | None]
    """Name to ports; None for the default ports and the port the server listens on."""
    own: frozenset[str]
    """Names of the machine itself, reached on the listening port alone."""

    @classmethod
    def build(cls, own: Iterable[str], allowed: Iterable[str] = ()) -> "AllowedHosts":
        """Read names of this machine and further ones, as `NAME`, `NAME:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`.

        Raises:
            InvalidArguments: A further name is written in none of these ways.
        """
        ports: dict[str, frozenset[int] | None] = {}
        for text in allowed:
            # An IPv6 address may also stand without brackets.
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
        """Why a request is refused, with the HTTP status; None for one that is let in.

        Args:
            hosts: Every `Host` header of the request.
            origins: Every `Origin` header of the request; browsers send one, other clients none.
            port: The port on which the request came in; None where there is none, as on a Unix socket.
        """
        parsed = _parse_authority(hosts[0]) if len(hosts) == 1 else None
        # Without a port in the header it is a default one; which, the server cannot tell behind a proxy.
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
