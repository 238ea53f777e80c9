"""Our end of a connection to a server: requests with their answers, time limits, progress and cancelling.

The SDK's dispatcher does the same at more than twice the cost (a memory stream, a task and a typed message for each
call), and every call of the gateway passes here. It knows no method but those of cancelling and of progress. It starts
and reads nothing itself.

How long the server has been silent, when the caller's patience ends, and what is to be told to the caller before the
answer is. It neither sends nor reads messages.

Side by side, at most so many at once, each exactly once, until the server withdraws it. What they ask for, and of whom,
is decided by whoever answers them; a refusal goes back as an error of the protocol that names the request.

Where it provably did not, the connection says so with this error, and the request may go by another connection. Any
other failure leaves the question open, and nothing is sent twice.

A question in the middle of a call goes to that call's client, a log message too; a change goes to whoever watches. Over
HTTP the server's message says to which request it belongs; over a pipe it is guessed only where no guess can be wrong.
It does not talk to clients: a call brings its own way of asking them.

A server of the earlier era may ask as soon as it is greeted, when no call is open that would say whose folders are
meant. The question then waits for the next request that has a client behind it, and that request waits for the answer:
a server that knows no folders would refuse it. What has been asked is answered even where the call that led to it has
ended meanwhile. It does not know what folders are.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, cast

from ullage.errors import (
    ClientCannot,
    ClientLacksAbility,
    DeadlinePassed,
    InvalidArguments,
    ProtocolError,
    SignInNeeded,
    SourceFailed,
    UllageError,
)
from ullage.json_size import is_larger
from ullage.tool import Ask, Asked, Change, JsonObject, Listener, Progress

from ..jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, Endpoint, Message, error_response

__all__ = [
    "RELATED",
    "ROOTS",
    "SIGN_IN",
    "UNREACHABLE",
    "Answer",
    "Channel",
    "Peer",
    "Questions",
    "Receiver",
    "Roots",
    "Routing",
    "Unsent",
    "Waiting",
    "sign_in_needed",
]

Post = Callable[[Message], None]

_AT_ONCE = 32
_UNSUPPORTED = {
    "elicitation/create": "Elicitation not supported",
    "sampling/createMessage": "Sampling not supported",
    "roots/list": "List roots not supported",
}
"""What clients without the ability answer by themselves: servers know these words."""


@dataclass(slots=True, eq=False)
class Questions:
    """The requests of a server that are being answered."""

    answer: Callable[[str, Message], Awaitable[Message]]
    """Method and params to result; raises a `UllageError` to refuse."""
    _open: dict[int | str, asyncio.Task[None]] = field(default_factory=dict[int | str, asyncio.Task[None]])

    def asked(self, number: int | str, method: str, params: Message, post: Post) -> None:
        if method == "ping":
            post({"jsonrpc": "2.0", "id": number, "result": {}})
        elif len(self._open) >= _AT_ONCE or number in self._open:
            post(error_response(number, INTERNAL_ERROR, f"`{method}` is refused: too many requests at once"))
        else:
            task = asyncio.get_running_loop().create_task(self._answered(number, method, params, post))
            self._open[number] = task
            task.add_done_callback(lambda _: self._open.pop(number, None))

    async def _answered(self, number: int | str, method: str, params: Message, post: Post) -> None:
        try:
            result = await self.answer(method, params)
        except ProtocolError as error:
            post(error_response(number, error.number, error.message, error.data))
        except ClientLacksAbility as error:
            text = _UNSUPPORTED.get(method, error.message)
            post(error_response(number, INVALID_REQUEST, text, dict(error.wire())))
        except UllageError as error:
            post(
                error_response(number, METHOD_NOT_FOUND, f"`{method}` is refused: {error.message}", dict(error.wire()))
            )
        except Exception as error:  # noqa: BLE001 - whatever went wrong in asking, the server must not wait for ever
            post(error_response(number, INTERNAL_ERROR, f"`{method}` failed: {type(error).__name__}"))
        else:
            post({"jsonrpc": "2.0", "id": number, "result": result})

    def withdrawn(self, number: object) -> None:
        task = self._open.get(number) if isinstance(number, int | str) else None
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stops answering."""
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)


