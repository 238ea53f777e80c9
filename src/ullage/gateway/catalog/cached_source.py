"""A source whose tool list comes from memory or the catalogue when it is known there.

`Kept` wraps one source and lists its tools from memory, else from the catalogue, and contacts the source only if
neither has them. It lists them again when the source announces a change, and when the source first answers anything
after a start from disk, until it has listed its tools once. Watchers are notified only if a definition differs.

Tools and prompts that differ from their accepted definitions are left out, and a call of one is refused. The first
call after a start from disk waits for the source's own list, so that a definition that changed between two starts is
noticed before it is called. While something is withheld, the store is checked every second for the user's
acceptance. Everything else passes through unchanged.
"""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import anyio
import anyio.to_thread

from ullage.errors import ProtocolError, SourceFailed, UllageError
from ullage.options import Server
from ullage.tool import (
    Call,
    Change,
    Complete,
    Contents,
    Introduction,
    JsonObject,
    Listener,
    Listing,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
    ToolSource,
)

from ..accepted_definitions import DefinitionChange, Era, tool_changed
from ..merge.tool_view import RememberedSource
from ..tool_source import Pacing, Spawn
from .catalog import Catalogue, Stored

__all__ = ["Kept"]

Result = TypeVar("Result")

_LOOK_SECONDS = 1.0
"""Seconds between two checks of the store for an acceptance, while something is withheld."""


@dataclass(slots=True)
class _Asking:
    """One request for the source's list, which any number of callers may await."""

    pause: float
    hurried: anyio.Event = field(default_factory=anyio.Event)
    """Set when a caller should not wait for the pause as well."""
    done: anyio.Event = field(default_factory=anyio.Event)
    error: UllageError | None = None


