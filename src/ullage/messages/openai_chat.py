"""What is in a request to OpenAI's chat completions, or to anyone who copied them?

The older shapes of the same vendor are read here too: `functions`, completions (`prompt`) and embeddings (`input`).
Nothing is checked and nothing is dropped: a role, part or tool of unknown shape is kept raw.
"""

from collections.abc import Iterator, Mapping

from ullage.tool import Json

from .lenient import extras, items_of, text_of
from .openai_content import read_arguments, read_content, read_thinking
from .parts import Format, Message, Part, Request, Role, Text, ToolCall, ToolDefinition, ToolResult, Unknown

__all__ = ["read", "read_message", "read_tool"]

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_SCHEMAS = ("parameters", "arguments", "input_schema", "inputSchema")
"""Where a definition has its schema, in the spellings of OpenAI, Anthropic and MCP."""
_READ_KEYS = frozenset(
    {"model", "messages", "prompt", "input", "tools", "functions", "tool_choice", "function_call", "response_format"}
)
_MESSAGE_KEYS = frozenset(
    {
        *("role", "content", "name", "refusal", "tool_calls", "function_call", "tool_call_id", "tool_name"),
        *("thinking", "reasoning_content", "reasoning", "annotations", "prefix", "usage"),
    }
)


def read(body: Mapping[str, Json]) -> Request:
    """The request in neutral parts; every key that is not understood goes to `settings`."""
    model = body.get("model")
    tools = (*items_of(body.get("tools")), *items_of(body.get("functions")))
    return Request(
        format=Format.OPENAI_CHAT,
        model=model if isinstance(model, str) else None,
        messages=(*map(read_message, items_of(body.get("messages"))), *_bare_texts(body)),
        tools=tuple(map(read_tool, tools)),
        tool_choice=body.get("tool_choice", body.get("function_call")),
        output_schema=body.get("response_format"),
        settings={key: value for key, value in body.items() if key not in _READ_KEYS} | _completion(body),
    )


def _completion(body: Mapping[str, Json]) -> dict[str, Json]:
    """A mark that the texts are to be continued, and not messages to be answered."""
    return {"prompt": True} if "prompt" in body and "messages" not in body else {}


def read_tool(tool: Json) -> ToolDefinition:
    """A definition in either of OpenAI's spellings; one that is no plain function keeps its raw form in `hosted`.

    The schema may stand under Anthropic's or MCP's key: clients pass on definitions of other makers.
    """
    if not isinstance(tool, dict):
        return ToolDefinition(name="", hosted={"tool": tool})
    function = tool.get("function", tool)
    kind = tool.get("type", "function")
    if kind != "function" or not isinstance(function, dict) or tool.get("defer_loading"):
        return ToolDefinition(name=text_of(tool.get("name", kind)), hosted=tool)
    description, strict = function.get("description"), function.get("strict")
    schema = next((function[key] for key in _SCHEMAS if key in function), None)
    if not isinstance(description, str | None) or not isinstance(schema, dict | None):
        return ToolDefinition(name=text_of(function.get("name")), hosted=tool)
    return ToolDefinition(
        name=text_of(function.get("name")),
        description=description,
        schema=schema or {},
        strict=strict if isinstance(strict, bool) else None,
        extra={"arguments": schema} if schema and "parameters" not in function else {},
    )


def _bare_texts(body: Mapping[str, Json]) -> Iterator[Message]:
    """The texts of a completion or of an embedding: they have no role, so each is a user's."""
    for text in (*items_of(body.get("prompt")), *items_of(body.get("input"))):
        yield Message(role="user", parts=(Text(text) if isinstance(text, str) else Unknown(text),))


def read_message(message: Json) -> Message:
    """One of a request's `messages`."""
    role = _ROLES.get(text_of(message.get("role"))) if isinstance(message, dict) else None
    if not isinstance(message, dict) or role is None:
        return Message(role="user", parts=(Unknown(message),))
    name = message.get("name")
    if role == "tool":
        return Message(role="tool", parts=(_read_result(message), *extras(message, _MESSAGE_KEYS)))
    return Message(role=role, parts=tuple(_read_parts(message)), name=name if isinstance(name, str) else None)


def _read_parts(message: Mapping[str, Json]) -> Iterator[Part]:
    for key in ("reasoning_content", "reasoning", "thinking"):
        yield from read_thinking(message.get(key))
    yield from read_content(message.get("content"))
    refusal = message.get("refusal")
    if refusal:
        yield Text(refusal) if isinstance(refusal, str) else Unknown({"refusal": refusal})
    for call in (*items_of(message.get("tool_calls")), *items_of(message.get("function_call"))):
        yield from _read_call(call)
    yield from extras(message, _MESSAGE_KEYS)


def _read_call(call: Json) -> Iterator[Part]:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        yield Unknown(call)
        return
    identity = call.get("id")
    yield ToolCall(
        name=text_of(function["name"]),
        arguments=read_arguments(function.get("arguments")),
        id=identity if isinstance(identity, str) else None,
    )
    yield from extras(call, frozenset({"id", "type", "index", "function", "name", "arguments"}))


def _read_result(message: Mapping[str, Json]) -> ToolResult:
    call_id, name = message.get("tool_call_id"), message.get("name", message.get("tool_name"))
    return ToolResult(
        parts=read_content(message.get("content")),
        call_id=call_id if isinstance(call_id, str) else None,
        name=name if isinstance(name, str) else None,
    )
