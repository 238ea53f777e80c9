"""Token counts of requests to OpenAI models.

Text is exact: the vocabularies are public and the marks around messages are known. What the provider adds invisibly
(its own tools, stored conversations, encrypted reasoning) is estimated, and marked so.

Conversations: a message is a few marks around its text. A call is a message to a function, and its output one from it;
several calls at once are one call of `multi_tool_use.parallel` in chats with the older models. The numbers in a `Frame`
were fitted to recorded requests with the counts that OpenAI reported.

Media: images follow the published rules (`images`). Audio is ten tokens a second (measured: 2 to 100 tokens on nine
recorded requests). A document is weighed by its bytes, which is a poor measure: chats add an image of every page, and
the text of a page is not known from outside.

Tools and answer formats: tools become a TypeScript namespace, an answer schema a line of JSON under a heading. Both
were inferred from recorded requests with the token counts that OpenAI reported for them, starting from its open
`harmony` format. The functions `render_…` only write text and count nothing.
"""

from binascii import a2b_base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json import JSONDecodeError, dumps, loads
from re import compile as pattern
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

from ..count import ZERO, Count, CountText, Method, Weight, total
from .images import image_size, openai_image, split_files

__all__ = [
    "Conversation",
    "Frame",
    "is_familiar",
    "is_stored_id",
    "joined_text",
    "less",
    "render_answer_format",
    "render_section",
    "render_tool",
    "slack",
    "weigh",
    "weigh_media",
]

Schema = Mapping[str, Json]

MOST_SCHEMAS = 20_000
"""Most sub-schemas rendered of one tool; the largest tool of 99 public MCP servers needs 9,513."""

DEEPEST = 60
"""Levels of a schema that are examined."""

