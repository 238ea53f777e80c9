"""How does OpenAI write tool definitions and answer schemas into the prompt?

Tools become a TypeScript namespace, an answer schema a line of JSON under a heading. Both were inferred from recorded
requests with the token counts OpenAI reported for them, starting from what its open `harmony` format shows. Nothing is
counted here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from json import dumps
from re import compile as pattern

from ullage.messages import ToolDefinition
from ullage.tool import Json

__all__ = ["is_familiar", "render_answer_format", "render_section", "render_tool"]

Schema = Mapping[str, Json]

MOST_SCHEMAS = 20_000
"""Sub-schemas rendered of one tool; the largest tool of 99 public MCP servers needs 9,513."""

DEEPEST = 60
"""Levels of a schema that are looked at."""

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
"""Keywords that OpenAI enforces while sampling and does not show the model."""


def render_section(tools: Iterable[str]) -> str:
    """The whole namespace, as it stands in the prompt, from the texts of its tools."""
    body = "".join(f"{tool}\n\n" for tool in tools)
    return f"Tools\n\n## functions\n\nnamespace functions {{\n\n{body}}} // namespace functions"


def render_tool(tool: ToolDefinition, *, titles: bool = True) -> str:
    """One tool as a TypeScript type; `titles` is off for the models of 2023, which were not shown them."""
    scope = _Scope(definitions=_definitions(tool.schema), titles=titles)
    shape = scope.shape(tool.schema) if _mapping(tool.schema.get("properties")) else None
    signature = f"(_: {shape})" if shape else "()"
    return "\n".join((*_comment(tool.description), f"type {tool.name} = {signature} => any;"))


def render_answer_format(name: str, description: Json, schema: Json) -> str:
    """The section that shows a `json_schema` answer format."""
    body = dumps(_shown(schema), separators=(",", ":"))
    return "\n\n".join(("# Response Formats", f"## {name}", "\n".join((*_comment(description), body))))


def is_familiar(schema: Json, depth: int = 0) -> bool:
    """Whether a schema uses only keywords whose rendering is confirmed."""
    if not isinstance(schema, dict):
        return schema is None
    named = [value for key in ("properties", "$defs") for value in _mapping(schema.get(key)).values()]
    inner = [*named, *([schema["items"]] if "items" in schema else [])]
    plain = schema.keys() <= _FAMILIAR and not isinstance(schema.get("type"), list)
    return plain and depth < DEEPEST and all(is_familiar(each, depth + 1) for each in inner)


def _shown(schema: Json, depth: int = 0, *, named: bool = False) -> Json:
    """A schema without what is enforced; `named` for the maps whose keys are names and not keywords."""
    if isinstance(schema, list):
        return [_shown(item, depth + 1) for item in schema] if depth < DEEPEST else []
    if not isinstance(schema, dict) or depth >= DEEPEST:
        return None if isinstance(schema, dict) else schema
    kept = ((key, value) for key, value in schema.items() if named or key not in _ENFORCED)
    maps = () if named else ("properties", "$defs", "definitions")
    return {key: _shown(value, depth + 1, named=key in maps) for key, value in kept}


def _comment(text: Json) -> list[str]:
    """Each line that is not blank, stripped, as a comment; a first line is one even if it is blank."""
    lines = text.split("\n") if isinstance(text, str) and text.strip() else []
    first = ["// "] if lines and not lines[0].strip() else []
    return first + [f"// {line.strip()}" for line in lines if line.strip()]


def _mapping(value: Json) -> Schema:
    return value if isinstance(value, dict) else {}


def _definitions(schema: Schema) -> Schema:
    return {**_mapping(schema.get("definitions")), **_mapping(schema.get("$defs"))}


def _literal(value: Json) -> str:
    return dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """What a schema's rendering depends on besides the schema itself."""

    definitions: Schema
    titles: bool
    open: frozenset[str] = field(default_factory=frozenset[str])
    """References being followed, so that a schema that contains itself ends."""
    depth: int = 0
    steps: Iterator[int] = field(default_factory=lambda: iter(range(MOST_SCHEMAS)))
    """What is left of the sub-schemas one tool may have, so that references cannot multiply without end."""

    def shape(self, schema: Schema) -> str:
        """An object, with its own comments above it."""
        return "\n".join((*self.comments(schema), self.object(schema)))

    def resolve(self, schema: Json) -> tuple["_Scope", Schema]:
        """The schema with its reference followed and a list of types written as a union."""
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
        """The comments above each property, its text, and the comment after it."""
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
