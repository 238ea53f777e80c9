"""Where does the resource at this address come from, of all the members?

Lists of all members become one; a read, a subscription or a change goes to or comes from the one that owns the address.
How addresses are told apart is in `uris`. An address that nobody lists is tried at each member in turn.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread

from ullage.errors import BadInput, ProtocolError, Unavailable, UnknownResource
from ullage.tool import Block, Change, Contents, JsonObject, Read, ResourceSource, Subscribed

from ..sanitize import sanitize_item
from ..spawn import Spawn
from .hearing import Question, Round, are_same_answers
from .offers import has_resources, is_subscribed, lenient
from .uris import Owners, block_mapped, mapped, outward, owners_of, unmapped, uri_of, with_uri
from .view import Member, Missing

__all__ = ["Place", "Resources"]

_Offered = tuple[JsonObject, ...]
_AT_ONCE = 200
"""Resources, blocks or comparisons of an address with a template that are worked on in one turn of the event loop."""
_MOST_TRIED = 16
"""Members asked for an address that none of them lists."""
_SILENT = "it did not answer in time"
_MOST_SEEN = 4_096
"""Addresses remembered from replies."""


@dataclass(frozen=True, slots=True)
class Place:
    """A resource where it really is."""

    member: Member
    source: ResourceSource
    uri: str
    """As the member knows it."""


class Resources:
    """The resources of all members."""

    def __init__(self, changed: Callable[[], None], spawn: Spawn | None, patience: float) -> None:
        self._listed: Round[_Offered] = Round(_resources_of, changed, spawn, patience)
        self._templates: Round[_Offered] = Round(_templates_of, changed, spawn, patience)
        self._patience = patience
        self._sources: dict[str, tuple[Member, ResourceSource]] = {}
        self._seen: OrderedDict[str, str] = OrderedDict()
        """Addresses that nobody lists, from replies: to the server whose reply it was."""
        self._made: _Made | None = None
        self._making = anyio.Lock()
        self._subscribed: dict[tuple[str, str], Counter[str]] = {}
        """Server and its own address: to the addresses subscribed by, and how often."""

    def replace(self, members: tuple[Member, ...]) -> None:
        self._sources = {one.name: (one, one.source) for one in members if has_resources(one.source)}
        self._listed.replace(members)
        self._templates.replace(members)

    def outdate(self, server: str) -> bool:
        """Whether the member has to be asked again."""
        outdated = [part.outdate(server) for part in (self._listed, self._templates)]
        return any(outdated)

    def ask_in_background(self) -> bool:
        asked = [part.ask_in_background() for part in (self._listed, self._templates)]
        return any(asked)

    def failed(self) -> tuple[Missing, ...]:
        return tuple(dict.fromkeys((*self._listed.failed(), *self._templates.failed())))

    async def ask(self) -> None:
        """Ask for both lists and make them, so that `known` has them."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listed.gather, self._patience)
            group.start_soon(self._templates.gather, self._patience)
        await self.make_aside()

    def known(self) -> tuple[_Offered, _Offered]:
        """Both lists as far as known, without asking."""
        made = self._current()
        return made.resources, made.templates

    def is_long(self) -> bool:
        """Whether the lists have to be made anew from so much that others must not wait for it."""
        heard = self._listed.known(), self._templates.known()
        if self._made is not None and self._made.is_of(*heard):
            return False
        return sum(len(offered) for part in heard for _, offered in part) > _AT_ONCE

    async def make_aside(self) -> None:
        """Makes long lists in a worker thread, so that `known` finds them made."""
        while self.is_long():
            async with self._making:
                if self.is_long():
                    heard = self._listed.known(), self._templates.known()
                    self._made = await anyio.to_thread.run_sync(_make, *heard)

    async def read(self, read: Read) -> Contents:
        place = await self.place(read.uri)
        if place is None:
            return await self._try_all(read)
        contents = await place.source.read(replace(read, uri=place.uri))
        return await self._contents_shown(place.member, read, contents)

    async def subscribe(self, uri: str) -> None:
        place, source = await self._subscribable(uri)
        await source.subscribe(place.uri)
        self._subscribed.setdefault((place.member.name, place.uri), Counter())[uri] += 1

    async def unsubscribe(self, uri: str) -> None:
        """The server is told when the last of those who subscribed has gone."""
        place, source = await self._subscribable(uri)
        subscribed = self._subscribed.get((place.member.name, place.uri), Counter[str]())
        subscribed -= Counter([uri])
        if not subscribed:
            self._subscribed.pop((place.member.name, place.uri), None)
            await source.unsubscribe(place.uri)

    async def place(self, uri: str) -> Place | None:
        """Where an address leads; None where no member is known to own it."""
        explicit = unmapped(uri)
        if explicit is not None and (found := self._at(*explicit)) is not None:
            return found
        if (server := self._owner(uri)) is None:
            await self.ask()
            server = self._owner(uri)
        return None if server is None else self._at(server, uri)

    async def blocks_shown(self, server: str, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """A reply's content with the addresses in it such that reading them leads back to the same server."""
        uris = {uri for block in blocks if (uri := uri_of(block)) is not None}
        if not uris:
            return blocks
        found = await self._find_owners(uris)
        shown: list[Block] = []
        for number, block in enumerate(blocks, 1):
            shown.append(block_mapped(block, partial(self._noted, server, found)))
            if number % _AT_ONCE == 0:
                await anyio.sleep(0)
        return tuple(shown)

    async def _find_owners(self, uris: Iterable[str]) -> dict[str, str | None]:
        """Who keeps each address plain; in a worker thread where many are held against many templates."""
        wanted = tuple(uris)
        await self.make_aside()
        owners = self._current().owners
        if len(wanted) * (1 + len(owners.templates)) <= _AT_ONCE:
            return {uri: owners.owner(uri) for uri in wanted}
        return await anyio.to_thread.run_sync(lambda: {uri: owners.owner(uri) for uri in wanted})

    def changes_shown(self, server: str, change: Change) -> tuple[Change, ...]:
        """A change of one resource, under each address by which someone subscribed to it."""
        uri = change.uri or ""
        owner = self._current().owners.owner(uri)
        subscribed = self._subscribed.get((server, uri)) or (self._outward(server, uri, owner),)
        return tuple(replace(change, uri=one) for one in subscribed)

    def _at(self, server: str, uri: str) -> Place | None:
        found = self._sources.get(server)
        return None if found is None else Place(*found, uri)

    def _owner(self, uri: str) -> str | None:
        return self._current().owners.owner(uri) or self._seen.get(uri)

    def _outward(self, server: str, uri: str, owner: str | None) -> str:
        if owner is None and self._seen.get(uri, server) != server:
            return mapped(server, uri)
        return outward(server, uri, owner)

    def _noted(self, server: str, found: dict[str, str | None], uri: str) -> str:
        """An address in a reply as it is shown; remembered where nobody lists it."""
        owner = found.get(uri)
        shown = self._outward(server, uri, owner)
        if shown == uri and owner is None:
            self._note(uri, server)
        return shown

    def _note(self, uri: str, server: str) -> None:
        self._seen[uri] = server
        self._seen.move_to_end(uri)
        if len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)

    def _current(self) -> "_Made":
        heard = self._listed.known(), self._templates.known()
        if self._made is None or not self._made.is_of(*heard):
            self._made = _make(*heard)
        return self._made

    async def _contents_shown(self, member: Member, read: Read, contents: Contents) -> Contents:
        """Addresses in what was read are of the same kind as the one that was asked for."""
        uris = {uri for one in contents.contents if isinstance(uri := one.get("uri"), str)}
        is_mapped = unmapped(read.uri) is not None
        found = {} if is_mapped else await self._find_owners(uris)

        def shown(uri: str) -> str:
            return mapped(member.name, uri) if is_mapped else self._outward(member.name, uri, found.get(uri))

        return replace(contents, contents=tuple(with_uri(one, shown) for one in contents.contents))

    async def _try_all(self, read: Read) -> Contents:
        """Each member in turn, until one knows the address. Where there is only one, its own error is the client's."""
        failed: list[str] = []
        for name, (_, source) in tuple(self._sources.items())[:_MOST_TRIED]:
            try:
                with anyio.fail_after(self._patience):
                    contents = await source.read(read)
            except (BadInput, ProtocolError):
                if len(self._sources) == 1:
                    raise
                continue
            except (Unavailable, TimeoutError) as error:
                failed.append(f"`{name}` ({error.message if isinstance(error, Unavailable) else _SILENT})")
                continue
            self._note(read.uri, name)
            return contents
        raise _unknown(read.uri, failed)

    async def _subscribable(self, uri: str) -> tuple[Place, Subscribed]:
        place = await self.place(uri)
        if place is None and len(self._sources) == 1:
            place = self._at(next(iter(self._sources)), uri)
        if place is None:
            raise _unknown(uri, [])
        if not is_subscribed(source := place.member.source):
            raise UnknownResource(f"server `{place.member.name}` does not say when its resources change")
        return place, source


