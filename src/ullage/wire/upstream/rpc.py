"""Our end of a connection to a server: requests with their answers, time limits, progress and cancelling.

The SDK's dispatcher does the same at more than twice the cost (a memory stream, a task and a typed message for each
call), and every call of the gateway passes here. It knows no method but those of cancelling and of progress. It starts
and reads nothing itself.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, cast

from ullage.errors import DeadlinePassed, InvalidArguments, ProtocolError, SignInNeeded, SourceFailed, UllageError
from ullage.json_size import is_larger
from ullage.tool import Asked, Progress

from ..jsonrpc import INTERNAL_ERROR, Endpoint, Message
from .questions import Questions
from .unsent import Unsent
from .waiting import Answer, Waiting

__all__ = ["RELATED", "SIGN_IN", "UNREACHABLE", "Channel", "Peer", "Receiver", "sign_in_needed"]

RELATED: ContextVar[Waiting | None] = ContextVar("ullage_related_request", default=None)
"""The request under which a message was sent. Over HTTP the server's questions come on the answer to the request they
belong to, and the SDK's transport hands them on in the context of whoever sent that."""

UNREACHABLE = "dev.ullage/unreachable"
"""Marks, in an error's data, one that the transport made because the server could not be reached."""

SIGN_IN = "dev.ullage/sign_in"
"""Marks, beside that one, an error for want of a sign-in."""
_LONGEST_MESSAGE = 20_000
"""Characters of a server's error message that are passed on."""
_DATA_VALUES, _DATA_LETTERS = 2_000, 50_000
"""JSON values and characters of an error's data beyond which it is left out."""


class Channel(Protocol):
    """Something that carries messages to a server."""

    def post(self, message: Message, headers: Mapping[str, str] | None = None) -> bool:
        """Sends without waiting; False where it cannot be sent. Raises `ValueError` for what is not JSON."""
        ...


class Receiver(Protocol):
    """Where a channel hands in what comes."""

    def received(self, message: object) -> bool:
        """Whether that was a message of the protocol at all."""
        ...

    def lost(self, reason: str) -> None: ...

    def unsent(self, number: object, reason: str) -> None:
        """A request that is known not to have reached the server, or to have been refused by one that did nothing."""
        ...