class Unsent(SourceFailed):
    """The connection was found dead before anything was sent on it, or was refused by a server that did nothing."""


Answer = dict[str, Any]

_UNTOLD = 256
"""How many notifications are kept for a caller who is slower than the server; older ones are let go."""
_LAST_WORDS = 1.0
"""Seconds in which what came before the answer is still told before it."""


@dataclass(slots=True, eq=False, kw_only=True)
class Waiting:
    """A request and its answer to come."""

    number: int | str
    method: str
    asked: Asked | None
    """On whose behalf; None for what we want to know ourselves."""
    answer: asyncio.Future[Answer]
    silence: float
    """Seconds without a sign of life after which it is given up; infinite for never."""
    heard: float
    """When the server last gave a sign of life."""
    progress: Progress | None = None
    cancellable: bool = True
    questions: int = 0
    """How many things the server has asked in the middle of it; while it waits for them it is not silent."""
    _untold: deque[Callable[[], Awaitable[None]]] = field(default_factory=lambda: deque(maxlen=_UNTOLD))
    _telling: asyncio.Task[None] | None = None

    @property
    def due(self) -> float:
        """When it is given up, on the event loop's clock, unless the server gives a sign of life before."""
        return min(self.heard + self.silence, self._deadline())

    def find_overdue(self, now: float) -> str | None:
        """Why it is to be given up by now; None where it is not."""
        if self.questions:
            self.heard = now
        if now >= self._deadline():
            return "its deadline passed"
        if now >= self.heard + self.silence:
            return f"the server gave no sign of life for {self.silence:g} s"
        return None

    def _deadline(self) -> float:
        return math.inf if self.asked is None or self.asked.deadline is None else self.asked.deadline

    def progressed(self, params: dict[str, Any]) -> None:
        """Tells the caller how far it is, where the caller wants to know and the server says it in numbers."""
        progress, done, total, word = self.progress, params.get("progress"), params.get("total"), params.get("message")
        if progress is not None and isinstance(done, int | float):
            of = total if isinstance(total, int | float) else None
            self.tell(lambda: progress(done, of, word if isinstance(word, str) else None))

    def tell(self, one: Callable[[], Awaitable[None]]) -> None:
        """Tells the caller something, in order, without holding up whoever reads the server's messages."""
        self._untold.append(one)
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        while self._untold:
            # A caller who is gone, or who fails at hearing, must not cost the server's other callers anything.
            with suppress(Exception):
                await self._untold.popleft()()
        self._telling = None

    async def told(self) -> None:
        """Waits, bounded, until what came before the answer has been told."""
        telling = self._telling
        if telling is not None:
            await asyncio.wait({telling}, timeout=_LAST_WORDS)

    def end(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
        if self.answer.done() and not self.answer.cancelled():
            # Looked at, so that the event loop does not report a failure that came as the caller was leaving.
            self.answer.exception()


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
                ask = asked.ask
                try:
                    settle = partial(answer.set_result, await self.ask(ask, params))
                except Exception as error:  # noqa: BLE001 - whatever went wrong in asking, it is the server that is told so
                    settle = partial(answer.set_exception, error)
                if not answer.done():
                    settle()
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

    async def ask(self, ask: Ask, params: Message) -> JsonObject:
        """The client's answer, in time or not at all."""
        try:
            async with asyncio.timeout(self.patience):
                return await ask(ROOTS, params)
        except TimeoutError as error:
            raise ClientCannot(f"the client gave no answer within {self.patience:g} s") from error


RELATED: ContextVar[Waiting | None] = ContextVar("ullage_related_request", default=None)
"""The request under which a message was sent. Over HTTP the server's questions come on the answer to the request they
belong to, and the SDK's transport hands them on in the context of whoever sent that."""

UNREACHABLE = "dev.ullage/unreachable"
"""Marks, in an error's data, one that the transport made because the server could not be reached."""

SIGN_IN = "dev.ullage/sign_in"
"""Marks, beside that one, an error for want of a sign-in."""
_FIRST_OWN = 1 << 20
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
    _own_number: int = _FIRST_OWN
    """Of the last request of our own. Those of clients are numbered from the greeting on, as if it were theirs."""
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
        number: int | str | None = None,
        cancellable: bool = True,
    ) -> Answer:
        """Asks, and waits for the raw result.

        Raises `ProtocolError` for an error that the server answered, `SourceFailed` where the connection is gone and
        `DeadlinePassed` where the answer did not come in time. Cancelling the task tells the server.
        """
        loop = asyncio.get_running_loop()
        if number is None:
            number = self._next_own_number() if asked is None and cancellable else self.next_number()
        waiting = Waiting(
            number=number,
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

    def _next_own_number(self) -> int:
        self._own_number += 1
        return self._own_number

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
            # Our own request came back, from a program that repeats what it reads; no server asks what we
            # ask.
            if not echoed.answer.done():
                text = f"server `{self.server}` repeats our requests instead of answering them"
                echoed.answer.set_exception(SourceFailed(text, suggestion="its command starts no MCP server: mend it"))
        else:
            self.questions.asked(number, method, params, self.post)

    def take_notification(self, method: str, params: Message) -> None:
        if method == "notifications/progress":
            waiting = self.find_waiting(params.get("progressToken"))
            if waiting is not None and not waiting.answer.done():
                waiting.heard = asyncio.get_running_loop().time()
                waiting.progressed(params)
        elif method == "notifications/cancelled":
            self.questions.withdrawn(params.get("requestId"))
        else:
            self.heard(method, params)

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


_QUESTIONS = frozenset({"elicitation/create", "sampling/createMessage", ROOTS})
_CHANGES = {
    "notifications/tools/list_changed": Change("tools", is_announced=True),
    "notifications/resources/list_changed": Change("resources", is_announced=True),
    "notifications/prompts/list_changed": Change("prompts", is_announced=True),
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
    _only: Asked | None = None
    """The last request of the one session that has made requests so far."""
    _is_common: bool = False
    """Whether several sessions have."""
    _listeners: dict[object, Listener] = field(default_factory=dict[object, Listener])
    _changes: dict[Change, None] = field(default_factory=dict[Change, None])
    _late: set[asyncio.Future[None]] = field(default_factory=set[asyncio.Future[None]])
    """What is being told to a client none of whose calls is open."""

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

    def note(self, asked: Asked) -> None:
        """Remembers whose connection it is: what is over only after a call has ended still has its client."""
        before, self._only = self._only, asked
        if before is not None and (before.caller.principal, before.caller.session) != (
            asked.caller.principal,
            asked.caller.session,
        ):
            self._is_common = True

    def heard(self, method: str, params: Message) -> None:
        if method in _OF_A_CALL:
            waiting = self._related()
            tell = None if waiting is None or waiting.asked is None else waiting.asked.tell
            if waiting is not None and tell is not None:
                waiting.tell(lambda: tell(method, params))
            elif waiting is None and self._only is not None and not self._is_common and self._only.tell is not None:
                telling = asyncio.ensure_future(self._only.tell(method, params))
                self._late.add(telling)
                telling.add_done_callback(self._late.discard)
        elif method == "notifications/subscriptions/acknowledged":
            self.acknowledged(params)
        elif method == "notifications/resources/updated" and isinstance(params.get("uri"), str):
            self.announce(Change("resource", params["uri"]))
        elif method in _CHANGES:
            self.announce(_CHANGES[method])

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
