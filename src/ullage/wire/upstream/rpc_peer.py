"""Ullage's end of a connection to a server: requests with their answers, time limits, progress and cancellation.

The SDK's dispatcher does the same at more than twice the cost (a memory stream, a task and a typed message for each
call), and every call of the gateway passes through here. This module knows no methods but those of cancellation,
progress, roots and the server's own requests and notifications. It starts no process and reads no stream.

`Waiting` is a sent request: it tracks how long the server has been silent, when the caller's deadline passes, and which
notifications must reach the caller before the answer does.

`Questions` answers the server's own requests concurrently up to a limit, each exactly once, until the server withdraws
it. A refusal is returned as a protocol error that names the request.

A request that provably did not reach the server fails with `Unsent`, and may be sent by another connection. After any
other failure the outcome is unknown, and nothing is sent twice.

`Routing` selects the client for what the server sends: a question in the middle of a call goes to that call's client,
and so does a log message; a change notification goes to the listeners. Over HTTP the server's message states to which
request it belongs; over a pipe this is inferred only where it cannot be wrong. Each call brings its own function for
asking its client.

A server of the earlier era may ask for the folders (`roots/list`) as soon as the handshake is done, when no open call
identifies the client whose folders are meant. `Roots` keeps the question until the next request with a client behind
it, and that request waits for the answer: a server that knows no folders would refuse it. The question is answered even
if the call that led to it has ended meanwhile.
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
from ullage.tool import Ask, Asked, Change, JsonObject, Listener, Progress, is_larger

from ..jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Endpoint,
    Message,
    count_scheduled,
    error_response,
    run_scheduled,
)

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
"""Error texts that clients without the ability use themselves, since servers recognise them."""


@dataclass(slots=True, eq=False)
class Questions:
    """The requests of a server that are being answered."""

    answer: Callable[[str, Message], Awaitable[Message]]
    """Takes method and params and returns the result; raises a `UllageError` to refuse."""
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
        except Exception as error:  # noqa: BLE001 - whatever fails, the server must get an answer
            post(error_response(number, INTERNAL_ERROR, f"`{method}` failed: {type(error).__name__}"))
        else:
            post({"jsonrpc": "2.0", "id": number, "result": result})

    def withdrawn(self, number: object) -> None:
        task = self._open.get(number) if isinstance(number, int | str) else None
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Cancel the requests that are being answered."""
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)


class Unsent(SourceFailed):
    """Nothing was sent because the connection was dead, or the server refused the request without acting on it."""


Answer = dict[str, Any]

_UNTOLD = 256
"""Maximum queued notifications for a caller that is slower than the server; older ones are dropped."""
_LAST_WORDS = 1.0
"""Seconds to deliver notifications that came before the answer, before the answer itself."""