class Kept(RememberedSource):
    """Wraps one source and caches its tools."""

    def __init__(self, source: ToolSource, server: Server, catalogue: Catalogue, *, spawn: Spawn) -> None:
        self._source = source
        self._catalogue = catalogue
        self._spawn = spawn
        self._stored: Stored | None = None
        self._weights: dict[str, int] = {}
        self._asking: _Asking | None = None
        self._confirmed_starts: int | None = None
        """Number of the source's connections when it last listed its tools; None if it has not done so in this
        process. If unchanged, the list is as current as its announcements."""
        self._is_stale = False
        self._is_announced = False
        """Whether the source announced a change that watchers were not notified of yet."""
        self._pacing = Pacing()
        self._listeners: list[Listener] = []
        self._unwatch = source.watch(self._hear)
        self._is_closed = False
        self._offered_prompts: tuple[JsonObject, ...] | None = None
        """Prompts as the source last listed them."""
        self._unlisted: dict[str, DefinitionChange] = {}
        """Withheld tools that the source no longer lists."""
        self._withheld_prompts: dict[str, DefinitionChange] = {}
        self._is_awaiting_acceptance = False
        self.server = server
        self.problem: str | None = None
        """Why the last request to the source failed; None if it did not."""

    async def tools(self) -> Listing:
        if self._stored is None:
            await self.load()
        if self._stored is None:
            await self.refresh()
        return self.peek() or Listing((), revision="")

    def peek(self) -> Listing | None:
        """Return the known list without waiting."""
        return None if self._stored is None else self._stored.listing

    def token_count(self, tool: str) -> int | None:
        """Return the tokens of a tool's definition; None for an unknown tool."""
        return self._weights.get(tool)

    def introduction(self) -> Introduction | None:
        """Return the source's introduction, else the stored one, with the accepted instructions."""
        stored = self._stored
        known = None if stored is None else stored.introduction
        said = self._introduced() or known
        if said is None or self.server.definition_changes == "ignore":
            return said
        if stored is not None and stored.instructions_change is not None:
            accepted = stored.instructions_change.accepted or {}
            return replace(said, instructions=_text(accepted, "instructions"), title=_text(accepted, "title"))
        # A source that has connected and not listed its tools since may have changed them.
        return replace(said, instructions=known.instructions if known else None, title=known.title if known else None)

    def withheld(self) -> dict[str, DefinitionChange]:
        """Return the tools whose definitions are not the accepted ones, by name."""
        return {} if self._stored is None else dict(self._stored.withheld)

    def withheld_prompts(self) -> dict[str, DefinitionChange]:
        return dict(self._withheld_prompts)

    def reconfigure(self, server: Server) -> None:
        """Apply settings that do not change how the server is started."""
        before, self.server = self.server, server
        if before.definition_changes != server.definition_changes and not self._is_closed:
            self._spawn(self._judge_again)

    @property
    def _starts(self) -> int:
        """Return how often the source has connected; 0 for a source without a count."""
        return getattr(self._source, "starts", 0)

    @property
    def _is_connected(self) -> bool:
        """Return whether the source is connected; True for a source that does not tell."""
        return getattr(self._source, "is_connected", True)

    @property
    def _era(self) -> Era:
        """Return the protocol era that the source last used; empty for a source that does not tell."""
        era = getattr(self._source, "protocol_era", None)
        return era if era in ("handshake", "stateless") else ""

    def _introduced(self) -> Introduction | None:
        said = self._source.introduction()
        return None if said is None else replace(said, capabilities=self._source.capabilities)

    async def load(self) -> Listing | None:
        """Load the list from the catalogue; starts no server."""
        stored = await self._catalogue.listing(self.server) if self._stored is None else None
        if stored is not None and self._stored is None:
            self._adopt(stored)
        return self.peek()

    async def is_current(self) -> bool:
        """Return whether the catalogue agrees with memory; another process may have updated it."""
        stored, known = await self._catalogue.listing(self.server), self._stored
        if stored is None or known is None:
            return stored is known
        return (stored.listing.revision, stored.introduction) == (known.listing.revision, known.introduction)

    async def refresh(self) -> None:
        """List the source's tools, or await the request in progress. On failure the known list stays.

        Raises:
            UllageError: The source could not list its tools.
        """
        asking = self._asking or self._ask()
        asking.hurried.set()
        await asking.done.wait()
        if asking.error is not None:
            raise asking.error.with_traceback(None)

    @property
    def is_silent_about_changes(self) -> bool:
        """Return whether the source runs and has not declared that it announces changes of its tools.

        In the later era a list states how long it may be kept, and most servers state nothing, whatever they
        announce.
        """
        if self._confirmed_starts is None or not self._is_connected:
            return False
        if self._era == "stateless":
            return True
        declared = (self._source.capabilities or {}).get("tools")
        return not isinstance(declared, dict) or declared.get("listChanged") is not True

    def _ask(self, pause: float = 0.0) -> _Asking:
        if self._is_closed:
            raise SourceFailed(f"`{self.server.name}` is closed", suggestion="list the tools again")
        asking = self._asking = _Asking(pause)
        # In the background, so that a caller can give up without cancelling the request for the others.
        self._spawn(lambda: self._answer(asking))
        return asking

    async def _answer(self, asking: _Asking) -> None:
        asking.error = SourceFailed(f"`{self.server.name}` was closed before it had listed its tools")
        try:
            with anyio.move_on_after(asking.pause):
                await asking.hurried.wait()
            self._is_stale = False
            await self._renew()
            asking.error = None
        except UllageError as error:
            asking.error = error
        except Exception as error:  # noqa: BLE001 - one source's mistake must not end the group it runs in
            asking.error = SourceFailed(f"`{self.server.name}` broke with {type(error).__name__} at listing its tools")
        finally:
            self._asking = None
            self.problem = None if asking.error is None else asking.error.message
            self._pacing.finished(anyio.current_time())
            asking.done.set()
        # Not after a cancellation: the task group is ending and would cancel the next request too, and so on.
        if self._is_stale and not self._is_closed:
            self._ask_after_change()

    async def _renew(self) -> None:
        listing = await self._source.tools()
        if self._is_closed:
            raise SourceFailed(f"`{self.server.name}` was closed while it listed its tools")
        before = self.peek()
        stored = await self._catalogue.replace(self.server, listing.tools, self._introduced(), self._era)
        self._adopt(stored)
        self._confirmed_starts = self._starts
        # Compared with memory, because another process may already have updated the catalogue.
        announced, self._is_announced = self._is_announced, False
        if announced or before is None or before.revision != stored.listing.revision:
            self._tell(Change("tools", is_announced=announced))

    def _ask_after_change(self) -> None:
        """List the tools after a pause, in which further changes are collected."""
        self._ask(self._pacing.pause(anyio.current_time()))

    def _adopt(self, stored: Stored) -> None:
        withheld = {**self._unlisted, **({} if self._stored is None else self._stored.withheld)}
        names = {tool.tool.name for tool in stored.tools} | stored.withheld.keys()
        self._unlisted = {name: change for name, change in withheld.items() if name not in names}
        self._stored = stored
        self._weights = {tool.tool.name: tool.token_count for tool in stored.tools}
        self._await_acceptance()

    def _await_acceptance(self) -> None:
        stored = self._stored
        if (
            ((stored is not None and stored.is_held) or self._withheld_prompts)
            and not self._is_awaiting_acceptance
            and not self._is_closed
        ):
            self._is_awaiting_acceptance = True
            self._spawn(self._watch_store)

    async def _watch_store(self) -> None:
        """Check for an acceptance by another process while something is withheld."""
        baselines, before = self._catalogue.baselines, ""
        try:
            while not self._is_closed:
                await anyio.sleep(_LOOK_SECONDS)
                now = await anyio.to_thread.run_sync(baselines.stamp, self.server)
                # The first check always compares: something may have been accepted since the list was judged.
                if now != before:
                    before = now
                    await self._judge_again()
                if now is None or not (self._withheld_prompts or (self._stored and self._stored.is_held)):
                    return
        finally:
            self._is_awaiting_acceptance = False

    async def _judge_again(self) -> None:
        """Compare the known definitions with the accepted ones again, and notify watchers of differences."""
        known = self._stored
        stored = await self._catalogue.listing(self.server)
        # Not if the source has listed its tools meanwhile, since they were judged then.
        if stored is not None and known is not None and self._stored is known:
            self._adopt(stored)
            if stored.listing.revision != known.listing.revision:
                self._tell(Change("tools"))
        if self._offered_prompts is not None:
            before, self._withheld_prompts = self._withheld_prompts, await self._judged_prompts(self._offered_prompts)
            if before.keys() != self._withheld_prompts.keys():
                self._tell(Change("prompts"))

    async def _judged_prompts(self, offered: tuple[JsonObject, ...]) -> dict[str, DefinitionChange]:
        return await self._catalogue.judge_prompts(self.server, offered, self._era)

    def _hear(self, change: Change) -> None:
        if change.kind != "tools":
            self._tell(change)
            return
        self._is_stale = True
        self._is_announced = self._is_announced or change.is_announced
        if self._asking is None:
            self._ask_after_change()

    def _tell(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            listener(change)

    async def _through(self, request: Awaitable[Result]) -> Result:
        """Forward a request. If the source answers, it is running, so a list that came from disk can be confirmed."""
        try:
            answer = await request
        except ProtocolError:
            self._confirm()
            raise
        self._confirm()
        return answer

    def _confirm(self) -> None:
        if self._asking is None and self._confirmed_starts != self._starts and not self._is_closed:
            self._ask_after_change()

    async def call(self, call: Call) -> Reply:
        will_start = self._confirmed_starts is None or not self._is_connected
        if self._stored is not None and will_start and self.server.definition_changes == "hold":
            # Has the source list its tools before a call that would start it, within the call's own time.
            # A source that runs and cannot list them is called all the same: what it is known to offer is
            # what was accepted.
            with anyio.CancelScope(deadline=math.inf if call.deadline is None else call.deadline):
                try:
                    await self.refresh()
                except UllageError:
                    if not self._is_connected:
                        raise
        change = None if self._stored is None else self._stored.withheld.get(call.tool)
        if (change := change or self._unlisted.get(call.tool)) is not None:
            raise tool_changed(call.tool, change)
        return await self._through(self._source.call(call))

    async def resources(self) -> tuple[JsonObject, ...]:
        return await self._through(self._source.resources())

    async def templates(self) -> tuple[JsonObject, ...]:
        return await self._through(self._source.templates())

    async def read(self, read: Read) -> Contents:
        return await self._through(self._source.read(read))

    async def prompts(self) -> tuple[JsonObject, ...]:
        offered = await self._through(self._source.prompts())
        self._withheld_prompts = await self._judged_prompts(offered)
        self._offered_prompts = offered
        self._await_acceptance()
        return tuple(one for one in offered if str(one.get("name")) not in self._withheld_prompts)

    async def prompt(self, request: PromptRequest) -> PromptMessages:
        if (change := self._withheld_prompts.get(request.name)) is not None:
            raise tool_changed(request.name, change)
        return await self._through(self._source.prompt(request))

    async def complete(self, request: Complete) -> JsonObject:
        return await self._through(self._source.complete(request))

    async def subscribe(self, uri: str) -> None:
        await self._through(self._source.subscribe(uri))

    async def unsubscribe(self, uri: str) -> None:
        await self._source.unsubscribe(uri)

    @property
    def capabilities(self) -> JsonObject | None:
        """Return the capabilities that the server declared, now or when it last ran; None if they are not known."""
        said = self.introduction()
        return None if said is None else said.capabilities

    async def set_log_level(self, level: str) -> None:
        await self._source.set_log_level(level)

    def watch(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    async def close(self) -> None:
        self._is_closed = True
        self._unwatch()
        await self._source.close()


def _text(said: JsonObject, key: str) -> str | None:
    value = said.get(key)
    return value if isinstance(value, str) else None
