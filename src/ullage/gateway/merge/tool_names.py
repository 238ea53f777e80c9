"""Names and addresses of merged tools, prompts and resources.

`prefix__tool`, in letters that every model's maker accepts, of at most 48 characters, so that there is room for the
client's own prefix. No two listed names fall together, not even where a client writes `.` and `-` as `_` or forgets
about case. Where two want the same, the one before has it if both are heard at once; a name once given stays with whom
it was given to, though another is heard that comes before, and though he himself is gone for a while: a model that
learned a name never reaches another tool by it. Which spelling in a call means which tool, `spelling` knows.

Whoever knows a name must reach what it names, spelt as in the list, as its server spells it, or as some client did:
`github__create_issue`, `create_issue`, `github.createIssue`, `mcp__github__create-issue`. A spelling that could mean
two means neither. Which names are listed, `names` decides.

The first server, in the order of the settings, that offers an address keeps it as it is; the same address at another
server is written `ullage+from://SERVER/ADDRESS`, which reads back to that server. A prefix keeps templates valid, and
the two parts are told apart by the first slash. Nothing is read here.
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
]

LONGEST = 48
"""Characters of a listed name; the model's APIs allow 64."""
_JOINT = "__"
_HASH = 6
"""Digits of the hash in a suffix; more only where these are taken."""
_LONGEST_HASH = 20
"""Digits beyond which another hash is tried: a server may take every name of another on purpose."""
_LEAST_PREFIX = 16
"""Characters that a prefix keeps when a name is cut; the tool's own name tells more."""
_REMEMBERED = 50_000
"""Names of the gone that are kept for them: a server that invents names without end must not fill the memory."""
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_FOLDED = str.maketrans(".-", "__")


Origin = tuple[str, str]
"""A server and the name of one of its tools there."""
NOBODY: Mapping[str, Origin] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The tools, or the prompts, of one server."""

    server: str
    prefix: str
    """Empty for none: names then stay as they are, however long, unless another has them."""
    names: tuple[str, ...]


def fold(name: str) -> str:
    """The name as the least careful client writes it."""
    return name.lower().translate(_FOLDED)


def listed_names(
    owners: Iterable[Owned], reserved: Iterable[str] = (), given: Mapping[str, Origin] = NOBODY
) -> dict[Origin, str]:
    """The listed name of every server's every name; where two want the same, the first has it.

    Names in `reserved` go to nobody, those in `given` (`remembered`) only to whom they were given.
    """
    names = _Names(reserved, given)
    late: list[tuple[Owned, str]] = []
    for owner in owners:
        for name in owner.names:
            if not names.give(_wish(owner, name), (owner.server, name)):
                late.append((owner, name))
    for owner, name in late:
        digits = _HASH
        while not names.give(_suffixed(owner, name, digits), (owner.server, name)):
            digits += 1
    return names.listed


def remembered(given: Mapping[str, Origin], listed: Mapping[Origin, str], most: int = _REMEMBERED) -> dict[str, Origin]:
    """Whose each name is that was ever listed, as clients may take it for the same. The longest gone are forgotten."""
    now = {fold(name): origin for origin, name in listed.items()}
    gone = [name for name in given if name not in now]
    return {**{name: given[name] for name in gone[max(0, len(gone) - most) :]}, **now}


class _Names:
    """Names as they are given out, each to one alone."""

    def __init__(self, reserved: Iterable[str], given: Mapping[str, Origin]) -> None:
        self.listed: dict[Origin, str] = {}
        self._taken = {fold(name) for name in reserved}
        self._given = given

    def give(self, name: str, origin: Origin) -> bool:
        """Whether it may have the name, or has one already."""
        folded = fold(name)
        if origin in self.listed:
            return True
        if folded in self._taken or self._given.get(folded, origin) != origin:
            return False
        self._taken.add(folded)
        self.listed[origin] = name
        return True


def _wish(owner: Owned, name: str) -> str:
    if not owner.prefix:
        return _suffixed(owner, name, _HASH) if has_invisible(name) else name
    plain = f"{_clean(owner.prefix)}{_JOINT}{_clean(name)}"
    legible = any(letter.isalnum() for letter in _clean(name))
    return plain if legible and len(plain) <= LONGEST else _suffixed(owner, name, _HASH)


def _suffixed(owner: Owned, name: str, digits: int) -> str:
    """The name, cut to leave room, and a hash of server and tool: cut names never fall together."""
    said = f"{owner.server}\0{name}" if digits <= _LONGEST_HASH else f"{owner.server}\0{name}\0{digits}"
    shown = min(digits, _LONGEST_HASH)
    digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:shown]
    return f"{_cut(owner.prefix, name, LONGEST - shown - 1)}_{digest}"


def _cut(prefix: str, name: str, room: int) -> str:
    clean = _clean(name)
    if not prefix:
        return clean[:room]
    room -= len(_JOINT)
    kept = _clean(prefix)[: max(_LEAST_PREFIX, room - len(clean))]
    return f"{kept}{_JOINT}{clean[: room - len(kept)]}"


def _clean(name: str) -> str:
    return _FORBIDDEN.sub("_", name)


_SEPARATORS = re.compile(r"[\W_]+")
_LONGEST = 128
"""Characters of a name that can be spelt in several ways; the protocol allows no more."""
_CONSIDERED = 3_000
"""Names looked at closely for those most like another."""
_PIECE = 4
"""Letters in a row by which thousands of names are sifted."""
_SHORTLIST = 24
"""Names compared in full: comparing takes too long to do it with thousands."""
_LIKE = 0.5


class Label(Protocol):
    """Something that has a name in a list of many servers' things."""

    @property
    def listed(self) -> str: ...

    @property
    def server(self) -> str: ...

    @property
    def original(self) -> str:
        """Its name at its server."""
        ...

    @property
    def aliases(self) -> tuple[str, ...]: ...


