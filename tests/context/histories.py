"""Histories in every format, made of the same few turns and by hand: nothing here depends on our own writers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import dumps
from typing import Any, Literal

from hypothesis import strategies as st

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

FORMATS = tuple(Format)
MODELS = (
    "gpt-4o",
    "gpt-5",
    "claude-sonnet-4-5",
    "claude-opus-4-5",
    "gemini-2.5-pro",
    "gemini-3-pro-preview",
    "llama-3.3-70b",
    "qwen3-32b",
    "deepseek-chat",
    "nobody-has-heard-of-me",
)
SEAL = "EosnCkYICxgCKkBGh3bU1pSSjX" * 12
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
Native = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Something said or done: by the user, by the assistant, or by tools that it called."""

    who: Literal["user", "assistant", "tools"]
    text: str = ""
    image: bool = False
    thinking: bool = False
    calls: int = 0


WORDS = st.sampled_from(
    ("Why?", "The build fails on Windows.", "def f(x):\n    return x", "ölfarben 油彩", '{"rows": [1, 2, 3]}', "a" * 40)
)
USER = st.builds(Turn, who=st.just("user"), text=WORDS, image=st.booleans())
SPOKEN = st.builds(Turn, who=st.just("assistant"), text=WORDS, thinking=st.booleans())
CALLING = st.builds(Turn, who=st.just("tools"), text=WORDS, thinking=st.booleans(), calls=st.integers(1, 3))
TURNS = st.lists(st.one_of(USER, SPOKEN, CALLING, CALLING), min_size=1, max_size=9)


def natives(turns: list[Turn], format: Format) -> list[Any]:  # noqa: A002
    """The messages of all turns; the results of calls follow them one by one, where the format has it so."""
    return [native for number, turn in enumerate(turns) for native in _WRITERS[format](turn, f"c{number}")]


def system_and_tools(format: Format) -> tuple[Any, list[Any]]:  # noqa: A002
    return "You are a careful clerk.", [_TOOLS[format](name) for name in ("files__read", "search")]


def body(format: Format, model: str, system: Any, tools: list[Any], messages: list[Any]) -> dict[str, Any]:  # noqa: A002, ANN401
    """The whole request as it would be sent."""
    if format is Format.OPENAI_CHAT:
        opening = [{"role": "system", "content": system}] if system else []
        return {"model": model, "messages": [*opening, *messages], "tools": tools}
    key, under = _KEYS[format]
    return {"model": model, key: system, under: messages, "tools": tools}


_KEYS = {
    Format.OPENAI_RESPONSES: ("instructions", "input"),
    Format.ANTHROPIC: ("system", "messages"),
    Format.GEMINI: ("systemInstruction", "contents"),
    Format.ULLAGE: ("system", "messages"),
}
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "Where"}}, "required": ["path"]}
_TOOLS: Mapping[Format, Callable[[str], Native]] = {
    Format.OPENAI_CHAT: lambda name: {
        "type": "function",
        "function": {"name": name, "description": "Looks.", "parameters": _SCHEMA},
    },
    Format.OPENAI_RESPONSES: lambda name: {
        "type": "function",
        "name": name,
        "description": "Looks.",
        "parameters": _SCHEMA,
    },
    Format.ANTHROPIC: lambda name: {"name": name, "description": "Looks.", "input_schema": _SCHEMA},
    Format.GEMINI: lambda name: {
        "functionDeclarations": [{"name": name, "description": "Looks.", "parameters": _SCHEMA}]
    },
    Format.ULLAGE: lambda name: {"name": name, "description": "Looks.", "schema": _SCHEMA},
}


def _calls(turn: Turn, mark: str) -> list[tuple[str, str, dict[str, str]]]:
    return [(f"{mark}-{n}", ("search", "files__read")[n % 2], {"path": f"src/{mark}.py"}) for n in range(turn.calls)]


