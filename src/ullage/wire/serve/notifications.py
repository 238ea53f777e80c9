"""Messages to clients: progress, log messages and questions while a request is answered, and announcements of changes.

A source may need input from the client before it can answer (`Needs`). A client of 2026-07-28 or later receives the
needs as they are, if it can meet them. For an earlier client each need is sent as a request over its session, and the
source is run again with the answers, up to a limited number of times.

A source may also ask in the middle of a call. From 2026-07-28 on, the request is then answered with the questions, and
the client sends it again with the answers. The call itself cannot be repeated without running it twice, so it stays
open here, in a task of its own, until its client returns with the state that it received: a random token, valid once,
for the same principal and the same target, in this process only. The number of such calls and their waiting time are
limited. What is asked is decided by the source.

A client of the earlier era receives notifications of changes on its session, a later one on the stream that it opened
with `subscriptions/listen`. Changes within a short interval are sent once, and a client that does not read blocks no
other. The source detects the changes.
"""

import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from ullage.errors import ClientCannot, InvalidArguments, UllageError, Unavailable
from ullage.tool import (
    Ask,
    Asked,
    Call,
    Change,
    Contents,
    Json,
    JsonObject,
    Needs,
    PromptMessages,
    PromptRequest,
    Read,
    Reply,
    ToolSource,
)

from ..jsonrpc import INTERNAL_ERROR, SUBSCRIPTION_KEY, Message
from .client_request import (
    LEVEL_KEY,
    LEVELS,
    Connection,
    RefusedRequest,
    Request,
    is_heard,
    requests_in,
    require,
    require_all,
)
from .mcp_content import needs_to_wire

__all__ = [
    "Announcer",
    "Holding",
    "Line",
    "Target",
    "Work",
    "answers_to",
    "is_ours",
    "marked",
    "resolve_needs",
    "unmarked",
]


class Line:
    """The client of a call. Between two requests of a held call there is no client to reach."""

    __slots__ = ("capabilities", "client_info", "is_over", "is_paused", "modern", "request", "when_paused")

    def __init__(self, request: Request, when_paused: Callable[[], None] = lambda: None) -> None:
        self.when_paused = when_paused
        self.is_paused = False
        self.request: Request | None = request
        self.modern = request.is_modern
        self.is_over = False
        """Whether the request has been answered; later messages go to the client's connection, where it has one."""
        client = request.client
        self.capabilities: JsonObject = client.capabilities
        self.client_info: JsonObject = client.info

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the client by a protocol request, as clients before 2026-07-28 expect."""
        require(self.capabilities, method, params)
        if self.request is None:
            raise ClientCannot(f"nobody is there to answer `{method}`")
        return await self.request.ask(method, params)

    async def tell(self, method: str, params: JsonObject) -> None:
        request = self.request
        if request is None or (method == "notifications/message" and not is_heard(params, _threshold(request))):
            return
        notify = request.connection.notify if self.is_over and not self.modern else request.notify
        await notify(method, dict(params))

    async def pause(self) -> None:
        """End the client's stream once; the answer is kept until the client comes back for it."""
        if self.request is not None and not self.is_paused and await self.request.pause():
            self.is_paused = True
            self.when_paused()

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        if self.request is not None:
            await self.request.report_progress(done, total, message)


def _threshold(request: Request) -> str | None:
    """Return the minimum level of log messages for this client; None for no messages."""
    if not request.is_modern:
        return request.connection.log_level or LEVELS[0]
    level = request.meta.get(LEVEL_KEY)
    return level if isinstance(level, str) else None


Wire = dict[str, Any]
Work = Callable[[Ask], Awaitable[Wire]]
"""A whole call, from the source to the protocol's JSON, given a function to ask the client."""

_OURS = "ullage.held."
_THEIRS = "ullage.passed."
_OURS_OR_THEIRS = "ullage."
_MOST = 64
_LONGEST = 300.0


def is_ours(state: str | None) -> bool:
    return state is not None and state.startswith(_OURS)


def marked(state: str | None) -> str | None:
    """Return a source's own state, marked where it resembles Ullage's: the server behind may be another Ullage."""
    return f"{_THEIRS}{state}" if state is not None and state.startswith(_OURS_OR_THEIRS) else state


def unmarked(state: str | None) -> str | None:
    return state.removeprefix(_THEIRS) if state is not None else None