_IDENTIFIER = pattern(r"[A-Za-z_$][\w$]*")
_PLAIN_TYPES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_LIMITS = {
    "string": ("format", "pattern", "minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
}
_FAMILIAR = frozenset(
    {"type", "properties", "required", "description", "title", "enum", "items", "additionalProperties", "default"}
    | {"$defs", "$ref", "$schema", "nullable"}
)
"""Keywords whose rendering agreed with the reported counts on nearly every recorded request that used them."""
_ENFORCED = frozenset(
    {"additionalProperties", "required", "$schema", "default", "format", "pattern", "multipleOf", "uniqueItems"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"}
)
"""Keywords that OpenAI enforces during sampling and does not show the model."""


def render_section(tools: Iterable[str]) -> str:
    """Return the whole namespace, as in the prompt, from the texts of its tools."""
    body = "".join(f"{tool}\n\n" for tool in tools)
    return f"Tools\n\n## functions\n\nnamespace functions {{\n\n{body}}} // namespace functions"


def render_tool(tool: ToolDefinition, *, titles: bool = True) -> str:
    """Return one tool as a TypeScript type; `titles` is off for the models of 2023, which were not shown them."""
    scope = _Scope(
        definitions={**_mapping(tool.schema.get("definitions")), **_mapping(tool.schema.get("$defs"))}, titles=titles
    )
    shape = scope.shape(tool.schema) if _mapping(tool.schema.get("properties")) else None
    signature = f"(_: {shape})" if shape else "()"
    return "\n".join((*_comment(tool.description), f"type {tool.name} = {signature} => any;"))


def render_answer_format(name: str, description: Json, schema: Json) -> str:
    """Return the section that shows a `json_schema` answer format."""
    body = dumps(_strip_schema(schema), separators=(",", ":"))
    return "\n\n".join(("# Response Formats", f"## {name}", "\n".join((*_comment(description), body))))


def is_familiar(schema: Json, depth: int = 0) -> bool:
    """Return whether a schema uses only keywords whose rendering is confirmed."""
    if not isinstance(schema, dict):
        return schema is None
    named = [value for key in ("properties", "$defs") for value in _mapping(schema.get(key)).values()]
    inner = [*named, *([schema["items"]] if "items" in schema else [])]
    plain = schema.keys() <= _FAMILIAR and not isinstance(schema.get("type"), list)
    return plain and depth < DEEPEST and all(is_familiar(each, depth + 1) for each in inner)


def _strip_schema(schema: Json, depth: int = 0, *, named: bool = False) -> Json:
    """Return a schema without enforced keywords; `named` for the maps whose keys are names rather than keywords."""
    if isinstance(schema, list):
        return [_strip_schema(item, depth + 1) for item in schema] if depth < DEEPEST else []
    if not isinstance(schema, dict) or depth >= DEEPEST:
        return None if isinstance(schema, dict) else schema
    kept = ((key, value) for key, value in schema.items() if named or key not in _ENFORCED)
    maps = () if named else ("properties", "$defs", "definitions")
    return {key: _strip_schema(value, depth + 1, named=key in maps) for key, value in kept}


def _comment(text: Json) -> list[str]:
    """Return each non-blank line, stripped, as a comment; the first line is one even if it is blank."""
    lines = text.split("\n") if isinstance(text, str) and text.strip() else []
    first = ["// "] if lines and not lines[0].strip() else []
    return first + [f"// {line.strip()}" for line in lines if line.strip()]


def _mapping(value: Json) -> Schema:
    return value if isinstance(value, dict) else {}


def _literal(value: Json) -> str:
    return dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """The context of a schema's rendering."""

    definitions: Schema
    titles: bool
    open: frozenset[str] = field(default_factory=frozenset[str])
    """References being followed, so that recursion in a schema ends."""
    depth: int = 0
    steps: Iterator[int] = field(default_factory=lambda: iter(range(MOST_SCHEMAS)))
    """The remaining sub-schemas that one tool may have, so that references cannot multiply without limit."""

    def shape(self, schema: Schema) -> str:
        """Return an object, with its own comments above it."""
        return "\n".join((*self.comments(schema), self.object(schema)))

    def resolve(self, schema: Json) -> tuple["_Scope", Schema]:
        """Return the schema with its reference followed and a list of types written as a union."""
        if self.depth > DEEPEST or next(self.steps, None) is None:
            return self, {}
        scope, found = replace(self, depth=self.depth + 1).follow(_mapping(schema))
        kinds = found.get("type")
        if isinstance(kinds, list):
            rest = {key: value for key, value in found.items() if key != "type"}
            members: list[Json] = [{**rest, "type": kind} for kind in kinds]
            found = {**rest, "anyOf": members}
        return scope, found

    def follow(self, schema: Schema) -> tuple["_Scope", Schema]:
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return self, schema
        target = _mapping(None if reference in self.open else self.definitions.get(reference.rpartition("/")[2]))
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return replace(self, open=self.open | {reference}), {**target, **rest}

    def comments(self, schema: Schema) -> list[str]:
        title = _comment(schema.get("title")) if self.titles else []
        description = _comment(schema.get("description"))
        return [*title, *(["//"] if title and description else []), *description, *_examples(schema)]

    def type(self, schema: Schema) -> str:
        union = schema.get("anyOf", schema.get("oneOf"))
        if isinstance(union, list):
            return self.union(union, spread=bool(self.comments(schema)))
        values, kind = schema.get("enum"), schema.get("type")
        if isinstance(values, list) and values:
            return " | ".join(map(_literal, values))
        if kind == "object" or (kind is None and "properties" in schema):
            return self.object(schema)
        if kind == "array":
            return self.array(schema)
        return _PLAIN_TYPES.get(kind, "any") if isinstance(kind, str) else "any"

    def array(self, schema: Schema) -> str:
        scope, items = self.resolve(schema.get("items"))
        inner = scope.described(items)
        return f"Array<\n{inner}\n>" if "\n" in inner else f"{inner}[]"

    def described(self, schema: Schema) -> str:
        return self.shape(schema) if schema.get("type") == "object" else self.type(schema)

    def union(self, members: list[Json], *, spread: bool) -> str:
        variants = [scope.variant(member) for scope, member in map(self.resolve, members)]
        if not spread and not any("//" in variant for variant in variants):
            return " | ".join(variants)
        return "".join(f"\n | {variant}" for variant in variants) + "\n"

    def variant(self, schema: Schema) -> str:
        words = () if schema.get("type") == "object" else (schema.get("title"), schema.get("description"))
        return self.described(schema) + _trailing((*words, *_limits(schema), *_default(schema)))

    def object(self, schema: Schema) -> str:
        fields = list(self.fields(schema))
        if all(not comments and not trailing and "\n" not in text for comments, text, trailing in fields):
            return "{ " + ", ".join(text for _, text, _ in fields) + " }"
        lines = (line for comments, text, trailing in fields for line in (*comments, f"{text},{trailing}"))
        return "\n".join(("{", *lines, "}"))

    def fields(self, schema: Schema) -> Iterator[tuple[list[str], str, str]]:
        """Yield the comments above each property, its text, and the comment after it."""
        required = schema.get("required")
        for name, value in _mapping(schema.get("properties")).items():
            scope, found = self.resolve(value)
            shown = scope.type(found)
            if found.get("nullable") and "null" not in shown:
                shown = f"{shown} | null"
            mark = "" if isinstance(required, list) and name in required else "?"
            key = name if _IDENTIFIER.fullmatch(name) else _literal(name)
            gap = "" if shown.startswith("\n") else " "
            yield scope.comments(found), f"{key}{mark}:{gap}{shown}", _trailing((*_limits(found), *_default(found)))


def _examples(schema: Schema) -> list[str]:
    examples = schema.get("examples")
    if not isinstance(examples, list) or not examples:
        return []
    return ["// Examples:", *(f"// - {_literal(example)}" for example in examples)]


def _limits(schema: Schema) -> list[str]:
    kind = schema.get("type")
    keys = _LIMITS.get(kind, ()) if isinstance(kind, str) else ()
    return [f"{key}: {schema[key]}" for key in keys if key in schema]


def _default(schema: Schema) -> list[str]:
    if "default" not in schema:
        return []
    value = schema["default"]
    return [f"default: {value if isinstance(value, str) and schema.get('enum') else _literal(value)}"]


def _trailing(words: Iterable[Json]) -> str:
    said = " ".join(word for word in words if isinstance(word, str) and word)
    return f" // {said}" if said else ""


_BYTES_A_SECOND = 12_000
"""Bytes a second of spoken MP3, where no better figure is available."""
_BYTES_A_TOKEN = 60
"""Bytes a token of a PDF: measured on few, between 20 and 400."""


def weigh_media(media: Media, model: str) -> Count:
    if media.kind == "image":
        return openai_image(model, image_size(media.data) if media.data else None, media.detail)
    data = _decode_media(media.data)
    if media.kind == "audio":
        if not data:
            return Count(tokens=60, method=Method.ESTIMATED, low=3, high=1200)
        rate = int.from_bytes(data[28:32], "little") if data.startswith(b"RIFF") else 0
        seconds = len(data) / (rate or _BYTES_A_SECOND)
        return Count.within(4 + 10 * seconds, 0.6, Method.ESTIMATED)
    if not data:
        return Count(tokens=220, method=Method.ESTIMATED, low=4, high=20_000)
    tokens = 220 + len(data) // _BYTES_A_TOKEN
    return Count(tokens=tokens, method=Method.ESTIMATED, low=4, high=tokens * 12)


def _decode_media(data: str | None) -> bytes:
    """Return the bytes of a medium; empty where the request has only its address, or invalid data."""
    try:
        return a2b_base64(data, strict_mode=True) if data else b""
    except ValueError:
        return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The tokens that one kind of model, through one API, adds around the texts of a request."""

    reply: int
    """Added for the opening of the answer."""
    reply_slack: int = 0
    message: int = 4
    final: int = 0
    """Added for an assistant's message, where models have channels."""
    tools: int
    """Added to the tools' own text, where a system message contains it."""
    tools_alone: int
    """Added to the tools' own text, where there is no system message."""
    nameless: int = 0
    """Subtracted for a tool without a description."""
    schema: int
    """Added to the answer format's own text."""
    schema_alone: int
    schema_named: bool = False
    """Whether the answer format's name is also at the beginning of the answer."""
    choice: int | None = None
    """Added for a forced tool, to its name; None where nothing is added."""
    forced: bool = False
    """Whether a single tool counts as forced when any is required."""
    call: int
    output: int
    stored: int = 0
    """Added for a call that the API finds again by its own id."""
    parallel: tuple[int, int] | None = None
    """Added for the call and for the outputs, where several calls at once become one."""
    compact: bool = False
    """Whether a call's arguments are rewritten without spaces."""
    beside: int = 0
    """Subtracted for each of several calls in one message."""
    call_slack: int = 0
    """The largest error recorded for a call; 0 where calls agreed to the token."""
    tools_sure: bool = False
    """Whether tools of familiar schemas agreed to the token on 98 of 100 requests."""


def joined_text(parts: Iterable[Part]) -> str:
    """Return the texts of a message; OpenAI concatenates them without a separator."""
    return "".join(part.text for part in parts if isinstance(part, Text))


def less(whole: Count, part: Count) -> Count:
    """Return a count without a part that is counted separately."""
    tokens = max(0, whole.tokens - part.tokens)
    method = (whole + part).method
    if method is Method.EXACT:
        return Count.exact(tokens)
    low, high = whole.low - part.high, whole.high - part.low
    return Count(tokens=tokens, method=method, low=max(0, min(low, tokens)), high=max(high, tokens))


def slack(count: Count, below: int, above: int) -> Count:
    """Return the same number within a measured band; no longer exact where there is a band."""
    if not below and not above:
        return count
    method = (count + Count(tokens=0, method=Method.CALIBRATED, low=0, high=0)).method
    return Count(tokens=count.tokens, method=method, low=max(0, count.low - below), high=count.high + above)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages, with the context needed to weigh them."""

    messages: Sequence[Message]
    frame: Frame
    model: str
    count: CountText

    def weigh(self) -> tuple[Count, ...]:
        """Return one count a message, in order."""
        together = self._counts_by_position() if self.frame.parallel else {}
        names = {call.id: call.name for message in self.messages for call in _calls(message) if call.id}
        asked = max((place for place, message in enumerate(self.messages) if message.role == "user"), default=-1)
        return tuple(
            together[place] if place in together else self._message(place, names, live=place > asked)
            for place in range(len(self.messages))
        )

    def _message(self, place: int, names: Mapping[str, str], *, live: bool) -> Count:
        around = self.messages[max(0, place - 1) : place + 2]
        stored = any(is_stored_id(part) for part in self.messages[place].parts)
        is_alone = stored and sum(bool(_calls(message)) for message in around) == 1
        message = self.messages[place]
        thoughts = (_thinking(part, live=live) for part in message.parts if isinstance(part, Thinking))
        others = (part for part in message.parts if not isinstance(part, (Text, Thinking)))
        whole = (
            self._words(message) + total(thoughts) + total(self._part(part, names, alone=is_alone) for part in others)
        )
        less_beside = self.frame.beside * len(_calls(message)) if len(_calls(message)) > 1 else 0
        return slack(less(whole, Count.exact(less_beside)), less_beside, less_beside)

    def _words(self, message: Message) -> Count:
        """Weigh a message's own text and marks; a message with only calls, results or reasoning has none."""
        text = joined_text(message.parts)
        if not text and not all(isinstance(part, (Text, Media)) for part in message.parts):
            return ZERO
        name = self.count(f":{message.name}") if message.name else ZERO
        marks = self.frame.message + (self.frame.final if message.role == "assistant" else 0)
        return Count.exact(marks) + name + self.count(text)

    def _part(self, part: Part, names: Mapping[str, str], *, alone: bool) -> Count:
        match part:
            case ToolCall():
                return self._call(part, alone=alone)
            case ToolResult():
                name = names.get(part.call_id or "") or part.name or "function"
                words = Count.exact(self.frame.output) + self.count(name) + self.count(joined_text(part.parts))
                rest = (inner for inner in part.parts if not isinstance(inner, Text))
                return words + total(self._part(inner, names, alone=False) for inner in rest)
            case Media():
                return weigh_media(part, self.model)
            case Unknown():
                return ZERO if is_stored_id(part) else self._unknown(part)
            case Text() | Thinking():
                return ZERO

    def _call(self, call: ToolCall, *, alone: bool) -> Count:
        marks = self.frame.call + (self.frame.stored if alone else 0)
        said = call.arguments
        if self.frame.compact and isinstance(value := _parse_json(said), dict):
            said = dumps(value, ensure_ascii=False, separators=(",", ":"))
        whole = Count.exact(marks) + self.count(f".{call.name}") + self.count(said)
        return slack(whole, self.frame.call_slack, self.frame.call_slack)

    def _unknown(self, part: Unknown) -> Count:
        """Weigh a part of unknown kind as its JSON, or as a namespace of its own where it adds tools."""
        brought = part.value.get("tools") if isinstance(part.value, dict) else None
        tools = [_render_tool(tool) for tool in brought if isinstance(tool, dict)] if isinstance(brought, list) else []
        if tools:
            return Count.within(self.count(render_section(tools)).tokens + _BRINGING_TOOLS, 0.2, Method.ESTIMATED)
        value, files = split_files(part.value)
        if isinstance(value, dict) and "arguments" in value:
            shown = [value[key] for key in ("arguments", "output") if value.get(key) is not None]
            weight = total(self.count(dumps(each, ensure_ascii=False)) for each in shown) + Count.exact(_CALLING_OUT)
        else:
            weight = self.count(dumps(value, ensure_ascii=False))
        weight += total(weigh_media(file, self.model) for file in files)
        return Count(tokens=weight.tokens, method=Method.ESTIMATED, low=0, high=2 * weight.high + 20)

    def _counts_by_position(self) -> dict[int, Count]:
        """Return the counts of `_together`, by position; in some formats one message has several results, and text
        beside them."""
        found: dict[int, Count] = {}
        for place, count in self._together():
            if place in found:
                found[place] += count
            else:
                message = self.messages[place]
                beside = joined_text(message.parts) and not _calls(message)
                found[place] = count + self._words(message) if beside else count
        return found

    def _together(self) -> Iterator[tuple[int, Count]]:
        """Yield the counts of messages with several calls, and of the results that answer them, by position."""
        opening, closing = self.frame.parallel or (0, 0)
        for place, message in enumerate(self.messages):
            calls = _calls(message)
            if len(calls) > 1:
                text = self._words(message) if joined_text(message.parts) else ZERO
                uses = [
                    {"recipient_name": f"functions.{call.name}", "parameters": _parse_json(call.arguments)}
                    for call in calls
                ]
                tool_uses = dumps({"tool_uses": uses}, ensure_ascii=False, separators=(",", ":"))
                yield place, slack(text + Count.exact(opening) + self.count(tool_uses), 2, 2)
                yield from self._answers(place + 1, {call.id for call in calls}, closing)

    def _answers(self, start: int, wanted: set[str | None], closing: int) -> Iterator[tuple[int, Count]]:
        """Yield the counts of results of parallel calls. They are one list in JSON; the first result has the framing of
        all. What escapes add to a text counts for its own result."""
        found = list(self._results(start, wanted))
        listed: list[Json] = [_parse_json(joined_text(result.parts)) for _, result in found]
        whole = self.count(dumps(listed, ensure_ascii=False))
        others = [self.count(dumps(value, ensure_ascii=False)) for value in listed[1:]]
        if total(others).tokens > whole.tokens:
            others = [ZERO for _ in others]
        shares = (less(whole, total(others)) + Count.exact(closing), *others)
        for (place, result), share in zip(found, shares, strict=False):
            yield (
                place,
                share + total(weigh_media(part, self.model) for part in result.parts if isinstance(part, Media)),
            )

    def _results(self, start: int, wanted: set[str | None]) -> Iterator[tuple[int, ToolResult]]:
        for place in range(start, len(self.messages)):
            results = [part for part in self.messages[place].parts if isinstance(part, ToolResult)]
            if not results:
                return
            yield from ((place, result) for result in results if result.call_id in wanted)


_CALLING_OUT = 35
"""Tokens around a call of a tool that the provider runs (`tool_search_call`, `mcp_call`)."""
_BRINGING_TOOLS = 86
"""Tokens around tools added during a conversation (`additional_tools`, `tool_search_output`)."""


def _thinking(thinking: Thinking, *, live: bool) -> Count:
    """Weigh reasoning. Reasoning since the user's last message counts, older reasoning does not. If it is encrypted,
    its tokens are estimated from its length: fitted to six recorded requests of 31 to 317 tokens."""
    sealed = max(32, round(0.156 * len(thinking.signature or "") - 137))
    if not live:
        return Count(tokens=0, method=Method.CALIBRATED, low=0, high=sealed)
    return Count(tokens=sealed, method=Method.ESTIMATED, low=0, high=2 * sealed)


def _render_tool(tool: Mapping[str, Json]) -> str:
    schema, description = tool.get("parameters"), tool.get("description")
    definition = ToolDefinition(
        name=str(tool.get("name")),
        description=description if isinstance(description, str) else None,
        schema=schema if isinstance(schema, dict) else {},
    )
    return render_tool(definition)


def _calls(message: Message) -> list[ToolCall]:
    return [part for part in message.parts if isinstance(part, ToolCall)]


def is_stored_id(part: Part) -> bool:
    """Return whether this is the id under which the Responses API stores an item (see `messages.openai`)."""
    return isinstance(part, Unknown) and isinstance(part.value, dict) and part.value.keys() == {"id"}


def _parse_json(text: str) -> Json:
    try:
        return cast("Json", loads(text))
    except (JSONDecodeError, RecursionError):
        return text


_CLASSIC_CHAT = Frame(
    reply=3,
    tools=0,
    tools_alone=4,
    schema=2,
    schema_alone=6,
    schema_named=True,
    choice=7,
    call=7,
    output=6,
    parallel=(12, 8),
    compact=True,
    tools_sure=True,
)
_CLASSIC_RESPONSES = Frame(
    reply=3,
    tools=-2,
    tools_alone=-2,
    schema=1,
    schema_alone=1,
    choice=7,
    forced=True,
    call=7,
    output=4,
    stored=3,
    call_slack=3,
)
_REASONING_CHAT = Frame(reply=2, tools=4, tools_alone=5, schema=1, schema_alone=1, call=7, output=6, call_slack=4)
_REASONING_RESPONSES = replace(_REASONING_CHAT, tools=1, tools_alone=1)
_CHANNEL_CHAT = Frame(
    reply=2,
    final=2,
    tools=85,
    tools_alone=86,
    nameless=1,
    schema=1,
    schema_alone=4,
    call=10,
    output=9,
    beside=5,
    tools_sure=True,
)
_CHANNEL_RESPONSES = replace(_CHANNEL_CHAT, tools=4, tools_alone=4, schema=0, schema_alone=0, beside=0, call_slack=4)
"""Fitted to 3,000 recorded requests out of the tests of thirteen public repositories."""

_SPACE_BETWEEN_LETTERS = pattern(r"[a-z] [a-z]")
_CLASSIC = ("gpt-3", "gpt-4", "chatgpt-4")
_REASONING = ("o1", "o3", "o4", "gpt-audio")
_CHANNEL = ("gpt-5", "gpt-image", "computer-use")
"""Families with recorded requests; a family without any is weighed as the latest that has some, within a band."""
_WITHOUT_TITLES = frozenset({"gpt-4", "gpt-4-32k", "gpt-3.5-turbo-0613", "gpt-3.5-turbo-0301"})
"""Models of 2023, whose tools were rendered without the titles of their properties."""
_BARE = ("text-embedding", "davinci", "babbage", "text-davinci", "gpt-3.5-turbo-instruct")
"""Models that receive texts rather than messages."""
_HOSTED = {
    "web_search": (225, 294, 45_000),
    "web_search_preview": (225, 294, 45_000),
    "file_search": (290, 1_150, 20_000),
    "code_interpreter": (290, 1_400, 5_000),
    "image_generation": (290, 342, 3_200),
    "mcp": (50, 400, 20_000),
    "tool_search": (0, 0, 700),
}
"""Least, usual and most tokens on recorded requests. The least is the definition alone; the rest is what the provider
fetched for the model before it answered, which is reported as input although the request does not contain it."""
_USED = {"web_search": 8_500, "web_search_preview": 8_500, "image_generation": 1_850}
"""Tokens of these tools where the model uses them, on most recorded requests: GPT-5 and later are shown the results of
a search, and describe an image to a model that draws."""
_DATE = pattern(r"_20\d\d_\d\d_\d\d$")
"""The end of a dated type, such as `web_search_2025_08_26`."""
_FREE_SEARCH = 30
"""Band of a search by GPT-4o and GPT-4.1: the results shown by `web_search_preview` are not reported as input, and what
is reported differs by at most this."""
_ASKS = {
    "web_search": pattern(
        r"(?i)\b(?:web|internet|online|google|search\w*|look(?:ing)? up|browse|news|headlines?|weather|latest|newest"
        r"|current(?:ly)?|today|tonight|yesterday|this (?:week|month|year)|recent(?:ly)?|cit(?:e|ation)s?"
        r"|sources?|prices?|scores?|suche?|nachrichten|wetter|aktuell\w*|heute|buscar?|noticias|actual\w*|hoy"
        r"|clima|recherche\w*|actualit\w+|m[ée]t[ée]o|aujourd'hui|cerca|notizie|oggi|pesquis\w+|hoje|20[2-9]\d)\b"
        r"|https?://|www\.|最新|今天|今日|搜索|检索|新闻|天气|ニュース|天気|検索"
    ),
    "image_generation": pattern(
        r"(?i)\b(?:images?|pictures?|photos?|draw\w*|paint\w*|illustrat\w+|logos?|icons?|posters?|render\w*|sketch\w*"
        r"|generate an?|bild\w*|zeichne\w*|imagen\w*|dibuj\w+|dessin\w*|immagin\w+|disegn\w+|imagem|desenh\w+)\b"
        r"|画|图|絵|写真|그림|рису\w+|картин\w+"
    ),
}
"""Words in the user's last message that ask for such a tool. The model decides itself, so the band includes both
cases."""
_TOLD_TO_SEARCH = pattern(
    r"(?i)\b(?:web|internet|online|google|search\w*|look up|browse|suche?|buscar?|recherche\w*)\b|搜索|検索"
)
_LAST_WORDS = 4_000
_EARLY_RESPONSES = 18
"""Tokens that requests for GPT-4o over the Responses API had in addition in its first months; a request has no date."""
_TOOL_SEARCH, _TOOL_SEARCH_DONE = 570, 370
"""Tokens of a tool search: before one, and after one."""
_STORED_CONVERSATION = 20_000
_PRO_PROMPT = 1530
"""Tokens that `reasoning.mode: pro` added in recordings, in addition to 95 a turn."""
_OVER_RESPONSES = ("openrouter", "zenmux")
"""Hosts that forward chats with GPT-5 and later to the Responses API, and report its counts."""
_SEARCHING = "search-preview"
"""Models for which the texts alone are reported as input."""


def weigh(request: Request, match: Match, count: CountText) -> Weight:
    """The `Rule` for OpenAI's own models, on its own hosts and on those that pass its counts through."""
    model = match.card.id
    if model.startswith(_BARE) or _SEARCHING in model:
        # Texts without framing; a text may also be given as the numbers of its tokens.
        texts = [
            count(joined_text(message.parts))
            + Count.exact(sum(_numbers(part.value) for part in message.parts if isinstance(part, Unknown)))
            for message in (*request.system, *request.messages)
        ]
        return Weight(messages=tuple(texts))
    return _Scale(request=request, frame=_frame(request, match), model=model, count=count).weigh()


def _numbers(value: Json) -> int:
    return sum(map(_numbers, value)) if isinstance(value, list) else int(isinstance(value, int))


def _frame(request: Request, match: Match) -> Frame:
    family = match.card.family
    chat = request.format is not Format.OPENAI_RESPONSES
    if family.startswith(_CLASSIC):
        return _CLASSIC_CHAT if chat else _CLASSIC_RESPONSES
    if family.startswith(_REASONING):
        first = match.card.id.startswith(("o1-mini", "o1-preview"))
        return replace(_REASONING_CHAT if chat else _REASONING_RESPONSES, reply=3 if first else 2)
    frame = _CHANNEL_CHAT if chat and match.host not in _OVER_RESPONSES else _CHANNEL_RESPONSES
    return frame if family.startswith(_CHANNEL) else replace(frame, tools_sure=False, call_slack=6, reply_slack=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Weighs one request."""

    request: Request
    frame: Frame
    model: str
    count: CountText

    def weigh(self) -> Weight:
        request = self.request
        system = [message for message in request.system if joined_text(message.parts)]
        tools = tuple(
            self.count(self._render_tool(tool)) if tool.hosted is None else self._count_hosted_tool(tool.hosted)
            for tool in request.tools
        )
        return Weight(
            framing=self._framing(),
            system=total(self._conversation(system)),
            tools=tools,
            tools_framing=self._tools_framing(tools),
            messages=self._conversation(request.messages),
            output_schema=self._answer_format(),
        )

    def _conversation(self, messages: Sequence[Message]) -> tuple[Count, ...]:
        return Conversation(messages=messages, frame=self.frame, model=self.model, count=self.count).weigh()

    def _framing(self) -> Count:
        settings = self.request.settings
        kinds, reasoning = settings.get("modalities"), settings.get("reasoning")
        spoken = isinstance(kinds, list) and "audio" in kinds
        framing = slack(Count.exact(self.frame.reply + int(spoken)), self.frame.reply_slack, self.frame.reply_slack)
        request = self.request
        family = self.model.startswith("gpt-4o") and not self.model.startswith("gpt-4o-mini")
        plain = not request.tools and request.output_schema is None
        may_be_early = family and plain and request.format is Format.OPENAI_RESPONSES
        if may_be_early:
            framing = slack(framing, 0, _EARLY_RESPONSES)
        if isinstance(reasoning, dict) and reasoning.get("mode") == "pro":
            framing += Count.within(
                _PRO_PROMPT + 95 * sum(message.role == "assistant" for message in self.request.messages),
                0.2,
                Method.ESTIMATED,
            )
        expected = settings.get("prediction")
        if isinstance(expected, dict):
            # A predicted answer was reported as input on one recorded request of two.
            framing = slack(framing, 0, self.count(dumps(expected.get("content"))).high + 8)
        if settings.get("web_search_options") is not None:
            framing += Count(tokens=0, method=Method.ESTIMATED, low=0, high=_HOSTED["web_search"][2])
        if any(map(settings.get, ("previous_response_id", "conversation", "prompt"))):
            # At least a question and the calls whose outputs are here without them.
            parts = [part for message in self.request.messages for part in message.parts]
            made = {part.id for part in parts if isinstance(part, ToolCall)}
            orphans = sum(isinstance(part, ToolResult) and part.call_id not in made for part in parts)
            unseen = 30 + 20 * orphans if orphans else 0
            framing += Count(tokens=unseen, method=Method.ESTIMATED, low=0, high=_STORED_CONVERSATION)
        return framing

    def _count_hosted_tool(self, tool: Mapping[str, Json]) -> Count:
        """Return the recorded tokens of a tool of the provider's; a search adds its results."""
        kind = _DATE.sub("", str(tool.get("type")))
        low, tokens, high = _HOSTED.get(kind) or (0, self.count(dumps(tool)).tokens, 4000)
        if kind == "web_search_preview" and self._is_classic():
            high = tokens + _FREE_SEARCH
        elif kind in _USED and self._asks_for(kind, tool):
            tokens = _USED[kind]
        if kind == "tool_search" or tool.get("defer_loading"):
            low, tokens = 0, self._tool_search(tool)
        return Count(tokens=tokens, method=Method.ESTIMATED, low=low, high=max(tokens, high))

    def _is_classic(self) -> bool:
        return self.model.startswith(_CLASSIC)

    def _asks_for(self, kind: str, tool: Mapping[str, Json]) -> bool:
        """Return whether the model is likely to use a tool of its provider: it is forced to, did so before, or the
        user's last message asks for it. GPT-4o and GPT-4.1 answered without a search unless they were told to make
        one."""
        choice, name = self.request.tool_choice, kind.removesuffix("_preview")
        if choice == "none":
            return False
        if (choice == "required" and len(self.request.tools) == 1) or (
            isinstance(choice, dict) and choice.get("type") == tool.get("type")
        ):
            return True
        parts = [part.value for message in self.request.messages for part in message.parts if isinstance(part, Unknown)]
        if any(isinstance(value, dict) and value.get("type") == f"{name}_call" for value in parts):
            return True
        users = [message for message in self.request.messages if message.role == "user"]
        words = joined_text(users[-1].parts)[-_LAST_WORDS:] if users else ""
        told = _TOLD_TO_SEARCH if name == "web_search" and self._is_classic() else _ASKS[name]
        return told.search(words) is not None

    def _tool_search(self, tool: Mapping[str, Json]) -> int:
        """Weigh tool search. Deferred tools cost nothing themselves; the search for them does, until all of them are
        loaded."""
        known = [part.value for message in self.request.messages for part in message.parts if isinstance(part, Unknown)]
        values = (value.get("tools") for value in known if isinstance(value, dict))
        found = [tools for tools in values if isinstance(tools, list)]
        loaded = {str(tool.get("name")) for tools in found for tool in tools if isinstance(tool, dict)}
        deferred = {each.name for each in self.request.tools if each.hosted and each.hosted.get("defer_loading")}
        if tool.get("defer_loading") or deferred <= loaded:
            return 0
        if tool.get("execution") == "client":
            return self.count(dumps(tool)).tokens * 5 // 6
        return _TOOL_SEARCH_DONE if known else _TOOL_SEARCH

    def _render_tool(self, tool: ToolDefinition) -> str:
        return render_tool(tool, titles=self.model not in _WITHOUT_TITLES)

    def _own(self) -> list[ToolDefinition]:
        return [tool for tool in self.request.tools if tool.hosted is None]

    def _tools_framing(self, tools: Sequence[Count]) -> Count:
        """Return the tokens that the namespace and its position add to the tools themselves."""
        if not self._own():
            return ZERO
        each = total(weight for weight, tool in zip(tools, self.request.tools, strict=True) if tool.hosted is None)
        extra = self.frame.tools if self._carrier() else self.frame.tools_alone
        extra -= self.frame.nameless * sum(not tool.description for tool in self._own())
        whole = _shift_count(self._count_added_section(self._carrier(), self._section()), extra)
        name = self._forced_tool_name()
        if name is not None and self.frame.choice is not None:
            whole += Count.exact(self.frame.choice) + self.count(f".{name}")
        own = self._own()
        plain = self.model not in _WITHOUT_TITLES and not self.model.startswith("gpt-3.5")
        described = not self.frame.nameless or all(tool.description for tool in own)
        is_sure = self.frame.tools_sure and plain and described and all(is_familiar(dict(tool.schema)) for tool in own)
        reach = 0 if is_sure else max(3, whole.tokens * 3 // 100)
        return slack(less(whole, each), reach, reach)

    def _section(self) -> str:
        return render_section(map(self._render_tool, self._own()))

    def _carrier(self) -> str:
        """Return the text of the first system message, to which tools and answer format are appended."""
        for message in (*self.request.system, *self.request.messages):
            if message.role in ("system", "developer") and (text := joined_text(message.parts)):
                return text
        return ""

    def _count_added_section(self, before: str, section: str) -> Count:
        """Return the tokens that a section adds after a text; tokens may span the boundary, and only the text's end
        matters."""
        # The last words of a text, cut where every vocabulary begins a new token: at a space between two letters.
        last = before[-400:]
        space = _SPACE_BETWEEN_LETTERS.search(last)
        end = last[space.start() + 1 :] if space and len(before) > len(last) else before
        return less(self.count(f"{end}\n\n{section}"), self.count(end)) if end else self.count(section)

    def _forced_tool_name(self) -> str | None:
        choice, tools = self.request.tool_choice, self._own()
        if choice == "required" and self.frame.forced and len(tools) == 1:
            return tools[0].name
        inner = choice.get("function", choice) if isinstance(choice, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        return name if isinstance(name, str) else None

    def _answer_format(self) -> Count:
        wanted = self.request.output_schema
        inner = wanted.get("json_schema", wanted) if isinstance(wanted, dict) else None
        if not isinstance(inner, dict) or not isinstance(inner.get("schema"), dict):
            return ZERO
        name = str(inner.get("name") or "")
        section = render_answer_format(name, inner.get("description"), inner["schema"])
        before = "\n\n".join(filter(None, (self._carrier(), self._section() if self._own() else "")))
        whole = self._count_added_section(before, section)
        if self._own():
            return slack(whole, 1, 4)
        whole = _shift_count(whole, self.frame.schema if before else self.frame.schema_alone)
        return slack(whole + self.count(name) if self.frame.schema_named else whole, 1, 4)


def _shift_count(count: Count, extra: int) -> Count:
    return count + Count.exact(extra) if extra >= 0 else less(count, Count.exact(-extra))
