"""Merges the prompts and resources of all members.

Only members with the feature are asked. A server that answers that it does not know a method offers nothing of that
kind, which is not a failure.

The prompts of all members form one list, with names and spellings as for tools (`tool_names`).

The resources of all members form one list; reads, subscriptions and changes go to or come from the member that owns
the address. `tool_names` keeps addresses of different members apart. An address that no member lists is tried at
each member in turn.
"""

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar, cast

import anyio
import anyio.to_thread

from ullage.errors import BadInput, ProtocolError, ToolChanged, UllageError, Unavailable, UnknownResource
from ullage.tool import (
    Block,
    Change,
    Contents,
    Json,
    JsonObject,
    Listing,
    PromptMessages,
    PromptRequest,
    Read,
    ToolSource,
)

from ..accepted_definitions import tool_changed
from ..sanitize import restore_arguments, sanitize_item
from ..tool_source import Spawn
from .polling import PollQuestion, PollRound, are_same_answers
from .tool_names import (
    NOBODY,
    Book,
    Origin,
    Owned,
    Owners,
    block_mapped,
    key,
    listed_names,
    mapped,
    outward,
    owners_of,
    remembered,
    unmapped,
    uri_of,
    with_uri,
)
from .tool_view import Member, Missing, RememberedSource, owner_of_unlisted

__all__ = [
    "Place",
    "Prompt",
    "Prompts",
    "Resources",
    "abilities",
    "lenient",
    "set_log_level",
    "tools_of",
]

Offered = TypeVar("Offered")
_METHOD_NOT_FOUND = -32601


def abilities(sources: Iterable[ToolSource]) -> dict[str, Json]:
    """Return the capabilities besides tools that any of the sources has, in the protocol's format."""
    found: dict[str, Json] = {}
    for source in sources:
        found |= {key: value for key, value in _abilities(source).items() if value or key not in found}
    return found


def _abilities(source: ToolSource) -> dict[str, Json]:
    """Return the features of a source, without those that its server did not declare."""
    features, declared = source.features, source.capabilities
    can: dict[str, Json] = {name: {} for name in ("resources", "prompts", "completions", "logging") if name in features}
    if "resources" in can and "subscriptions" in features:
        can["resources"] = {"subscribe": True}
    if declared is None:
        return can
    resources = declared.get("resources")
    subscribes = isinstance(resources, dict) and resources.get("subscribe") is True
    return {key: value if subscribes else {} for key, value in can.items() if key in declared}


def tools_of(member: Member) -> PollQuestion[Listing]:
    source = member.source
    if isinstance(source, RememberedSource):
        return PollQuestion(source.tools, peek=source.peek, recall=source.load)
    return PollQuestion(source.tools)


async def set_log_level(source: ToolSource, level: str) -> None:
    """Set the log level; if that fails, the source keeps its level."""
    try:
        await source.set_log_level(level)
    except UllageError:
        return


def lenient(
    ask: Callable[[], Awaitable[tuple[Offered, ...]]],
) -> Callable[[], Awaitable[tuple[Offered, ...]]]:
    """Wrap a question so that a server that does not know the method answers with an empty list."""

    async def asked() -> tuple[Offered, ...]:
        try:
            return await ask()
        except ProtocolError as error:
            if error.number == _METHOD_NOT_FOUND:
                return ()
            raise

    return asked


_Offered = tuple[JsonObject, ...]
_HeardPrompts = tuple[tuple[Member, _Offered], ...]
_AT_ONCE = 200
"""Most prompts of which a list is built on the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt of one member."""

    listed: str
    original: str
    member: Member
    definition: JsonObject
    """The definition as clients see it."""
    originals: Mapping[str, str]
    """Names with invisible characters, by the escaped form that clients see."""
    aliases: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        return self.member.name