@dataclass(frozen=True, slots=True)
class Target:
    """Identifies what a held call was made for; it must be the same when the client returns."""

    principal: str
    method: str
    name: str


@dataclass(slots=True, eq=False)
class _Question:
    request: dict[str, Json]
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: JsonObject = field(default_factory=dict[str, Json])


@dataclass(slots=True, eq=False)
class _Held:
    """A call that runs in a task of its own."""

    target: Target
    line: Line
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    questions: dict[str, _Question] = field(default_factory=dict[str, _Question])
    """Questions that are not yet answered, whether or not the client has them."""
    asked: int = 0
    stirred: anyio.Event = field(default_factory=anyio.Event)
    """Set when there is an outcome or a question for the waiting request."""
    state: str | None = None
    """The state under which it waits for its client; None while a request waits for it."""
    collected: anyio.Event | None = None
    """Set when a client fetched the outcome of a call that ended while the client was being asked."""
    ended: bool = False
    result: Wire | None = None
    failure: Exception | None = None

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        require(self.line.capabilities, method, params)
        self.asked += 1
        key = f"{method.partition('/')[0]}-{self.asked}"
        question = self.questions[key] = _Question({"method": method, "params": dict(params)})
        self.stirred.set()
        try:
            await question.answered.wait()
        finally:
            self.questions.pop(key, None)
        return question.answer

    def answer(self, answers: Mapping[str, Any]) -> None:
        for key, question in tuple(self.questions.items()):
            if isinstance(answers.get(key), Mapping):
                question.answer = answers[key]
                question.answered.set()
                del self.questions[key]


class Holding:
    """The calls that wait for their clients."""

    def __init__(self, tasks: TaskGroup, *, most: int = _MOST, longest: float = _LONGEST) -> None:
        self._tasks = tasks
        self._most = most
        self._longest = longest
        self._waiting: dict[str, _Held] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    async def begin(self, target: Target, line: Line, work: Work) -> Wire:
        """Start a call; return its result, or the questions for its client."""
        held = _Held(target, line)
        self._tasks.start_soon(self._run, held, work)
        return await self._wait_for_result(held)

    async def resume(self, state: str, target: Target, request: Request, answers: Mapping[str, Any]) -> Wire:
        """Continue the call that waits under `state`.

        Raises:
            InvalidArguments: No call waits under it.
        """
        held = self._waiting.get(state)
        if held is None or held.target != target:
            raise InvalidArguments(
                f"no call of `{target.name}` waits under this requestState: it was answered already, it waited longer "
                f"than {self._longest:g} seconds, or Ullage was started anew",
                suggestion="send the request again without requestState",
            )
        del self._waiting[state]
        held.state = None
        held.line.request = request
        held.scope.deadline = float("inf")
        if held.collected is None:
            held.stirred = anyio.Event()
            held.answer(answers)
            if held.questions:
                held.stirred.set()
        return await self._wait_for_result(held)

    async def _wait_for_result(self, held: _Held) -> Wire:
        met = False
        try:
            await held.stirred.wait()
            met = True
        finally:
            if not met:
                # The client withdrew its request.
                held.scope.cancel()
        if held.collected is not None:
            held.collected.set()
        if held.failure is not None:
            raise held.failure
        if held.result is not None:
            return held.result
        if held.ended:
            raise Unavailable("the call was given up before it was answered")
        principal = held.target.principal
        if sum(one.target.principal == principal for one in self._waiting.values()) >= self._most:
            held.scope.cancel()
            raise Unavailable(
                f"{self._most} calls of `{principal}` wait for answers already", suggestion="answer those first"
            )
        held.line.request = None
        held.state = _OURS + secrets.token_urlsafe(24)
        held.scope.deadline = anyio.current_time() + self._longest
        self._waiting[held.state] = held
        requests: dict[str, Json] = {key: question.request for key, question in held.questions.items()}
        return needs_to_wire(Needs(requests, held.state))

    async def _run(self, held: _Held, work: Work) -> None:
        try:
            with held.scope:
                try:
                    held.result = await work(held.ask)
                except Exception as error:  # noqa: BLE001 - passed to the waiting request, which raises it
                    held.failure = error
                if held.state is not None:
                    # The call ended while its client was being asked: the outcome is kept until the client returns.
                    held.collected = anyio.Event()
                    await held.collected.wait()
        finally:
            if held.state is not None:
                self._waiting.pop(held.state, None)
            held.ended = True
            held.stirred.set()


