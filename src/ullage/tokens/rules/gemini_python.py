"""How is Gemini 2.5 shown tools, calls and responses?

As Python: a function signature with a docstring, nested objects as dataclasses before it, a call as a `print` of the
function, a response as a dictionary. Found by rebuilding the text until its count agreed with the reported one, on all
of 60 different sets of declarations in recorded requests to AI Studio. Nothing is counted here.
"""

from collections.abc import Mapping

from ullage.tool import Json

from .gemini_schema import Unrolled, items_of, kind_of, names_of, object_of, text_of

__all__ = ["PYTHON_KEYWORDS", "python_call", "python_declaration", "python_response"]

PYTHON_KEYWORDS = frozenset(
    {"type", "properties", "required", "description", "title", "enum", "items", "additionalProperties", "$schema"}
    | {"default", "nullable", "format", "$defs", "$ref", "anyOf", "prefixItems", "pattern", "uniqueItems"}
    | {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
)
"""Keywords of a schema whose writing agreed with the reported counts on every recorded request that used them."""

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
"""One after the other, the first first: a table of letters takes twenty times as long for a long text."""


def python_call(name: str, arguments: Json) -> str:
    inner = ", ".join(f"{key} = {_value(value)}" for key, value in object_of(arguments).items())
    return f"print(default_api.{name}({inner}))"


def python_response(name: str, response: Json) -> str:
    return _value({f"{name}_response": response})


def python_declaration(
    name: str, description: str, schema: Mapping[str, Json], response: Mapping[str, Json] | None = None
) -> str:
    """The function, after the dataclasses that its nested objects and its response need."""
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
    """Writes types, and keeps the dataclasses that it had to make for them."""

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
        """The type of what the function answers with."""
        return self._type(schema, path)

    def docstring(self, description: str, heading: str, properties: Mapping[str, Json]) -> str:
        wholes = {key: self._unrolled.resolve(object_of(value)) for key, value in properties.items()}
        texts = ((key, text_of(whole.get("description"))) for key, whole in wholes.items())
        lines = "".join(f"    {key}: {_indent(text, 4)}\n" for key, text in texts)
        return f'  """{_indent(description, 2)}\n\n  {heading}:\n{lines}  """\n'

    def _type(self, schema: Mapping[str, Json], path: tuple[str, ...]) -> str:
        if not self._unrolled.enter(schema):
            return "Any"
        written = self._written(self._unrolled.resolve(schema), path)
        self._unrolled.leave()
        return written

    def _written(self, schema: Mapping[str, Json], path: tuple[str, ...]) -> str:
        choices = items_of(schema.get("anyOf", schema.get("oneOf")))
        if choices:
            return " | ".join(self._choice(object_of(choice), path) for choice in choices)
        if values := items_of(schema.get("enum")):
            return f"Literal[{', '.join(map(repr, values))}]"
        kind = kind_of(schema)
        if kind == "array":
            return f"list[{self._type(object_of(schema.get('items')), path)}]"
        if kind == "object":
            return self._dataclass(schema, path) if schema.get("properties") else "dict[str, Any]"
        return _TYPES.get(kind, "Any")

    def _choice(self, schema: Mapping[str, Json], path: tuple[str, ...]) -> str:
        return "None" if schema.get("type") == "null" else self._type(schema, path)

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
        return f'"{_escaped(value)}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value(key)}: {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)


def _escaped(text: str) -> str:
    for letter, written in _ESCAPES:
        text = text.replace(letter, written)
    return text


def _indent(text: str, width: int) -> str:
    """The lines after the first, moved in; an empty line stays empty."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * width + line if line.strip() else line for line in rest)])