_Heard = tuple[tuple[Member, _Offered], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """The lists as they are shown, who owns their addresses, and what they were made of."""

    listed: _Heard
    offered_templates: _Heard
    owners: Owners
    resources: _Offered
    templates: _Offered

    def is_of(self, listed: _Heard, templates: _Heard) -> bool:
        """Whether nothing was heard since; looks at lists, not at what is in them."""
        return are_same_answers(self.listed, listed) and are_same_answers(self.offered_templates, templates)


def _make(listed: _Heard, templates: _Heard) -> _Made:
    owners = owners_of(
        [(member.name, offered) for member, offered in listed],
        [(member.name, offered) for member, offered in templates],
    )
    return _Made(
        listed=listed,
        offered_templates=templates,
        owners=owners,
        resources=_shown(owners, listed, "uri"),
        templates=_shown(owners, templates, "uriTemplate"),
    )


def _shown(owners: Owners, heard: _Heard, key: str) -> _Offered:
    return tuple(
        with_uri(sanitize_item(one)[0], partial(owners.outward, member.name), key)
        for member, offered in heard
        for one in offered
    )


def _unknown(uri: str, failed: list[str]) -> UnknownResource:
    hint = f" Could not be asked: {'; '.join(failed)}." if failed else ""
    return UnknownResource(
        f"no server has a resource at `{uri[:200]}`", suggestion=f"`resources/list` shows what there is.{hint}"
    )


def _resources_of(member: Member) -> Question[_Offered] | None:
    return Question(lenient(member.source.resources)) if has_resources(member.source) else None


def _templates_of(member: Member) -> Question[_Offered] | None:
    return Question(lenient(member.source.templates)) if has_resources(member.source) else None
