"""How is each request answered?

Every handler makes a request of ours out of the protocol's, lets the source answer, and writes that down as the
protocol's JSON. A tool that fails is a result of the one shape; what a source's own server said as a protocol error is
handed on with its number, message and data. Which of these a server offers is decided elsewhere.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict, TypeVar, cast

import anyio
import mcp_types
from mcp.server.connection import Connection

from ullage.errors import InvalidArguments, ProtocolError, UllageError, UnknownTool
from ullage.gateway import failed
from ullage.tool import (
    Ask,
    Call,
    Caller,
    Change,
    Complete,
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
from .envelope import Envelope
from .held import Holding, Target, Work, is_ours, unmarked
from .line import Context, Line, connection_of, is_modern, set_threshold
from .loudness import most_talkative
from .offers import Offers
from .refusal import or_refused, refusal
from .shutdown import Activity

__all__ = ["Answering", "WhoCalls"]

WhoCalls = Callable[[Context], Caller]
"""Tells the caller from the transport's own facts, never from what the client says of itself."""

Wire = dict[str, Any]
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Live:
    """What lasts as long as the server runs."""

    holding: Holding
    announcer: Announcer


class _Carried(TypedDict):
    """What every request of ours carries, whatever it asks for."""

    caller: Caller
    meta: JsonObject
    answers: JsonObject
    state: str | None
    capabilities: JsonObject
    tell: Tell


