"""How do chat templates write a tool and a call?

Each writer makes the text that stands in the prompt. `MARK` stands in it for one special token, and so for a token that
nothing merges with; a run of marks stands for a frame of which only the length is known. Nothing is counted here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from json import dumps, loads
from typing import cast

from ullage.messages import ToolCall, ToolDefinition
from ullage.tool import Json

from .gemini_tools import QUOTE, braces, schema_braces

__all__ = [
    "MARK",
    "bare_tool",
    "braces_call",
    "braces_tool",
    "compact_tool",
    "elements_call",
    "escaped",
    "framed_json",
    "function_json",
    "json_call",
    "lined_call",
    "marked_call",
    "marks",
    "no_tool",
    "quoted_call",
    "spaced",
    "tagged_call",
    "tool_json",
    "tool_line",
    "tool_words",
    "typescript",
]

MARK = QUOTE


def marks(number: int) -> str:
    return MARK * number


def _json(value: Json) -> str:
    return dumps(value, ensure_ascii=False)


def _parsed(text: str) -> Json:
    try:
        return cast("Json", loads(text)) if text else {}
    except ValueError:
        return text


def _fields(call: ToolCall) -> Iterator[tuple[str, str]]:
    """A call's arguments, a text bare and anything else as JSON."""
    arguments = _parsed(call.arguments)
    for name, value in (arguments if isinstance(arguments, dict) else {"": arguments}).items():
        yield name, value if isinstance(value, str) else _json(value)


def spaced(call: ToolCall) -> str:
    """The arguments as `json.dumps` writes them, which is how a template's `tojson` does."""
    return _json(_parsed(call.arguments))


def json_call(call: ToolCall) -> str:
    return f'{{"name": "{call.name}", "arguments": {spaced(call)}}}'


def quoted_call(call: ToolCall) -> str:
    """Qwen before 3.5: the JSON on a line of its own between two special tokens."""
    return f"\n{MARK}\n{json_call(call)}\n{MARK}"


def tagged_call(call: ToolCall) -> str:
    """Qwen since 3.5, and its coder: an element a function, and one an argument."""
    inner = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in _fields(call))
    return f"{MARK}\n<function={call.name}>\n{inner}</function>\n{MARK}"


def lined_call(call: ToolCall) -> str:
    """DeepSeek since 3.2: a frame of 12 tokens, and one of 13 around each argument."""
    lines = (f"{name}{marks(13)}{value}" for name, value in _fields(call))
    return marks(11) + MARK.join((call.name, *lines))


def marked_call(call: ToolCall) -> str:
    """DeepSeek up to 3.1: three marks, the name and the arguments as they came."""
    return f"{marks(3)}{call.name}{call.arguments}"


def braces_call(call: ToolCall) -> str:
    """Gemma since 4, which writes tools as Gemini 3 does."""
    return f"{MARK}call:{call.name}{braces(_parsed(call.arguments))}{MARK}"


def braces_tool(tool: ToolDefinition) -> str:
    fields: dict[str, Json] = {"description": tool.description} if tool.description else {}
    fields |= {"parameters": schema_braces(tool.schema)} if tool.schema else {}
    return f"{MARK}declaration:{tool.name}{braces(fields)}{MARK}"


def _function(tool: ToolDefinition) -> dict[str, Json]:
    described: dict[str, Json] = {} if tool.description is None else {"description": tool.description}
    # Hugging Face's old name for the parameters, `arguments`, is one that no template looks for.
    seen = tool.schema and "arguments" not in tool.extra
    schema: dict[str, Json] = {"parameters": dict(tool.schema)} if seen else {}
    return {"name": tool.name, **described, **schema}


def function_json(tool: ToolDefinition) -> str:
    return _json(_function(tool))


def framed_json(tool: ToolDefinition) -> str:
    """Llama 3 on Groq: compact, in a frame of 16 tokens."""
    return marks(16) + dumps(_function(tool), ensure_ascii=False, separators=(",", ":"))


