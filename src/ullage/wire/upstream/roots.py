"""When does a server learn in which folders its client works?

A server of the earlier era may ask as soon as it is greeted, when no call is open that would say whose folders are
meant. The question then waits for the next request that has a client behind it, and that request waits for the answer:
a server that knows no folders would refuse it. What has been asked is answered even where the call that led to it has
ended meanwhile. It does not know what folders are.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from ullage.errors import ClientCannot
from ullage.tool import Ask, Asked, JsonObject

from ..jsonrpc import Message

__all__ = ["ROOTS", "Roots"]

ROOTS = "roots/list"
_AFTER_GREETING = 0.05
"""Seconds that a server just greeted has for the question, before the first request is sent."""
_ASKED_AGAIN = 1.0
"""Seconds for the question to be put again by a server that has given it up and is told to."""
_ANSWERING = 10.0
"""Seconds for a client to answer: it looks up what it knows, and asks nobody."""
_TAKING_IN = 0.1
"""Seconds that a server has to make something of the answer."""
_BLOCKING = 2.0
"""Seconds after which a server that answers nothing else is taken to wait for this."""


@dataclass(slots=True, eq=False)
class Roots:
    """The question for folders on one connection."""

    expected: bool = False
    """Whether the server was greeted just now, and may be about to ask."""
    remind: Callable[[], None] = lambda: None
    """Tells the server that it may ask anew."""
    patience: float = _ANSWERING
    blocking: float = _BLOCKING
    _given_up: bool = False
    _waiting: dict[asyncio.Future[JsonObject], Message] = field(
        default_factory=dict[asyncio.Future[JsonObject], Message]
    )
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _settling: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def hold(self, params: Message, is_blocking: Callable[[], bool]) -> JsonObject:
        """The answer of whichever client calls next; refused where the server lets other requests wait for it."""
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[answer] = params
        self._came.set()
        try:
            while not (await asyncio.wait({answer}, timeout=self.blocking))[0] and not is_blocking():
                pass
        finally:
            self._waiting.pop(answer, None)
            self._given_up = answer.cancel() or self._given_up
        if answer.cancelled():
            raise ClientCannot("no client has called yet whose folders could be meant")
        return answer.result()

    def is_open(self) -> bool:
        """Whether a request must be settled with before it is sent: nearly never."""
        return self.expected or self._given_up or bool(self._waiting) or self._settling.locked()

    async def settle(self, asked: Asked) -> None:
        """Answers, by the client behind a request, what the server wants to know before it is sent that request."""
        if asked.ask is None:
            return
        async with self._settling:
            await self._listen(asked)
            waiting, self._waiting = self._waiting, {}
            for answer, params in waiting.items():
                await self._answer(answer, asked.ask, params)
            if waiting:
                await asyncio.sleep(_TAKING_IN)

    async def _listen(self, asked: Asked) -> None:
        """Gives a server that may be about to ask a moment to do so, where the client could answer."""
        expected, self.expected = self.expected, False
        if self._waiting or "roots" not in asked.capabilities or not (expected or self._given_up):
            return
        self._came.clear()
        if self._given_up:
            self.remind()
        patience = _ASKED_AGAIN if self._given_up else _AFTER_GREETING
        self._given_up = False
        await asyncio.wait({come := asyncio.ensure_future(self._came.wait())}, timeout=patience)
        come.cancel()

    async def _answer(self, answer: asyncio.Future[JsonObject], ask: Ask, params: Message) -> None:
        try:
            settle = partial(answer.set_result, await self.ask(ask, params))
        except Exception as error:  # noqa: BLE001 - whatever went wrong in asking, it is the server that is told so
            settle = partial(answer.set_exception, error)
        if not answer.done():
            settle()

    async def ask(self, ask: Ask, params: Message) -> JsonObject:
        """The client's answer, in time or not at all."""
        try:
            async with asyncio.timeout(self.patience):
                return await ask(ROOTS, params)
        except TimeoutError as error:
            raise ClientCannot(f"the client gave no answer within {self.patience:g} s") from error
