"""Shared parts of sources: forwarding, failed replies, pacing, step budgets and definitions.

A source may offer more than tools: resources, prompts, changes. A wrapper that is about calls offers of these just
what the source within it does, no more, so that asking whether it has them is asking the source.

One shape for every failed result (contract U:errors), as text, because some clients show the model nothing else. An
error of the protocol is no result and is not made here.

By whoever made the gateway, in a group that outlives what is run in it. Nothing is started here.

Longer each time, and not at all where he has been calm: some servers say so whenever they are asked, some for each of
many tools. Pauses are reckoned here; whoever waits, waits elsewhere.

Under names with underscores, which are accepted in calls everywhere. Nothing else is changed.

Budget of steps for work on one definition, one set of arguments or one reply.

Servers and models send schemas and values that nobody vouches for, and some take exponential time to walk. Every
recursive function that walks them spends from a `StepBudget`; when it is spent, `OutOfSteps` ends the work. Steps are
counted, never timed, so that the same input always has the same outcome. A step is worth some 10 to 20 microseconds.

`definition` is the whole of it as the protocol writes it, and `tool_of` reads that back. `definition_text` is what a
client shows to a model, and the one text by which a definition is weighed. `definition_hash` tells whether two
definitions say the same. Aliases are the gateway's own and no part of a definition. Nothing is weighed or kept here.

What it said of itself when a connection was opened: its name, its version and its instructions for the model. Nothing
here is believed: figures, rules and caches go by the name in the settings, never by this one.
"""

import hashlib
import json
import logging
import math
import re
from collections.abc import Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from ullage.errors import SourceFailed, UllageError
from ullage.tool import Call, Json, JsonObject, Listing, Reply, Tool, ToolSource

__all__ = [
    "Introduced",
    "Introduction",
    "LimitLog",
    "OutOfSteps",
    "Pacing",
    "Passing",
    "Spawn",
    "StepBudget",
    "Underscored",
    "Work",
    "advised",
    "definition",
    "definition_hash",
    "definition_text",
    "failed",
    "revision_of",
    "tool_of",
]

Inner = TypeVar("Inner")

_PASSED = frozenset(
    {
        *("resources", "templates", "read", "subscribe", "unsubscribe"),
        *("prompts", "prompt", "complete", "set_log_level"),
        *("watch", "close", "introduction", "capabilities"),
        *("view", "find", "members", "failed"),
    }
)


class Passing(Generic[Inner]):
    """For a class that holds a source as `inner`."""

    __slots__ = ()

    inner: Inner

    def __getattr__(self, name: str) -> object:
        if name not in _PASSED:
            raise AttributeError(f"`{type(self).__name__}` has no attribute `{name}`")
        return getattr(self.inner, name)


_AGAIN = "Call again: a server that has ended is started anew."
_CHECK = "It may have been carried out: check before calling again. A server that has ended is then started anew."


def failed(error: UllageError) -> Reply:
    return Reply.text(json.dumps(error.wire(), ensure_ascii=False), meta=error.meta, is_error=True)


def advised(error: UllageError, *, is_read_only: bool) -> UllageError:
    """The error with a word on calling again, where a call was lost with its server and nobody has given any."""
    if not isinstance(error, SourceFailed) or error.suggestion:
        return error
    return SourceFailed(error.message, suggestion=_AGAIN if is_read_only else _CHECK, options=error.options)


Work = Callable[[], Coroutine[Any, Any, None]]
Spawn = Callable[[Work], object]
"""Runs a function in the background, as a task group's `start_soon` does."""

_SHORTEST, _LONGEST = 0.05, 60.0
_QUIET = 1.0
"""Seconds without a question after which one is taken for calm again."""


@dataclass(slots=True, kw_only=True)
class Pacing:
    first: float = _SHORTEST
    """Seconds before the first question after a calm."""
    _pause: float = 0.0
    _finished: float = -math.inf

    def pause(self, now: float) -> float:
        """Seconds to wait before the next question."""
        calm = now - self._finished > max(_QUIET, 4 * self._pause)
        self._pause = self.first if calm else min(max(2 * self._pause, _SHORTEST), _LONGEST)
        return self._pause

    def finished(self, now: float) -> None:
        """A question was answered, or failed."""
        self._finished = now