def no_tool(_: ToolDefinition) -> str:
    """Some templates have no place for tools, and hosts drop them."""
    return ""


def tool_json(tool: ToolDefinition) -> str:
    return _json({"type": "function", "function": _function(tool)})


def tool_line(tool: ToolDefinition) -> str:
    return "\n" + tool_json(tool)


def bare_tool(tool: ToolDefinition) -> str:
    """GLM on Z.ai, which leaves out parameters that are none."""
    return tool_json(tool if tool.schema.get("properties") else replace(tool, schema={}))


def elements_call(call: ToolCall) -> str:
    """GLM: an element a call, and two an argument, each of whose tags is a token."""
    inner = "".join(f"{MARK}{name}{MARK}\n{MARK}{value}{MARK}\n" for name, value in _fields(call))
    return f"\n{MARK}{call.name}\n{inner}{MARK}"


def compact_tool(tool: ToolDefinition) -> str:
    """Ollama, which reads a definition into fields of its own, drops every other, and writes them without spaces."""
    named = tool.schema.get("properties")
    properties: dict[str, Json] = {
        name: _kept(value, ("type", "items", "description", "enum"))
        for name, value in (named if isinstance(named, dict) else {}).items()
    }
    parameters = {**_kept(dict(tool.schema), ("type", "$defs", "items", "required")), "properties": properties}
    described: dict[str, Json] = {"description": tool.description} if tool.description else {}
    function = dumps({"name": tool.name, **described, "parameters": parameters}, separators=(",", ":"))
    return f'\n{{"type": "function", "function": {function}}}'


def _kept(schema: Json, keys: tuple[str, ...]) -> dict[str, Json]:
    return {key: schema[key] for key in keys if schema.get(key)} if isinstance(schema, dict) else {}


def tool_words(tool: ToolDefinition) -> str:
    """Command on Bedrock, where a definition costs little more than its words."""
    properties = tool.schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    return " ".join((tool.name, tool.description or "", *named))


def escaped(writer: Callable[[ToolDefinition], str]) -> Callable[[ToolDefinition], str]:
    """The same writer on hosts whose templates escape what HTML would mistake, as a plain Jinja `tojson` does."""

    def write(tool: ToolDefinition) -> str:
        text = writer(tool)
        for letter, code in _HTML:
            text = text.replace(letter, code)
        return text

    return write


_HTML = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("'", "\\u0027"))


def typescript(tool: ToolDefinition) -> str:
    """gpt-oss: a TypeScript type with a property on each line, as the open `harmony` format has it."""
    properties = tool.schema.get("properties")
    comment = "".join(f"// {line}\n" for line in (tool.description or "").split("\n"))
    if not isinstance(properties, dict) or not properties:
        return f"{comment}type {tool.name} = () => any;\n\n"
    return f"{comment}type {tool.name} = (_: {_shape(tool.schema)}) => any;\n\n"


def _shape(schema: Mapping[str, Json]) -> str:
    properties, required = schema.get("properties"), schema.get("required")
    named = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    lines = (_property(name, value, "" if name in needed else "?") for name, value in named.items())
    return "{\n" + "".join(lines) + "}"


def _property(name: str, value: Json, mark: str) -> str:
    schema = value if isinstance(value, dict) else {}
    comment = f"// {schema['description']}\n" if schema.get("description") else ""
    default = f" // default: {schema['default']}" if schema.get("default") is not None else ""
    return f"{comment}{name}{mark}: {_type(schema)},{default}\n"


def _type(schema: Mapping[str, Json]) -> str:
    values, kind, items = schema.get("enum"), schema.get("type"), schema.get("items")
    choices = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(choices, list):
        return " | ".join(_type(choice) for choice in choices if isinstance(choice, dict))
    if isinstance(values, list):
        return " | ".join(map(_json, values))
    if kind == "array":
        return (_type(items) if isinstance(items, dict) else "any") + "[]"
    if kind == "object" and schema.get("properties"):
        return _shape(schema)
    return "number" if kind == "integer" else kind if isinstance(kind, str) else "any"
