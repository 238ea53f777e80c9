"""Answers to the requests of clients, from one source.

Every handler makes a request of ours out of the protocol's, lets the source answer, and writes that down as the
protocol's JSON. A tool that fails is a result of the one shape; what a source's own server said as a protocol error is
handed on with its number, message and data. Only methods that the source can answer have a handler.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict, TypeVar, cast

import anyio

from ullage.errors import InvalidArguments, ProtocolError, UllageError, UnknownTool
from ullage.gateway import failed
from ullage.tool import (
    Ask,
    Call,
    Caller,
    Change,
    Complete,
    Era,
    Json,
    JsonObject,
    Listing,
    PromptRequest,
    Read,
    Tell,
    ToolSource,
)

from .ability import can_be_asked
from .announce import Announcer
from .asking import settled
from .content import contents_to_wire, prompt_to_wire, reply_to_wire, tool_to_wire
from .held import Holding, Target, Work, is_ours, unmarked
from .line import Line
from .loudness import most_talkative
from .offers import Offers
from .refusal import or_refused, refusal
from .request import Connection, Request
from .shutdown import Activity

__all__ = ["Answering", "Handler", "Live", "WhoCalls", "era_name"]

WhoCalls = Callable[[Request], Caller]
"""Tells the caller from the transport's own facts, never from what the client says of itself."""

Wire = dict[str, Any]
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Live:
    """What lasts as long as the server runs."""

    holding: Holding
    announcer: Announcer


Handler = Callable[[Request, Live], Awaitable[Wire]]
"""Answers a request with the content of its result; raises `RefusedRequest`."""


class _Carried(TypedDict):
    """What every request of ours carries, whatever it asks for."""

    caller: Caller
    meta: JsonObject
    answers: JsonObject
    state: str | None
    capabilities: JsonObject
    tell: Tell
    era: Era