_ROUNDS = 8
_PAUSE = 0.05
"""Seconds before a source that returned only a state is run again, since it wants to be polled; doubled each round."""

RequestT = TypeVar("RequestT", Call, Read, PromptRequest)
ResultT = TypeVar("ResultT", Reply, Contents, PromptMessages)


async def resolve_needs(request: RequestT, run: Callable[[RequestT], Awaitable[ResultT]], *, modern: bool) -> ResultT:
    """Return the result of `run`, with needs only where the client can meet them itself."""
    result = await run(request)
    if result.needs is None:
        return result
    if modern:
        require_all(request.capabilities, result.needs)
        return replace(result, needs=Needs(result.needs.requests, marked(result.needs.state)))
    for pause in range(_ROUNDS):
        if result.needs is None:
            return result
        answers = await answers_to(result.needs, request)
        if not answers:
            await anyio.sleep(_PAUSE * 2**pause)
        result = await run(replace(request, answers=answers, state=result.needs.state))
    if result.needs is None:
        return result
    raise Unavailable(f"the server asked for more input {_ROUNDS} times and never answered")


async def answers_to(needs: Needs, request: Asked) -> dict[str, Json]:
    """Send all needs to the client concurrently and return its answers; raises for one that it lacks or refuses."""
    require_all(request.capabilities, needs)
    ask = request.ask
    assert ask is not None, "every request that comes over the wire can ask"
    answers: dict[str, Json] = {}
    failures: list[Exception] = []

    async def put(ask: Ask, key: str, method: str, params: dict[str, Json]) -> None:
        try:
            answers[key] = dict(await ask(method, params))
        except Exception as error:  # noqa: BLE001 - raised below, by itself instead of in a group
            failures.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for key, method, params in requests_in(needs):
            tasks.start_soon(put, ask, key, method, dict(params))
    if failures:
        raise failures[0]
    return answers


_GATHER = 0.05
"""Seconds in which changes are collected: ten servers that start together change the list ten times."""
_MOST_STREAMS = 1024
_KINDS = ("tools", "resources", "prompts")


@dataclass(slots=True, eq=False)
class _Listener:
    """A session of the earlier era, or a stream of the later one."""

    send: Callable[[str, Message | None], Awaitable[None]]
    kinds: frozenset[str] = frozenset(_KINDS)
    uris: set[str] = field(default_factory=set[str])
    meta: Message | None = None
    """`_meta` of each notification: the id of its stream."""
    pending: dict[Change, None] = field(default_factory=dict[Change, None])
    stirred: anyio.Event = field(default_factory=anyio.Event)
    is_telling: bool = False

    def wants(self, change: Change) -> bool:
        return change.uri in self.uris if change.kind == "resource" else change.kind in self.kinds

    async def tell(self, gather: float) -> None:
        """Send the pending changes, and any that arrive meanwhile."""
        await anyio.sleep(gather)
        while self.pending:
            change = next(iter(self.pending))
            del self.pending[change]
            if change.kind == "resource":
                method, params = "notifications/resources/updated", {"uri": change.uri or ""}
            else:
                method, params = f"notifications/{change.kind}/list_changed", None
            await self.send(method, params if self.meta is None else {**(params or {}), "_meta": self.meta})


