"""What does a request to Gemini weigh, as Google counts it?

On AI Studio every turn costs its text and one token, the system instruction being a turn; on Vertex, and for Gemini 1.5
and 2.0 anywhere, just its text. How tools, calls and responses are written before they are counted,
`gemini_python` and `gemini_tools` know. A schema for the answer is free (before 2.5 a `responseSchema` was not).

What Google alone can see makes a request an estimate: thoughts behind signatures, media whose length is not in the
request, a cache, and what its own tools bring into the prompt.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from json import dumps, loads
from typing import cast

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
from ullage.models import Match
from ullage.tool import Json

from ..count import ZERO, Count, Method, total
from ..weight import CountText, Weight
from .gemini_media import weigh_media
from .gemini_python import PYTHON_KEYWORDS, python_call, python_declaration, python_response
from .gemini_schema import has_lone_enum, is_familiar
from .gemini_thoughts import no_thoughts, sealed_thoughts, streamed_thoughts, vertex_thoughts
from .gemini_tools import BRACES_KEYWORDS, QUOTE, braces, schema_braces, schema_texts, value_texts

__all__ = ["weigh"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writing:
    """How one generation of Gemini writes the things that are not text, each as texts to be counted."""

    turn: int
    declaration: Callable[[ToolDefinition], Iterator[str]]
    call: Callable[[str, Json], Iterator[str]]
    response: Callable[[str, Json], Iterator[str]]
    marks: int
    """Special tokens around each of them."""
    thoughts: Callable[[str], Count]
    """What the thoughts behind a signature weigh."""
    hosted: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the use of a tool that Google runs itself adds, mostly; those not named add nothing, mostly."""
    band: float = 0.0
    """The share within which counts lie, where another vocabulary answered now and then."""
    familiar: frozenset[str] = frozenset()
    """Keywords of a schema that are known to be written so; with others a tool is not said to be exact."""


def weigh(request: Request, match: Match, count: CountText) -> Weight:
    version = _version(match)
    scale = _Scale(_writing(match, version), count, request, version)
    recent = -1 if version >= (3, 5) else _last_question(request)
    return Weight(
        framing=_CACHE if request.settings.get("cachedContent") else ZERO,
        system=total(map(scale.instruction, request.system)),
        tools=tuple(map(scale.tool, request.tools)),
        messages=tuple(
            scale.message(message, thoughts=index > recent) for index, message in enumerate(request.messages)
        ),
        output_schema=scale.output_schema() if version < (2, 5) else ZERO,
    )


_CACHE = Count(tokens=0, method=Method.ESTIMATED, low=0, high=1_048_576)
"""A cached prefix is part of the prompt and not of the request."""
_HOSTED_AT_MOST = 600
_VERTEX = re.compile("vertex|openrouter|zenmux")
"""Vertex, and those who pass requests on to it: their counts are Vertex's."""
_LARGEST_SEEN = 4_000
"""Tokens of the largest tool in a recorded request; nobody knows where Google cuts larger ones short."""


def _version(match: Match) -> tuple[int, int]:
    """The number in the model's name; one without a number is an alias for the newest."""
    found = re.search(r"gemini-(\d+)(?:[.-](\d)(?!\d))?", f"{match.card.id} {match.card.family}")
    return (int(found[1]), int(found[2] or 0)) if found else (3, 0)


def _writing(match: Match, version: tuple[int, int]) -> _Writing:
    if "embedding" in match.card.id or _VERTEX.search(match.host or "") or version < (2, 5):
        return replace(_TEXTS, thoughts=vertex_thoughts) if version >= (2, 5) else _TEXTS
    return _PYTHON if version < (3,) else _BRACES


def _last_question(request: Request) -> int:
    """Where the user last said or showed something: thoughts from before it are not shown to the model again."""
    asked = [
        index
        for index, message in enumerate(request.messages)
        if message.role == "user" and any(isinstance(part, Text | Media) for part in message.parts)
    ]
    return asked[-1] if asked else -1


