"""A source whose tool list comes from memory or the catalogue when it is known there.

`Kept` wraps one source and answers for its tools from memory, else from the catalogue, and asks the source itself
only where neither knows. It asks again when the source says that something changed, and when the source first
answers anything after a start from disk, until it has once said what it offers; watchers are told only where a
definition differs.

Tools and prompts that are not as they were accepted are left out, and a call of one is refused. The first call after a
start from disk waits for the source's own list, so that a definition that changed between two starts is noticed before
it is called. While something is withheld, the store is looked at every second for the user's acceptance. Everything
else passes through untouched.
"""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from ullage.errors import ProtocolError, SourceFailed, UllageError
from ullage.options import Server
from ullage.tool import (
    Call,
    Change,
    Closing,
    Complete,
    CompletionSource,
    Contents,
    JsonObject,
    Listener,
    Listing,
    PromptMessages,
    PromptRequest,
    PromptSource,
    Read,
    Reply,
    ResourceSource,
    Subscribed,
    ToolSource,
    Watched,
)

from ..baseline import DefinitionChange, Era, tool_changed
from ..tool_source import Introduced, Introduction, Pacing, Spawn
from .catalog import Catalogue, Stored

__all__ = ["Keepable", "Kept"]

Result = TypeVar("Result")

_LOOK_SECONDS = 1.0
"""Between two looks at the store for an acceptance, while something is withheld."""


class Keepable(
    ToolSource, Watched, Introduced, ResourceSource, PromptSource, CompletionSource, Subscribed, Closing, Protocol
):
    """What can be kept: a server under supervision."""

    @property
    def capabilities(self) -> JsonObject: ...

    async def set_log_level(self, level: str) -> None: ...


@dataclass(slots=True)
class _Asking:
    """One question to the source, on which any number may wait."""

    pause: float
    hurried: anyio.Event = field(default_factory=anyio.Event)
    """Set where someone waits who should not wait for the pause as well."""
    done: anyio.Event = field(default_factory=anyio.Event)
    error: UllageError | None = None


