"""Whose resource is at this address, and how is it addressed where two servers have the same?

The first server, in the order of the settings, that offers an address keeps it as it is; the same address at another
server is written `ullage+from://SERVER/ADDRESS`, which reads back to that server. A prefix keeps templates valid, and
the two parts are told apart by the first slash. Nothing is read here.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from ullage.invisible_characters import has_invisible
from ullage.tool import Block, Json, JsonObject

__all__ = ["Owners", "Template", "block_mapped", "mapped", "outward", "owners_of", "unmapped", "uri_of", "with_uri"]

_SCHEME = "ullage+from://"
_QUOTED_SCHEME = "ullage+quoted://"
"""The same with the address percent-encoded, for an address with invisible characters."""
_PLAIN = ":/?#[]@!$&'()*+,;=-._~{}"
_EXPRESSION = re.compile(r"\{[^{}]*\}")
_LONGEST = 8_192
"""Characters of an address that is held against templates."""


def mapped(server: str, uri: str) -> str:
    if has_invisible(uri):
        return f"{_QUOTED_SCHEME}{quote(server, safe='')}/{quote(uri, safe=_PLAIN, errors='replace')}"
    return f"{_SCHEME}{quote(server, safe='')}/{uri}"


def unmapped(uri: str) -> tuple[str, str] | None:
    """The server and its own address; None for an address that nobody mapped."""
    scheme = next((one for one in (_SCHEME, _QUOTED_SCHEME) if uri.startswith(one)), None)
    if scheme is None:
        return None
    server, slash, own = uri.removeprefix(scheme).partition("/")
    if not slash:
        return None
    return unquote(server), own if scheme == _SCHEME else unquote(own)


@dataclass(frozen=True, slots=True)
class Template:
    """A URI template (RFC 6570), read loosely: each of its expressions stands for any text."""

    literals: tuple[str, ...]
    """What stands before, between and behind the expressions."""

    @classmethod
    def of(cls, text: str) -> "Template":
        return cls(tuple(_EXPRESSION.split(text[:_LONGEST])))

    @property
    def weight(self) -> int:
        """How much of an address it fixes: the more, the surer a match."""
        return sum(map(len, self.literals))

    def matches(self, uri: str) -> bool:
        """In one pass from the left: a server's template must not be able to cost more than its length."""
        first, *rest = self.literals
        if len(uri) > _LONGEST or not uri.startswith(first):
            return False
        if not rest:
            return uri == first
        *between, last = rest
        place = len(first)
        for literal in between:
            place = uri.find(literal, place)
            if place < 0:
                return False
            place += len(literal)
        return len(uri) - len(last) >= place and uri.endswith(last)


def outward(server: str, uri: str, owner: str | None) -> str:
    """A server's address as it is shown, where `owner` keeps it plain.

    One that is too long to be held against templates is shown as it is: no client can ask for it.
    """
    if len(uri) > _LONGEST:
        return uri
    plain = (owner is None or owner == server) and unmapped(uri) is None and not has_invisible(uri)
    return uri if plain else mapped(server, uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Who offers which addresses, as far as known."""

    listed: Mapping[str, str]
    """Address, or template as written, to the server that keeps it plain."""
    templates: Sequence[tuple[Template, str]]
    """The surest first."""

    def owner(self, uri: str) -> str | None:
        """The server of a plain address: whoever lists it, else whoever has the surest template for it.

        None for one that is too long to be held against templates.
        """
        if len(uri) > _LONGEST:
            return None
        server = self.listed.get(uri)
        if server is not None:
            return server
        return next((server for template, server in self.templates if template.matches(uri)), None)

    def outward(self, server: str, uri: str) -> str:
        """A server's address as it is shown: as it is, unless it would lead to another server."""
        return outward(server, uri, self.owner(uri))


def owners_of(
    resources: Iterable[tuple[str, Sequence[JsonObject]]], templates: Iterable[tuple[str, Sequence[JsonObject]]]
) -> Owners:
    """From the lists of each server, in the order of the settings."""
    listed: dict[str, str] = {}
    patterns: list[tuple[Template, str]] = []
    for server, offered in resources:
        for one in offered:
            listed.setdefault(str(one.get("uri")), server)
    for server, offered in templates:
        for one in offered:
            text = str(one.get("uriTemplate"))
            listed.setdefault(text, server)
            patterns.append((Template.of(text), server))
    patterns.sort(key=lambda pair: -pair[0].weight)
    return Owners(listed=listed, templates=tuple(patterns))


def with_uri(one: JsonObject, change: Callable[[str], str], key: str = "uri") -> JsonObject:
    """The same object with its address changed; itself where the address stays."""
    uri = one.get(key)
    if not isinstance(uri, str):
        return one
    new = change(uri)
    return one if new == uri else {**one, key: new}


def uri_of(block: Block) -> str | None:
    """The address in a block that is a resource or a link to one."""
    kind = block.get("type")
    inner: Json | Block = block if kind == "resource_link" else block.get("resource") if kind == "resource" else None
    uri = inner.get("uri") if isinstance(inner, Mapping) else None
    return uri if isinstance(uri, str) else None


def block_mapped(block: Block, change: Callable[[str], str]) -> Block:
    """A block with the address in it changed, where it is a resource or a link to one."""
    kind = block.get("type")
    if kind == "resource_link":
        return with_uri(block, change)
    inner: Json = block.get("resource") if kind == "resource" else None
    if not isinstance(inner, dict):
        return block
    changed = with_uri(inner, change)
    return block if changed is inner else {**block, "resource": dict(changed)}
