"""Token counts of requests to Gemini models.

On AI Studio every turn costs its text and one token, the system instruction being a turn; on Vertex, and for Gemini 1.5
and 2.0 anywhere, only its text. A schema for the answer is free (before 2.5 a `responseSchema` was not).

Content that only Google can see makes a request an estimate: thoughts behind signatures, media whose length is not in
the request, a cache, and what Google's own tools add to the prompt.

Media: images follow `images`. Of other media only the size in bytes is visible here, not the seconds or pages that
Google counts, so those are estimates: 32 tokens a second of audio and 258 a page before Gemini 3, 25 and 530 since
(both as reported on recorded requests). A document that is text is counted as text.

Thoughts: the request contains them encrypted, as an opaque signature of which only the length is visible. Both rules
were fitted to the tokens of recorded requests beyond everything else in them. A made-up signature, as clients send in
place of one they lost, costs nothing.

Tools, calls and responses are written as text before they are counted, in one of three ways:

- As Python, for Gemini 2.5 on AI Studio: a function signature with a docstring, nested objects as dataclasses before
    it, a call as a `print` of the function, a response as a dictionary. This was found by rebuilding the text until its
    count agreed with the reported one, on all of 60 different sets of declarations in recorded requests to AI Studio.
- In braces, from Gemini 3 on at AI Studio, and so Gemma 4: `declaration:name{…}`, keys in order and bare, a special
    token on either side of every string. It agrees with the reported counts of all 36 recorded requests with tools and
    no thoughts.
- As mere words, before Gemini 2.5 and on Vertex: names and descriptions one after another, and a token for each type.

Schemas are OpenAPI with types in capitals or as numbers, or JSON Schema with references. Both are read, and recursive
references are followed to a limited depth.
"""

import re
from base64 import b64decode
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

from ..count import ZERO, Count, CountText, Method, Weight, total
from .images import gemini_image, image_size, split_files

__all__ = [
    "BRACES_KEYWORDS",
    "PYTHON_KEYWORDS",
    "QUOTE",
    "Unrolled",
    "braces",
    "decode_base64",
    "has_lone_enum",
    "is_familiar",
    "items_of",
    "kind_of",
    "names_of",
    "no_thoughts",
    "object_of",
    "python_call",
    "python_declaration",
    "python_response",
    "schema_braces",
    "schema_texts",
    "sealed_thoughts",
    "streamed_thoughts",
    "text_of",
    "value_texts",
    "vertex_thoughts",
    "weigh",
    "weigh_media",
]

_BYTES_A_SECOND = 16_000
"""Bytes a second of audio: the median of recordings (6,000 to 32,000)."""


def decode_base64(text: str) -> bytes:
    """Return the bytes of base64 in either alphabet, padded or not; empty where it is invalid."""
    plain = text.replace("-", "+").replace("_", "/")
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        return b""


def weigh_media(media: Media, version: tuple[int, int], resolution: str | None, count: CountText) -> Count:
    """Weigh a part that is not text, for this version of Gemini, at the requested resolution."""
    if media.kind == "image":
        size = image_size(media.data) if media.data else None
        family = "gemini-3" if version >= (3,) else f"gemini-{version[0]}.{version[1]}"
        return gemini_image(family, size, media.detail or resolution)
    if media.data and (media.media_type or "").startswith("text/"):
        return count(decode_base64(media.data).decode("utf-8", errors="replace"))
    # By the bytes where the request has them; within what was recorded where it has an address.
    data = decode_base64(media.data or "")
    new = version >= (3,)
    if media.kind == "video" or not data:
        low, tokens, high = _UNSEEN[media.kind][new]
        return Count(tokens=tokens, method=Method.ESTIMATED, low=low, high=high)
    if media.kind == "audio":
        return Count.within(max(1.0, len(data) / _BYTES_A_SECOND) * (25 if new else 32), 0.8, Method.ESTIMATED)
    pages = max(1, data.count(b"/Type /Page") - data.count(b"/Type /Pages"))
    return Count.within(pages * (530 if new else 258), 0.9, Method.ESTIMATED)


_UNSEEN = {
    "audio": ((15, 90, 1_200), (10, 60, 900)),
    "video": ((200, 1_300, 20_000), (50, 264, 2_000)),
    "document": ((200, 258, 20_000), (400, 526, 6_000)),
}
"""Least, usual and most tokens of a medium whose length is not in the request, before Gemini 3 and since."""

MOST_SCHEMAS = 4_000
"""Most sub-schemas visited of one tool, so that references cannot multiply without limit."""
_DEPTH = 5
"""Depth to which a recursive schema is unrolled."""
_NUMBERED = ("", "string", "number", "integer", "boolean", "array", "object")
"""The protocol's enumeration of types, which some clients send as numbers."""