class Prompts:
    """The prompts of all members."""

    def __init__(self, changed: Callable[[], None], spawn: Spawn | None, patience: float) -> None:
        self._round: PollRound[_Offered] = PollRound(
            lambda member: (
                PollQuestion(lenient(member.source.prompts)) if "prompts" in member.source.features else None
            ),
            changed,
            spawn,
            patience,
        )
        self._patience = patience
        self._members: tuple[Member, ...] = ()
        self._given: Mapping[str, Origin] = NOBODY
        self._made: _MadePrompts | None = None
        self._making = anyio.Lock()

    def replace(self, members: tuple[Member, ...]) -> None:
        self._members = members
        self._round.replace(members)

    def outdate(self, server: str) -> bool:
        """Mark a member's prompts as outdated; return whether the member must be polled again."""
        return self._round.outdate(server)

    def ask_in_background(self) -> bool:
        return self._round.ask_in_background()

    def failed(self) -> tuple[Missing, ...]:
        return self._round.failed()

    async def prompts(self) -> _Offered:
        await self._round.gather(self._patience)
        await self.make_aside()
        return self.known()

    def known(self) -> _Offered:
        """Return the known list without asking the members."""
        return self._current().shown

    def is_long(self) -> bool:
        """Return whether the list must be rebuilt from so many prompts that it would delay other calls."""
        heard = self._round.known()
        if self._made is not None and self._made.is_of(heard):
            return False
        return sum(len(offered) for _, offered in heard) > _AT_ONCE

    async def make_aside(self) -> None:
        """Build a long list in a worker thread, so that `known` finds it ready."""
        while self.is_long():
            async with self._making:
                if self.is_long():
                    self._keep(await anyio.to_thread.run_sync(_make_prompts, self._round.known(), self._given))

    async def find(self, name: str) -> Prompt:
        """Return the prompt of that name, in any spelling."""
        await self.make_aside()
        found = self._current().book.find(name)
        if len(found) != 1:
            await self._round.gather(self._patience)
            await self.make_aside()
            found = self._current().book.find(name)
        if len(found) == 1:
            return found[0]
        if not found and (refusal := self._withheld(name)) is not None:
            raise refusal
        options = tuple(one.listed for one in found) or self._current().book.nearest(name)
        owner = None if options else owner_of_unlisted(name, self._members, self._given)
        if owner is not None and "prompts" in owner.source.features:
            # Perhaps it is not listed; if there is none, the server's own error is the client's.
            return Prompt(listed=name, original=name, member=owner, definition={}, originals={})
        raise UnknownResource(
            f"no prompt is called `{name[:100]}`", suggestion="`prompts/list` shows what there is.", options=options
        )

    def _withheld(self, name: str) -> ToolChanged | None:
        """Return the error for a prompt that is withheld because its definition changed; None if it is not."""
        for member, _ in self._round.known():
            if not isinstance(member.source, RememberedSource):
                continue
            for original, change in member.source.withheld_prompts().items():
                listed = f"{member.prefix}__{original}" if member.prefix else original
                if key(name) in (key(original), key(listed)):
                    return tool_changed(listed, change)
        return None

    async def prompt(
        self, request: PromptRequest, blocks_shown: Callable[[str, tuple[Block, ...]], Awaitable[tuple[Block, ...]]]
    ) -> PromptMessages:
        found = await self.find(request.name)
        arguments = cast("Mapping[str, str]", restore_arguments(request.arguments, found.originals))
        answer = await found.member.source.prompt(replace(request, name=found.original, arguments=arguments))
        # One message has one block. Those without one keep their place.
        contents = [one.get("content") for one in answer.messages]
        blocks = tuple(content if isinstance(content, dict) else {} for content in contents)
        shown = await blocks_shown(found.server, blocks)
        messages = (
            one if new is old else {**one, "content": dict(new)}
            for one, old, new in zip(answer.messages, blocks, shown, strict=True)
        )
        return replace(answer, messages=tuple(messages))

    def _current(self) -> "_MadePrompts":
        heard = self._round.known()
        if self._made is None or not self._made.is_of(heard):
            return self._keep(_make_prompts(heard, self._given))
        return self._made

    def _keep(self, made: "_MadePrompts") -> "_MadePrompts":
        self._given = remembered(self._given, {(one.server, one.original): one.listed for one in made.prompts})
        self._made = made
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class _MadePrompts:
    """The prompts, their list as clients see it, and the answers both were built from."""

    heard: _HeardPrompts
    prompts: tuple[Prompt, ...]
    book: Book[Prompt]
    shown: _Offered

    def is_of(self, heard: _HeardPrompts) -> bool:
        """Return whether these answers are the same objects as those the list was built from."""
        return are_same_answers(self.heard, heard)


def _make_prompts(heard: _HeardPrompts, given: Mapping[str, Origin]) -> _MadePrompts:
    prompts = _named(heard, given)
    book = Book(prompts)
    book.find("")
    return _MadePrompts(heard=heard, prompts=prompts, book=book, shown=tuple(one.definition for one in prompts))


