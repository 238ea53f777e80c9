"""Shared parts of sources: failed replies, pacing of repeated requests, step budgets and definitions.

A failed call is answered with a result of one format, as text, because some clients show the model nothing else.

Work on schemas and values from servers and models is bounded by a `StepBudget`, since some of them take exponential
time to walk. Steps are counted instead of time, so that the same input always has the same outcome. A step takes some
10 to 20 microseconds.

`definition` writes all of a tool's definition in the protocol's format and `tool_of` reads it back.
`definition_text` is the part that a client shows to a model, and the only text whose tokens are counted.
`definition_hash` is equal for equal definitions. Aliases belong to the gateway and are not part of a definition.
"""

import hashlib
import json
import logging
import math
import re
from collections.abc import Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ullage.errors import SourceFailed, UllageError
from ullage.tool import Json, JsonObject, Listing, Origin, Reply, SourceWrapper, Tool, ToolSource, text_block

__all__ = [
    "LimitLog",
    "OutOfSteps",
    "Pacing",
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

_AGAIN = "Call again: a server that has ended is started anew."
_CHECK = "It may have been carried out: check before calling again. A server that has ended is then started anew."


def failed(error: UllageError) -> Reply:
    """Return the result of a failed call, with the error as JSON text."""
    text = text_block(json.dumps(error.wire(), ensure_ascii=False))
    origin = None if error.tool is None else Origin(*error.tool)
    return Reply(content=(text,), meta=error.meta, is_error=True, error_code=error.code, origin=origin)


def advised(error: UllageError, *, is_read_only: bool) -> UllageError:
    """Return the error, with a suggestion about calling again if a call was lost because its server ended."""
    if not isinstance(error, SourceFailed) or error.suggestion:
        return error
    return SourceFailed(error.message, suggestion=_AGAIN if is_read_only else _CHECK, options=error.options)


Work = Callable[[], Coroutine[Any, Any, None]]
Spawn = Callable[[Work], object]
"""Runs a function in the background, in a task group that outlives the call."""

_SHORTEST, _LONGEST = 0.05, 60.0
_QUIET = 1.0
"""Seconds without a request after which the pause starts over."""


@dataclass(slots=True, kw_only=True)
class Pacing:
    """Growing pauses between repeated requests to a server, such as listing its tools after each change."""

    first: float = _SHORTEST
    """Seconds before the first request after a quiet time."""
    _pause: float = 0.0
    _finished: float = -math.inf

    def pause(self, now: float) -> float:
        """Return the seconds to wait before the next request."""
        is_quiet = now - self._finished > max(_QUIET, 4 * self._pause)
        self._pause = self.first if is_quiet else min(max(2 * self._pause, _SHORTEST), _LONGEST)
        return self._pause

    def finished(self, now: float) -> None:
        """Note the end of a request, successful or not."""
        self._finished = now


class OutOfSteps(Exception):
    """The work took more steps than its budget allows."""


class StepBudget:
    """Steps that may still be taken. Not thread-safe."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take steps from the budget.

        Raises:
            OutOfSteps: Fewer are left.
        """
        self.left -= steps
        if self.left < 0:
            raise OutOfSteps


class LimitLog:
    """Logs work that ran out of steps, once for each name."""

    def __init__(self, logger: logging.Logger, most: int = 1_000) -> None:
        self._logger = logger
        self._most = most
        self._said: set[str] = set()

    def warn(self, name: str, text: str) -> None:
        """Log `text` unless something was logged for `name` before; silent after `most` names."""
        if name not in self._said and len(self._said) < self._most:
            self._said.add(name)
            self._logger.warning("%s", text)


_KNOWN = frozenset({"name", "title", "description", "inputSchema", "outputSchema", "annotations"})


def definition(tool: Tool) -> dict[str, Json]:
    """Return the whole definition in the protocol's format, with unknown keys and without missing ones."""
    optional: dict[str, Json] = {
        "title": tool.title,
        "description": tool.description,
        "outputSchema": None if tool.output_schema is None else dict(tool.output_schema),
        "annotations": dict(tool.annotations) or None,
    }
    said = {key: value for key, value in optional.items() if value is not None}
    return {**tool.extra, "name": tool.name, **said, "inputSchema": dict(tool.input_schema)}


def tool_of(said: JsonObject) -> Tool:
    """Return the tool of a definition that `definition` wrote."""
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
    """Return name, description and input schema as compact JSON: the part of a definition that a model reads."""
    shown: dict[str, Json] = {"name": tool.name}
    if tool.description is not None:
        shown["description"] = tool.description
    shown["inputSchema"] = dict(tool.input_schema)
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def definition_hash(tool: Tool) -> str:
    """Return a hash that is equal for definitions that are equal as JSON values, whatever the order of their keys."""
    return _digest(json.dumps(definition(tool), sort_keys=True, separators=(",", ":")))


def revision_of(hashes: Iterable[str]) -> str:
    """Return a listing's revision, computed from the hashes of its definitions in order."""
    return _digest("\n".join(hashes))


def _digest(ascii_text: str) -> str:
    return hashlib.sha256(ascii_text.encode("ascii")).hexdigest()


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Underscored(SourceWrapper[ToolSource]):
    """A source whose own tools are listed with underscores for dots and hyphens; calls by either name work."""

    inner: ToolSource
    own: Collection[str]
    """The names that are rewritten; names of other servers stay."""

    async def tools(self) -> Listing:
        listing = await self.inner.tools()
        taken = {tool.name for tool in listing.tools}
        return Listing(
            tuple(self._with_underscores(tool, taken) for tool in listing.tools), f"{listing.revision}:underscored"
        )

    def _with_underscores(self, tool: Tool, taken: Collection[str]) -> Tool:
        """Return the tool renamed with underscores, unless another tool already has that name."""
        spelt = re.sub(r"[.-]", "_", tool.name)
        if tool.name not in self.own or spelt in taken:
            return tool
        aliases = tuple(alias for alias in (tool.name, *tool.aliases) if alias != spelt)
        return replace(tool, name=spelt, aliases=aliases)
