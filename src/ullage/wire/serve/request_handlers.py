"""Answers clients' requests from one source.

Every handler converts a protocol request to Ullage's own, calls the source, and writes the answer as the protocol's
JSON. A tool's failure is a result with the common error shape; a protocol error of a server behind passes with its
number, message and data. Only methods that the source can answer have a handler.

`Presentation` builds the introduction and lists of a server, for the transports and for the cache of first answers.

A `Profile` is a source and its introduction, by the client's name. The name comes from the URL's path or a flag, never
from what the client declares.

On shutdown, open requests may finish within the grace; the others are answered with an error.

`InferredSessions` groups the requests of one principal and one client that have no pause of half an hour between them.
This is a guess, and marked as one wherever it is used. The clock is passed in.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypedDict, TypeVar, cast

import anyio

from ullage.errors import InvalidArguments, ProtocolError, UllageError, UnknownResource, UnknownTool
from ullage.gateway import OpenCalls, failed
from ullage.tool import (
    ANONYMOUS,
    Ask,
    Call,
    Caller,
    Change,
    ClientDeclaration,
    Complete,
    Era,
    Json,
    JsonObject,
    Listing,
    Pause,
    PromptRequest,
    Read,
    Tell,
    ToolSource,
)
from ullage.tracing import Tracer, trace_of, within_trace

from ..jsonrpc import MODERN_VERSIONS, VERSION_KEY, Message
from .client_request import (
    Connection,
    RefusedRequest,
    Request,
    can_be_asked,
    most_talkative,
    or_refused,
    refusal,
    unknown_method,
)
from .mcp_content import Envelope, contents_to_wire, prompt_to_wire, reply_to_wire, served_capabilities, tool_to_wire
from .notifications import Announcer, Holding, Line, Target, Work, is_ours, resolve_needs, unmarked

__all__ = [
    "Activity",
    "Answering",
    "Handler",
    "Identity",
    "InferredSessions",
    "Live",
    "Presentation",
    "Profile",
    "Profiles",
    "SessionEnd",
    "Shutdown",
    "WhoCalls",
    "envelope_of",
    "era_name",
    "finish_requests",
    "single",
]

_ANSWER_SECONDS = 1.0
"""Seconds for writing the errors of requests that were ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """When and how a server shuts down."""

    told: anyio.Event = field(default_factory=anyio.Event)
    """Set this to shut the server down."""
    grace: Callable[[], float] = lambda: 5.0
    """Returns the seconds that open requests may still take; called on shutdown."""
    end_calls: Callable[[], None] = lambda: None
    """Ends the source's calls with an error, which is then recorded with the same figures as any other reply."""


@dataclass(slots=True)
class Activity:
    """The requests that a server is answering."""

    requests: OpenCalls = field(default_factory=OpenCalls)
    streams: int = 0
    """Open `subscriptions/listen` requests, which have no answer to wait for."""
    paused: int = 0
    """Requests that are being answered although their streams have ended."""


async def finish_requests(wait_idle: Callable[[], Awaitable[None]], activity: Activity, shutdown: Shutdown) -> None:
    """Wait until all requests are answered; after the grace, end the others with an error.

    Args:
        wait_idle: Returns when every request has been answered.
        activity: The requests.
        shutdown: The grace, and how calls are ended.
    """
    with anyio.move_on_after(shutdown.grace()):
        return await wait_idle()
    shutdown.end_calls()
    with anyio.move_on_after(_ANSWER_SECONDS):
        return await wait_idle()
    activity.requests.end()
    with anyio.move_on_after(_ANSWER_SECONDS):
        await wait_idle()
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Name, version and instructions of the server."""

    name: str
    version: str
    instructions: str | Callable[[], str | None] | None = None
    """A function where they change while the server runs; it is called when a client connects."""

    def current_instructions(self) -> str | None:
        return self.instructions() if callable(self.instructions) else self.instructions


async def _nothing() -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A source and its introduction, for one client."""

    source: ToolSource
    identity: Identity
    model: str | None = None
    """The model that the user configured for this client; None where there is none."""
    when_met: Callable[[Era, ClientDeclaration | None], None] = lambda _era, _client: None
    """Called with a client's protocol era and declaration before the client is answered."""
    before_introduction: Callable[[], Awaitable[None]] = _nothing
    """Awaited over HTTP before the server's capabilities are sent to the client."""
    when_roots_changed: Callable[[Caller, ClientDeclaration], None] = lambda _caller, _client: None
    """Called when a client works in other folders than before."""
    tracer: Tracer | None = None
    """Records a span of each request; None to record none."""


