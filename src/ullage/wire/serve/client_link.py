"""The link to the client of a request: progress, logs and questions.

The client of a request, reached while the request is being answered.

A call that is held open while its client is asked changes from one request to the next. What a client is to be asked is
decided elsewhere.

A client of 2026-07-28 or later is handed them as they are, where it can meet them. For an earlier one each is put as a
request over its session, and the source is run again with the answers, a bounded number of times. How a single question
reaches a client is the affair of the line.

From 2026-07-28 on, a request that needs something is answered with what it needs, and sent again with the answers. The
call itself cannot be sent again without being run again, so it stays open here, in a task of its own, until its client
comes back with the state it was given: a random name, good once, for the same principal and the same target, in this
process only. How many are held, and for how long, is bounded. What is asked is decided by whoever runs in the call.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from ullage.errors import ClientCannot, InvalidArguments, Unavailable
from ullage.tool import Ask, Asked, Call, Contents, Json, JsonObject, Needs, PromptMessages, PromptRequest, Read, Reply

from .mcp_content import needs_to_wire
from .requests import LEVEL_KEY, LEVELS, Request, is_heard, requests_in, require, require_all

__all__ = ["Holding", "Line", "Target", "Work", "answers_to", "is_ours", "marked", "settled", "unmarked"]


class Line:
    """The client at the other end; between two requests of a held call nobody listens."""

    __slots__ = ("capabilities", "client_info", "is_over", "modern", "request")

    def __init__(self, request: Request) -> None:
        self.request: Request | None = request
        self.modern = request.is_modern
        self.is_over = False
        """Whether the request has been answered: what comes later is for the client's connection, where it has one."""
        client = request.client
        self.capabilities: JsonObject = client.capabilities
        self.client_info: JsonObject = client.info

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask by a request of the protocol, as a client before 2026-07-28 expects."""
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

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        if self.request is not None:
            await self.request.report_progress(done, total, message)


def _threshold(request: Request) -> str | None:
    """The level from which this client is sent log messages; None for no messages."""
    if not request.is_modern:
        return request.connection.log_level or LEVELS[0]
    level = request.meta.get(LEVEL_KEY)
    return level if isinstance(level, str) else None


Wire = dict[str, Any]
Work = Callable[[Ask], Awaitable[Wire]]
"""The whole of a call, from the source to the protocol's JSON, given a way to ask the client."""

_OURS = "ullage.held."
_THEIRS = "ullage.passed."
_OURS_OR_THEIRS = "ullage."
_MOST = 64
_LONGEST = 300.0


def is_ours(state: str | None) -> bool:
    return state is not None and state.startswith(_OURS)


def marked(state: str | None) -> str | None:
    """A source's own state, told apart from ours where it looks alike: another Ullage may stand behind this one."""
    return f"{_THEIRS}{state}" if state is not None and state.startswith(_OURS_OR_THEIRS) else state


def unmarked(state: str | None) -> str | None:
    return state.removeprefix(_THEIRS) if state is not None else None


@dataclass(frozen=True, slots=True)
class Target:
    """Who wants what: all that must be the same when a client comes back."""

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
    """A call in a task of its own."""

    target: Target
    line: Line
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    questions: dict[str, _Question] = field(default_factory=dict[str, _Question])
    """Those not answered yet, asked of the client or still to be."""
    asked: int = 0
    stirred: anyio.Event = field(default_factory=anyio.Event)
    """Something is to be told to whoever waits: an outcome, or a question."""
    state: str | None = None
    """Under which it waits for its client; None while a request waits for it."""
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
        """Runs the call; returns its result, or what its client must be asked first."""
        held = _Held(target, line)
        self._tasks.start_soon(self._run, held, work)
        return await self._met(held)

    async def resume(self, state: str, target: Target, request: Request, answers: Mapping[str, Any]) -> Wire:
        """Goes on with the call that waits under `state`."""
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
        return await self._met(held)

    async def _met(self, held: _Held) -> Wire:
        met = False
        try:
            await held.stirred.wait()
            met = True
        finally:
            if not met:
                # The client took its request back.
                held.scope.cancel()
        if held.collected is not None:
            held.collected.set()
        if held.failure is not None:
            raise held.failure
        if held.result is not None:
            return held.result
        if held.ended:
            raise Unavailable("the call was given up before it was answered")
        return self._parked(held)

    def _parked(self, held: _Held) -> Wire:
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
                except Exception as error:  # noqa: BLE001 - carried to the request that waits, which raises it
                    held.failure = error
                if held.state is not None:
                    # It ended while its client was being asked: the outcome waits for the client as the call did.
                    held.collected = anyio.Event()
                    await held.collected.wait()
        finally:
            if held.state is not None:
                self._waiting.pop(held.state, None)
            held.ended = True
            held.stirred.set()


_ROUNDS = 8
_PAUSE = 0.05
"""Seconds before a source that only handed out a state is asked again; doubled each round, as it wants to be polled."""

RequestT = TypeVar("RequestT", Call, Read, PromptRequest)
ResultT = TypeVar("ResultT", Reply, Contents, PromptMessages)


async def settled(request: RequestT, run: Callable[[RequestT], Awaitable[ResultT]], *, modern: bool) -> ResultT:
    """The result of `run`, with needs only where the client is to meet them itself."""
    result = await run(request)
    if result.needs is None:
        return result
    if modern:
        require_all(request.capabilities, result.needs)
        return replace(result, needs=Needs(result.needs.requests, marked(result.needs.state)))
    return await _asked_over(request, run, result)


async def _asked_over(request: RequestT, run: Callable[[RequestT], Awaitable[ResultT]], result: ResultT) -> ResultT:
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
    """What the client says to each need, asked side by side; one that it cannot meet or refuses raises."""
    require_all(request.capabilities, needs)
    ask = request.ask
    assert ask is not None, "every request that comes over the wire can ask"
    answers: dict[str, Json] = {}
    failures: list[Exception] = []

    async def put(ask: Ask, key: str, method: str, params: dict[str, Json]) -> None:
        try:
            answers[key] = dict(await ask(method, params))
        except Exception as error:  # noqa: BLE001 - raised below, alone instead of in a group
            failures.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for key, method, params in requests_in(needs):
            tasks.start_soon(put, ask, key, method, dict(params))
    if failures:
        raise failures[0]
    return answers
