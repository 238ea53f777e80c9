"""Slimming of tool definitions: fewer tokens, the same meaning.

A slimmed schema accepts and refuses exactly the arguments the original does, read by the dialect it declares (2020-12
where it declares none, as the protocol has it). What goes is what tells the model nothing: titles that repeat a name,
assertions everything passes, references that are longer than what they refer to, and all that is meant for clients.
Not decided here: whether a tool is shown at all, and how much of it (`signature`).

No definition takes long, whoever wrote it: a large schema keeps its shape and has only its words looked at, a very
large one passes as it is, and so does a very long description.
"""

from dataclasses import replace

from ullage.tool import JsonObject, Tool

from ..step_budget import StepBudget
from .references import Parts, gather, inline
from .share import share
from .simplify import SHAPE, WORDS, Place, Rule, simplify
from .subschemas import Schema, depth_exceeds, is_plain, is_small
from .wording import spaced, tidy

__all__ = ["STEPS", "slim"]

STEPS = 60_000
"""Schemas looked at within one definition, parts of parts included, before slimming is given up."""

_DEEPEST = 150
"""Nesting beyond which a schema is passed on as it is."""
_ROUNDS = 4
"""A part put in place may let its surroundings be said shorter, and again."""
_LONG = 200_000
"""Characters beyond which a description is passed on as it is."""
_READ = 50_000
"""Characters of a description in which parameters are looked for."""
_LOOKED_THROUGH = 5_000_000
"""Characters read in all for that; where there are too many parameters, none is looked for."""


def slim(tool: Tool, budget: StepBudget | None = None) -> Tool:
    """The tool as the model needs it. Hints, output schema and metadata are for clients: ask the original for them.

    Raises:
        OutOfSteps: The definition takes more steps than the budget has, or than `STEPS` where none is given.
    """
    budget = StepBudget(STEPS) if budget is None else budget
    description = _tidied(tool.description) if tool.description else None
    schema = dict(tool.input_schema)
    place = Place(name=tool.name, whole=_looked_through(description or "", schema), is_root=True)
    return replace(
        tool,
        description=description,
        input_schema=_slim_schema(schema, place, budget),
        title=None if description else tool.title,
        output_schema=None,
        annotations={},
        extra={},
    )


def _tidied(description: str) -> str:
    return tidy(description) if len(description) <= _LONG else description


def _looked_through(description: str, schema: Schema) -> str:
    """The description as parameters are looked for in it."""
    properties = schema.get("properties")
    number = len(properties) if isinstance(properties, dict) else 0
    whole = spaced(description[:_READ])
    return whole if len(whole) * number <= _LOOKED_THROUGH else ""


def _slim_schema(schema: Schema, place: Place, budget: StepBudget) -> JsonObject:
    if depth_exceeds(schema, _DEEPEST) or not is_small(schema, values=12_000, letters=4_000_000):
        return schema
    is_changed = is_small(schema, values=4_000, letters=1_000_000) and is_plain(schema)
    parts = gather(schema, siblings_count="draft-07" not in str(schema.get("$schema"))) if is_changed else None
    if parts is None:
        return _rewritten(schema, place, WORDS, budget)
    parts = Parts({key: value for key, value in parts.root.items() if key != "$schema"}, parts.definitions)
    for _ in range(_ROUNDS):
        before, parts = parts, inline(share(_simplified(parts, place, budget)))
        if parts == before:
            break
    return parts.whole()


def _simplified(parts: Parts, place: Place, budget: StepBudget) -> Parts:
    return Parts(
        _rewritten(parts.root, place, WORDS + SHAPE, budget),
        {name: simplify(body, Place(name=name), WORDS + SHAPE, budget) for name, body in parts.definitions.items()},
    )


def _rewritten(schema: Schema, place: Place, rules: tuple[Rule, ...], budget: StepBudget) -> Schema:
    changed = simplify(schema, place, rules, budget)
    return changed if isinstance(changed, dict) else schema