def _chat(turn: Turn, mark: str) -> list[Native]:
    if turn.who == "user":
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
        return [{"role": "user", "content": [{"type": "text", "text": turn.text}, *([image] if turn.image else [])]}]
    said: Native = {"role": "assistant", "content": turn.text}
    if turn.thinking:
        said["reasoning_content"] = "Let me see."
    calls = _calls(turn, mark)
    if calls:
        said["tool_calls"] = [
            {"id": identity, "type": "function", "function": {"name": name, "arguments": dumps(arguments)}}
            for identity, name, arguments in calls
        ]
    return [
        said,
        *(
            {"role": "tool", "tool_call_id": identity, "content": f"{turn.text} {n}"}
            for n, (identity, *_) in enumerate(calls)
        ),
    ]


def _responses(turn: Turn, mark: str) -> list[Native]:
    if turn.who == "user":
        image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
        text = {"type": "input_text", "text": turn.text}
        return [{"type": "message", "role": "user", "content": [text, *([image] if turn.image else [])]}]
    calls = _calls(turn, mark)
    reasoning = {"type": "reasoning", "id": f"rs_{mark}", "summary": [], "encrypted_content": SEAL * 8}
    spoken = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": turn.text}]}
    made = [
        {"type": "function_call", "id": f"fc_{identity}", "call_id": identity, "name": name, "arguments": dumps(given)}
        for identity, name, given in calls
    ]
    results = [
        {"type": "function_call_output", "call_id": identity, "output": f"{turn.text} {n}"}
        for n, (identity, *_) in enumerate(calls)
    ]
    return [*([reasoning] if turn.thinking else []), *([] if calls else [spoken]), *made, *results]


def _anthropic(turn: Turn, mark: str) -> list[Native]:
    text = {"type": "text", "text": turn.text}
    if turn.who == "user":
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        return [{"role": "user", "content": [text, *([{"type": "image", "source": source}] if turn.image else [])]}]
    thinking = {"type": "thinking", "thinking": "Let me see.", "signature": SEAL}
    calls = _calls(turn, mark)
    made = [{"type": "tool_use", "id": identity, "name": name, "input": given} for identity, name, given in calls]
    said = [*([thinking] if turn.thinking else []), text, *made]
    results = [
        {"type": "tool_result", "tool_use_id": identity, "content": f"{turn.text} {n}"}
        for n, (identity, *_) in enumerate(calls)
    ]
    return [{"role": "assistant", "content": said}, *([{"role": "user", "content": results}] if results else [])]


def _gemini(turn: Turn, mark: str) -> list[Native]:
    if turn.who == "user":
        image = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
        return [{"role": "user", "parts": [{"text": turn.text}, *([image] if turn.image else [])]}]
    calls = _calls(turn, mark)
    made: list[Native] = [{"functionCall": {"name": name, "args": given}} for _, name, given in calls]
    said: list[Native] = [{"text": turn.text}, *made]
    if turn.thinking:
        said[-1] = {**said[-1], "thoughtSignature": "EsEC" + SEAL}
    results = [
        {"functionResponse": {"name": name, "response": {"result": f"{turn.text} {n}"}}}
        for n, (_, name, _) in enumerate(calls)
    ]
    return [{"role": "model", "parts": said}, *([{"role": "user", "parts": results}] if results else [])]


def _neutral(turn: Turn, mark: str) -> list[Message]:
    if turn.who == "user":
        image = (Media(kind="image", media_type="image/png", data=PIXEL),) if turn.image else ()
        return [Message(role="user", parts=(Text(turn.text), *image))]
    thinking = (Thinking(text="Let me see.", signature=SEAL),) if turn.thinking else ()
    calls = _calls(turn, mark)
    made: tuple[Part, ...] = tuple(
        ToolCall(id=identity, name=name, arguments=dumps(given)) for identity, name, given in calls
    )
    results = [
        Message(role="tool", parts=(ToolResult(call_id=identity, name=name, parts=(Text(f"{turn.text} {n}"),)),))
        for n, (identity, name, _) in enumerate(calls)
    ]
    return [Message(role="assistant", parts=(*thinking, Text(turn.text), *made)), *results]


_WRITERS: Mapping[Format, Callable[[Turn, str], list[Any]]] = {
    Format.OPENAI_CHAT: _chat,
    Format.OPENAI_RESPONSES: _responses,
    Format.ANTHROPIC: _anthropic,
    Format.GEMINI: _gemini,
    Format.ULLAGE: _neutral,
}