def _named(heard: _HeardPrompts, given: Mapping[str, Origin]) -> tuple[Prompt, ...]:
    owned = (
        Owned(server=member.name, prefix=member.prefix, names=tuple(dict.fromkeys(map(_name, offered))))
        for member, offered in heard
    )
    names = listed_names(owned, given=given)
    found: dict[Origin, Prompt] = {}
    for member, offered in heard:
        for one in reversed(offered):
            listed = names[member.name, _name(one)]
            safe, originals = sanitize_item(one)
            found[member.name, _name(one)] = Prompt(
                listed=listed,
                original=_name(one),
                member=member,
                definition={**safe, "name": listed},
                originals=originals,
            )
    order = [(member.name, name) for member, offered in heard for name in dict.fromkeys(map(_name, offered))]
    return tuple(found[place] for place in order)


def _name(definition: JsonObject) -> str:
    return str(definition.get("name"))


"""Resources, blocks or template matches processed in one step of the event loop."""
_MOST_TRIED = 16
"""Most members asked for an address that none of them lists."""
_SILENT = "it did not answer in time"
_MOST_SEEN = 4_096
"""Most addresses kept from replies."""


@dataclass(frozen=True, slots=True)
class Place:
    """A resource's member and address there."""

    member: Member
    uri: str
    """The member's own address."""