@dataclass(slots=True, eq=False, kw_only=True)
class Waiting:
    """A sent request that waits for its answer."""

    number: int | str
    method: str
    asked: Asked | None
    """The caller's request; None for a request of Ullage's own."""
    answer: asyncio.Future[Answer]
    silence: float
    """Seconds without a sign of life from the server after which it is given up; infinite for never."""
    heard: float
    """Time of the server's last sign of life."""
    progress: Progress | None = None
    cancellable: bool = True
    questions: int = 0
    """Number of open questions from the server during this request; while it waits for them it does not count as
    silent."""
    _untold: deque[Callable[[], Awaitable[None]]] | None = None
    """None before the first notification, which most calls do without."""
    _telling: asyncio.Task[None] | None = None

    @property
    def due(self) -> float:
        """Time at which the request is given up, on the event loop's clock, without a further sign of life."""
        return min(self.heard + self.silence, self._deadline())

    def find_overdue(self, now: float) -> str | None:
        """Return why the request has to be given up now; None where it does not."""
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
        """Report progress to the caller, if the caller wants it and the server sent numbers."""
        progress, done, total, word = self.progress, params.get("progress"), params.get("total"), params.get("message")
        if progress is not None and isinstance(done, int | float):
            of = total if isinstance(total, int | float) else None
            self.tell(lambda: progress(done, of, word if isinstance(word, str) else None))

    def tell(self, one: Callable[[], Awaitable[None]]) -> None:
        """Queue a notification for the caller; they are delivered in order without blocking the reader of messages."""
        if self._untold is None:
            self._untold = deque(maxlen=_UNTOLD)
        self._untold.append(one)
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        while self._untold:
            # A caller that is gone, or whose delivery fails, must not affect the server's other callers.
            with suppress(Exception):
                await self._untold.popleft()()
        self._telling = None

    async def told(self) -> None:
        """Wait, within a limit, until the notifications that came before the answer are delivered."""
        telling = self._telling
        if telling is not None:
            await asyncio.wait({telling}, timeout=_LAST_WORDS)

    def end(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
        if self.answer.done() and not self.answer.cancelled():
            # Retrieve the exception, so that the event loop does not report it as unhandled.
            self.answer.exception()


ROOTS = "roots/list"
_AFTER_GREETING = 0.05
"""Seconds after the handshake in which the server may ask, before the first request is sent."""
_ASKED_AGAIN = 1.0
"""Seconds in which a server that gave up the question and was reminded may ask again."""
_ANSWERING = 10.0
"""Seconds for a client to answer; it looks up its folders and asks no user."""
_TAKING_IN = 0.1
"""Seconds that a server gets to process the answer."""
_BLOCKING = 2.0
"""Seconds after which a server that answers nothing else is assumed to be blocked by this question."""


@dataclass(slots=True, eq=False)
class Roots:
    """The server's question for folders (`roots/list`) on one connection."""

    expected: bool = False
    """Whether the handshake has just finished, so that the server may be about to ask."""
    remind: Callable[[], None] = lambda: None
    """Tells the server that it may ask again."""
    patience: float = _ANSWERING
    blocking: float = _BLOCKING
    _given_up: bool = False
    _waiting: dict[asyncio.Future[JsonObject], Message] = field(
        default_factory=dict[asyncio.Future[JsonObject], Message]
    )
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _settling: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def hold(self, params: Message, is_blocking: Callable[[], bool]) -> JsonObject:
        """Wait for the next client that calls, and return its answer.

        Raises:
            ClientCannot: The server blocks other requests until this one is answered.
        """
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
        """Return whether a request must call `settle` before it is sent; rarely so."""
        return self.expected or self._given_up or bool(self._waiting) or self._settling.locked()

    async def settle(self, asked: Asked) -> None:
        """Answer the server's pending questions by the client behind a request, before that request is sent."""
        if asked.ask is None:
            return
        async with self._settling:
            expected, self.expected = self.expected, False
            # Wait a moment for a server that may be about to ask, if the client could answer.
            if not self._waiting and "roots" in asked.capabilities and (expected or self._given_up):
                self._came.clear()
                if self._given_up:
                    self.remind()
                patience = _ASKED_AGAIN if self._given_up else _AFTER_GREETING
                self._given_up = False
                await asyncio.wait({come := asyncio.ensure_future(self._came.wait())}, timeout=patience)
                come.cancel()
            waiting, self._waiting = self._waiting, {}
            for answer, params in waiting.items():
                ask = asked.ask
                try:
                    settle = partial(answer.set_result, await self.ask(ask, params))
                except Exception as error:  # noqa: BLE001 - whatever fails, the server must get an answer
                    settle = partial(answer.set_exception, error)
                if not answer.done():
                    settle()
            if waiting:
                await asyncio.sleep(_TAKING_IN)

    async def ask(self, ask: Ask, params: Message) -> JsonObject:
        """Return the client's answer; raises `ClientCannot` after the time limit."""
        try:
            async with asyncio.timeout(self.patience):
                return await ask(ROOTS, params)
        except TimeoutError as error:
            raise ClientCannot(f"the client gave no answer within {self.patience:g} s") from error


RELATED: ContextVar[Waiting | None] = ContextVar("ullage_related_request", default=None)
"""The request under which a message was sent. Over HTTP the server's questions arrive on the answer to the request they
belong to, and the SDK's transport delivers them in the context of that request's sender.
"""

UNREACHABLE = "dev.ullage/unreachable"
"""Marks, in an error's data, an error made by the transport because the server could not be reached."""

SIGN_IN = "dev.ullage/sign_in"
"""Marks, beside `UNREACHABLE`, an error for want of a sign-in."""
_FIRST_OWN = 1 << 20
_LONGEST_MESSAGE = 20_000
"""Characters of a server's error message that are passed on."""
_DATA_VALUES, _DATA_LETTERS = 2_000, 50_000
"""JSON values and characters of an error's data beyond which it is left out."""


class Channel(Protocol):
    """Sends messages to a server."""

    def post(self, message: Message, headers: Mapping[str, str] | None = None) -> bool:
        """Send without waiting; return False where it cannot be sent. Raises `ValueError` for what is not JSON."""
        ...


class Receiver(Protocol):
    """Receives what a channel reads."""

    def received(self, message: object) -> bool:
        """Process a message; return False if it is not a message of the protocol."""
        ...

    def lost(self, reason: str) -> None: ...

    def paused(self) -> None:
        """Process the end of the stream that was to carry the answer to the request of this context."""
        ...

    def unsent(self, number: object, reason: str) -> None:
        """Fail a request that did not reach the server, or that the server refused without acting on it."""
        ...


@dataclass(slots=True, eq=False, kw_only=True)
class Peer(Endpoint[Waiting]):
    """Ullage's end of a connection."""

    server: str
    """The server's name, for messages to the user."""
    questions: Questions
    heard: Callable[[str, Message], None]
    """Called with the server's notifications."""
    last_words: Callable[[], str] = str
    """Returns the server's last output on standard error, where there is one."""
    printed: Callable[[], str] = str
    """Returns what the server printed in place of messages, where it sent none."""
    advice: str = ""
    """What to do when the connection is lost."""
    channel: Channel | None = None
    _reason: str | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _own_number: int = _FIRST_OWN
    """Number of Ullage's last own request.

    Clients' requests are numbered from the handshake on, as if it were theirs.
    """
    _timer: asyncio.TimerHandle | None = None
    """Set for the earliest due request, or earlier: one timer for all costs a call next to nothing."""

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
        """Send a request and return the raw result. Cancelling the task cancels the request on the server.

        Args:
            method: The method.
            params: Its params.
            silence: Seconds without a sign of life after which the request is given up.
            asked: The caller's request; None for one of Ullage's own.

        Raises:
            ProtocolError: The server answered with an error.
            SourceFailed: The connection is lost.
            DeadlinePassed: The answer did not come in time.
        """
        loop = asyncio.get_running_loop()
        if number is None:
            if asked is None and cancellable:
                self._own_number += 1
                number = self._own_number
            else:
                number = self.next_number()
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

    def _ask(self, waiting: Waiting, params: Message, headers: Mapping[str, str] | None) -> None:
        if waiting.cancellable:
            # Always requested, because a server that reports progress is not silent, even if the client ignores it.
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
        """Send a message without waiting; one that cannot be sent is dropped."""
        if self.channel is not None:
            self.channel.post(message, headers)

    def _watch(self, due: float, loop: asyncio.AbstractEventLoop) -> None:
        """Check the requests when the first of them is due."""
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
            said: Message = cast("Message", error) if isinstance(error, dict) else {"message": str(error)}
            number, text, data = said.get("code"), said.get("message"), said.get("data")
            if isinstance(data, dict) and SIGN_IN in data:
                refusal = sign_in_needed(self.server)
            elif isinstance(data, dict) and UNREACHABLE in data:
                refusal = SourceFailed(f"server `{self.server}` {data[UNREACHABLE]}")
            else:
                refusal = ProtocolError(
                    _shortened(text) if isinstance(text, str) else "the server answered with an error",
                    number=number if isinstance(number, int) else INTERNAL_ERROR,
                    data=None if is_larger(cast("object", data), _DATA_VALUES, _DATA_LETTERS) else cast("object", data),
                )
            waiting.answer.set_exception(refusal)
        elif isinstance(result, dict):
            loop = waiting.answer.get_loop()
            scheduled = count_scheduled(loop)
            waiting.answer.set_result(cast("Answer", result))
            run_scheduled(loop, scheduled)
        else:
            text = f"server `{self.server}` answered `{waiting.method}` with something that is no result"
            waiting.answer.set_exception(SourceFailed(text))

    def take_request(self, number: int | str, method: str, params: Message) -> None:
        if (echoed := self.find_waiting(number)) is not None and echoed.method == method:
            # Ullage's own request came back, from a program that repeats its input; no server sends these
            # methods.
            if not echoed.answer.done():
                text = f"server `{self.server}` repeats our requests instead of answering them"
                echoed.answer.set_exception(
                    SourceFailed(text, suggestion="its command starts no MCP server: correct it")
                )
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

    def paused(self) -> None:
        waiting = RELATED.get()
        pause = waiting.asked.pause if waiting is not None and waiting.asked is not None else None
        if waiting is not None and pause is not None and self.waiting.get(waiting.number) is waiting:
            waiting.tell(pause)

    def lost(self, reason: str) -> None:
        """Mark the connection as lost, and fail every waiting request."""
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
"""Notifications for the client to whose call they belong."""
_MOST_CHANGES = 1000
"""Maximum different changes announced per turn of the event loop; any further ones are ignored."""


@dataclass(slots=True, eq=False)
class Routing:
    """Selects the client or listeners for the messages of one connection's server."""

    waiting: Mapping[int | str, Waiting]
    """The open requests, oldest first."""
    acknowledged: Callable[[Message], None] = lambda _: None
    """Called when the server confirms that it will announce changes."""
    roots: Roots = field(default_factory=Roots)
    _only: Asked | None = None
    """The last request, if all requests so far came from one session."""
    _is_common: bool = False
    """Whether requests came from several sessions."""
    _listeners: dict[object, Listener] = field(default_factory=dict[object, Listener])
    _changes: dict[Change, None] = field(default_factory=dict[Change, None])
    _late: set[asyncio.Future[None]] = field(default_factory=set[asyncio.Future[None]])
    """Notifications being delivered to a client that has no open call."""

    def watch(self, listener: Listener) -> Callable[[], None]:
        ticket = object()
        self._listeners[ticket] = listener

        def stop() -> None:
            self._listeners.pop(ticket, None)

        return stop

    async def answer(self, method: str, params: Message) -> Message:
        """Ask the client to whose call the question belongs."""
        if method not in _QUESTIONS:
            raise ProtocolError(f"`{method}` is not known here", number=METHOD_NOT_FOUND)
        waiting = self._related()
        if (
            method == ROOTS
            and waiting is None
            and not any(one.asked is not None and not one.answer.done() for one in self.waiting.values())
        ):
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
        """Record the session that uses the connection, so that messages after the end of a call still reach its
        client."""
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
        """Notify the listeners at the event loop's next turn, once for repeated announcements."""
        if not self._changes:
            asyncio.get_running_loop().call_soon(self._announce)
        if len(self._changes) < _MOST_CHANGES:
            self._changes[change] = None

    def _announce(self) -> None:
        changes, self._changes = self._changes, {}
        for change in changes:
            for listener in list(self._listeners.values()):
                listener(change)

    def _related(self) -> Waiting | None:
        """Return the request to which a message belongs: that of its context, else the newest if all are of one
        session."""
        related = RELATED.get()
        if related is not None and self.waiting.get(related.number) is related:
            return related
        open_ones = [one for one in self.waiting.values() if one.asked is not None and not one.answer.done()]
        callers = [one.asked.caller for one in open_ones if one.asked is not None]
        return open_ones[-1] if len({(one.principal, one.session) for one in callers}) == 1 else None


async def _while_open(waiting: Waiting, asking: Awaitable[JsonObject]) -> JsonObject:
    """Return the client's answer; raises `ClientCannot` if the call ends first."""
    task = asyncio.ensure_future(asking)
    try:
        await asyncio.wait({task, waiting.answer}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientCannot("the call it belonged to has ended")
        return task.result()
    finally:
        task.cancel()