class OutOfSteps(Exception):
    """The work took more steps than it may."""


class StepBudget:
    """Steps that may still be taken. For one thread."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Raises `OutOfSteps` where fewer are left."""
        self.left -= steps
        if self.left < 0:
            raise OutOfSteps


class LimitLog:
    """Logs what was given up for want of steps, once for each thing and not once for each call."""

    def __init__(self, logger: logging.Logger, most: int = 1_000) -> None:
        self._logger = logger
        self._most = most
        self._said: set[str] = set()

    def warn(self, name: str, text: str) -> None:
        """Logs `text` unless something was logged of `name` before; goes silent after `most` names."""
        if name not in self._said and len(self._said) < self._most:
            self._said.add(name)
            self._logger.warning("%s", text)


_KNOWN = frozenset({"name", "title", "description", "inputSchema", "outputSchema", "annotations"})


def definition(tool: Tool) -> dict[str, Json]:
    """Everything a server said of the tool, unknown keys too; what it did not say is left out."""
    optional: dict[str, Json] = {
        "title": tool.title,
        "description": tool.description,
        "outputSchema": None if tool.output_schema is None else dict(tool.output_schema),
        "annotations": dict(tool.annotations) or None,
    }
    said = {key: value for key, value in optional.items() if value is not None}
    return {**tool.extra, "name": tool.name, **said, "inputSchema": dict(tool.input_schema)}


def tool_of(said: JsonObject) -> Tool:
    """The tool of a definition that `definition` wrote."""
    output = said.get("outputSchema")
    return Tool(
        name=str(said["name"]),
        title=_text(said.get("title")),
        description=_text(said.get("description")),
        input_schema=_object(said.get("inputSchema")),
        output_schema=output if isinstance(output, dict) else None,
        annotations=_object(said.get("annotations")),
        extra={key: value for key, value in said.items() if key not in _KNOWN},
    )


def definition_text(tool: Tool) -> str:
    """Name, description and input schema as compact JSON: what of a definition reaches a model."""
    shown: dict[str, Json] = {"name": tool.name}
    if tool.description is not None:
        shown["description"] = tool.description
    shown["inputSchema"] = dict(tool.input_schema)
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def definition_hash(tool: Tool) -> str:
    """Equal where the whole definitions are equal as JSON values, whatever the order of their keys."""
    return _digest(json.dumps(definition(tool), sort_keys=True, separators=(",", ":")))


def revision_of(hashes: Iterable[str]) -> str:
    """A listing's revision, from the hashes of its definitions in order."""
    return _digest("\n".join(hashes))


def _digest(ascii_text: str) -> str:
    return hashlib.sha256(ascii_text.encode("ascii")).hexdigest()


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    name: str
    version: str | None = None
    title: str | None = None
    instructions: str | None = None
    """What the server wants the model to know of it; shown shortened, never obeyed."""
    capabilities: JsonObject | None = None
    """What it declared to be able to do, as the protocol writes it; None where that was not kept."""


class Introduced(Protocol):
    """A source that can say who it is."""

    def introduction(self) -> Introduction | None:
        """None before the first connection."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Underscored(Passing[ToolSource]):
    inner: ToolSource
    own: Collection[str]
    """The names to be rewritten; other servers' names are theirs."""

    async def tools(self) -> Listing:
        listing = await self.inner.tools()
        taken = {tool.name for tool in listing.tools}
        return Listing(tuple(self._spelt(tool, taken) for tool in listing.tools), f"{listing.revision}:underscored")

    async def call(self, call: Call) -> Reply:
        return await self.inner.call(call)

    def _spelt(self, tool: Tool, taken: Collection[str]) -> Tool:
        """Under its other name, unless another tool has that one: calls by it are that tool's."""
        spelt = re.sub(r"[.-]", "_", tool.name)
        if tool.name not in self.own or spelt in taken:
            return tool
        aliases = tuple(alias for alias in (tool.name, *tool.aliases) if alias != spelt)
        return replace(tool, name=spelt, aliases=aliases)