class Resources:
    """The resources of all members."""

    def __init__(self, changed: Callable[[], None], spawn: Spawn | None, patience: float) -> None:
        self._listed: PollRound[_Offered] = PollRound(
            lambda member: (
                PollQuestion(lenient(member.source.resources)) if "resources" in member.source.features else None
            ),
            changed,
            spawn,
            patience,
        )
        self._templates: PollRound[_Offered] = PollRound(
            lambda member: (
                PollQuestion(lenient(member.source.templates)) if "resources" in member.source.features else None
            ),
            changed,
            spawn,
            patience,
        )
        self._patience = patience
        self._owners: dict[str, Member] = {}
        """Members that offer resources, by name."""
        self._seen: OrderedDict[str, str] = OrderedDict()
        """Unlisted addresses from replies, with the server of the reply."""
        self._made: _MadeResources | None = None
        self._making = anyio.Lock()
        self._subscribed: dict[tuple[str, str], Counter[str]] = {}
        """By server and its own address: the addresses used to subscribe, and how often."""

    def replace(self, members: tuple[Member, ...]) -> None:
        self._owners = {one.name: one for one in members if "resources" in one.source.features}
        self._listed.replace(members)
        self._templates.replace(members)

    def outdate(self, server: str) -> bool:
        """Mark a member's resources as outdated; return whether the member must be polled again."""
        outdated = [part.outdate(server) for part in (self._listed, self._templates)]
        return any(outdated)

    def ask_in_background(self) -> bool:
        asked = [part.ask_in_background() for part in (self._listed, self._templates)]
        return any(asked)

    def failed(self) -> tuple[Missing, ...]:
        return tuple(dict.fromkeys((*self._listed.failed(), *self._templates.failed())))

    async def ask(self) -> None:
        """Request both lists and build them, so that `known` has them."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listed.gather, self._patience)
            group.start_soon(self._templates.gather, self._patience)
        await self.make_aside()

    def known(self) -> tuple[_Offered, _Offered]:
        """Return both known lists without asking the members."""
        made = self._current()
        return made.resources, made.templates

    def is_long(self) -> bool:
        """Return whether the lists must be rebuilt from so many items that it would delay other calls."""
        heard = self._listed.known(), self._templates.known()
        if self._made is not None and self._made.is_of(*heard):
            return False
        return sum(len(offered) for part in heard for _, offered in part) > _AT_ONCE

    async def make_aside(self) -> None:
        """Build long lists in a worker thread, so that `known` finds them ready."""
        while self.is_long():
            async with self._making:
                if self.is_long():
                    heard = self._listed.known(), self._templates.known()
                    self._made = await anyio.to_thread.run_sync(_make_resources, *heard)

    async def read(self, read: Read) -> Contents:
        """Read the resource at an address from the member that owns it."""
        place = await self.place(read.uri)
        if place is None:
            return await self._try_all(read)
        contents = await place.member.source.read(replace(read, uri=place.uri))
        member = place.member
        uris = {uri for one in contents.contents if isinstance(uri := one.get("uri"), str)}
        is_mapped = unmapped(read.uri) is not None
        found = {} if is_mapped else await self._find_owners(uris)

        def shown(uri: str) -> str:
            return mapped(member.name, uri) if is_mapped else self._outward(member.name, uri, found.get(uri))

        return replace(contents, contents=tuple(with_uri(one, shown) for one in contents.contents))

    async def subscribe(self, uri: str) -> None:
        place = await self._subscribable(uri)
        await place.member.source.subscribe(place.uri)
        self._subscribed.setdefault((place.member.name, place.uri), Counter())[uri] += 1

    async def unsubscribe(self, uri: str) -> None:
        """Unsubscribe; the server is told when its last subscriber is gone."""
        place = await self._subscribable(uri)
        subscribed = self._subscribed.get((place.member.name, place.uri), Counter[str]())
        subscribed -= Counter([uri])
        if not subscribed:
            self._subscribed.pop((place.member.name, place.uri), None)
            await place.member.source.unsubscribe(place.uri)

    async def place(self, uri: str) -> Place | None:
        """Return the member and address that an address resolves to; None if no member is known to own it."""
        explicit = unmapped(uri)
        if explicit is not None and (found := self._at(*explicit)) is not None:
            return found
        if (server := self._owner(uri)) is None:
            await self.ask()
            server = self._owner(uri)
        return None if server is None else self._at(server, uri)

    async def blocks_shown(self, server: str, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Return a reply's content with addresses that resolve to the same server when read."""
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
        """Return the owner of each plain address; in a worker thread if many are matched against many templates."""
        wanted = tuple(uris)
        await self.make_aside()
        owners = self._current().owners
        if len(wanted) * (1 + len(owners.templates)) <= _AT_ONCE:
            return {uri: owners.owner(uri) for uri in wanted}
        return await anyio.to_thread.run_sync(lambda: {uri: owners.owner(uri) for uri in wanted})

    def changes_shown(self, server: str, change: Change) -> tuple[Change, ...]:
        """Return a change of one resource under each address that was used to subscribe to it."""
        uri = change.uri or ""
        owner = self._current().owners.owner(uri)
        subscribed = self._subscribed.get((server, uri)) or (self._outward(server, uri, owner),)
        return tuple(replace(change, uri=one) for one in subscribed)

    def _at(self, server: str, uri: str) -> Place | None:
        member = self._owners.get(server)
        return None if member is None else Place(member, uri)

    def _owner(self, uri: str) -> str | None:
        return self._current().owners.owner(uri) or self._seen.get(uri)

    def _outward(self, server: str, uri: str, owner: str | None) -> str:
        if owner is None and self._seen.get(uri, server) != server:
            return mapped(server, uri)
        return outward(server, uri, owner)

    def _noted(self, server: str, found: dict[str, str | None], uri: str) -> str:
        """Return an address of a reply as it is shown, and remember it if no member lists it."""
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

    def _current(self) -> "_MadeResources":
        heard = self._listed.known(), self._templates.known()
        if self._made is None or not self._made.is_of(*heard):
            self._made = _make_resources(*heard)
        return self._made

    async def _try_all(self, read: Read) -> Contents:
        """Read from each member in turn until one knows the address. If there is only one, its own error is the
        client's."""
        failed: list[str] = []
        for name, member in tuple(self._owners.items())[:_MOST_TRIED]:
            try:
                with anyio.fail_after(self._patience):
                    contents = await member.source.read(read)
            except (BadInput, ProtocolError):
                if len(self._owners) == 1:
                    raise
                continue
            except (Unavailable, TimeoutError) as error:
                failed.append(f"`{name}` ({error.message if isinstance(error, Unavailable) else _SILENT})")
                continue
            self._note(read.uri, name)
            return contents
        raise _unknown(read.uri, failed)

    async def _subscribable(self, uri: str) -> Place:
        place = await self.place(uri)
        if place is None and len(self._owners) == 1:
            place = self._at(next(iter(self._owners)), uri)
        if place is None:
            raise _unknown(uri, [])
        if "subscriptions" not in place.member.source.features:
            raise UnknownResource(f"server `{place.member.name}` does not say when its resources change")
        return place


_HeardResources = tuple[tuple[Member, _Offered], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _MadeResources:
    """The lists as they are shown, the owners of their addresses, and the answers they were built from."""

    listed: _HeardResources
    offered_templates: _HeardResources
    owners: Owners
    resources: _Offered
    templates: _Offered

    def is_of(self, listed: _HeardResources, templates: _HeardResources) -> bool:
        """Return whether these answers are the same objects as those the lists were built from."""
        return are_same_answers(self.listed, listed) and are_same_answers(self.offered_templates, templates)


def _make_resources(listed: _HeardResources, templates: _HeardResources) -> _MadeResources:
    owners = owners_of(
        [(member.name, offered) for member, offered in listed],
        [(member.name, offered) for member, offered in templates],
    )
    return _MadeResources(
        listed=listed,
        offered_templates=templates,
        owners=owners,
        resources=_shown(owners, listed, "uri"),
        templates=_shown(owners, templates, "uriTemplate"),
    )


def _shown(owners: Owners, heard: _HeardResources, key: str) -> _Offered:
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
