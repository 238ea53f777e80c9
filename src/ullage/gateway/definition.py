"""What is a tool's definition as text: to a model, to a database, to someone who asks whether it changed?

`definition` is the whole of it as the protocol writes it, and `tool_of` reads that back. `definition_text` is what a
client shows to a model, and the one text by which a definition is weighed. `definition_hash` tells whether two
definitions say the same. Aliases are the gateway's own and no part of a definition. Nothing is weighed or kept here.
"""

import hashlib
import json
from collections.abc import Iterable

from ullage.tool import Json, JsonObject, Tool

__all__ = ["definition", "definition_hash", "definition_text", "revision_of", "tool_of"]

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
