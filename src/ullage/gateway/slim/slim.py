"""How does a tool's definition cost the model least, and say the same?

A slimmed schema accepts and refuses exactly the arguments the original does, read by the dialect it declares (2020-12
where it declares none, as the protocol has it). What goes is what tells the model nothing: titles that repeat a name,
assertions everything passes, references that are longer than what they refer to, and all that is meant for clients.
Not decided here: whether a tool is shown at all, and how much of it (`signature`).
"""

from dataclasses import replace

from ullage.tool import JsonObject, Tool

from .references import Parts, gather, inline
from .share import share
from .simplify import SHAPE, WORDS, Place, Rule, simplify
from .subschemas import Schema, depth_exceeds, is_plain
from .wording import tidy

__all__ = ["slim"]

_DEEPEST = 150
"""Nesting beyond which a schema is passed on as it is."""
_ROUNDS = 4
"""A part put in place may let its surroundings be said shorter, and again."""


def slim(tool: Tool) -> Tool:
    """The tool as the model needs it. Hints, output schema and metadata are for clients: ask the original for them."""
    description = tidy(tool.description) if tool.description else None
    return replace(
        tool,
        description=description,
        input_schema=_slim_schema(
            dict(tool.input_schema), Place(name=tool.name, whole=description or "", is_root=True)
        ),
        title=None if description else tool.title,
        output_schema=None,
        annotations={},
        extra={},
    )


def _slim_schema(schema: Schema, place: Place) -> JsonObject:
    if depth_exceeds(schema, _DEEPEST):
        return schema
    parts = gather(schema, siblings_count="draft-07" not in str(schema.get("$schema"))) if is_plain(schema) else None
    if parts is None:
        return _rewritten(schema, place, WORDS)
    parts = Parts({key: value for key, value in parts.root.items() if key != "$schema"}, parts.definitions)
    for _ in range(_ROUNDS):
        before, parts = parts, inline(share(_simplified(parts, place)))
        if parts == before:
            break
    return parts.whole()


def _simplified(parts: Parts, place: Place) -> Parts:
    return Parts(
        _rewritten(parts.root, place, WORDS + SHAPE),
        {name: simplify(body, Place(name=name), WORDS + SHAPE) for name, body in parts.definitions.items()},
    )


def _rewritten(schema: Schema, place: Place, rules: tuple[Rule, ...]) -> Schema:
    changed = simplify(schema, place, rules)
    return changed if isinstance(changed, dict) else schema