Profiles = Callable[[str | None], Profile]
"""Returns a client's profile by its name, or by None for one without a name; raises `UnknownResource` with the known
names.
"""


SessionEnd = Callable[[str, str], None]
"""Called with principal and session when a session of the earlier era has ended."""


def single(profile: Profile, *names: str | None) -> Profiles:
    """Return one profile for every client, under these names or none."""

    def profile_of(name: str | None) -> Profile:
        if name is None or name in names:
            return profile
        known = tuple(one for one in names if one is not None)
        raise UnknownResource(f"no client is called `{name}`", suggestion="use /mcp alone", options=known)

    return profile_of


_GAP = 30 * 60.0
_KEPT = 4096


@dataclass(slots=True)
class _Session:
    name: str
    seen: float


@dataclass(slots=True)
class InferredSessions:
    gap: float = _GAP
    """Seconds without a request after which another session begins."""
    kept: int = _KEPT
    """Maximum sessions stored; the one idle for longest is dropped first."""
    _open: OrderedDict[tuple[str, str | None], _Session] = field(
        default_factory=OrderedDict[tuple[str, str | None], _Session]
    )

    def of(self, principal: str, client: str | None, now: float) -> str:
        """Return the session of a request at `now`, in seconds since the epoch; a session is named after its first
        request."""
        key = (principal, client)
        session = self._open.get(key)
        if session is None or now - session.seen > self.gap:
            session = self._open[key] = _Session(f"{principal}/{client or '-'}@{int(now)}", now)
        session.seen = max(session.seen, now)
        self._open.move_to_end(key)
        while len(self._open) > self.kept:
            self._open.popitem(last=False)
        return session.name


WhoCalls = Callable[[Request], Caller]
"""Returns a request's caller from the transport's own facts, never from what the client declares."""

Wire = dict[str, Any]
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Live:
    """Objects that last as long as the server runs."""

    holding: Holding
    announcer: Announcer


Handler = Callable[[Request, Live], Awaitable[Wire]]
"""Answers a request with the content of its result; raises `RefusedRequest`."""


class _Carried(TypedDict):
    """The fields common to all of Ullage's requests."""

    caller: Caller
    meta: JsonObject
    answers: JsonObject
    state: str | None
    capabilities: JsonObject
    client_info: JsonObject
    tell: Tell
    pause: Pause
    era: Era