@dataclass(slots=True, eq=False, kw_only=True)
class Peer(Endpoint[Waiting]):
    """Our end of a connection."""

    server: str
    """The server's name, for messages to people."""
    questions: Questions
    heard: Callable[[str, Message], None]
    """Told of the server's notifications."""
    last_words: Callable[[], str] = str
    """What the server said last on standard error, where there is such a thing."""
    printed: Callable[[], str] = str
    """What it printed in place of messages, where it sent none."""
    advice: str = ""
    """What to do when the connection is gone."""
    channel: Channel | None = None
    _reason: str | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _timer: asyncio.TimerHandle | None = None
    """Set for the earliest request to be given up, or earlier: one timer for all costs a call next to nothing."""

    async def request(  # noqa: PLR0913 - a request has that many sides, and one caller
        self,
        method: str,
        params: Message,
        *,
        silence: float,
        asked: Asked | None = None,
        progress: Progress | None = None,
        headers: Mapping[str, str] | None = None,
        number: str | None = None,
        cancellable: bool = True,
    ) -> Answer:
        """Asks, and waits for the raw result.

        Raises `ProtocolError` for an error that the server answered, `SourceFailed` where the connection is gone and
        `DeadlinePassed` where the answer did not come in time. Cancelling the task tells the server.
        """
        loop = asyncio.get_running_loop()
        waiting = Waiting(
            number=self.next_number() if number is None else number,
            method=method,
            asked=asked,
            answer=loop.create_future(),
            silence=silence,
            heard=loop.time(),
            progress=progress,
            cancellable=cancellable,
        )
        self.waiting[waiting.number] = waiting
        try:
            self._ask(waiting, params, headers)
            self._watch(waiting.due, loop)
            answer = await waiting.answer
            await waiting.told()
        except asyncio.CancelledError:
            self._give_up(waiting, "the caller no longer waits")
            raise
        finally:
            self.waiting.pop(waiting.number, None)
            waiting.end()
        return answer

    def _ask(self, waiting: Waiting, params: Message, headers: Mapping[str, str] | None) -> None:
        if waiting.cancellable:
            # Always, for a server that reports progress is not silent, whether or not the client wants to hear of it.
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": waiting.number}}
        message: Message = {"jsonrpc": "2.0", "id": waiting.number, "method": waiting.method, "params": params}
        related = RELATED.set(waiting)
        try:
            sent = self._reason is None and self.channel is not None and self.channel.post(message, headers)
        except ValueError as error:
            raise InvalidArguments(f"`{waiting.method}` cannot be written as JSON: {error}") from error
        finally:
            RELATED.reset(related)
        if not sent:
            raise Unsent(self.failed().message, suggestion=self.advice)

    def notify(self, method: str, params: Message | None = None, headers: Mapping[str, str] | None = None) -> None:
        message: Message = {"jsonrpc": "2.0", "method": method}
        self.post(message if params is None else {**message, "params": params}, headers)

    def post(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        """Sends something that nobody waits for; what cannot be sent is dropped."""
        if self.channel is not None:
            self.channel.post(message, headers)

    def _watch(self, due: float, loop: asyncio.AbstractEventLoop) -> None:
        """Have requests looked at when one of them is due."""
        if due == math.inf or (self._timer is not None and self._timer.when() <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(due, self._give_up_overdue)

    def _give_up_overdue(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for waiting in tuple(self.waiting.values()):
            if waiting.answer.done():
                continue
            if (why := waiting.find_overdue(now)) is not None:
                text = f"`{waiting.method}` to server `{self.server}` was given up: {why}"
                waiting.answer.set_exception(DeadlinePassed(text))
                self._give_up(waiting, why)
            else:
                self._watch(waiting.due, loop)

    def _give_up(self, waiting: Waiting, why: str) -> None:
        if waiting.cancellable:
            self.notify("notifications/cancelled", {"requestId": waiting.number, "reason": why})

    def take_answer(self, waiting: Waiting, message: Message) -> None:
        if waiting.answer.done():
            return
        error, result = message.get("error"), message.get("result")
        if error is not None:
            waiting.answer.set_exception(self._refusal(error))
        elif isinstance(result, dict):
            waiting.answer.set_result(cast("Answer", result))
        else:
            text = f"server `{self.server}` answered `{waiting.method}` with something that is no result"
            waiting.answer.set_exception(SourceFailed(text))

    def _refusal(self, error: object) -> UllageError:
        said: Message = cast("Message", error) if isinstance(error, dict) else {"message": str(error)}
        number, text, data = said.get("code"), said.get("message"), said.get("data")
        if isinstance(data, dict) and SIGN_IN in data:
            return sign_in_needed(self.server)
        if isinstance(data, dict) and UNREACHABLE in data:
            return SourceFailed(f"server `{self.server}` {data[UNREACHABLE]}")
        return ProtocolError(
            _shortened(text) if isinstance(text, str) else "the server answered with an error",
            number=number if isinstance(number, int) else INTERNAL_ERROR,
            data=None if is_larger(cast("object", data), _DATA_VALUES, _DATA_LETTERS) else cast("object", data),
        )

    def take_request(self, number: int | str, method: str, params: Message) -> None:
        if (echoed := self.find_waiting(number)) is not None and echoed.method == method:
            self._echoed(echoed)
        else:
            self.questions.asked(number, method, params, self.post)

    def take_notification(self, method: str, params: Message) -> None:
        if method == "notifications/progress":
            self._progressed(params)
        elif method == "notifications/cancelled":
            self.questions.withdrawn(params.get("requestId"))
        else:
            self.heard(method, params)

    def _echoed(self, waiting: Waiting) -> None:
        """Our own request came back, from a program that repeats what it reads; no server asks what we ask."""
        if not waiting.answer.done():
            text = f"server `{self.server}` repeats our requests instead of answering them"
            waiting.answer.set_exception(SourceFailed(text, suggestion="its command starts no MCP server: mend it"))

    def _progressed(self, params: Message) -> None:
        waiting = self.find_waiting(params.get("progressToken"))
        if waiting is not None and not waiting.answer.done():
            waiting.heard = asyncio.get_running_loop().time()
            waiting.progressed(params)

    def unsent(self, number: object, reason: str) -> None:
        waiting = self.find_waiting(number)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_exception(Unsent(f"server `{self.server}` {reason}"))

    def lost(self, reason: str) -> None:
        """The connection is gone; whoever waits for an answer is told so."""
        if self._reason is not None:
            return
        self._reason = reason
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiting in self.waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(self.failed())

    @property
    def is_lost(self) -> bool:
        return self._reason is not None

    def failed(self) -> SourceFailed:
        words, printed = self.last_words(), self.printed()
        heard = (f"; it last said: {words}" if words else "") + (f"; it printed: {printed}" if printed else "")
        reason = self._reason or "takes no more messages"
        return SourceFailed(f"server `{self.server}` {reason}{heard}", suggestion=self.advice)

    async def ended(self) -> str:
        await self._ended.wait()
        return self._reason or ""


def sign_in_needed(server: str) -> SignInNeeded:
    return SignInNeeded(
        f"server `{server}` needs a sign-in",
        suggestion="Ullage cannot sign in by itself: the user can put a token into its `headers`, or leave the server "
        "in the program that is signed in to it",
    )


def _shortened(message: str) -> str:
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return f"{message[:_LONGEST_MESSAGE]}… ({len(message):,} characters in all)"