Labelled = TypeVar("Labelled", bound=Label)


def key(name: str) -> str:
    """Letters and digits of a name, whatever joins its words and whatever their case.

    Empty for a name that has none, or is too long: such a name is known only as it is written.
    """
    return _folded(name) if len(name) <= _LONGEST else ""


def _folded(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()


class Book(Generic[Labelled]):
    """Things by every spelling. Each table is made when a name is first not found in the one before it."""

    def __init__(self, things: Iterable[Labelled]) -> None:
        self._things = tuple(things)

    def find(self, name: str, server: str | None = None) -> tuple[Labelled, ...]:
        """All that the spelling may mean: the one meant, several, or none. The surest way of reading it decides."""
        if server is not None and (known := self._by_server.get((server, name))) is not None:
            return (known,)
        for meant in self._readings(name):
            found = tuple(one for one in meant if server is None or one.server == server)
            if found:
                return found
        return ()

    def nearest(self, name: str, server: str | None = None, *, most: int = 5) -> tuple[str, ...]:
        """Listed names most like it, the likest first."""
        among = [one for one in self._things if server is None or one.server == server]
        return nearest(name, [(one.listed, one.original) for one in among], most=most)

    def _readings(self, name: str) -> Iterator[Sequence[Labelled]]:
        yield self._by_listed.get(name, ())
        yield self._by_alias.get(name, ())
        yield self._by_original.get(name, ())
        for spelling in _without_client(name):
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


def _without_client(name: str) -> Iterator[str]:
    """The name; then without what clients put before it: `mcp__`, or `mcp__` and what they call this server."""
    yield name
    first, *rest = name.split("__")
    if first.lower() == "mcp":
        for start in range(min(2, len(rest))):
            yield "__".join(rest[start:])


def nearest(name: str, spellings: Sequence[tuple[str, ...]], *, most: int = 5) -> tuple[str, ...]:
    """Of things with several spellings each, the first spellings of those most like the name, as far as it is read."""
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
    """The spellings that are looked at closely: all of them, or of thousands those that share most letters in a row."""
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
"""The same with the address percent-encoded, for an address with invisible characters."""
_PLAIN = ":/?#[]@!$&'()*+,;=-._~{}"
_EXPRESSION = re.compile(r"\{[^{}]*\}")
_URIS_LONGEST = 8_192
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
        return cls(tuple(_EXPRESSION.split(text[:_URIS_LONGEST])))

    @property
    def weight(self) -> int:
        """How much of an address it fixes: the more, the surer a match."""
        return sum(map(len, self.literals))

    def matches(self, uri: str) -> bool:
        """In one pass from the left: a server's template must not be able to cost more than its length."""
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
    """A server's address as it is shown, where `owner` keeps it plain.

    One that is too long to be held against templates is shown as it is: no client can ask for it.
    """
    if len(uri) > _URIS_LONGEST:
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
        if len(uri) > _URIS_LONGEST:
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
