"""The forms in which a found tool is shown, and the definitions of Ullage's own tools.

The forms are the slimmed definition, the signature, the line and the name, each as the JSON text used in a reply.
Building them costs milliseconds for a tool and much more for the worst, so they are built once for each definition and
cached. `find_reply.fit` decides how many are shown; `tool_index` chooses the thread in which they are built.

The three definitions of `find_tool`, `call_tool` and `call_tool_write` are written to be short, because every
request carries them. Their order and wording are fixed, because prompt caches depend on them.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Protocol

from ullage.options import FIND_NAMES
from ullage.tool import Json, JsonObject, Tool

from ..slim.schema_walk import first_sentence
from ..tool_source import LimitLog, OutOfSteps, StepBudget, definition_text

__all__ = [
    "CALL",
    "CALL_ANY",
    "CALL_WRITE",
    "EDITION",
    "FIND",
    "NAMES",
    "Forms",
    "FormsCache",
    "FormsKept",
    "find_tools",
    "forms_of",
    "written",
]

_limits = LimitLog(logging.getLogger(__name__))
_SENTENCE = 500
"""Most characters shown of a tool whose definition is too complex."""
EDITION = "2"
"""Edition of the forms; changed whenever they are built differently, so that stored ones are not reused."""


def written(value: Json) -> str:
    """Return compact JSON, as used in a reply."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """A tool at four lengths, each as JSON: an object first, then strings."""

    definition: str
    signature: str
    line: str
    name: str


def forms_of(tool: Tool, budget: StepBudget | None = None) -> Forms:
    """Build the forms of a tool. A tool whose definition is too complex to be slimmed is shown by its name and first
    words."""
    from ..slim import signature, slim

    try:
        slimmed = slim(tool, budget)
        # A title is kept only if there is no description; then it is the only text.
        slimmed = replace(slimmed, description=slimmed.description or slimmed.title)
        return _forms(slimmed, signature(slimmed))
    except (OutOfSteps, RecursionError):
        _limits.warn(
            tool.name, f"the definition of `{tool.name[:80]}` is too complex to be slimmed; it is shown by name"
        )
        description = first_sentence(tool.description or tool.title or "", _SENTENCE)
        plain = Tool(name=tool.name, description=description or None, input_schema={"type": "object"})
        return _forms(plain, f"{tool.name}(…)")


def _forms(slimmed: Tool, signed: str) -> Forms:
    from ..slim import one_line

    return Forms(
        definition=definition_text(slimmed),
        signature=written(signed),
        line=written(one_line(slimmed)),
        name=written(slimmed.name),
    )


class FormsCache(Protocol):
    """Interface of a store of forms, by the hash of a definition."""

    def load(self, hashes: Iterable[str]) -> Mapping[str, JsonObject]:
        """Return the stored forms of these definitions."""
        ...

    def save(self, forms: Mapping[str, JsonObject]) -> None:
        """Store forms."""
        ...


class FormsKept:
    """Cache of forms by the hash of their definition: in memory, backed by a store if there is one."""

    def __init__(self, cache: FormsCache | None = None) -> None:
        self._cache = cache
        self._forms: dict[str, Forms] = {}

    def get(self, key: str) -> Forms | None:
        """Return the forms for a definition's hash, from memory only; None if absent."""
        return self._forms.get(key)

    def make(self, tools: Mapping[str, Tool]) -> Mapping[str, Forms]:
        """Return the forms of these definitions, building missing ones. May take long; may run in any thread."""
        found = {key: forms for key in tools if (forms := self.get(key)) is not None}
        wanted = [key for key in tools if key not in found]
        if self._cache and wanted:
            loaded = self._cache.load(wanted)
            found |= {key: forms for key, said in loaded.items() if (forms := _read(said)) is not None}
        made = {key: forms_of(tool) for key, tool in tools.items() if key not in found}
        found |= made
        self._forms |= found
        if self._cache and made:
            self._cache.save({key: asdict(forms) for key, forms in made.items()})
        return found

    def keep_only(self, keys: Iterable[str]) -> None:
        """Drop the forms of definitions that are no longer offered."""
        self._forms = {key: self._forms[key] for key in keys if key in self._forms}


_FIELDS = {field.name for field in fields(Forms)}


def _read(said: JsonObject) -> Forms | None:
    """Parse stored forms; None if another version wrote them in an unknown format."""
    texts = {key: value for key, value in said.items() if isinstance(value, str)}
    return Forms(**texts) if set(texts) == _FIELDS and len(said) == len(texts) else None


_LOADED: dict[str, Json] = {"_meta": {"anthropic/alwaysLoad": True}}
"""Makes Claude Code load these at once: a deferred tool costs it a search before the first use. No client shows this
to its model."""

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
"""Names reserved for these tools."""


_FOUND: dict[str, Json] = {
    "type": "object",
    "properties": {
        "tools": {"type": "array", "items": {"type": "object"}},
        "more": {"type": "array", "items": {"type": "string"}},
        "token_metrics": {"type": "object"},
    },
    "required": ["tools", "more", "token_metrics"],
}
"""The `outputSchema` of `find_tool`, listed to clients that run programs."""


def find_tools(*, join_calls: bool, is_typed: bool = False) -> tuple[Tool, ...]:
    """Return the tools to list.

    Args:
        join_calls: One `call_tool` for every tool.
        is_typed: With `outputSchema`, where the reply has a fixed structure.
    """
    find = replace(FIND, output_schema=_FOUND) if is_typed else FIND
    return (find, CALL_ANY) if join_calls else (find, CALL, CALL_WRITE)
