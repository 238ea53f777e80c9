"""Token counts of requests to Claude models.

A tool definition costs what its JSON costs, written with spaces. A call is not JSON to Claude: each argument is written
separately, with its value as plain text. Caching marks, effort and sampling cost nothing. Content that Anthropic runs
or fetches itself (search results, files, pages of a PDF) cannot be counted from outside: such a part is estimated, and
marked so.

`Frame` has the constants of each model. Each was measured on recorded requests (1,444 of them, 2024 to 2026), after the
text was counted by calibration; figures from Anthropic's documentation are marked as such.
"""

import re
from binascii import a2b_base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from json import dumps, loads

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Unknown,
)
from ullage.models import Match, ModelCard
from ullage.tool import Json

from ..count import ZERO, Count, CountText, Method, Weight, total
from .images import anthropic_image, image_size, split_files

__all__ = ["Frame", "frame_of", "hosted_tokens", "weigh"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The constants of one model, in tokens."""

    opening: int = 4
    """Added once a request."""
    message: int = 3
    preamble: int = 496
    """Added once where there are tools."""
    forced: int = 93
    """Added once where the model must call a tool."""
    alone: int = 0
    """Added once where the model must call exactly one tool."""
    tool: int = 8
    """Added for each definition, to its JSON."""
    call: int = 22
    result: int = 17
    argument: int = 16
    """Added for each argument of a call, to its name and value."""
    parallel: int = 32
    """Added for each call (and its result) beside another in the same message."""
    failed: int = 18
    """Added for a result marked as an error."""
    deferred: int = 0
    """Added once where a definition is deferred until it is searched for; the definition itself costs nothing."""
    schema: int = 84
    """Added once for a structured answer, to its schema."""
    citations: int = 515
    """Added once where documents are to be cited."""
    document: int = 38
    budgeted: int = 28
    """Added once where a thinking budget is set."""
    adaptive: int = 0
    keeps_thinking: bool = False
    """Whether thinking of earlier turns stays in the prompt."""
    long_edge: int = 1568
    most_of_image: int = 1600
    measured: bool = True
    """Whether recordings of exactly this model were available."""


_CLAUDE_4_5 = Frame()
_CLAUDE_4 = replace(_CLAUDE_4_5, preamble=310, forced=3, alone=-29)
_CLAUDE_4_6 = replace(_CLAUDE_4_5, keeps_thinking=True)
_CLAUDE_3 = replace(_CLAUDE_4_5, preamble=264, forced=88)
_CLAUDE_4_8 = Frame(
    opening=4,
    preamble=291,
    forced=120,
    call=13,
    result=10,
    argument=12,
    parallel=20,
    deferred=89,
    schema=118,
    citations=742,
    document=43,
    budgeted=0,
    keeps_thinking=True,
    long_edge=2576,  # documentation of Opus 4.7, as is the next
    most_of_image=4784,
)
_CLAUDE_4_7 = replace(_CLAUDE_4_8, opening=9, preamble=679, forced=135, call=33, result=25, argument=13, deferred=0)

_BY_MODEL: Mapping[str, Frame] = {
    "claude-3-haiku": _CLAUDE_3,
    "claude-3-sonnet": replace(_CLAUDE_3, preamble=159, forced=76, measured=False),  # documentation
    "claude-3-opus": replace(_CLAUDE_3, preamble=532, forced=-249),  # forced: documentation
    "claude-3-5-haiku": _CLAUDE_3,
    "claude-3-5-sonnet": replace(_CLAUDE_3, preamble=291, forced=-33),  # forced: documentation
    "claude-opus-4-5": _CLAUDE_4_6,
    "claude-opus-4-6": replace(_CLAUDE_4_6, adaptive=17),
    "claude-opus-5": replace(_CLAUDE_4_8, preamble=287),
    "claude-sonnet-5": replace(_CLAUDE_4_8, preamble=355),
}
_BY_FAMILY: Mapping[str, Frame] = {
    "claude-2": replace(_CLAUDE_3, opening=7, measured=False),
    "claude-3.7": _CLAUDE_4,
    "claude-4": _CLAUDE_4,
    "claude-4.5": _CLAUDE_4_5,
    "claude-4.6": _CLAUDE_4_6,
    "claude-4.7": _CLAUDE_4_7,
    "claude-4.8": _CLAUDE_4_8,
    "claude-5": _CLAUDE_4_8,
}


def frame_of(card: ModelCard) -> Frame:
    """Return the constants of a model; of the most closely related one if it was never recorded."""
    known = _BY_MODEL.get(card.id) or _BY_FAMILY.get(card.family)
    if known is not None:
        return known
    return replace(_CLAUDE_4_8 if card.tokenizer == "claude_4_7" else _CLAUDE_3, measured=False)


_HOSTED: Mapping[str, int] = {
    "web_search": 1710,
    "web_fetch": 525,
    "code_execution_20250522": 1600,
    "code_execution": 4130,
    "memory": 1070,
    "tool_search_tool": 200,
    "advisor": 1490,
    "mcp_toolset": 2700,
    "bash": 245,  # documentation, as are the next two
    "text_editor": 700,
    "computer": 735,
}
"""Tokens that a tool defined by Anthropic adds to the preamble, by the beginning of its type."""


def hosted_tokens(kind: str) -> int | None:
    """Return the tokens that one of Anthropic's own tools adds for Claude 4.5; None for one never recorded."""
    return next((tokens for name, tokens in _HOSTED.items() if kind.startswith(name)), None)


_DEFINITION = 0.962
"""Ratio of a definition's tokens to those of its JSON counted as text."""
_SCHEMA = 1.49
"""Ratio for the schema of an answer, which costs more than its text."""
_THINKING = 9
_SIGNATURE = 0.2
"""Tokens of thinking per character of its signature: the only measure where the text is withheld."""
_PAGE = 1600
"""Tokens of a PDF page as an image; the page is read as text too, and the text is added."""
_INTERLEAVED = 155
"""Added once for thinking between calls, where a header of the request enables it."""
_READ_PAGE = 60
"""Tokens of a PDF page that is read as text only; pages in recorded requests had little text."""
_FETCHED = 65_000
"""The most that a search may add before the model answers."""
_QUOTES = frozenset({"cited_text", "title", "document_title", "url"})
"""Fields of a citation that cost no input."""
_REMOTE = 2700
"""Tokens of the one remote MCP server recorded, with three tools; others may cost any number."""
_NEWER = 1.35
"""Factor for Anthropic's own tools under the newer tokenizer; measured on three of them only."""


def weigh(request: Request, match: Match, count: CountText) -> Weight:
    """Return the weight of a request to a Claude model, in whichever format it was written."""
    scale = _Scale(
        frame=frame_of(match.card),
        count=count,
        newer=match.card.tokenizer == "claude_4_7",
        reads_only=match.host == "bedrock",
        tools={tool.name: tool for tool in request.tools},
    )
    current = 0 if scale.frame.keeps_thinking else _current_turn(request.messages)
    return Weight(
        framing=_fixed_count(scale.frame.opening, 0.0) + _of_settings(request, scale.frame),
        system=total(scale.part(part) for message in request.system for part in message.parts),
        tools=tuple(map(scale.tool, request.tools)),
        tools_framing=_of_tools(request, scale.frame),
        messages=tuple(
            # In OpenAI's format a system message has no frame: it joins the system prompt.
            scale.message(
                message,
                framed=request.format is Format.ANTHROPIC or message.role not in ("system", "developer"),
                thinks=at >= current,
            )
            for at, message in enumerate(request.messages)
        ),
        output_schema=scale.schema(request.output_schema),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Weighs the parts of one request."""

    frame: Frame
    count: CountText
    newer: bool
    reads_only: bool
    """Whether the host passes documents to the model as text only, without images of their pages."""
    tools: Mapping[str, ToolDefinition]

    def message(self, message: Message, *, framed: bool, thinks: bool) -> Count:
        calls = sum(isinstance(part, ToolCall) for part in message.parts)
        constant = self.frame.message * framed + self.frame.parallel * max(0, calls - 1)
        parts = (part for part in message.parts if thinks or not isinstance(part, Thinking))
        return _fixed_count(constant, 0.0) + total(map(self.part, parts))

    def part(self, part: Part) -> Count:
        match part:
            case Text(text):
                return self.count(text) if text else ZERO
            case Thinking():
                return self.thinking(part)
            case ToolCall():
                return self.call(part)
            case ToolResult():
                constant = self.frame.result + self.frame.failed * part.is_error
                return _fixed_count(constant, 0.1) + total(map(self.part, part.parts))
            case Media():
                return self.medium(part)
            case Unknown(value):
                return self.unknown(value)

    def thinking(self, part: Thinking) -> Count:
        """Weigh thinking that stays in the prompt: the visible text may be a summary, and its signature is longer."""
        shown = _THINKING + (self.count(part.text).tokens if part.text else 0)
        return _fixed_count(max(shown, _SIGNATURE * len(part.signature or "") - 40), 0.3, Method.ESTIMATED)

    def call(self, call: ToolCall) -> Count:
        pairs = list(_arguments(call.arguments))
        texts = [call.name, *(text for pair in pairs for text in pair)]
        return _fixed_count(self.frame.call + self.frame.argument * len(pairs), 0.1) + total(
            map(self.count, filter(None, texts))
        )

    def medium(self, medium: Media) -> Count:
        if medium.kind == "image":
            size = image_size(medium.data) if medium.data else None
            return anthropic_image(size, long_edge=self.frame.long_edge, most=self.frame.most_of_image)
        pages = None  # where no page objects of a PDF are visible
        with suppress(ValueError):
            pages = len(_PAGE_OBJECT.findall(a2b_base64(medium.data))) or None if medium.data else None
        if self.reads_only:
            return Count(tokens=_READ_PAGE * (pages or 1), method=Method.ESTIMATED, low=5, high=20_000)
        tokens = _PAGE * (pages or 1)
        return Count(tokens=tokens, method=Method.ESTIMATED, low=int(tokens * 0.9), high=tokens * (2 if pages else 50))

    def tool(self, tool: ToolDefinition) -> Count:
        return self.definition(tool) if tool.hosted is None else self.hosted(tool.hosted)

    def definition(self, tool: ToolDefinition) -> Count:
        shown: dict[str, Json] = {
            "description": tool.description or "",
            "name": tool.name,
            "parameters": dict(tool.schema),
        }
        return _fixed_count(self.frame.tool, 0.0) + _scale_count(self.count(_json(shown)), _DEFINITION)

    def hosted(self, raw: Mapping[str, Json]) -> Count:
        """Weigh a tool that Anthropic defines or runs; a deferred one costs nothing yet."""
        if raw.get("defer_loading"):
            return ZERO
        kind = raw.get("type")
        known = hosted_tokens(kind) if isinstance(kind, str) else None
        if known is None:
            return _scale_count(self.count(_json(dict(raw))), _DEFINITION, Method.ESTIMATED)
        tokens = round(known * (_NEWER if self.newer else 1.0))
        reach = _FETCHED if str(kind).startswith(("web_", "mcp_", "code_", "tool_search")) else tokens // 3
        return Count(tokens=tokens, method=Method.ESTIMATED, low=tokens * 2 // 3, high=tokens + reach)

    def unknown(self, value: Json) -> Count:
        """Weigh the fields of a document, or the tools that a search found (each is then shown in full); anything else
        as JSON."""
        about = value.get("document") if isinstance(value, dict) else None
        if isinstance(about, dict) and "source" not in about:
            titles = [text for key in ("title", "context") if isinstance(text := about.get(key), str) and text]
            return _fixed_count(self.frame.document, 0.2) + total(map(self.count, titles))
        if isinstance(value, dict) and value.keys() == {"citations"}:
            value = _without_quotes(value["citations"])
        found = [self.tools[name] for name in _referenced_tool_names(value) if name in self.tools]
        if found:
            return total(map(self.definition, found))
        shown, files = split_files(value)
        return _scale_count(self.count(_json(shown)), 1.0, Method.ESTIMATED) + total(map(self.medium, files))

    def schema(self, schema: Json) -> Count:
        if not isinstance(schema, dict):
            return ZERO
        return _fixed_count(self.frame.schema, 0.1) + _scale_count(
            self.count(_json(schema.get("schema", schema))), _SCHEMA
        )


def _of_settings(request: Request, frame: Frame) -> Count:
    """Return what thinking, citations and budgets add once."""
    thinking, config = request.settings.get("thinking"), request.settings.get("output_config")
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    tokens = {"enabled": frame.budgeted, "adaptive": frame.adaptive}.get(str(kind), 0)
    tokens += 35 if isinstance(config, dict) and config.get("task_budget") else 0
    tokens += frame.citations if any(map(_cites, request.messages)) else 0
    found = _fixed_count(tokens, 0.05)
    if kind == "enabled" and request.tools:
        found += Count(tokens=0, method=Method.CALIBRATED, low=0, high=_INTERLEAVED)
    # Anthropic fetches the definitions of remote MCP servers; where toolsets are listed, those are weighed.
    servers = request.settings.get("mcp_servers")
    listed = any(tool.hosted is not None and "mcp_server_name" in tool.hosted for tool in request.tools)
    if isinstance(servers, list) and not listed:
        tokens = _REMOTE * len(servers)
        found += Count(tokens=tokens, method=Method.ESTIMATED, low=0, high=tokens + _FETCHED)
    return found


def _of_tools(request: Request, frame: Frame) -> Count:
    if not request.tools:
        return ZERO
    deferred = any(tool.hosted is not None and tool.hosted.get("defer_loading") for tool in request.tools)
    choice = request.tool_choice if isinstance(request.tool_choice, dict) else {"type": request.tool_choice}
    forced = choice.get("type") in ("any", "tool", "required", "function")
    alone = forced and choice.get("disable_parallel_tool_use") is True
    tokens = frame.preamble + frame.forced * forced + frame.alone * alone + frame.deferred * deferred
    return _fixed_count(tokens, 0.02 if frame.measured else 0.4)


def _current_turn(messages: tuple[Message, ...]) -> int:
    """Return the start of the current turn: after the last message in which the user wrote something new."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "user" and not any(isinstance(part, ToolResult) for part in messages[at].parts):
            return at
    return 0


def _cites(holder: Message | ToolResult) -> bool:
    """Return whether a document or a search result in it requests citations."""
    for part in holder.parts:
        if isinstance(part, ToolResult) and _cites(part):
            return True
        value = part.value if isinstance(part, Unknown) and isinstance(part.value, dict) else {}
        about = value.get("document", value)
        citations = about.get("citations") if isinstance(about, dict) else None
        if isinstance(citations, dict) and citations.get("enabled"):
            return True
    return False


def _without_quotes(citations: Json) -> Json:
    """Return an answer's citations without the texts that are not counted as input (documentation)."""
    if not isinstance(citations, list):
        return citations
    return [
        {key: value for key, value in one.items() if key not in _QUOTES} if isinstance(one, dict) else one
        for one in citations
    ]


def _referenced_tool_names(value: Json) -> Iterator[str]:
    """Yield the names of the tools that a search found."""
    if isinstance(value, dict):
        name = value.get("tool_name")
        if isinstance(name, str):
            yield name
        for inner in value.values():
            yield from _referenced_tool_names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _referenced_tool_names(inner)


def _arguments(arguments: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a call's arguments, as Claude sees them; text that is not a JSON object is one
    value."""
    try:
        value: Json = loads(arguments) if arguments else {}
    except ValueError:
        value = arguments
    if not isinstance(value, dict):
        yield "", _plain(value)
        return
    for name, item in value.items():
        yield name, _plain(item)


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Json) -> str:
    return dumps(value, ensure_ascii=False)


_PAGE_OBJECT = re.compile(rb"/Type\s*/Page\b")


def _fixed_count(tokens: float, band: float, method: Method = Method.CALIBRATED) -> Count:
    return Count.within(tokens, band, method) if tokens else ZERO


def _scale_count(count: Count, factor: float, method: Method = Method.CALIBRATED) -> Count:
    low, tokens, high = (round(number * factor) for number in (count.low, count.tokens, count.high))
    return Count(tokens=tokens, method=method, low=low, high=high)
