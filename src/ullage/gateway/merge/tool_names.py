"""Names and addresses of merged tools, prompts and resources.

A listed name is `prefix__tool`, in characters that every model provider accepts, with at most 48 characters, so that
there is room for the client's own prefix. No two listed names collide, not even in a client that writes `.` and `-` as
`_` or ignores case. Where two tools want the same name, the earlier server gets it if both are listed at once. A name
stays with the tool it was first given to, even if an earlier server's tool wants it later, and even while its own
server is gone: a model that learned a name never reaches another tool by it.

A call may use the listed name, the server's own spelling, or a client's variant: `github__create_issue`,
`create_issue`, `github.createIssue`, `mcp__github__create-issue`. A spelling that could mean two tools means neither.

The first server, in the order of the settings, that offers an address keeps it unchanged; the same address at
another server is written `ullage+from://SERVER/ADDRESS`, which resolves to that server. The prefix keeps templates
valid, and the first slash separates the two parts.
"""

import difflib
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote, unquote

from ullage.invisible_characters import has_invisible
from ullage.tool import Block, Json, JsonObject

__all__ = [
    "LONGEST",
    "NOBODY",
    "Book",
    "Label",
    "Origin",
    "Owned",
    "Owners",
    "Template",
    "block_mapped",
    "fold",
    "key",
    "listed_names",
    "mapped",
    "nearest",
    "outward",
    "owners_of",
    "remembered",
    "unmapped",
    "uri_of",
    "with_uri",
    "without_client",
]

LONGEST = 48
"""Most characters of a listed name; model APIs allow 64."""
_JOINT = "__"
_HASH = 6
"""Digits of the hash in a suffix; more only if shorter ones are taken."""
_LONGEST_HASH = 20
"""Most digits before another hash is tried: a server may claim every name of another on purpose."""
_LEAST_PREFIX = 16
"""Characters that a prefix keeps when a name is cut; the tool's own name is more informative."""
_REMEMBERED = 50_000
"""Most names kept for tools that are gone: a server that invents names without end must not fill the memory."""
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_FOLDED = str.maketrans(".-", "__")


Origin = tuple[str, str]
"""A server and the name of its tool there."""
NOBODY: Mapping[str, Origin] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The names of one server's tools or prompts."""

    server: str
    prefix: str
    """Empty for none: names are then unchanged, however long, unless another server has them."""
    names: tuple[str, ...]


def fold(name: str) -> str:
    """Return the name as the least careful client would write it."""
    return name.lower().translate(_FOLDED)


def listed_names(
    owners: Iterable[Owned], reserved: Iterable[str] = (), given: Mapping[str, Origin] = NOBODY
) -> dict[Origin, str]:
    """Return the listed name of every tool; if two want the same, the first gets it.

    Names in `reserved` are given to no tool, those in `given` (`remembered`) only to their earlier owner.
    """
    names = _Names(reserved, given)
    late: list[tuple[Owned, str]] = []
    for owner in owners:
        for name in owner.names:
            if not owner.prefix:
                wish = _suffixed(owner, name, _HASH) if has_invisible(name) else name
            else:
                plain = f"{_clean(owner.prefix)}{_JOINT}{_clean(name)}"
                legible = any(letter.isalnum() for letter in _clean(name))
                wish = plain if legible and len(plain) <= LONGEST else _suffixed(owner, name, _HASH)
            if not names.give(wish, (owner.server, name)):
                late.append((owner, name))
    for owner, name in late:
        digits = _HASH
        while not names.give(_suffixed(owner, name, digits), (owner.server, name)):
            digits += 1
    return names.listed


def remembered(given: Mapping[str, Origin], listed: Mapping[Origin, str], most: int = _REMEMBERED) -> dict[str, Origin]:
    """Return the owner of every name ever listed, by its folded form. The names gone longest are dropped."""
    now = {fold(name): origin for origin, name in listed.items()}
    gone = [name for name in given if name not in now]
    return {**{name: given[name] for name in gone[max(0, len(gone) - most) :]}, **now}


