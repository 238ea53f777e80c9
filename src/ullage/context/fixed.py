"""What of a request weighs the same whatever is said in it?

The system prompt, the tools and what the provider adds once: what no compaction can let go. Read here out of what
people give as system prompt and tools; weighed by `weighing`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ullage.messages import Format, Request, plain, read_request
from ullage.tokens import ZERO, Count, Weight, total

__all__ = ["Fixed", "ToolWeight", "fixed_of", "read_fixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWeight:
    name: str
    server: str | None
    """Whose it is, where its name says so: `github` in `github__search` and in `mcp__github__search`."""
    weight: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    system_prompt: Count = ZERO
    """With what the provider adds to every request."""
    tool_definitions: Count = ZERO
    """With what the presence of any tool adds."""
    tools: tuple[ToolWeight, ...] = ()
    """One a definition; beside them the tool definitions weigh what their presence adds."""

    @property
    def total(self) -> Count:
        return self.system_prompt + self.tool_definitions


def read_fixed(system: object, tools: Sequence[object], format: Format) -> Request:  # noqa: A002
    """A request that has nothing but a system prompt and tools, as the format writes them."""
    body = plain({**_SYSTEMS[format](system), "tools": list(tools)})
    return read_request(body, format)


def fixed_of(request: Request, weight: Weight) -> Fixed:
    """Of the weight of such a request; where the format has the system prompt among the messages, of its first."""
    own = weight.messages[: len(request.messages)]
    tools = tuple(
        ToolWeight(name=tool.name, server=_server_of(tool.name), weight=count)
        for tool, count in zip(request.tools, weight.tools, strict=False)
    )
    return Fixed(
        system_prompt=total((weight.framing, weight.system, *own)),
        tool_definitions=total((weight.tools_framing, *weight.tools)),
        tools=tools,
    )


def _chat_system(system: object) -> dict[str, object]:
    """A text, the parts of one, a message, or several."""
    if not system:
        return {"messages": []}
    several = cast("list[object]", system) if isinstance(system, list) else [system]
    if all(map(_is_message, several)):
        return {"messages": several}
    return {"messages": [{"role": "system", "content": system}]}


def _is_message(value: object) -> bool:
    return "role" in value if isinstance(value, Mapping) else hasattr(value, "role")


def _under(key: str, empty: str) -> Callable[[object], dict[str, object]]:
    return lambda system: {key: system or None, empty: []}


_SYSTEMS: Mapping[Format, Callable[[object], dict[str, object]]] = {
    Format.OPENAI_CHAT: _chat_system,
    Format.OPENAI_RESPONSES: _under("instructions", "input"),
    Format.ANTHROPIC: _under("system", "messages"),
    Format.GEMINI: _under("systemInstruction", "contents"),
    Format.ULLAGE: _under("system", "messages"),
}


def _server_of(name: str) -> str | None:
    server, joint, tool = name.removeprefix("mcp__").partition("__")
    return server if joint and server and tool else None