class Kept:
    def __init__(self, source: Keepable, server: Server, catalogue: Catalogue, *, spawn: Spawn) -> None:
        self._source = source
        self._catalogue = catalogue
        self._spawn = spawn
        self._stored: Stored | None = None
        self._weights: dict[str, int] = {}
        self._asking: _Asking | None = None
        self._confirmed_starts: int | None = None
        """How often the source had connected when it last listed its tools, so that its list is as fresh as its own
        news of it; None where it has not listed them in this process."""
        self._is_stale = False
        self._is_announced = False
        """Whether the source said that its tools changed, and nobody has been told yet."""
        self._pacing = Pacing()
        self._listeners: list[Listener] = []
        self._unwatch = source.watch(self._hear)
        self._is_closed = False
        self._offered_prompts: tuple[JsonObject, ...] | None = None
        """As the source last listed them."""
        self._unlisted: dict[str, DefinitionChange] = {}
        """Tools that were withheld when they were last listed, and are listed no more."""
        self._withheld_prompts: dict[str, DefinitionChange] = {}
        self._is_awaiting_acceptance = False
        self.server = server
        self.problem: str | None = None
        """Why the source could not be asked the last time; None where it could, or never was."""

    async def tools(self) -> Listing:
        if self._stored is None:
            await self.load()
        if self._stored is None:
            await self.refresh()
        return self.peek() or Listing((), revision="")

    def peek(self) -> Listing | None:
        """What is known at once."""
        return None if self._stored is None else self._stored.listing

    def token_count(self, tool: str) -> int | None:
        """What a tool's definition weighs; None where there is no such tool."""
        return self._weights.get(tool)

    def introduction(self) -> Introduction | None:
        """The source's own, else what it said the last time it was asked; with the instructions that were accepted."""
        stored = self._stored
        known = None if stored is None else stored.introduction
        said = self._introduced() or known
        if said is None or self.server.definition_changes == "ignore":
            return said
        if stored is not None and stored.instructions_change is not None:
            accepted = stored.instructions_change.accepted or {}
            return replace(said, instructions=_text(accepted, "instructions"), title=_text(accepted, "title"))
        # A source that has connected and not listed anything since may already say something else.
        return replace(said, instructions=known.instructions if known else None, title=known.title if known else None)

    def withheld(self) -> dict[str, DefinitionChange]:
        """Tools that are not as they were accepted, by name."""
        return {} if self._stored is None else dict(self._stored.withheld)

    def withheld_prompts(self) -> dict[str, DefinitionChange]:
        return dict(self._withheld_prompts)

    def reconfigure(self, server: Server) -> None:
        """Takes over settings that do not change how the server is started."""
        before, self.server = self.server, server
        if before.definition_changes != server.definition_changes and not self._is_closed:
            self._spawn(self._judge_again)

    @property
    def _starts(self) -> int:
        """How often the source has connected; always 0 for one that does not count."""
        return getattr(self._source, "starts", 0)

    @property
    def _is_connected(self) -> bool:
        """Always true for a source that cannot say."""
        return getattr(self._source, "is_connected", True)

    @property
    def _is_confirmed(self) -> bool:
        return self._confirmed_starts == self._starts

    @property
    def _era(self) -> Era:
        """Of the protocol, as the source last spoke it; empty where the source does not say."""
        era = getattr(self._source, "protocol_era", None)
        return era if era in ("handshake", "stateless") else ""

    def _introduced(self) -> Introduction | None:
        said = self._source.introduction()
        return None if said is None else replace(said, capabilities=self._source.capabilities)

    async def load(self) -> Listing | None:
        """What the catalogue knows; starts nothing."""
        stored = await self._catalogue.listing(self.server) if self._stored is None else None
        if stored is not None and self._stored is None:
            self._adopt(stored)
        return self.peek()

    async def is_current(self) -> bool:
        """Whether the catalogue says what is known here; another process may have renewed it."""
        stored, known = await self._catalogue.listing(self.server), self._stored
        if stored is None or known is None:
            return stored is known
        return (stored.listing.revision, stored.introduction) == (known.listing.revision, known.introduction)

    async def refresh(self) -> None:
        """Asks the source, or waits for the answer where someone has asked; raises why there is none. The list
        known before stays."""
        asking = self._asking or self._ask()
        asking.hurried.set()
        await asking.done.wait()
        if asking.error is not None:
            raise asking.error.with_traceback(None)

    @property
    def is_silent_about_changes(self) -> bool:
        """Whether it runs and has not declared that it announces changes of its tools. In the later era a list says how
        long it may be kept, and most say not at all, whatever is announced."""
        if self._confirmed_starts is None or not self._is_connected:
            return False
        if self._era == "stateless":
            return True
        declared = self._source.capabilities.get("tools")
        return not isinstance(declared, dict) or declared.get("listChanged") is not True

    def _ask(self, pause: float = 0.0) -> _Asking:
        if self._is_closed:
            raise SourceFailed(f"`{self.server.name}` is closed", suggestion="list the tools again")
        asking = self._asking = _Asking(pause)
        # In the background, so that whoever waits may give up without taking the answer from the others.
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
        # Not where this was cancelled: the group is ending, and would cancel the next one too, and so on.
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
        # Compared with what was known here: another process may have brought the catalogue up to date already.
        announced, self._is_announced = self._is_announced, False
        if announced or before is None or before.revision != stored.listing.revision:
            self._tell(Change("tools", is_announced=announced))

    def _ask_after_change(self) -> None:
        """After a pause, in which further changes gather."""
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
        """Looks for an acceptance by another process, for as long as something is withheld."""
        baselines, before = self._catalogue.baselines, ""
        try:
            while not self._is_closed:
                await anyio.sleep(_LOOK_SECONDS)
                now = await anyio.to_thread.run_sync(baselines.stamp, self.server)
                # The first look always compares: something may have been accepted since the list was judged.
                if now != before:
                    before = now
                    await self._judge_again()
                if now is None or not (self._withheld_prompts or (self._stored and self._stored.is_held)):
                    return
        finally:
            self._is_awaiting_acceptance = False

    async def _judge_again(self) -> None:
        """Compares what is known of the source with what is accepted by now, and tells watchers what differs."""
        known = self._stored
        stored = await self._catalogue.listing(self.server)
        # Not where the source has listed its tools meanwhile, which were judged then.
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
        """Passes something on. A source that answers is there: a list that came from disk can be confirmed."""
        try:
            answer = await request
        except ProtocolError:
            self._confirm()
            raise
        self._confirm()
        return answer

    def _confirm(self) -> None:
        if self._asking is None and not self._is_confirmed and not self._is_closed:
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
        """What the server declared, now or when it last ran; None where that is not known."""
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