class Announcer:
    """Notifies every client of this server while the server runs."""

    def __init__(self, tasks: TaskGroup, source: ToolSource | None = None, *, gather: float = _GATHER) -> None:
        self._tasks = tasks
        self._source = source
        self._gather = gather
        self._streams: set[_Listener] = set()
        self._sessions: dict[int, _Listener] = {}
        self._owed: dict[Change, None] = {}
        self._is_closed = False
        self._followers: Counter[str] = Counter()
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        """Locks by resource, so that changes to its subscriptions run one after the other; kept while in use."""

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def hear(self, change: Change) -> None:
        """Queue a change for all clients; it is sent by a task."""
        change = Change(change.kind, change.uri)
        for listener in (*self._streams, *self._sessions.values()):
            self._put(listener, change)

    def owe(self, change: Change) -> None:
        """Queue a change that must reach a client, even one that starts to listen only later."""
        self._owed[change] = None
        self.hear(change)

    def settle(self, change: Change) -> None:
        """Drop a change that need not be announced any more, since a client has requested the current state."""
        self._owed.pop(change, None)

    def _put(self, listener: _Listener, change: Change) -> None:
        if not listener.wants(change):
            return
        self._owed.pop(change, None)
        listener.pending[change] = None
        if listener.meta is not None:
            listener.stirred.set()
        elif not listener.is_telling:
            listener.is_telling = True
            self._tasks.start_soon(self._tell, listener)

    async def _tell(self, listener: _Listener) -> None:
        await listener.tell(self._gather)
        listener.is_telling = False

    def add(self, connection: Connection) -> None:
        """Notify this session from now on, until it ends."""
        if id(connection) not in self._sessions:
            listener = self._sessions[id(connection)] = _Listener(connection.notify)
            connection.exit_stack.push_async_callback(self._remove, connection)
            for change in tuple(self._owed):
                self._put(listener, change)

    async def subscribe(self, connection: Connection, uri: str) -> None:
        self.add(connection)
        uris = self._sessions[id(connection)].uris
        if uri not in uris:
            await self._follow(uri)
            uris.add(uri)

    async def unsubscribe(self, connection: Connection, uri: str) -> None:
        listener = self._sessions.get(id(connection))
        if listener is not None and uri in listener.uris:
            listener.uris.discard(uri)
            await self._leave(uri)

    async def listen(self, request: Request) -> Message:
        """Serve one `subscriptions/listen` until the client withdraws it or the server ends.

        The acknowledgement is sent first; every notification carries the id of the request.
        """
        if len(self._streams) >= _MOST_STREAMS:
            raise RefusedRequest(INTERNAL_ERROR, "Subscription limit reached")
        wanted: Message = request.params["notifications"]
        uris: list[str] = wanted.get("resourceSubscriptions") or []
        honored: Message = {flag: True for kind in _KINDS if wanted.get(flag := f"{kind}ListChanged") is True}
        if uris:
            honored["resourceSubscriptions"] = list(uris)
        kinds = frozenset(kind for kind in _KINDS if f"{kind}ListChanged" in honored)
        listener = _Listener(request.notify, kinds, set(uris), {SUBSCRIPTION_KEY: request.number})
        async with self._following(uris):
            # Subscribed before the acknowledgement, so that no change is lost meanwhile; sent after it.
            self._streams.add(listener)
            try:
                acknowledged = {"notifications": honored, "_meta": listener.meta}
                await request.notify("notifications/subscriptions/acknowledged", acknowledged)
                for change in tuple(self._owed):
                    self._put(listener, change)
                while not self._is_closed:
                    await listener.stirred.wait()
                    listener.stirred = anyio.Event()
                    await listener.tell(self._gather)
            finally:
                self._streams.discard(listener)
        return {"_meta": listener.meta}

    def close(self) -> None:
        """End every stream; each is answered after its pending changes."""
        self._is_closed = True
        for listener in self._streams:
            listener.stirred.set()

    @asynccontextmanager
    async def _following(self, uris: Iterable[str]) -> AsyncGenerator[None]:
        """Subscribe to these resources at the source. A resource that is unknown may be created later."""
        followed: list[str] = []
        try:
            for uri in set(uris):
                with suppress(UllageError):
                    await self._follow(uri)
                    followed.append(uri)
            yield
        finally:
            with anyio.CancelScope(shield=True), suppress(UllageError):
                for uri in followed:
                    await self._leave(uri)

    async def _remove(self, connection: Connection) -> None:
        listener = self._sessions.pop(id(connection))
        listener.pending.clear()
        for uri in listener.uris:
            with suppress(UllageError):
                await self._leave(uri)

    async def _follow(self, uri: str) -> None:
        async with self._turn(uri):
            if self._source is not None and uri not in self._followers:
                await self._source.subscribe(uri)
            self._followers[uri] += 1

    async def _leave(self, uri: str) -> None:
        self._followers[uri] -= 1
        if self._followers[uri] > 0:
            return
        del self._followers[uri]
        async with self._turn(uri):
            if self._source is not None and uri not in self._followers:
                await self._source.unsubscribe(uri)

    def _turn(self, uri: str) -> anyio.Lock:
        return self._turns.setdefault(uri, anyio.Lock())
