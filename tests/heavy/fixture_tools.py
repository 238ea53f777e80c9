"""What do the fixture server's tools and prompts do?

What one needs to know from the client it asks in the way of the era: by a request of its own before 2026-07-28, by an
`input_required` result since. Nothing here knows how the server is reached.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import mcp_types
from fixture_content import (
    ASKING,
    COLOR,
    CONTEXT,
    IMAGE,
    NAME,
    NOTHING,
    PERSON,
    PLAIN,
    PROMPTS,
    SCHEMAS,
    Object,
    elicitation,
    embedded,
    sampling,
    text,
)
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged
from mcp.shared.message import ServerMessageMetadata

Context = ServerRequestContext[Any, Any]
MODERN = "2026-07-28"
CAPABILITIES = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_PAUSE = 0.05


class NotYet(Exception):
    """The client must be asked before the request can be answered; the era's own way of saying so."""

    def __init__(self, requests: Mapping[str, Object], state: str) -> None:
        super().__init__("input required")
        self.result: Object = {"resultType": "input_required", "inputRequests": dict(requests), "requestState": state}


@dataclass
class Turn:
    """One request, and what its tool or prompt may do meanwhile."""

    context: Context
    arguments: Object
    given: Object
    """The answers that came along."""
    state: str | None

    def can(self, capability: str) -> bool:
        declared = self.context.session.client_capabilities
        return declared is not None and getattr(declared, capability, None) is not None

    def demand(self, capability: str) -> None:
        if not self.can(capability):
            raise MCPError(
                mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                f"the client has no {capability}",
                {"requiredCapabilities": {capability: {}}},
            )

    async def ask(self, requests: Mapping[str, Object], state: str = "asked") -> Object:
        """The answers to all of them, by their keys."""
        for request in requests.values():
            self.demand(CAPABILITIES[request["method"]])
        if self.context.protocol_version != MODERN:
            return {key: await self._ask_now(request) for key, request in requests.items()}
        if not all(_answers(request, self.given.get(key)) for key, request in requests.items()):
            raise NotYet(requests, state)
        return {key: self.given[key] for key in requests}

    async def _ask_now(self, request: Object) -> Object:
        kinds = {
            "elicitation/create": (mcp_types.ElicitRequest, mcp_types.ElicitResult),
            "sampling/createMessage": (mcp_types.CreateMessageRequest, mcp_types.CreateMessageResult),
            "roots/list": (mcp_types.ListRootsRequest, mcp_types.ListRootsResult),
        }
        asked, answered = kinds[request["method"]]
        result = await self.context.session.send_request(
            cast("Any", asked.model_validate(request)),
            answered,
            metadata=ServerMessageMetadata(related_request_id=self.context.request_id),
        )
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def log(self, level: str, words: str) -> None:
        await self.context.session.send_log_message(
            cast("Any", level), words, related_request_id=self.context.request_id
        )


def _answers(request: Object, answer: object) -> bool:
    """Whether the answer is one at all; an accepted form has its required fields."""
    if not isinstance(answer, dict):
        return False
    answer = cast("Object", answer)
    if request["method"] != "elicitation/create" or answer.get("action") != "accept":
        return bool(answer)
    required = request["params"]["requestedSchema"].get("required", ())
    return all(name in (answer.get("content") or {}) for name in required)


@dataclass
class Fixture:
    """The server's moving parts."""

    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    level: str = "debug"
    """Of the handshake eras' `logging/setLevel`; a fixture need not tell its clients apart."""
    subscribed: set[str] = field(default_factory=set[str])
    changes: set[str] = field(default_factory=set[str])
    """Tools and prompts that come and go, so that a change that is announced is one."""

    def tools(self) -> list[Object]:
        names = [*PLAIN, *ASKING, *DOING, *sorted(name for name in self.changes if name.endswith("_tool"))]
        return [
            {"name": name, "description": f"The fixture {name}.", "inputSchema": SCHEMAS.get(name, NOTHING)}
            for name in names
        ]

    def prompts(self) -> list[Object]:
        offered = {**PROMPTS, **{name: () for name in self.changes if name.endswith("_prompt")}}
        return [
            {
                "name": name,
                "description": f"The fixture {name}.",
                "arguments": [{"name": one, "required": True} for one in arguments],
            }
            for name, arguments in offered.items()
        ]

    def flip(self, name: str) -> None:
        self.changes ^= {name}

    async def answer(self, name: str, turn: Turn) -> Object:
        if name in PLAIN:
            return {"content": PLAIN[name]}
        if name in ASKING:
            return _told(await turn.ask(ASKING[name]))
        if name in DOING:
            return await DOING[name](self, turn)
        raise MCPError(mcp_types.INVALID_PARAMS, f"Unknown tool: {name}")

    async def prompt(self, name: str, turn: Turn) -> list[Object]:
        if name not in PROMPTS:
            raise MCPError(mcp_types.INVALID_PARAMS, f"Unknown prompt: {name}")
        if name == "test_prompt_with_arguments":
            return [text("Prompt with arguments: {arg1!r}, {arg2!r}".format_map(turn.arguments))]
        if name == "test_prompt_with_embedded_resource":
            return [embedded(turn.arguments["resourceUri"], "Embedded resource content."), text("Please process it.")]
        if name == "test_prompt_with_image":
            return [IMAGE, text("Please analyze the image above.")]
        if name == "test_input_required_result_prompt":
            return [text(json.dumps(await turn.ask({"user_context": CONTEXT})))]
        return [text("This is a simple prompt for testing.")]


