"""How does a server's list outlive the server?

`Kept` wraps one source and answers for its tools from memory, else from the catalogue, and asks the source itself only
where neither knows. It asks again when the source says that something changed, and when the source first answers
anything after a start from disk, until it has once said what it offers; watchers are told only where a definition
differs. Everything but the tools passes through untouched.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import anyio

from ullage.errors import ProtocolError, SourceFailed, UllageError
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

from ..introduction import Introduced, Introduction
from ..pacing import Pacing
from ..server import Server
from ..spawn import Spawn
from .catalog import Catalogue
from .stored import Stored

__all__ = ["Keepable", "Kept"]

Result = TypeVar("Result")


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
        self._is_confirmed = False
        """Whether the source has answered in this process, so that its list is as fresh as its own news of it."""
        self._is_stale = False
        self._pacing = Pacing()
        self._listeners: list[Listener] = []
        self._unwatch = source.watch(self._hear)
        self._is_closed = False
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
        """The source's own, else what it said the last time it was asked."""
        return self._introduced() or (None if self._stored is None else self._stored.introduction)

    def _introduced(self) -> Introduction | None:
        said = self._source.introduction()
        return None if said is None else replace(said, capabilities=self._source.capabilities)

    async def load(self) -> Listing | None:
        """What the catalogue knows; starts nothing."""
        stored = await self._catalogue.listing(self.server) if self._stored is None else None
        if stored is not None and self._stored is None:
            self._adopt(stored)
        return self.peek()

    async def refresh(self) -> None:
        """Asks the source, or waits for the answer where someone has asked; raises why there is none. The list
        known before stays."""
        asking = self._asking or self._ask()
        asking.hurried.set()
        await asking.done.wait()
        if asking.error is not None:
            raise asking.error.with_traceback(None)

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
            self._finish(asking)
        # Not where this was cancelled: the group is ending, and would cancel the next one too, and so on.
        if self._is_stale and not self._is_closed:
            self._ask_after_change()

    async def _renew(self) -> None:
        listing = await self._source.tools()
        if self._is_closed:
            raise SourceFailed(f"`{self.server.name}` was closed while it listed its tools")
        before = self.peek()
        stored = await self._catalogue.replace(self.server, listing.tools, self._introduced())
        self._adopt(stored)
        self._is_confirmed = True
        # Compared with what was known here: another process may have brought the catalogue up to date already.
        if before is None or before.revision != stored.listing.revision:
            self._tell(Change("tools"))

    def _finish(self, asking: _Asking) -> None:
        self._asking = None
        self.problem = None if asking.error is None else asking.error.message
        self._pacing.finished(anyio.current_time())
        asking.done.set()

    def _ask_after_change(self) -> None:
        """After a pause, in which further changes gather."""
        self._ask(self._pacing.pause(anyio.current_time()))

    def _adopt(self, stored: Stored) -> None:
        self._stored = stored
        self._weights = {tool.tool.name: tool.token_count for tool in stored.tools}

    def _hear(self, change: Change) -> None:
        if change.kind != "tools":
            self._tell(change)
            return
        self._is_stale = True
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
        return await self._through(self._source.call(call))

    async def resources(self) -> tuple[JsonObject, ...]:
        return await self._through(self._source.resources())

    async def templates(self) -> tuple[JsonObject, ...]:
        return await self._through(self._source.templates())

    async def read(self, read: Read) -> Contents:
        return await self._through(self._source.read(read))

    async def prompts(self) -> tuple[JsonObject, ...]:
        return await self._through(self._source.prompts())

    async def prompt(self, request: PromptRequest) -> PromptMessages:
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