@dataclass(frozen=True, slots=True)
class _Scale:
    """Weighs one piece after another of one request."""

    writing: _Writing
    count: CountText
    request: Request
    version: tuple[int, int]

    def message(self, message: Message, *, thoughts: bool) -> Count:
        parts = (self._part(part, thoughts=thoughts) for part in message.parts)
        return self._loosely(total(parts) + Count.exact(self.writing.turn))

    def instruction(self, message: Message) -> Count:
        """The system instruction, which is a turn where it claims a role, and else its text alone."""
        named = self.request.format is not Format.GEMINI or "systemInstruction" in self.request.settings
        turn = Count.exact(self.writing.turn if named else 0)
        return self._loosely(total(self._part(part, thoughts=False) for part in message.parts) + turn)

    def tool(self, tool: ToolDefinition) -> Count:
        if tool.hosted is not None:
            used = self.writing.hosted.get(tool.name, 0)
            return Count(tokens=used, method=Method.ESTIMATED, low=0, high=_HOSTED_AT_MOST)
        found = self._texts(self.writing.declaration(tool))
        seen = found.tokens < _LARGEST_SEEN
        if seen and self._is_confirmed(tool):
            return self._loosely(found)
        return Count.within(found.tokens, 0.04 if seen else 0.3, _at_best(found.method))

    def _is_confirmed(self, tool: ToolDefinition) -> bool:
        """Whether a tool is written in ways that agreed with the reported counts; as Python, two were a token off."""
        schema: Json = dict(tool.schema)
        odd = self.writing.declaration is _python_tool and ("\n " in (tool.description or "") or has_lone_enum(schema))
        return not odd and is_familiar(schema, self.writing.familiar)

    def output_schema(self) -> Count:
        schema = self._config().get("responseSchema")
        return self._loosely(self._texts(schema_texts(schema, titles=True))) if isinstance(schema, dict) else ZERO

    def _config(self) -> Mapping[str, Json]:
        config = self.request.settings.get("generationConfig")
        return config if isinstance(config, dict) else {}

    def _texts(self, texts: Iterator[str]) -> Count:
        """The sum of the texts, each cut at its special tokens, and of those tokens."""
        found = Count.exact(self.writing.marks)
        for text in texts:
            found += Count.exact(text.count(QUOTE)) + total(self.count(piece) for piece in text.split(QUOTE) if piece)
        return found

    def _part(self, part: Part, *, thoughts: bool) -> Count:
        match part:
            case Text():
                return self.count(part.text)
            case Thinking():
                sealed = self.writing.thoughts(part.signature) if part.signature and thoughts else ZERO
                return self.count(part.text) + sealed
            case ToolCall():
                return self._texts(self.writing.call(part.name, _parsed(part.arguments)))
            case ToolResult():
                return self._result(part)
            case Media():
                resolution = self._config().get("mediaResolution")
                return weigh_media(part, self.version, resolution if isinstance(resolution, str) else None, self.count)
            case Unknown():
                text = dumps(part.value, ensure_ascii=False)
                return Count.within(self.count(text).tokens, 0.5, Method.ESTIMATED)

    def _result(self, result: ToolResult) -> Count:
        """The response, which is the JSON text in front, and the media after it as in any message."""
        first, *rest = result.parts or (Text("{}"),)
        parsed = _parsed(first.text) if isinstance(first, Text) else {}
        response: Json = parsed if isinstance(parsed, dict) else {"result": parsed}
        written = self._texts(self.writing.response(result.name or self._called(result.call_id), response))
        return written + total(self._part(part, thoughts=False) for part in rest)

    def _called(self, identity: str | None) -> str:
        """The name of the call that a result answers, where the request is in a format that gives only its id."""
        parts = (part for message in self.request.messages for part in message.parts)
        calls = (part.name for part in parts if isinstance(part, ToolCall) and part.id == identity)
        return next(calls, "")

    def _loosely(self, found: Count) -> Count:
        sure = found.method is Method.EXACT and found.tokens
        return Count.within(found.tokens, self.writing.band) if sure and self.writing.band else found


def _at_best(method: Method) -> Method:
    return Method.CALIBRATED if method is Method.EXACT else method


def _parsed(text: str) -> Json:
    try:
        return cast("Json", loads(text))
    except ValueError:
        return text


def _python_tool(tool: ToolDefinition) -> Iterator[str]:
    yield python_declaration(tool.name, tool.description or "", tool.schema, _response(tool))


def _response(tool: ToolDefinition) -> dict[str, Json] | None:
    """The schema of what a function answers with, in either of its spellings."""
    response = tool.extra.get("response") or tool.extra.get("responseJsonSchema")
    return response if isinstance(response, dict) else None


def _braces_tool(tool: ToolDefinition) -> Iterator[str]:
    response = _response(tool)
    fields: dict[str, Json] = {"description": tool.description} if tool.description else {}
    fields |= {"parameters": schema_braces(tool.schema)} if tool.schema else {}
    fields |= {"response": schema_braces(response)} if response is not None else {}
    yield f"declaration:{tool.name}{braces(fields)}"


def _text_tool(tool: ToolDefinition) -> Iterator[str]:
    """A schema that came as `parametersJsonSchema` is not counted on this path."""
    yield tool.name
    yield tool.description or ""
    if "parametersJsonSchema" not in tool.extra:
        yield from schema_texts(tool.schema)
    response = tool.extra.get("response")
    yield from schema_texts(response) if isinstance(response, dict) else ()


def _text_value(name: str, value: Json) -> Iterator[str]:
    yield name
    yield from value_texts(value)


_PYTHON = _Writing(
    turn=1,
    declaration=_python_tool,
    call=lambda name, value: iter((python_call(name, value),)),
    response=lambda name, value: iter((python_response(name, value),)),
    marks=0,
    thoughts=streamed_thoughts,
    familiar=PYTHON_KEYWORDS,
)
_BRACES = _Writing(
    turn=1,
    declaration=_braces_tool,
    call=lambda name, value: iter((f"call:{name}{braces(value)}",)),
    response=lambda name, value: iter((f"response:{name}{braces(value)}",)),
    marks=2,
    thoughts=sealed_thoughts,
    familiar=BRACES_KEYWORDS,
    hosted={"codeExecution": 100, "fileSearch": 100},
)
_TEXTS = _Writing(
    turn=0,
    declaration=_text_tool,
    call=_text_value,
    response=_text_value,
    marks=0,
    thoughts=no_thoughts,
    band=0.02,
)