class Answering:
    """The handlers of one server."""

    def __init__(
        self, source: ToolSource, offers: Offers, who_calls: WhoCalls, activity: Activity, envelope: Envelope
    ) -> None:
        self._source = source
        self._offers = offers
        self._who_calls = who_calls
        self._activity = activity
        self._run = activity.requests.run
        self._envelope = envelope
        self._levels: dict[int, str] = {}
        self.when_listed: Callable[[Listing | None], None] = lambda _: None
        """Told each listing that goes out, and None when it is no longer true."""

    @asynccontextmanager
    async def live(self, _: object) -> AsyncGenerator[Live]:
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

    async def list_tools(self, context: Context, params: mcp_types.PaginatedRequestParams) -> Any:  # noqa: ANN401
        modern = is_modern(context)
        listing = await self._listed(params, self._source.tools)
        self.when_listed(listing)
        tools = [tool_to_wire(tool, modern=modern) for tool in listing.tools]
        return self._envelope.leave(context, {"tools": tools})

    async def call_tool(self, context: Context, params: mcp_types.CallToolRequestParams) -> Any:  # noqa: ANN401
        line, carried = self._begun(context)

        async def work(ask: Ask) -> Wire:
            call = Call(
                tool=params.name,
                arguments=params.arguments or {},
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

        return await self._finished(
            context, line, Target(carried["caller"].principal, context.method, params.name), work
        )

    async def list_resources(self, context: Context, params: mcp_types.PaginatedRequestParams) -> Any:  # noqa: ANN401
        found = await self._listed(params, _given(self._offers.resources).resources)
        return self._envelope.leave(context, {"resources": list(found)})

    async def list_templates(self, context: Context, params: mcp_types.PaginatedRequestParams) -> Any:  # noqa: ANN401
        found = await self._listed(params, _given(self._offers.resources).templates)
        return self._envelope.leave(context, {"resourceTemplates": list(found)})

    async def read_resource(self, context: Context, params: mcp_types.ReadResourceRequestParams) -> Any:  # noqa: ANN401
        line, carried = self._begun(context)
        uri = str(params.uri)

        async def work(ask: Ask) -> Wire:
            read = Read(uri=uri, ask=ask, **carried)
            source = _given(self._offers.resources)
            reading = self._run(partial(settled, read, source.read, modern=line.modern))
            contents = await or_refused(reading, modern=line.modern, uri=uri)
            return contents_to_wire(contents, uri, modern=line.modern)

        return await self._finished(context, line, Target(carried["caller"].principal, context.method, uri), work)

    async def list_prompts(self, context: Context, params: mcp_types.PaginatedRequestParams) -> Any:  # noqa: ANN401
        found = await self._listed(params, _given(self._offers.prompts).prompts)
        return self._envelope.leave(context, {"prompts": list(found)})

    async def get_prompt(self, context: Context, params: mcp_types.GetPromptRequestParams) -> Any:  # noqa: ANN401
        line, carried = self._begun(context)

        async def work(ask: Ask) -> Wire:
            request = PromptRequest(name=params.name, arguments=params.arguments or {}, ask=ask, **carried)
            source = _given(self._offers.prompts)
            getting = self._run(partial(settled, request, source.prompt, modern=line.modern))
            prompt = await or_refused(getting, modern=line.modern)
            return prompt_to_wire(prompt, modern=line.modern)

        return await self._finished(
            context, line, Target(carried["caller"].principal, context.method, params.name), work
        )

    async def complete(self, context: Context, _: mcp_types.CompleteRequestParams) -> Any:  # noqa: ANN401
        line, carried = self._begun(context)
        request = Complete(
            reference=_raw(context, "ref", {}),
            argument=_raw(context, "argument", {}),
            context=_raw(context, "context", {}),
            ask=line.ask,
            **carried,
        )
        source = _given(self._offers.completion)
        found = await or_refused(self._run(partial(source.complete, request)), modern=line.modern)
        return self._envelope.leave(context, {"completion": {"values": [], **found}})

    async def listen(self, context: Context, params: mcp_types.SubscriptionsListenRequestParams) -> Any:  # noqa: ANN401
        announcer = _live(context).announcer
        self._activity.streams += 1
        try:
            async with announcer.following(params.notifications.resource_subscriptions or ()):
                return await announcer.listen(context, params)
        finally:
            self._activity.streams -= 1

    async def initialized(self, context: Context, _: mcp_types.NotificationParams) -> None:
        if not is_modern(context):
            _live(context).announcer.add(connection_of(context))

    async def subscribe(self, context: Context, params: mcp_types.SubscribeRequestParams) -> Any:  # noqa: ANN401
        uri = str(params.uri)
        await or_refused(_live(context).announcer.subscribe(connection_of(context), uri), modern=False, uri=uri)
        return mcp_types.EmptyResult()

    async def unsubscribe(self, context: Context, params: mcp_types.UnsubscribeRequestParams) -> Any:  # noqa: ANN401
        uri = str(params.uri)
        await or_refused(_live(context).announcer.unsubscribe(connection_of(context), uri), modern=False, uri=uri)
        return mcp_types.EmptyResult()

    async def set_level(self, context: Context, params: mcp_types.SetLevelRequestParams) -> Any:  # noqa: ANN401
        """One source serves many sessions: it is asked for what the most curious of them wants, and each is sent only
        what it asked for itself."""
        connection = connection_of(context)
        if id(connection) not in self._levels:
            connection.exit_stack.callback(self._forget_level, connection)
        self._levels[id(connection)] = params.level
        set_threshold(context, params.level)
        await or_refused(_given(self._offers.log).set_log_level(most_talkative(self._levels.values())), modern=False)
        return mcp_types.EmptyResult()

    def _forget_level(self, connection: Connection) -> None:
        del self._levels[id(connection)]

    async def _listed(self, params: mcp_types.PaginatedRequestParams, ask: Callable[[], Awaitable[ResultT]]) -> ResultT:
        if params.cursor is not None:
            raise refusal(InvalidArguments("there is one page, and it has no cursor"), modern=True)
        return await or_refused(self._run(ask), modern=True)

    def _begun(self, context: Context) -> tuple[Line, _Carried]:
        meta: dict[str, Json] = _raw(context, "_meta", {})
        line = Line(context, meta)
        return line, {
            "caller": self._who_calls(context),
            "meta": meta,
            "answers": _raw(context, "inputResponses", {}),
            "state": unmarked(_raw(context, "requestState", None)),
            "capabilities": line.capabilities,
            "tell": line.tell,
        }

    async def _finished(self, context: Context, line: Line, target: Target, work: Work) -> Wire:
        result = await (self._held(context, line, target, work) if line.modern else work(line.ask))
        return self._envelope.leave(context, result)

    async def _held(self, context: Context, line: Line, target: Target, work: Work) -> Wire:
        """In a task of its own where the client might be asked something, since the call then outlives the request."""
        state: str | None = _raw(context, "requestState", None)
        if not is_ours(state) and not can_be_asked(line.capabilities):
            return await work(line.ask)
        holding = _live(context).holding
        try:
            if is_ours(state):
                return await holding.resume(cast("str", state), target, context, _raw(context, "inputResponses", {}))
            return await holding.begin(target, line, work)
        except UllageError as error:
            raise refusal(error, modern=True) from error


def _live(context: Context) -> Live:
    return context.lifespan_context


def _given(part: ResultT | None) -> ResultT:
    assert part is not None, "a handler is registered only where the source offers what it is for"
    return part


def _raw(context: Context, key: str, default: Any) -> Any:  # noqa: ANN401
    """A key of the request as it came, before the SDK's types dropped what they do not know."""
    return (context.params or {}).get(key) or default