class Answering:
    """The handlers of one server."""

    def __init__(self, source: ToolSource, offers: Offers, who_calls: WhoCalls, activity: Activity) -> None:
        self._source = source
        self._offers = offers
        self._who_calls = who_calls
        self._activity = activity
        self._run = activity.requests.run
        self._levels: dict[int, str] = {}
        self.when_met: Callable[[Era], None] = lambda _: None
        """Told the era of the protocol in which a client speaks, before it is answered."""
        self.when_listed: Callable[[Listing | None], None] = lambda _: None
        """Told each listing that goes out, and None when it is no longer true."""

    def handlers(self) -> dict[str, Handler]:
        """The methods that can be answered."""
        offers = self._offers
        found: dict[str, Handler] = {"tools/list": self._list_tools, "tools/call": self._call_tool}
        if offers.resources is not None:
            found["resources/list"] = self._list_resources
            found["resources/templates/list"] = self._list_templates
            found["resources/read"] = self._read_resource
        if offers.prompts is not None:
            found["prompts/list"] = self._list_prompts
            found["prompts/get"] = self._get_prompt
        if offers.completion is not None:
            found["completion/complete"] = self._complete
        if offers.log is not None:
            found["logging/setLevel"] = self._set_level
        if offers.watched is not None:
            found["subscriptions/listen"] = self._listen
            if offers.subscribed is not None and offers.resources is not None:
                found["resources/subscribe"] = self._subscribe
                found["resources/unsubscribe"] = self._unsubscribe
        return found

    @asynccontextmanager
    async def live(self) -> AsyncGenerator[Live]:
        async with anyio.create_task_group() as tasks:
            live = Live(Holding(tasks), Announcer(tasks, self._offers.subscribed))

            def changed(change: Change) -> None:
                if change.kind == "tools":
                    self.when_listed(None)
                live.announcer.hear(change)

            unwatch = None if self._offers.watched is None else self._offers.watched.watch(changed)
            try:
                yield live
            finally:
                if unwatch is not None:
                    unwatch()
                tasks.cancel_scope.cancel()

    def initialized(self, connection: Connection, live: Live) -> None:
        """Announce changes to a client of the earlier era, where the source says what changes."""
        if self._offers.watched is not None:
            live.announcer.add(connection)

    async def tools(self, *, modern: bool) -> list[Json]:
        """The tools as a client of this era is shown them."""
        self.when_met(era_name(is_modern=modern))
        listing = await or_refused(self._run(self._source.tools), modern=True)
        self.when_listed(listing)
        return [tool_to_wire(tool, modern=modern) for tool in listing.tools]

    async def _list_tools(self, request: Request, live: Live) -> Wire:
        _refuse_cursor(request)
        tools = await self.tools(modern=request.is_modern)
        live.announcer.settle(Change("tools"))
        return {"tools": tools}

    async def _call_tool(self, request: Request, live: Live) -> Wire:
        line, carried = self._begun(request)
        name: str = request.params["name"]

        async def work(ask: Ask) -> Wire:
            call = Call(
                tool=name,
                arguments=request.params.get("arguments") or {},
                progress=line.progress if "progressToken" in carried["meta"] else None,
                ask=ask,
                **carried,
            )
            try:
                reply = await self._run(partial(settled, call, self._source.call, modern=line.modern))
            except (UnknownTool, ProtocolError) as error:
                raise refusal(error, modern=line.modern) from error
            except UllageError as error:
                reply = failed(error)
            return reply_to_wire(reply, modern=line.modern)

        return await self._finish(request, live, line, Target(carried["caller"].principal, request.method, name), work)

    async def _list_resources(self, request: Request, _: Live) -> Wire:
        return {"resources": list(await self._listed(request, _given(self._offers.resources).resources))}

    async def _list_templates(self, request: Request, _: Live) -> Wire:
        return {"resourceTemplates": list(await self._listed(request, _given(self._offers.resources).templates))}

    async def _read_resource(self, request: Request, live: Live) -> Wire:
        line, carried = self._begun(request)
        uri: str = request.params["uri"]

        async def work(ask: Ask) -> Wire:
            read = Read(uri=uri, ask=ask, **carried)
            source = _given(self._offers.resources)
            reading = self._run(partial(settled, read, source.read, modern=line.modern))
            contents = await or_refused(reading, modern=line.modern, uri=uri)
            return contents_to_wire(contents, uri, modern=line.modern)

        return await self._finish(request, live, line, Target(carried["caller"].principal, request.method, uri), work)

    async def _list_prompts(self, request: Request, _: Live) -> Wire:
        return {"prompts": list(await self._listed(request, _given(self._offers.prompts).prompts))}

    async def _get_prompt(self, request: Request, live: Live) -> Wire:
        line, carried = self._begun(request)
        name: str = request.params["name"]
        arguments: dict[str, str] = request.params.get("arguments") or {}

        async def work(ask: Ask) -> Wire:
            asked = PromptRequest(name=name, arguments=arguments, ask=ask, **carried)
            source = _given(self._offers.prompts)
            getting = self._run(partial(settled, asked, source.prompt, modern=line.modern))
            prompt = await or_refused(getting, modern=line.modern)
            return prompt_to_wire(prompt, modern=line.modern)

        return await self._finish(request, live, line, Target(carried["caller"].principal, request.method, name), work)

    async def _complete(self, request: Request, _: Live) -> Wire:
        line, carried = self._begun(request)
        complete = Complete(
            reference=request.params["ref"],
            argument=request.params["argument"],
            context=request.params.get("context") or {},
            ask=line.ask,
            **carried,
        )
        source = _given(self._offers.completion)
        found = await or_refused(self._run(partial(source.complete, complete)), modern=line.modern)
        return {"completion": {"values": [], **found}}

    async def _listen(self, request: Request, live: Live) -> Wire:
        self._activity.streams += 1
        try:
            return await live.announcer.listen(request)
        finally:
            self._activity.streams -= 1

    async def _subscribe(self, request: Request, live: Live) -> Wire:
        uri: str = request.params["uri"]
        await or_refused(live.announcer.subscribe(request.connection, uri), modern=False, uri=uri)
        return {}

    async def _unsubscribe(self, request: Request, live: Live) -> Wire:
        uri: str = request.params["uri"]
        await or_refused(live.announcer.unsubscribe(request.connection, uri), modern=False, uri=uri)
        return {}

    async def _set_level(self, request: Request, _: Live) -> Wire:
        """One source serves many sessions: it is asked for what the most curious of them wants, and each is sent only
        what it asked for itself."""
        connection, level = request.connection, cast("str", request.params["level"])
        if id(connection) not in self._levels:
            connection.exit_stack.callback(self._forget_level, connection)
        self._levels[id(connection)] = connection.log_level = level
        await or_refused(_given(self._offers.log).set_log_level(most_talkative(self._levels.values())), modern=False)
        return {}

    def _forget_level(self, connection: Connection) -> None:
        del self._levels[id(connection)]

    async def _listed(self, request: Request, ask: Callable[[], Awaitable[ResultT]]) -> ResultT:
        _refuse_cursor(request)
        self.when_met(era_name(is_modern=request.is_modern))
        return await or_refused(self._run(ask), modern=True)

    def _begun(self, request: Request) -> tuple[Line, _Carried]:
        line = Line(request)
        return line, {
            "caller": self._who_calls(request),
            "meta": request.meta,
            "answers": request.params.get("inputResponses") or {},
            "state": unmarked(request.params.get("requestState") or None),
            "capabilities": line.capabilities,
            "tell": line.tell,
            "era": era_name(is_modern=line.modern),
        }

    async def _finish(self, request: Request, live: Live, line: Line, target: Target, work: Work) -> Wire:
        """In a task of its own where the client might be asked something, since the call then outlives the request."""
        state: str | None = request.params.get("requestState") or None
        if not line.modern or (not is_ours(state) and not can_be_asked(line.capabilities)):
            return await work(line.ask)
        try:
            if is_ours(state):
                answers: Wire = request.params.get("inputResponses") or {}
                return await live.holding.resume(cast("str", state), target, request, answers)
            return await live.holding.begin(target, line, work)
        except UllageError as error:
            raise refusal(error, modern=True) from error


def era_name(*, is_modern: bool) -> Era:
    return "stateless" if is_modern else "handshake"


def _refuse_cursor(request: Request) -> None:
    if request.params.get("cursor") is not None:
        raise refusal(InvalidArguments("there is one page, and it has no cursor"), modern=True)


def _given(part: ResultT | None) -> ResultT:
    assert part is not None, "a handler is registered only where the source offers what it is for"
    return part
