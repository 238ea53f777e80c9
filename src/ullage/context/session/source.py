"""How does a model ask for what was let go?

`recall` as a source of tools. It is there from the first step on, since a list of tools that changes costs a prompt
cache; as long as nothing was let go, it says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import anyio.to_thread

from ullage.errors import InvalidArguments, UnknownTool
from ullage.tool import Call, JsonObject, Listing, Reply, Tool

from .recalled import Recalled

__all__ = ["RECALL", "RecallSource", "Recalling"]

_ROOM = 2_000
"""Tokens of a reply, where nothing is said."""
_LIMIT = 200
"""Passages of a reply."""
RECALL = Tool(
    name="recall",
    description="Search earlier messages and tool results that were let go to make room; replies with them word for "
    "word. An id or a path finds them best.",
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "max_tokens": {"type": "integer"},
            "skip": {"type": "integer", "description": "Passages already seen"},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
)
_KNOWN = ("query", "max_tokens", "skip")


class Recalling(Protocol):
    """Whoever remembers what was let go: a session, or a context that has none."""

    def recall(self, query: str, *, limit: int, room: int, count: Callable[[str], int], skip: int = 0) -> Recalled: ...


@dataclass(frozen=True, slots=True)
class RecallSource:
    """Offers `recall`."""

    memory: Recalling
    count: Callable[[str], int]
    """The tokens of a text, by the one meter. Safe between threads."""
    room: int = _ROOM
    """Tokens of a reply, where nothing is said."""

    async def tools(self) -> Listing:
        return Listing((RECALL,), revision="1")

    async def call(self, call: Call) -> Reply:
        if call.tool != RECALL.name:
            raise UnknownTool(f"no tool is called `{call.tool}`", options=(RECALL.name,))
        asked = _read(call.arguments, self.room)
        recall = partial(self.memory.recall, asked.query, limit=_LIMIT, count=self.count, skip=asked.skip)
        found = await anyio.to_thread.run_sync(partial(recall, room=asked.max_tokens))
        return Reply.text(found.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    query: str
    max_tokens: int
    skip: int


def _read(arguments: JsonObject, room: int) -> _Asked:
    unknown = next((name for name in arguments if name not in _KNOWN), None)
    if unknown is not None:
        raise InvalidArguments(f"`{unknown}` is not known", options=_KNOWN)
    query = arguments.get("query")
    if not isinstance(query, str) or not query.strip():
        raise InvalidArguments("`query` must be a text", suggestion='give {"query": "…"}', options=_KNOWN)
    most, skip = _number(arguments, "max_tokens", room, least=1), _number(arguments, "skip", 0, least=0)
    return _Asked(query=query, max_tokens=most, skip=skip)


def _number(arguments: JsonObject, name: str, otherwise: int, *, least: int) -> int:
    value = arguments.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArguments(
            f"`{name}` must be a whole number from {least} on", suggestion=f"leave it out for {otherwise}"
        )
    return value
