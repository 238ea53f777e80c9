"""To whom does what a server says of its own accord belong?

A question in the middle of a call goes to that call's client, a log message too; a change goes to whoever watches. Over
HTTP the server's message says to which request it belongs; over a pipe it is guessed only where no guess can be wrong.
It does not talk to clients: a call brings its own way of asking them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from ullage.errors import ClientCannot, ProtocolError
from ullage.tool import Change, JsonObject, Listener

from ..jsonrpc import METHOD_NOT_FOUND, Message
from .roots import ROOTS, Roots
from .rpc import RELATED
from .waiting import Waiting

__all__ = ["Routing"]

_QUESTIONS = frozenset({"elicitation/create", "sampling/createMessage", ROOTS})
_CHANGES = {
    "notifications/tools/list_changed": Change("tools"),
    "notifications/resources/list_changed": Change("resources"),
    "notifications/prompts/list_changed": Change("prompts"),
}
_OF_A_CALL = frozenset({"notifications/message", "notifications/elicitation/complete"})
"""Notifications for the client whose call they belong to."""
_MOST_CHANGES = 1000
"""Different changes told of in one turn of the event loop; a server that names more is not believed."""


@dataclass(slots=True, eq=False)
class Routing:
    """Who is open to be asked or told on one connection."""

    waiting: Mapping[int | str, Waiting]
    """The open requests, oldest first."""
    acknowledged: Callable[[Message], None] = lambda _: None
    """Told when the server has begun to announce changes."""
    roots: Roots = field(default_factory=Roots)
    _listeners: dict[object, Listener] = field(default_factory=dict[object, Listener])
    _changes: dict[Change, None] = field(default_factory=dict[Change, None])

    def watch(self, listener: Listener) -> Callable[[], None]:
        ticket = object()
        self._listeners[ticket] = listener

        def stop() -> None:
            self._listeners.pop(ticket, None)

        return stop

    async def answer(self, method: str, params: Message) -> Message:
        """Asks the client to whose call the question belongs."""
        if method not in _QUESTIONS:
            raise ProtocolError(f"`{method}` is not known here", number=METHOD_NOT_FOUND)
        waiting = self._related()
        if method == ROOTS and waiting is None and not self._are_called():
            return dict(await self.roots.hold(params, is_blocking=lambda: bool(self.waiting)))
        if waiting is None:
            raise ClientCannot(f"no single client's call is open that `{method}` could belong to")
        if waiting.asked is None or waiting.asked.ask is None:
            raise ClientCannot(f"the client cannot be asked for `{method}`")
        waiting.questions += 1
        try:
            if method == ROOTS:
                return dict(await self.roots.ask(waiting.asked.ask, params))
            return dict(await _while_open(waiting, waiting.asked.ask(method, params)))
        finally:
            waiting.questions -= 1

    def heard(self, method: str, params: Message) -> None:
        if method in _OF_A_CALL:
            self._tell(method, params)
        elif method == "notifications/subscriptions/acknowledged":
            self.acknowledged(params)
        elif method == "notifications/resources/updated" and isinstance(params.get("uri"), str):
            self.announce(Change("resource", params["uri"]))
        elif method in _CHANGES:
            self.announce(_CHANGES[method])

    def _tell(self, method: str, params: Message) -> None:
        waiting = self._related()
        tell = None if waiting is None or waiting.asked is None else waiting.asked.tell
        if waiting is not None and tell is not None:
            waiting.tell(lambda: tell(method, params))

    def announce(self, change: Change) -> None:
        """Tells the listeners at the event loop's next turn, once for however often it was said."""
        if not self._changes:
            asyncio.get_running_loop().call_soon(self._announce)
        if len(self._changes) < _MOST_CHANGES:
            self._changes[change] = None

    def _announce(self) -> None:
        changes, self._changes = self._changes, {}
        for change in changes:
            for listener in list(self._listeners.values()):
                listener(change)

    def _are_called(self) -> bool:
        """Whether a client's request is open."""
        return any(one.asked is not None and not one.answer.done() for one in self.waiting.values())

    def _related(self) -> Waiting | None:
        """The request that a message belongs to: the one it came with, else the newest where all are one session's."""
        related = RELATED.get()
        if related is not None and self.waiting.get(related.number) is related:
            return related
        open_ones = [one for one in self.waiting.values() if one.asked is not None and not one.answer.done()]
        callers = [one.asked.caller for one in open_ones if one.asked is not None]
        return open_ones[-1] if len({(one.principal, one.session) for one in callers}) == 1 else None


async def _while_open(waiting: Waiting, asking: Awaitable[JsonObject]) -> JsonObject:
    """The client's answer, unless the call it belongs to ends before it."""
    task = asyncio.ensure_future(asking)
    try:
        await asyncio.wait({task, waiting.answer}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientCannot("the call it belonged to has ended")
        return task.result()
    finally:
        task.cancel()