class Answering:
    """The request handlers of one server."""

    def __init__(self, source: ToolSource, who_calls: WhoCalls, activity: Activity) -> None:
        self._source = source
        self._who_calls = who_calls
        self._activity = activity
        self._run = activity.requests.run
        self._levels: dict[int, str] = {}
        self.when_met: Callable[[Era, ClientDeclaration | None], None] = lambda _era, _client: None
        """Called with a client's protocol era and declaration before the client is answered."""
        self.when_roots_changed: Callable[[Caller, ClientDeclaration], None] = lambda _caller, _client: None
        self.when_listed: Callable[[Listing | None], None] = lambda _: None
        """Called with each listing that is sent, and with None when it is outdated."""
        self.tracer: Tracer | None = None

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of the methods that can be answered."""
        features = self._source.features
        found: dict[str, Handler] = {"tools/list": self._list_tools, "tools/call": self._call_tool}
        if "resources" in features:
            found["resources/list"] = self._list_resources
            found["resources/templates/list"] = self._list_templates
            found["resources/read"] = self._read_resource
        if "prompts" in features:
            found["prompts/list"] = self._list_prompts
            found["prompts/get"] = self._get_prompt
        if "completions" in features:
            found["completion/complete"] = self._complete
        if "logging" in features:
            found["logging/setLevel"] = self._set_level
        if "changes" in features:
            found["subscriptions/listen"] = self._listen
            if {"subscriptions", "resources"} <= features:
                found["resources/subscribe"] = self._subscribe
                found["resources/unsubscribe"] = self._unsubscribe
        return {method: partial(self._traced, handler) for method, handler in found.items()}

    async def _traced(self, handler: Handler, request: Request, live: Live) -> Wire:
        """Answer a request within its trace: that of its `_meta`, else that of its HTTP headers."""
        parent = trace_of(request.meta)
        if parent is None and request.transport is not None:
            parent = trace_of(getattr(request.transport, "headers", {}))
        if self.tracer is None:
            if parent is None:
                return await handler(request, live)
            with within_trace(parent):
                return await handler(request, live)
        target: str | None = request.params.get("name") if request.method in ("tools/call", "prompts/get") else None
        name = request.method if target is None else f"{request.method} {target}"
        caller, is_call = self._who_calls(request), request.method == "tools/call"
        with self.tracer.span(
            name,
            "server",
            parent,
            mcp__method__name=request.method,
            mcp__protocol__version=request.meta.get(VERSION_KEY) if request.is_modern else request.connection.version,
            mcp__session__id=None if caller.session_inferred else caller.session,
            jsonrpc__request__id=None if request.number is None else str(request.number),
            gen_ai__operation__name="execute_tool" if is_call else None,
            gen_ai__tool__name=target if is_call else None,
            gen_ai__prompt__name=None if is_call else target,
            network__transport="pipe" if request.transport is None else "tcp",
            network__protocol__name=None if request.transport is None else "http",
            ullage__client=caller.client,
        ) as span:
            try:
                result = await handler(request, live)
            except RefusedRequest as refused:
                span.set(rpc__response__status_code=str(refused.code))
                raise
            if result.get("isError") is True:
                span.error = "tool_error"
            return result

    @asynccontextmanager
    async def live(self) -> AsyncGenerator[Live]:
        async with anyio.create_task_group() as tasks:
            live = Live(Holding(tasks), Announcer(tasks, self._source))

            def changed(change: Change) -> None:
                if change.kind == "tools":
                    self.when_listed(None)
                live.announcer.hear(change)

            unwatch = self._source.watch(changed)
            try:
                yield live
            finally:
                unwatch()
                tasks.cancel_scope.cancel()

    def initialized(self, connection: Connection, live: Live) -> None:
        """Announce changes to a client of the earlier era, if the source reports changes."""
        if "changes" in self._source.features:
            live.announcer.add(connection)

    def roots_changed(self, request: Request) -> None:
        """Notify the servers behind that a client works in other folders."""
        self.when_roots_changed(self._who_calls(request), request.client)

    async def tools(self, *, modern: bool, client: ClientDeclaration | None = None) -> list[Json]:
        """Return the tools as a client of this era receives them."""
        self.when_met(era_name(is_modern=modern), client)
        listing = await or_refused(self._run(self._source.tools), modern=True)
        self.when_listed(listing)
        return [tool_to_wire(tool, modern=modern) for tool in listing.tools]

    async def _list_tools(self, request: Request, live: Live) -> Wire:
        _refuse_cursor(request)
        tools = await self.tools(modern=request.is_modern, client=request.client)
        live.announcer.settle(Change("tools"))
        return {"tools": tools}

    async def _call_tool(self, request: Request, live: Live) -> Wire:
        line, carried = self._begin_call(request)
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
                reply = await self._run(partial(resolve_needs, call, self._source.call, modern=line.modern))
            except (UnknownTool, ProtocolError) as error:
                raise refusal(error, modern=line.modern) from error
            except UllageError as error:
                reply = failed(error)
            return reply_to_wire(reply, modern=line.modern)

        return await self._finish(request, live, line, Target(carried["caller"].principal, request.method, name), work)

    async def _list_resources(self, request: Request, _: Live) -> Wire:
        return {"resources": list(await self._run_list(request, self._source.resources))}

    async def _list_templates(self, request: Request, _: Live) -> Wire:
        return {"resourceTemplates": list(await self._run_list(request, self._source.templates))}

    async def _read_resource(self, request: Request, live: Live) -> Wire:
        line, carried = self._begin_call(request)
        uri: str = request.params["uri"]

        async def work(ask: Ask) -> Wire:
            read = Read(uri=uri, ask=ask, **carried)
            reading = self._run(partial(resolve_needs, read, self._source.read, modern=line.modern))
            contents = await or_refused(reading, modern=line.modern, uri=uri)
            return contents_to_wire(contents, uri, modern=line.modern)

        return await self._finish(request, live, line, Target(carried["caller"].principal, request.method, uri), work)

    async def _list_prompts(self, request: Request, _: Live) -> Wire:
        return {"prompts": list(await self._run_list(request, self._source.prompts))}

    async def _get_prompt(self, request: Request, live: Live) -> Wire:
        line, carried = self._begin_call(request)
        name: str = request.params["name"]
        arguments: dict[str, str] = request.params.get("arguments") or {}

        async def work(ask: Ask) -> Wire:
            asked = PromptRequest(name=name, arguments=arguments, ask=ask, **carried)
            getting = self._run(partial(resolve_needs, asked, self._source.prompt, modern=line.modern))
            prompt = await or_refused(getting, modern=line.modern)
            return prompt_to_wire(prompt, modern=line.modern)

        return await self._finish(request, live, line, Target(carried["caller"].principal, request.method, name), work)

    async def _complete(self, request: Request, _: Live) -> Wire:
        self._require(request, "completions")
        line, carried = self._begin_call(request)
        complete = Complete(
            reference=request.params["ref"],
            argument=request.params["argument"],
            context=request.params.get("context") or {},
            ask=line.ask,
            **carried,
        )
        try:
            found = await or_refused(self._run(partial(self._source.complete, complete)), modern=line.modern)
        finally:
            self._end(line)
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
        """Set a session's log level.

        One source serves many sessions: it gets the lowest level that any of them requested, and each session receives
        only messages from its own level on.
        """
        self._require(request, "logging")
        connection, level = request.connection, cast("str", request.params["level"])
        if id(connection) not in self._levels:
            connection.exit_stack.callback(self._levels.pop, id(connection))
        self._levels[id(connection)] = connection.log_level = level
        await or_refused(self._source.set_log_level(most_talkative(self._levels.values())), modern=False)
        return {}

    def _require(self, request: Request, ability: str) -> None:
        """Raise `RefusedRequest` for a method of an ability that every server behind is known to lack."""
        if ability not in served_capabilities(self._source):
            raise unknown_method(request.method)

    async def _run_list(self, request: Request, ask: Callable[[], Awaitable[ResultT]]) -> ResultT:
        _refuse_cursor(request)
        self.when_met(era_name(is_modern=request.is_modern), request.client)
        return await or_refused(self._run(ask), modern=True)

    def _begin_call(self, request: Request) -> tuple[Line, _Carried]:
        line = Line(request, self._count_paused)
        return line, {
            "caller": self._who_calls(request),
            "meta": request.meta,
            "answers": request.params.get("inputResponses") or {},
            "state": unmarked(request.params.get("requestState") or None),
            "capabilities": line.capabilities,
            "client_info": line.client_info,
            "tell": line.tell,
            "pause": line.pause,
            "era": era_name(is_modern=line.modern),
        }

    def _count_paused(self) -> None:
        self._activity.paused += 1

    async def _finish(self, request: Request, live: Live, line: Line, target: Target, work: Work) -> Wire:
        """Finish a call, in a task of its own if the client might be asked, since the call then outlives the
        request."""
        try:
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
        finally:
            self._end(line)

    def _end(self, line: Line) -> None:
        line.is_over = True
        if line.is_paused:
            self._activity.paused -= 1


def era_name(*, is_modern: bool) -> Era:
    return "stateless" if is_modern else "handshake"


def _refuse_cursor(request: Request) -> None:
    if request.params.get("cursor") is not None:
        raise refusal(InvalidArguments("there is one page, and it has no cursor"), modern=True)


def envelope_of(profile: "Profile") -> Envelope:
    identity = profile.identity
    return Envelope(
        identity.name, identity.version, identity.current_instructions, lambda: served_capabilities(profile.source)
    )


class Presentation:
    """The first answers of a server, as plain JSON and without a client.

    They equal the results that `serve_stdio` sends for the same profile at the same moment.
    """

    def __init__(self, profile: Profile) -> None:
        self._envelope = envelope_of(profile)
        self._answering = Answering(profile.source, lambda _: ANONYMOUS, Activity())

    def introduction(self, version: str) -> Message:
        """Return the result of `initialize` for a handshake revision, of `server/discover` for a later one."""
        return self._envelope.discovery() if version in MODERN_VERSIONS else self._envelope.initialization(version)

    async def tools_result(self, *, modern: bool) -> Message:
        """Return the result of `tools/list`. Raises the source's errors as errors of the protocol."""
        result: Message = {"tools": await self._answering.tools(modern=modern)}
        return self._envelope.seal("tools/list", result) if modern else result
