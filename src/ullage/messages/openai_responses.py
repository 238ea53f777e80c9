"""What is in a request to OpenAI's Responses API?

One item of `input` is one message here, in order: a call, its output and a stretch of reasoning each stand alone, as
they do on the wire; the id under which the API keeps a call or a stretch of reasoning stays beside it as `{"id": …}`.
Items the provider made itself (searches, interpreter runs) are kept raw as the assistant's.
"""

from collections.abc import Iterator, Mapping

from ullage.tool import Json

from .lenient import extras, items_of
from .openai_chat import read_tool
from .openai_content import read_arguments, read_content, read_thinking
from .parts import Format, Message, Part, Request, Role, Text, Thinking, ToolCall, ToolDefinition, ToolResult, Unknown

__all__ = ["read", "read_message"]

_ROLES: Mapping[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}
_READ_KEYS = frozenset({"model", "instructions", "input", "tools", "tool_choice", "text"})
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_CALL_KEYS = frozenset({"type", "call_id", "name", "arguments", "input", "status"})
_OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "computer_call_output", "local_shell_call_output"}
)


def read(body: Mapping[str, Json]) -> Request:
    """The request in neutral parts; every key that is not understood goes to `settings`."""
    model, text = body.get("model"), body.get("text")
    return Request(
        format=Format.OPENAI_RESPONSES,
        model=model if isinstance(model, str) else None,
        system=tuple(_read_instructions(body.get("instructions"))),
        messages=tuple(map(read_message, items_of(body.get("input")))),
        tools=tuple(_read_tools(body.get("tools"))),
        tool_choice=body.get("tool_choice"),
        output_schema=text.get("format") if isinstance(text, dict) else None,
        settings=dict(_settings(body)),
    )


def _settings(body: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for key, value in body.items():
        if key not in _READ_KEYS:
            yield key, value
    text = body.get("text")
    rest = {key: value for key, value in text.items() if key != "format"} if isinstance(text, dict) else text
    if rest:
        yield "text", rest


def _read_instructions(instructions: Json) -> Iterator[Message]:
    if isinstance(instructions, str):
        yield Message(role="developer", parts=(Text(instructions),))
    else:
        yield from map(read_message, items_of(instructions))


def _read_tools(tools: Json) -> Iterator[ToolDefinition]:
    yield from map(read_tool, items_of(tools))


def read_message(item: Json) -> Message:
    """One item of a request's `input`."""
    if isinstance(item, str):
        return Message(role="user", parts=(Text(item),))
    if not isinstance(item, dict):
        return Message(role="user", parts=(Unknown(item),))
    kind = item.get("type", "message")
    if kind == "message":
        return _read_said(item)
    if isinstance(kind, str) and kind in _CALLS:
        return Message(role="assistant", parts=tuple(_read_call(item, _CALLS[kind])))
    if isinstance(kind, str) and kind in _OUTPUTS:
        return Message(role="tool", parts=(_read_output(item),))
    if kind == "reasoning":
        return Message(role="assistant", parts=tuple(_read_reasoning(item)))
    return Message(role="assistant", parts=(Unknown(item),))


def _read_said(item: Mapping[str, Json]) -> Message:
    wanted = item.get("role")
    role = _ROLES.get(wanted) if isinstance(wanted, str) else None
    if role is None:
        return Message(role="user", parts=(Unknown(dict(item)),))
    known = frozenset({"type", "id", "role", "content", "status", "phase"})
    return Message(role=role, parts=(*read_content(item.get("content")), *extras(item, known)))


def _read_call(item: Mapping[str, Json], key: str) -> Iterator[Part]:
    name, identity = item.get("name"), item.get("call_id")
    if not isinstance(name, str):
        yield Unknown(dict(item))
        return
    yield ToolCall(
        name=name, arguments=read_arguments(item.get(key)), id=identity if isinstance(identity, str) else None
    )
    yield from extras(item, _CALL_KEYS)


def _read_output(item: Mapping[str, Json]) -> ToolResult:
    call_id, output = item.get("call_id"), item.get("output")
    return ToolResult(
        parts=read_content([output] if isinstance(output, dict) else output),
        call_id=call_id if isinstance(call_id, str) else None,
    )


def _read_reasoning(item: Mapping[str, Json]) -> Iterator[Part]:
    """Summary and content for the reader, and the sealed reasoning the model itself gets back."""
    seal = item.get("encrypted_content")
    shown = (*read_thinking(item.get("summary")), *read_thinking(item.get("content")))
    text = "\n".join(part.text for part in shown if isinstance(part, Thinking))
    yield Thinking(text=text, signature=seal, sealed_as="encrypted") if isinstance(seal, str) else Thinking(text=text)
    yield from (part for part in shown if isinstance(part, Unknown))
    yield from extras(item, frozenset({"type", "summary", "content", "encrypted_content", "status"}))