def _told(answers: Object) -> Object:
    return {"content": [text(f"The client said: {json.dumps(answers)}")]}


async def _fail(_: Fixture, __: Turn) -> Object:
    return {"isError": True, "content": [text("This tool intentionally returns an error for testing")]}


async def _log(fixture: Fixture, turn: Turn) -> Object:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        if LEVELS.index("info") >= LEVELS.index(fixture.level):
            await turn.log("info", words)
        await anyio.sleep(_PAUSE)
    return {"content": [text("Logged three times.")]}


async def _progress(_: Fixture, turn: Turn) -> Object:
    for done in (0, 50, 100):
        await turn.context.session.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(_PAUSE)
    return {"content": [text("Progressed three times.")]}


async def _sample(_: Fixture, turn: Turn) -> Object:
    return _told(await turn.ask({"words": sampling(turn.arguments["prompt"])}))


async def _elicit(_: Fixture, turn: Turn) -> Object:
    return _told(await turn.ask({"person": elicitation(turn.arguments["message"], PERSON)}))


async def _two_rounds(_: Fixture, turn: Turn) -> Object:
    """The second question comes when the first is answered; the state between them remembers the name."""
    if turn.context.protocol_version == MODERN and turn.state is not None and turn.state.startswith("name "):
        color = await turn.ask({"step2": COLOR}, state=turn.state)
        return _told({"name": turn.state.removeprefix("name "), **color})
    first = await turn.ask({"step1": NAME})
    name = first["step1"].get("content", {}).get("name", "")
    return _told({**first, **await turn.ask({"step2": COLOR}, state=f"name {name}")})


async def _what_it_can(_: Fixture, turn: Turn) -> Object:
    questions = {"elicitation": NAME, "sampling": sampling("Say hello")}
    return _told(await turn.ask({name: question for name, question in questions.items() if turn.can(name)}))


async def _need_sampling(_: Fixture, turn: Turn) -> Object:
    turn.demand("sampling")
    return {"content": [text("The client can sample.")]}


async def _change_tools(fixture: Fixture, turn: Turn) -> Object:
    fixture.flip("test_passing_tool")
    await fixture.bus.publish(ToolsListChanged())
    if turn.context.protocol_version != MODERN:
        await turn.context.session.send_tool_list_changed()
    return {"content": [text("A tool came or went.")]}


async def _change_prompts(fixture: Fixture, turn: Turn) -> Object:
    fixture.flip("test_passing_prompt")
    await fixture.bus.publish(PromptsListChanged())
    if turn.context.protocol_version != MODERN:
        await turn.context.session.send_prompt_list_changed()
    return {"content": [text("A prompt came or went.")]}


async def _region(_: Fixture, turn: Turn) -> Object:
    return {"content": [text(f"The region is {turn.arguments.get('region')}.")]}


DOING: dict[str, Callable[[Fixture, Turn], Awaitable[Object]]] = {
    "test_error_handling": _fail,
    "test_tool_with_logging": _log,
    "test_logging_tool": _log,
    "test_tool_with_progress": _progress,
    "test_sampling": _sample,
    "test_elicitation": _elicit,
    "test_input_required_result_multi_round": _two_rounds,
    "test_input_required_result_capabilities": _what_it_can,
    "test_missing_capability": _need_sampling,
    "test_trigger_tool_change": _change_tools,
    "test_trigger_prompt_change": _change_prompts,
    "test_header_parameter": _region,
}
