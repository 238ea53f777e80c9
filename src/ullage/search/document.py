"""What of a tool can be searched?

A document is the text of one tool, field by field. What a field weighs, the index knows; how it becomes terms, `words`.
Nothing here fails on a schema that is broken: what cannot be read is not searched.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ullage.tool import Json, JsonObject, Tool

__all__ = ["Document", "Field", "document_of"]

_DEPTH = 3
"""How far into nested objects and lists parameters are read. Beyond it lies detail that no query names."""
_PARAMETERS = 200
"""Read from one tool at the most, so that no server can make the index dear."""
_LONG = 20_000
"""Characters read from one field; the longest description of a real tool is far below."""


class Field(Enum):
    """The fields of a document, in the order in which they are indexed."""

    SERVER = "server"
    NAME = "name"
    TITLE = "title"
    DESCRIPTION = "description"
    PARAMETER_NAMES = "parameter names"
    PARAMETER_DESCRIPTIONS = "parameter descriptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The text of one tool. Documents with equal ids are the same document, one newer than the other."""

    id: str
    name: str
    server: str = ""
    title: str = ""
    description: str = ""
    parameter_names: tuple[str, ...] = ()
    parameter_descriptions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names that it goes by, such as the one it is listed under. Known when asked for, not searched for words."""

    def texts(self) -> tuple[str, ...]:
        """One text a field, in the order of `Field`."""
        return tuple(
            text[:_LONG]
            for text in (
                self.server,
                self.name,
                self.title,
                self.description,
                " ".join(self.parameter_names),
                "\n".join(self.parameter_descriptions),
            )
        )


def document_of(tool: "Tool", *, server: str = "", document_id: str | None = None) -> Document:
    """The document of a tool; its id is the tool's name unless another is given."""
    parameters = list(_first(_parameters(tool.input_schema, _DEPTH)))
    return Document(
        id=tool.name if document_id is None else document_id,
        name=tool.name,
        server=server,
        title=tool.title or "",
        description=tool.description or "",
        parameter_names=tuple(name for name, _ in parameters),
        parameter_descriptions=tuple(text for _, text in parameters if text),
        aliases=tool.aliases,
    )


def _first(parameters: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for _, parameter in zip(range(_PARAMETERS), parameters, strict=False):
        yield parameter


def _parameters(schema: "JsonObject", depth: int) -> Iterator[tuple[str, str]]:
    """Name and description of each parameter, an object's before those inside it."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not depth:
        return
    for name, inner in properties.items():
        yield name, _description(inner)
        yield from _inside(inner, depth - 1)


def _inside(schema: "Json", depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(schema, dict):
        yield from _parameters(schema, depth)
        items = schema.get("items")
        if isinstance(items, dict):
            yield from _parameters(items, depth)


def _description(schema: "Json") -> str:
    text = schema.get("description") if isinstance(schema, dict) else None
    return text if isinstance(text, str) else ""