class _Names:
    """Names that are already assigned, each to one tool."""

    def __init__(self, reserved: Iterable[str], given: Mapping[str, Origin]) -> None:
        self.listed: dict[Origin, str] = {}
        self._taken = {fold(name) for name in reserved}
        self._given = given

    def give(self, name: str, origin: Origin) -> bool:
        """Assign the name if it is free; return whether the tool now has a name."""
        folded = fold(name)
        if origin in self.listed:
            return True
        if folded in self._taken or self._given.get(folded, origin) != origin:
            return False
        self._taken.add(folded)
        self.listed[origin] = name
        return True


def _suffixed(owner: Owned, name: str, digits: int) -> str:
    """Return the name, cut to leave room, with a hash of server and tool, so that cut names never collide."""
    said = f"{owner.server}\0{name}" if digits <= _LONGEST_HASH else f"{owner.server}\0{name}\0{digits}"
    shown = min(digits, _LONGEST_HASH)
    digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:shown]
    clean, room = _clean(name), LONGEST - shown - 1
    if not owner.prefix:
        return f"{clean[:room]}_{digest}"
    room -= len(_JOINT)
    prefix = _clean(owner.prefix)[: max(_LEAST_PREFIX, room - len(clean))]
    return f"{prefix}{_JOINT}{clean[: room - len(prefix)]}_{digest}"


def _clean(name: str) -> str:
    return _FORBIDDEN.sub("_", name)


_SEPARATORS = re.compile(r"[\W_]+")
_LONGEST = 128
"""Most characters of a name with several spellings; the protocol allows no more."""
_CONSIDERED = 3_000
"""Most names compared in detail for the nearest ones."""
_PIECE = 4
"""Length of the letter sequences by which thousands of names are filtered."""
_SHORTLIST = 24
"""Names compared in full after the filter; comparing thousands takes too long."""
_LIKE = 0.5


class Label(Protocol):
    """Interface of a named item of a server, such as a tool or a prompt."""

    @property
    def listed(self) -> str: ...

    @property
    def server(self) -> str: ...

    @property
    def original(self) -> str:
        """The item's name at its server."""
        ...

    @property
    def aliases(self) -> tuple[str, ...]: ...


Labelled = TypeVar("Labelled", bound=Label)


def key(name: str) -> str:
    """Return the letters and digits of a name, without separators and case.

    Empty for a name that has none or is too long: such a name matches only as written.
    """
    return _folded(name) if len(name) <= _LONGEST else ""


