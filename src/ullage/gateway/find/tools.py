"""What does the model see of Ullage where tools are found and not shown?

The three definitions, written to be short: every request carries them. Their order and their words are fixed, because
prompt caches hang on them.
"""

from ullage.options import FIND_NAMES
from ullage.tool import Json, Tool

__all__ = ["CALL", "CALL_ANY", "CALL_WRITE", "FIND", "NAMES", "find_tools"]

_LOADED: dict[str, Json] = {"_meta": {"anthropic/alwaysLoad": True}}
"""Has Claude Code show these at once: what it defers costs it a search of its own before its first use. No client shows
this to its model."""

FIND = Tool(
    name="find_tool",
    description=(
        "Search the connected servers' tools. Do this first for any task you have no tool for, or with a name from "
        "`more` for its definition. max_tokens limits the reply."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "tool_description": {"type": "string", "description": "[server:] what it should do, or its name"},
            "tool_keywords": {"type": "string"},
            "max_tokens": {"type": "integer"},
        },
        "required": ["tool_description"],
    },
    annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    extra=_LOADED,
)

_CALL_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "server_name": {"type": "string"},
        "tool_name": {"type": "string"},
        "parameters": {"type": "object"},
    },
    "required": ["tool_name", "parameters"],
}

CALL = Tool(
    name="call_tool",
    description="Run a read-only tool that find_tool found; parameters as its inputSchema says.",
    input_schema=_CALL_SCHEMA,
    annotations={"readOnlyHint": True, "openWorldHint": True},
    extra=_LOADED,
)

CALL_WRITE = Tool(
    name="call_tool_write",
    description="Same for tools marked call_tool_write or [write]: they may change things.",
    input_schema=_CALL_SCHEMA,
    annotations={"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    extra=_LOADED,
)

CALL_ANY = Tool(
    name="call_tool",
    description="Run a tool that find_tool found; parameters as its inputSchema says.",
    input_schema=_CALL_SCHEMA,
    annotations={"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    extra=_LOADED,
)

NAMES = FIND_NAMES
"""To be given to no other tool."""


def find_tools(*, join_calls: bool) -> tuple[Tool, ...]:
    return (FIND, CALL_ANY) if join_calls else (FIND, CALL, CALL_WRITE)
