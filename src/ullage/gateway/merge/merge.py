"""Merges many sources into one.

`Merge` lists the tools of all members under names that never collide (`tool_names`), sends a call to the member that
owns the tool, and names that member in the reply. Slow, dead or broken members are reported and left out; the others
are not affected. Resources, prompts, completion and changes are merged the same way. `Merge` never closes a source:
that is the task of the code that created the members.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import anyio
import anyio.to_thread

from ullage.errors import BadConfiguration, ProtocolError, UllageError, UnknownResource, UnknownTool
from ullage.tool import (
    Call,
    Change,
    Complete,
    Contents,
    JsonObject,
    Listener,
    Listing,
    Origin,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
    Tool,
)

from ..sanitize import (
    restore_arguments,
    sanitize_request,
    sanitized_contents,
    sanitized_json,
    sanitized_messages,
    sanitized_result,
)
from ..tool_source import Spawn, advised, failed
from .polling import PollRound
from .prompts_and_resources import (
    Prompts,
    Resources,
    abilities,
    set_log_level,
    tools_of,
)
from .tool_names import key
from .tool_view import (
    Entry,
    Member,
    MemberListing,
    MergedSource,
    Missing,
    RememberedSource,
    View,
    build_view,
    denied_error,
    only_unprefixed,
    owner_of_unlisted,
)

__all__ = ["Member", "Merge"]

_PATIENCE = 10.0
_AT_ONCE = 1_000
"""Most tools of which a view is built on the event loop."""


class Merge(MergedSource):
    """Many members as one source of tools, resources and prompts.

    Args:
        spawn: Runs work in the background, such as waiting for a slow server's list; without it, a member that does not
            answer in time is asked again the next time.
        reserved: Names that are listed for no member.
        patience: Seconds to wait for a resource or a prompt, or for a tool of a server whose tools are not known.
    """

    def __init__(
        self,
        members: Iterable[Member] = (),
        *,
        spawn: Spawn | None = None,
        reserved: Iterable[str] = (),
        patience: float = _PATIENCE,
    ) -> None:
        self._reserved = tuple(reserved)
        self._patience = patience
        self._listeners: list[Listener] = []
        self._tools: PollRound[Listing] = PollRound(tools_of, self._tools_arrived, spawn, patience)
        self._resources = Resources(self._resources_arrived, spawn, patience)
        self._prompts = Prompts(self._prompts_arrived, spawn, patience)
        self._watching: dict[str, tuple[object, Callable[[], None]]] = {}
        self._members: tuple[Member, ...] = ()
        self._servers: tuple[str, ...] = ()
        self._seen: tuple[tuple[MemberListing, ...], View] | None = None
        self._seeing = anyio.Lock()
        self._spawn = spawn
        self._told: dict[str, object] = {}
        """What clients were last shown, by the kind of change that would announce something else."""
        self.replace(members)

    @property
    def members(self) -> tuple[Member, ...]:
        """The current members."""
        return self._members

    def replace(self, members: Iterable[Member]) -> None:
        """Replace the members after a change of settings; known lists of sources that stay are kept."""
        found: dict[str, Member] = {}
        for member in members:
            if member.name in found:
                raise BadConfiguration(f"two servers are called `{member.name}`", suggestion="Rename one of them.")
            found[member.name] = member
        self._members = tuple(found.values())
        self._servers = tuple(member.name for member in self._members)
        for part in (self._tools, self._resources, self._prompts):
            part.replace(self._members)
        staying = {member.name: member.source for member in self._members}
        for name, (source, unwatch) in tuple(self._watching.items()):
            if staying.get(name) is not source:
                unwatch()
                del self._watching[name]
        for name, source in staying.items():
            if name not in self._watching:
                self._watching[name] = source, source.watch(partial(self._changed, name))
        if "tools" in self._told:
            self._tools.ask_in_background()
        self._tools_arrived()
        self._resources_arrived()
        self._prompts_arrived()

    async def view(self, wait: float = 0.0) -> View:
        """Return all known tools, after waiting up to `wait` seconds for members that never listed theirs."""
        seen = self._seen
        if seen is not None and seen[1].servers is self._servers and self._tools.is_settled(seen[0]):
            # The usual case: a view is requested with every call.
            unchanged = seen[1]
        else:
            await self._tools.recall()
            await self._tools.gather(wait)
            unchanged = self._unchanged()
        if unchanged is not None and not unchanged.missing and self._told.get("tools") == unchanged.revision:
            return unchanged
        await self._see_aside()
        self._tools_arrived()
        view = self.known
        self._told["tools"] = view.revision
        return view

    async def refresh(self, wait: float) -> None:
        """List again the tools of running servers that announce no changes, within `wait` seconds. The known tools
        of a server that does not answer are kept."""

        async def refresh(source: RememberedSource) -> None:
            with suppress(UllageError):
                await source.refresh()

        with anyio.move_on_after(wait):
            async with anyio.create_task_group() as group:
                for member in self._members:
                    if isinstance(source := member.source, RememberedSource) and source.is_silent_about_changes:
                        group.start_soon(refresh, source)

    async def find(self, name: str, server: str | None = None) -> Entry:
        """Return the tool of that name in any spelling, waiting for a member that may own it and never listed its
        tools."""
        if (unchanged := self._unchanged()) is not None:
            try:
                return unchanged.find(name, server)
            except UnknownTool:
                if not unchanged.missing:
                    return self._find_or_pass(name, server)
        if self._is_long() and (found := self._find_before(name, server)) is not None:
            return found
        await self._see_aside()
        try:
            return self.known.find(name, server)
        except UnknownTool:
            missing = {one.server for one in self._tools.missing()}
            unheard = [member for member in self._members if member.name in missing]
            awaited = frozenset(member.name for member in unheard if _may_own(member, name, server))
            if not awaited:
                return self._find_or_pass(name, server)
        await self._tools.recall()
        await self._tools.gather(self._patience, awaited)
        await self._see_aside()
        return self._find_or_pass(name, server)

    def _find_or_pass(self, name: str, server: str | None) -> Entry:
        """Return the known tool of that name.

        A name that resembles no known tool may be an unlisted tool of the only server without a prefix. That server
        is called, and its own error is passed to the client.
        """
        view = self.known
        try:
            return view.find(name, server)
        except UnknownTool as unknown:
            owner = owner_of_unlisted(name, self._members, view.given)
            resembles = unknown.options or (view.book is not None and view.book.find(name))
            if owner is None or resembles or server not in (None, owner.name):
                raise
            entry = Entry(
                listed=name, tool=Tool(name=name, input_schema={"type": "object"}), member=owner, original=name
            )
            if entry.access == "deny":
                raise denied_error(entry) from unknown
            return entry

    def _unchanged(self) -> View | None:
        """Return the last view if no tools were listed since, else None. The reasons for missing servers may have
        changed."""
        if self._seen is None:
            return None
        heard, view = self._seen
        return view if view.servers is self._servers and self._tools.has_not_changed(heard, _is_same_listing) else None

    def _is_long(self) -> bool:
        """Return whether the view must be rebuilt from so many tools that it would delay other calls."""
        if self._seen is not None and self._tools.has_not_changed(self._seen[0], _is_same_listing):
            return False
        return sum(len(listing.tools) for _, listing in self._tools.known()) > _AT_ONCE

    def _find_before(self, name: str, server: str | None) -> Entry | None:
        """Return the tool in the last view, if that had the same members; their tools may have changed since."""
        if self._seen is None:
            return None
        members = {member.name: member for member in self._members}
        try:
            entry = self._seen[1].find(name, server)
        except UllageError:
            return None
        return entry if members.get(entry.server) is entry.member else None

    async def _see_aside(self) -> None:
        """Build a long view in a worker thread, so that `known` finds it ready."""
        while self._is_long():
            async with self._seeing:
                heard = self._tools.known()
                if not self._is_long():
                    return
                before = None if self._seen is None else self._seen[1]
                self._seen = heard, await anyio.to_thread.run_sync(_see, heard, self._reserved, before)

    async def call_entry(self, entry: Entry, call: Call) -> Reply:
        """Call a tool that was already resolved. A failure is returned as a reply too, so that it names its server."""
        arguments = restore_arguments(call.arguments, entry.originals)
        try:
            reply = await entry.member.source.call(sanitize_request(call, tool=entry.original, arguments=arguments))
        except (UnknownTool, ProtocolError):
            raise
        except UllageError as error:
            reply = failed(error if entry.member.own else advised(error, is_read_only=entry.is_read_only))
        content = await self._resources.blocks_shown(entry.server, reply.content)
        # One of Ullage's own members may answer for several servers, and its reply names the server.
        origin = reply.origin if entry.member.own and reply.origin else Origin(entry.server, entry.original)
        reply = reply.changed(content=content, origin=origin)
        return await sanitized_result(reply)

    async def resources(self) -> tuple[JsonObject, ...]:
        """Return the resources of all members."""
        await self._resources.ask()
        return self._tell_resources()[0]

    async def templates(self) -> tuple[JsonObject, ...]:
        """Return the resource templates of all members."""
        await self._resources.ask()
        return self._tell_resources()[1]

    async def read(self, read: Read) -> Contents:
        return await sanitized_contents(await self._resources.read(sanitize_request(read)))

    async def subscribe(self, uri: str) -> None:
        await self._resources.subscribe(uri)

    async def unsubscribe(self, uri: str) -> None:
        await self._resources.unsubscribe(uri)

    async def prompts(self) -> tuple[JsonObject, ...]:
        """Return the prompts of all members, under their listed names."""
        shown = await self._prompts.prompts()
        self._told["prompts"] = shown
        return shown

    async def prompt(self, request: PromptRequest) -> PromptMessages:
        answer = await self._prompts.prompt(sanitize_request(request), self._resources.blocks_shown)
        return await sanitized_messages(answer)

    async def complete(self, request: Complete) -> JsonObject:
        member, reference = await self._referred(request.reference)
        completion = await member.source.complete(replace(request, reference=reference))
        return await sanitized_json(completion)

    async def set_log_level(self, level: str) -> None:
        """Set the log level of every member that supports it; failures are ignored."""
        async with anyio.create_task_group() as group:
            for member in self._members:
                if "logging" in member.source.features:
                    group.start_soon(set_log_level, member.source, level)

    @property
    def capabilities(self) -> JsonObject:
        """Return the capabilities besides tools that any member has, in the protocol's format; an unknown member may
        have all."""
        return abilities(member.source for member in self._members)

    def failed(self) -> tuple[Missing, ...]:
        """Return the members that were left out of the last list, with the reasons."""
        everyone = (*self._tools.failed(), *self._resources.failed(), *self._prompts.failed())
        return tuple(dict.fromkeys(everyone))

    def watch(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each change until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    async def close(self) -> None:
        """Stop watching the members; they stay open."""
        for _, unwatch in self._watching.values():
            unwatch()
        self._watching.clear()
        self._listeners.clear()

    @property
    def known(self) -> View:
        """Return the view of everything known now; only changed parts are rebuilt."""
        heard, missing = self._tools.known(), self._tools.missing()
        servers = self._servers
        if self._seen is None or not self._tools.has_not_changed(self._seen[0], _is_same_listing):
            before = None if self._seen is None else self._seen[1]
            view = build_view(heard, reserved=self._reserved, before=before)
            self._seen = heard, replace(view, missing=missing, servers=servers)
        elif self._seen[1].missing != missing or self._seen[1].servers is not servers:
            self._seen = heard, replace(self._seen[1], missing=missing, servers=servers)
        return self._seen[1]

    async def _referred(self, reference: JsonObject) -> tuple[Member, JsonObject]:
        """Return the member that a completion refers to, and the reference in that member's own names."""
        if reference.get("type") == "ref/prompt":
            prompt = await self._prompts.find(str(reference.get("name")))
            return prompt.member, {**reference, "name": prompt.original}
        uri = str(reference.get("uri"))
        place = await self._resources.place(uri)
        if place is None and (owner := only_unprefixed(self._members)) is not None:
            return owner, reference
        if place is None:
            raise UnknownResource(
                f"no server has a resource at `{uri[:200]}`", suggestion="`resources/templates/list` shows them."
            )
        return place.member, {**reference, "uri": place.uri}

    def _changed(self, server: str, change: Change) -> None:
        if change.kind == "tools":
            if change.is_announced or (self._tools.outdate(server) and not self._tools.ask_in_background()):
                self._announce(change)
            self._tools_arrived()
        elif change.kind == "resource":
            for shown in self._resources.changes_shown(server, change):
                self._announce(shown)
        else:
            part = self._resources if change.kind == "resources" else self._prompts
            outdated = part.outdate(server)
            if change.is_announced or change.kind not in self._told or (outdated and not part.ask_in_background()):
                self._announce(change)

    def _tools_arrived(self) -> None:
        if self._spawn is not None and "tools" in self._told and self._is_long():
            self._spawn(self._tools_arrived_aside)
        elif "tools" in self._told and self._told["tools"] != (revision := self.known.revision):
            self._told["tools"] = revision
            self._announce(Change("tools"))

    async def _tools_arrived_aside(self) -> None:
        await self._see_aside()
        self._tools_arrived()

    def _resources_arrived(self) -> None:
        if self._spawn is not None and "resources" in self._told and self._resources.is_long():
            self._spawn(self._resources_arrived_aside)
        elif "resources" in self._told and self._told["resources"] != self._resources.known():
            self._tell_resources()
            self._announce(Change("resources"))

    async def _resources_arrived_aside(self) -> None:
        await self._resources.make_aside()
        self._resources_arrived()

    async def _prompts_arrived_aside(self) -> None:
        await self._prompts.make_aside()
        self._prompts_arrived()

    def _prompts_arrived(self) -> None:
        if self._spawn is not None and "prompts" in self._told and self._prompts.is_long():
            self._spawn(self._prompts_arrived_aside)
        elif "prompts" in self._told and self._told["prompts"] != (known := self._prompts.known()):
            self._told["prompts"] = known
            self._announce(Change("prompts"))

    def _tell_resources(self) -> tuple[tuple[JsonObject, ...], tuple[JsonObject, ...]]:
        known = self._resources.known()
        self._told["resources"] = known
        return known

    def _announce(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            listener(change)


def _see(heard: tuple[MemberListing, ...], reserved: tuple[str, ...], before: View | None) -> View:
    """Build the view and its tables of names."""
    view = build_view(heard, reserved=reserved, before=before)
    view.book.find("") if view.book is not None else None
    return view


def _is_same_listing(before: Listing, now: Listing) -> bool:
    return before.revision == now.revision


def _may_own(member: Member, name: str, server: str | None) -> bool:
    """Return whether the member may own a tool of that name, by the name's prefix."""
    if server is not None:
        return key(server) == key(member.name)
    spelt = key(name).removeprefix("mcp")
    return not member.prefix or spelt.startswith((key(member.prefix), key(member.name)))