def object_of(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def items_of(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def names_of(value: Json) -> list[str]:
    return [str(item) for item in items_of(value)]


def text_of(value: Json) -> str:
    return value if isinstance(value, str) else ""


def kind_of(schema: Mapping[str, Json]) -> str:
    """Return the type in lower case; of a list of types the first that is not null."""
    value = schema.get("type")
    if isinstance(value, list):
        value = next((item for item in value if item != "null"), "")
    if isinstance(value, int):
        return _NUMBERED[value] if 0 < value < len(_NUMBERED) else ""
    return value.lower() if isinstance(value, str) else ""


def is_familiar(schema: Json, keywords: frozenset[str]) -> bool:
    """Return whether a schema uses only these keywords."""
    if isinstance(schema, list):
        return all(is_familiar(item, keywords) for item in schema)
    if not isinstance(schema, dict):
        return True
    named = [value for key in ("properties", "$defs") for value in object_of(schema.get(key)).values()]
    below = [schema.get(key) for key in ("items", "anyOf", "prefixItems")]
    return schema.keys() <= keywords and is_familiar([*named, *below], keywords)


def has_lone_enum(schema: Json) -> bool:
    """Return whether the schema contains an enumeration of one value anywhere."""
    if isinstance(schema, list):
        return any(map(has_lone_enum, schema))
    if not isinstance(schema, dict):
        return False
    return len(items_of(schema.get("enum"))) == 1 or any(map(has_lone_enum, schema.values()))


class Unrolled:
    """The references of one schema, followed as deep as Google follows them."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        self._definitions = {**object_of(schema.get("definitions")), **object_of(schema.get("$defs"))}
        self._open: list[str] = []
        self._steps: Iterator[int] = iter(range(MOST_SCHEMAS))

    def resolve(self, schema: Mapping[str, Json]) -> dict[str, Json]:
        """Return the schema with its reference replaced by the target."""
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return dict(schema)
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**object_of(self._definitions.get(reference.rpartition("/")[2])), **rest}

    def enter(self, schema: Mapping[str, Json]) -> bool:
        """Return whether this schema is to be written out; if so, call `leave` when that is done."""
        reference = schema.get("$ref")
        name = reference if isinstance(reference, str) else ""
        again = bool(name) and name in self._open and sum(map(bool, self._open)) >= _DEPTH
        if again or next(self._steps, None) is None:
            return False
        self._open.append(name)
        return True

    def leave(self) -> None:
        self._open.pop()


_BAND = 0.25


def no_thoughts(signature: str) -> Count:
    """Weigh a signature for models that do not think."""
    del signature
    return ZERO


def streamed_thoughts(signature: str) -> Count:
    """Weigh a signature for Gemini 2.5: thoughts cost something only where they were streamed, which is visible in a
    short first chunk.

    About 34 bytes of each chunk are its seal, and 4.1 bytes of the rest are a token (7 recorded signatures). For bytes
    that are not a signature this is unknown.
    """
    data = decode_base64(signature)
    chunks = list(_chunks(data))
    if not chunks:
        return Count(tokens=0, method=Method.ESTIMATED, low=0, high=200)
    if len(chunks) == 1 or chunks[0] >= 64:
        return ZERO
    return Count.within(max(0, sum(chunks) - 34 * len(chunks)) / 4.1, _BAND, Method.ESTIMATED)


def sealed_thoughts(signature: str) -> Count:
    """Weigh a signature for Gemini 3 and later: 0.277 tokens a byte after the first 79.

    Over 45 recorded requests the median error is 4 % and the largest 34 %.
    """
    data = decode_base64(signature)
    if not data:
        return Count(tokens=0, method=Method.ESTIMATED, low=0, high=2000)
    if data[:1] != b"\x12":
        return ZERO
    return Count.within(max(8.0, _BYTE * (len(data) - _SEAL)), _BAND, Method.ESTIMATED)


def vertex_thoughts(signature: str) -> Count:
    """Weigh a signature on Vertex: nothing on most recorded requests, and at most AI Studio's count for that length."""
    data = decode_base64(signature)
    high = max(0, round(_BYTE * (len(data) - _SEAL))) if data else 600
    return Count(tokens=0, method=Method.ESTIMATED, low=0, high=high)


_BYTE = 0.277
_SEAL = 79


def _chunks(data: bytes) -> Iterator[int]:
    """Yield the lengths of the fields of a message whose only field is number 1, repeated; empty for any other
    bytes."""
    position = 0
    while position < len(data) - 1 and data[position] == 0x0A:
        size = shift = 0
        for byte in data[position + 1 : position + 6]:
            position += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield size
        position += 1 + size


PYTHON_KEYWORDS = frozenset(
    {"type", "properties", "required", "description", "title", "enum", "items", "additionalProperties", "$schema"}
    | {"default", "nullable", "format", "$defs", "$ref", "anyOf", "prefixItems", "pattern", "uniqueItems"}
    | {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
)
"""Keywords of a schema whose writing agreed with the reported counts on every recorded request that used them."""

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
"""Replacements in order: a translation table takes twenty times as long for a long text."""


def python_call(name: str, arguments: Json) -> str:
    inner = ", ".join(f"{key} = {_value(value)}" for key, value in object_of(arguments).items())
    return f"print(default_api.{name}({inner}))"


def python_response(name: str, response: Json) -> str:
    return _value({f"{name}_response": response})


def python_declaration(
    name: str, description: str, schema: Mapping[str, Json], response: Mapping[str, Json] | None = None
) -> str:
    """Return the function, after the dataclasses that its nested objects and its response need."""
    writer = _Writer(schema)
    properties, required = object_of(schema.get("properties")), names_of(schema.get("required"))
    fields = [
        writer.field(key, object_of(value), (name, key), required=key in required) for key, value in properties.items()
    ]
    lines = "".join(f"    {field},\n" for field in fields)
    docstring = writer.docstring(description, "Args", properties)
    answering = _Writer(response or {})
    answer = answering.returned(response, (name, "response")) if response else "dict"
    return "".join((*writer.classes, *answering.classes)) + f"def {name}(\n{lines}) -> {answer}:\n{docstring}"


class _Writer:
    """Writes types, and collects the dataclasses made for them."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        self._unrolled = Unrolled(schema)
        self.classes: list[str] = []

    def field(self, name: str, schema: Mapping[str, Json], path: tuple[str, ...], *, required: bool) -> str:
        whole = self._unrolled.resolve(schema)
        written = self._type(schema, path)
        default = whole.get("default")
        has_default = default is not None and default not in ([], {})
        optional = bool(whole.get("nullable")) or not (required or has_default)
        if optional and not written.endswith("None"):
            written += " | None"
        value = f" = {default!r}" if has_default else "" if required else " = None"
        return f"{name}: {written}{value}"

    def returned(self, schema: Mapping[str, Json], path: tuple[str, ...]) -> str:
        """Return the type of the function's response."""
        return self._type(schema, path)

    def docstring(self, description: str, heading: str, properties: Mapping[str, Json]) -> str:
        wholes = {key: self._unrolled.resolve(object_of(value)) for key, value in properties.items()}
        texts = ((key, text_of(whole.get("description"))) for key, whole in wholes.items())
        lines = "".join(f"    {key}: {_indent(text, 4)}\n" for key, text in texts)
        return f'  """{_indent(description, 2)}\n\n  {heading}:\n{lines}  """\n'

    def _type(self, schema: Mapping[str, Json], path: tuple[str, ...]) -> str:
        if not self._unrolled.enter(schema):
            return "Any"
        written = self._write_type(self._unrolled.resolve(schema), path)
        self._unrolled.leave()
        return written

    def _write_type(self, schema: Mapping[str, Json], path: tuple[str, ...]) -> str:
        choices = items_of(schema.get("anyOf", schema.get("oneOf")))
        if choices:
            shown = (object_of(choice) for choice in choices)
            return " | ".join("None" if one.get("type") == "null" else self._type(one, path) for one in shown)
        if values := items_of(schema.get("enum")):
            return f"Literal[{', '.join(map(repr, values))}]"
        kind = kind_of(schema)
        if kind == "array":
            return f"list[{self._type(object_of(schema.get('items')), path)}]"
        if kind == "object":
            return self._dataclass(schema, path) if schema.get("properties") else "dict[str, Any]"
        return _TYPES.get(kind, "Any")

    def _dataclass(self, schema: Mapping[str, Json], path: tuple[str, ...]) -> str:
        name = "".join(word[:1].upper() + word[1:] for part in path for word in part.split("_"))
        properties, required = object_of(schema["properties"]), names_of(schema.get("required"))
        fields = [
            self.field(key, object_of(value), (*path, key), required=key in required)
            for key, value in properties.items()
        ]
        docstring = self.docstring(text_of(schema.get("description")), "Attributes", properties)
        body = "".join(f"  {field}\n" for field in fields)
        self.classes.append(f"@dataclasses.dataclass(kw_only=True)\nclass {name}:\n{docstring}{body}\n\n")
        return name


def _value(value: Json) -> str:
    if isinstance(value, str):
        for letter, written in _ESCAPES:
            value = value.replace(letter, written)
        return f'"{value}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value(key)}: {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)


def _indent(text: str, width: int) -> str:
    """Return the text with the lines after the first indented, except empty ones."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * width + line if line.strip() else line for line in rest)])


QUOTE = "\uffff"
"""Placeholder in the braces form for the special token that opens or closes a string; a character that no text
contains."""

BRACES_KEYWORDS = frozenset(
    {"type", "properties", "required", "description", "title", "enum", "items", "additionalProperties", "$schema"}
    | {"propertyOrdering"}
)
"""Keywords of a schema whose writing agreed with the reported counts on every recorded request that used them."""

_GEMINI_TOOLS_UNSEEN = frozenset({"$defs", "definitions", "$schema", "$id", "additionalProperties", "default"}) | {
    "propertyOrdering",
    "property_ordering",
}


def braces(value: Json) -> str:
    """Return a value with keys sorted and bare, and strings between two `QUOTE`s."""
    if isinstance(value, str):
        return f"{QUOTE}{value}{QUOTE}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{braces(item)}" for key, item in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(braces, value)) + "]"
    return dumps(value)


def schema_braces(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return a schema as Google stores it before it is written in braces: types in capitals, references resolved."""
    return _normal(schema, Unrolled(schema))


def _normal(schema: Mapping[str, Json], unrolled: Unrolled) -> dict[str, Json]:
    if not unrolled.enter(schema):
        return {}
    found: dict[str, Json] = {}
    whole = unrolled.resolve(schema)
    kinds = whole.get("type")
    if isinstance(kinds, list) and "null" in kinds:
        found["nullable"] = True
    for key, value in whole.items():
        if key not in _GEMINI_TOOLS_UNSEEN and value not in (None, "", [], {}):
            found[key] = kind_of(whole).upper() if key == "type" else _normal_value(key, value, unrolled)
    unrolled.leave()
    return found


def _normal_value(key: str, value: Json, unrolled: Unrolled) -> Json:
    if key == "properties":
        return {name: _normal(object_of(item), unrolled) for name, item in object_of(value).items()}
    if key == "items":
        return _normal(object_of(value), unrolled)
    if key in {"anyOf", "oneOf", "prefixItems"}:
        return [_normal(object_of(item), unrolled) for item in items_of(value)]
    return value


def schema_texts(schema: Mapping[str, Json], *, titles: bool = False) -> Iterator[str]:
    """Yield the words of a schema, and a one-token text for the type of each node."""
    if schema.get("type"):
        yield "1"
    for key in ("title", "format", "description", "default") if titles else ("format", "description", "default"):
        value = schema.get(key)
        if value is not None:
            yield str(value)
    yield from (*names_of(schema.get("enum")), *names_of(schema.get("required")))
    for name, value in object_of(schema.get("properties")).items():
        yield name
        yield from schema_texts(object_of(value), titles=titles)
    choices = schema.get("anyOf", schema.get("any_of"))
    below = (*items_of(choices), *([schema["items"]] if "items" in schema else []))
    for value in below:
        yield from schema_texts(object_of(value), titles=titles)


def value_texts(value: Json) -> Iterator[str]:
    """Yield the words of a call's arguments or of a response; a number is one token."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from value_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from value_texts(item)
    elif isinstance(value, int | float):
        yield "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writing:
    """How one generation of Gemini writes parts other than text, each as texts to be counted."""

    turn: int
    declaration: Callable[[ToolDefinition], Iterator[str]]
    call: Callable[[str, Json], Iterator[str]]
    response: Callable[[str, Json], Iterator[str]]
    marks: int
    """Special tokens around each part."""
    thoughts: Callable[[str], Count]
    """Weighs the thoughts behind a signature."""
    hosted: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens that the use of a tool of Google's usually adds; tools that are not listed usually add nothing."""
    band: float = 0.0
    """The share by which counts may be wrong, where another vocabulary was used occasionally."""
    familiar: frozenset[str] = frozenset()
    """Keywords of a schema whose writing is confirmed; a tool with others is not marked as exact."""


def weigh(request: Request, match: Match, count: CountText) -> Weight:
    # A name without a number is an alias of the newest version.
    found = re.search(r"gemini-(\d+)(?:[.-](\d)(?!\d))?", f"{match.card.id} {match.card.family}")
    major, minor = (int(found[1]), int(found[2] or 0)) if found else (3, 0)
    version = (major, minor)
    scale = _Scale(_writing(match, version), count, request, version)
    # Thoughts before the user's last text or medium are not shown to the model again.
    asked = [
        index
        for index, message in enumerate(request.messages)
        if message.role == "user" and any(isinstance(part, Text | Media) for part in message.parts)
    ]
    recent = asked[-1] if asked and version < (3, 5) else -1
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
"""A cached prefix, which is part of the prompt and not of the request."""
_HOSTED_AT_MOST = 600
_VERTEX = re.compile("vertex|openrouter|zenmux")
"""Vertex, and hosts that forward requests to it: their counts are Vertex's."""
_LARGEST_SEEN = 4_000
"""Tokens of the largest tool in a recorded request; the size from which Google truncates is unknown."""


def _writing(match: Match, version: tuple[int, int]) -> _Writing:
    if "embedding" in match.card.id or _VERTEX.search(match.host or "") or version < (2, 5):
        return replace(_TEXTS, thoughts=vertex_thoughts) if version >= (2, 5) else _TEXTS
    return _PYTHON if version < (3,) else _BRACES


@dataclass(frozen=True, slots=True)
class _Scale:
    """Weighs the parts of one request."""

    writing: _Writing
    count: CountText
    request: Request
    version: tuple[int, int]

    def message(self, message: Message, *, thoughts: bool) -> Count:
        parts = (self._part(part, thoughts=thoughts) for part in message.parts)
        return self._loosely(total(parts) + Count.exact(self.writing.turn))

    def instruction(self, message: Message) -> Count:
        """Weigh the system instruction, which is a turn where it has a role, and else its text alone."""
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
        return Count.within(
            found.tokens, 0.04 if seen else 0.3, Method.CALIBRATED if found.method is Method.EXACT else found.method
        )

    def _is_confirmed(self, tool: ToolDefinition) -> bool:
        """Return whether a tool is written in ways that agreed with the reported counts; as Python, two were a token
        off."""
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
        """Return the sum of the texts, each split at its special tokens, and of those tokens."""
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
                return self._texts(self.writing.call(part.name, _parse_json(part.arguments)))
            case ToolResult():
                return self._result(part)
            case Media():
                return self._media(part)
            case Unknown():
                value, files = split_files(part.value)
                text = dumps(value, ensure_ascii=False)
                return Count.within(self.count(text).tokens, 0.5, Method.ESTIMATED) + total(map(self._media, files))

    def _media(self, media: Media) -> Count:
        resolution = self._config().get("mediaResolution")
        return weigh_media(media, self.version, resolution if isinstance(resolution, str) else None, self.count)

    def _result(self, result: ToolResult) -> Count:
        """Weigh a response: its JSON text, then its media as in any message."""
        has_text = bool(result.parts) and isinstance(result.parts[0], Text)
        first, *rest = result.parts if has_text else (Text("{}"), *result.parts)
        parsed = _parse_json(first.text) if isinstance(first, Text) else {}
        response: Json = parsed if isinstance(parsed, dict) else {"result": parsed}
        # A format may give only the id of the call that a result answers.
        parts = (part for message in self.request.messages for part in message.parts)
        calls = (part.name for part in parts if isinstance(part, ToolCall) and part.id == result.call_id)
        written = self._texts(self.writing.response(result.name or next(calls, ""), response))
        return written + total(self._part(part, thoughts=False) for part in rest)

    def _loosely(self, found: Count) -> Count:
        sure = found.method is Method.EXACT and found.tokens
        return Count.within(found.tokens, self.writing.band) if sure and self.writing.band else found


def _parse_json(text: str) -> Json:
    try:
        return cast("Json", loads(text))
    except ValueError:
        return text


def _python_tool(tool: ToolDefinition) -> Iterator[str]:
    yield python_declaration(tool.name, tool.description or "", tool.schema, _response(tool))


def _response(tool: ToolDefinition) -> dict[str, Json] | None:
    """Return the schema of the function's response, in either spelling."""
    response = tool.extra.get("response") or tool.extra.get("responseJsonSchema")
    return response if isinstance(response, dict) else None


def _braces_tool(tool: ToolDefinition) -> Iterator[str]:
    response = _response(tool)
    fields: dict[str, Json] = {"description": tool.description} if tool.description else {}
    fields |= {"parameters": schema_braces(tool.schema)} if tool.schema else {}
    fields |= {"response": schema_braces(response)} if response is not None else {}
    yield f"declaration:{tool.name}{braces(fields)}"


def _text_tool(tool: ToolDefinition) -> Iterator[str]:
    """Yield the texts of a tool; a schema given as `parametersJsonSchema` is not counted on this path."""
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
