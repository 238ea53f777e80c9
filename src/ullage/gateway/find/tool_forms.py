"""The forms in which a tool is shown, and the definitions of Ullage's own tools.

The forms in which a tool is shown to whoever looks for it.

The slimmed definition, the signature, the line and the name, each as the JSON text that stands in a reply. Making them
costs milliseconds a tool and much more for the worst, so they are made once for each definition and kept. How many of
them are shown, `fit` decides; in which thread they are made, `index` does.

The three definitions, written to be short: every request carries them. Their order and their words are fixed, because
prompt caches hang on them.
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
"""Characters shown of a tool whose definition is too complex."""
EDITION = "2"
"""Changes whenever forms are made another way, so that those kept from before are not taken."""


def written(value: Json) -> str:
    """Compact JSON, as it stands in a reply."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """One tool, said at four lengths. Each is JSON: an object first, then strings."""

    definition: str
    signature: str
    line: str
    name: str


def forms_of(tool: Tool, budget: StepBudget | None = None) -> Forms:
    """The forms of a tool. One whose definition is too complex to be slimmed is shown by its name and first words."""
    from ..slim import signature, slim

    try:
        slimmed = slim(tool, budget)
        # A title is kept only where there is no description, and then it is all there is to read.
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
    """Keeps forms between starts, by the hash of a definition."""

    def load(self, hashes: Iterable[str]) -> Mapping[str, JsonObject]:
        """What is kept of these."""
        ...

    def save(self, forms: Mapping[str, JsonObject]) -> None: ...


class FormsKept:
    """The forms of definitions, by their hashes: in memory, and behind that in a cache where there is one."""

    def __init__(self, cache: FormsCache | None = None) -> None:
        self._cache = cache
        self._forms: dict[str, Forms] = {}

    def get(self, key: str) -> Forms | None:
        return self._forms.get(key)

    def make(self, tools: Mapping[str, Tool]) -> Mapping[str, Forms]:
        """The forms of these, made where they are not there yet; may take long, and may run in any thread."""
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
        """Forgets the forms of definitions that are no longer offered."""
        self._forms = {key: self._forms[key] for key in keys if key in self._forms}


_FIELDS = {field.name for field in fields(Forms)}


def _read(said: JsonObject) -> Forms | None:
    """Forms as they were saved; None for what another version may have written."""
    texts = {key: value for key, value in said.items() if isinstance(value, str)}
    return Forms(**texts) if set(texts) == _FIELDS and len(said) == len(texts) else None


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