def _folded(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()


class Book(Generic[Labelled]):
    """Look-up of items by any spelling. Each table is built when the one before it first fails to find a name."""

    def __init__(self, things: Iterable[Labelled]) -> None:
        self._things = tuple(things)

    def find(self, name: str, server: str | None = None) -> tuple[Labelled, ...]:
        """Return the items that the spelling may mean: one, several or none. The most specific reading decides."""
        if server is not None and (known := self._by_server.get((server, name))) is not None:
            return (known,)
        for meant in self._readings(name):
            found = tuple(one for one in meant if server is None or one.server == server)
            if found:
                return found
        return ()

    def nearest(self, name: str, server: str | None = None, *, most: int = 5) -> tuple[str, ...]:
        """Return the listed names most similar to a name, most similar first."""
        among = [one for one in self._things if server is None or one.server == server]
        return nearest(name, [(one.listed, one.original) for one in among], most=most)

    def _readings(self, name: str) -> Iterator[Sequence[Labelled]]:
        yield self._by_listed.get(name, ())
        yield self._by_alias.get(name, ())
        yield self._by_original.get(name, ())
        for spelling in without_client(name):
            yield self._by_key.get(key(spelling), ())

    @cached_property
    def _by_server(self) -> Mapping[tuple[str, str], Labelled]:
        return {(one.server, one.original): one for one in self._things}

    @cached_property
    def _by_listed(self) -> Mapping[str, Sequence[Labelled]]:
        return _table((one.listed, one) for one in self._things)

    @cached_property
    def _by_alias(self) -> Mapping[str, Sequence[Labelled]]:
        return _table((alias, one) for one in self._things for alias in one.aliases)

    @cached_property
    def _by_original(self) -> Mapping[str, Sequence[Labelled]]:
        return _table((one.original, one) for one in self._things)

    @cached_property
    def _by_key(self) -> Mapping[str, Sequence[Labelled]]:
        return _table((spelling, one) for one in self._things for spelling in _keys(one) if spelling)


def _keys(one: Label) -> set[str]:
    own = [folded for name in (one.original, *one.aliases) if (folded := key(name))]
    return {key(one.listed), *own, *(key(one.server) + name for name in own)}


def _table(pairs: Iterable[tuple[str, Labelled]]) -> dict[str, list[Labelled]]:
    found: dict[str, list[Labelled]] = {}
    for spelling, one in pairs:
        found.setdefault(spelling, []).append(one)
    return found


_NAMESPACE = re.compile(r"(?:functions|default_api|multi_tool_use|tools?|mcp|ullage)(?:[.:/]|__?)(?=\w)", re.IGNORECASE)


def without_client(name: str) -> Iterator[str]:
    """Yield the name, then the name without a client's prefix: `mcp__`, `mcp__` and the client's name for this server,
    or the namespace in which a model sees tools, such as `functions.`."""
    yield name
    first, *rest = name.split("__")
    if first.lower() == "mcp":
        for start in range(min(2, len(rest))):
            yield "__".join(rest[start:])
    elif (space := _NAMESPACE.match(name)) is not None:
        yield name[space.end() :]


def nearest(name: str, spellings: Sequence[tuple[str, ...]], *, most: int = 5) -> tuple[str, ...]:
    """Return the first spellings of the items most similar to the name, as far as it is read."""
    wanted = _beginning(name)
    pieces = {wanted[at : at + 3] for at in range(max(1, len(wanted) - 2))}

    def shared(folded: str) -> int:
        return sum(piece in folded for piece in pieces)

    likely = nlargest(
        _SHORTLIST, _considered(name, spellings), key=lambda these: shared(" ".join(map(_beginning, these)))
    )
    matcher = difflib.SequenceMatcher(b=wanted, autojunk=False)
    scored = ((max(_ratio(matcher, _beginning(one)) for one in these), these[0]) for these in likely)
    ranked = sorted((pair for pair in scored if pair[0] >= _LIKE), key=lambda pair: (-pair[0], pair[1]))
    return tuple(spelling for _, spelling in ranked[:most])


def _considered(name: str, spellings: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    """Return the spellings to compare in detail: all, or of thousands those that share most letter sequences."""
    if len(spellings) <= _CONSIDERED:
        return spellings
    wanted = name[:_LONGEST].lower()
    pieces = {wanted[at : at + _PIECE] for at in range(0, max(1, len(wanted) - _PIECE + 1), _PIECE // 2)}

    def shared(these: tuple[str, ...]) -> int:
        spelling = these[-1].lower()
        return sum(piece in spelling for piece in pieces)

    return nlargest(_CONSIDERED, spellings, key=shared)


def _beginning(name: str) -> str:
    return _folded(name[:_LONGEST])


def _ratio(matcher: "difflib.SequenceMatcher[str]", other: str) -> float:
    matcher.set_seq1(other)
    return matcher.ratio() if matcher.quick_ratio() >= _LIKE else 0.0


_SCHEME = "ullage+from://"
_QUOTED_SCHEME = "ullage+quoted://"
"""Scheme of a mapped address that is percent-encoded because it contains invisible characters."""
_PLAIN = ":/?#[]@!$&'()*+,;=-._~{}"
_EXPRESSION = re.compile(r"\{[^{}]*\}")
_URIS_LONGEST = 8_192
"""Most characters of an address that is matched against templates."""


def mapped(server: str, uri: str) -> str:
    """Return the address that resolves to this server's address."""
    if has_invisible(uri):
        return f"{_QUOTED_SCHEME}{quote(server, safe='')}/{quote(uri, safe=_PLAIN, errors='replace')}"
    return f"{_SCHEME}{quote(server, safe='')}/{uri}"


def unmapped(uri: str) -> tuple[str, str] | None:
    """Return the server and its own address; None for an address that is not mapped."""
    scheme = next((one for one in (_SCHEME, _QUOTED_SCHEME) if uri.startswith(one)), None)
    if scheme is None:
        return None
    server, slash, own = uri.removeprefix(scheme).partition("/")
    if not slash:
        return None
    return unquote(server), own if scheme == _SCHEME else unquote(own)


@dataclass(frozen=True, slots=True)
class Template:
    """A URI template (RFC 6570), matched loosely: each expression matches any text."""

    literals: tuple[str, ...]
    """The text before, between and after the expressions."""

    @classmethod
    def of(cls, text: str) -> "Template":
        """Parse a template."""
        return cls(tuple(_EXPRESSION.split(text[:_URIS_LONGEST])))

    @property
    def weight(self) -> int:
        """Number of characters that the template fixes; more make a match more certain."""
        return sum(map(len, self.literals))

    def matches(self, uri: str) -> bool:
        """Return whether the address matches, in one pass from the left, so that no template can cost more than its
        length."""
        first, *rest = self.literals
        if len(uri) > _URIS_LONGEST or not uri.startswith(first):
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
    """Return a server's address as it is shown, given that `owner` keeps it unchanged.

    An address that is too long for matching is shown unchanged: no client can request it.
    """
    if len(uri) > _URIS_LONGEST:
        return uri
    plain = (owner is None or owner == server) and unmapped(uri) is None and not has_invisible(uri)
    return uri if plain else mapped(server, uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """The known owners of addresses."""

    listed: Mapping[str, str]
    """The server that keeps an address, or a template as written, unchanged."""
    templates: Sequence[tuple[Template, str]]
    """Templates with their servers, the most specific first."""

    def owner(self, uri: str) -> str | None:
        """Return the server of a plain address: the one that lists it, else the one with the most specific matching
        template.

        None for an address that is too long for matching.
        """
        if len(uri) > _URIS_LONGEST:
            return None
        server = self.listed.get(uri)
        if server is not None:
            return server
        return next((server for template, server in self.templates if template.matches(uri)), None)

    def outward(self, server: str, uri: str) -> str:
        """Return a server's address as it is shown: unchanged, unless it would lead to another server."""
        return outward(server, uri, self.owner(uri))


def owners_of(
    resources: Iterable[tuple[str, Sequence[JsonObject]]], templates: Iterable[tuple[str, Sequence[JsonObject]]]
) -> Owners:
    """Build the owners from each server's lists, in the order of the settings."""
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
    """Return the object with its address changed; the same object if the address stays."""
    uri = one.get(key)
    if not isinstance(uri, str):
        return one
    new = change(uri)
    return one if new == uri else {**one, key: new}


def uri_of(block: Block) -> str | None:
    """Return the address in a block that is a resource or a link to one."""
    kind = block.get("type")
    inner: Json | Block = block if kind == "resource_link" else block.get("resource") if kind == "resource" else None
    uri = inner.get("uri") if isinstance(inner, Mapping) else None
    return uri if isinstance(uri, str) else None


def block_mapped(block: Block, change: Callable[[str], str]) -> Block:
    """Return a block with the address in it changed, if it is a resource or a link to one."""
    kind = block.get("type")
    if kind == "resource_link":
        return with_uri(block, change)
    inner: Json = block.get("resource") if kind == "resource" else None
    if not isinstance(inner, dict):
        return block
    changed = with_uri(inner, change)
    return block if changed is inner else {**block, "resource": dict(changed)}
