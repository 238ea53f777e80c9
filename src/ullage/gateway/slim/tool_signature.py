"""Renders a tool as a signature on one line.

`github__create_issue(owner: string, title: string, labels?: string[]) — Create a new issue`: enough to choose a
tool, and mostly enough to call it. Everything omitted is marked by `…`, so that the model knows that the full
definition has more.
"""

import json
from dataclasses import dataclass, field, replace

from ullage.tool import Json, Tool

from .schema_walk import Schema, first_sentence, is_small

__all__ = ["one_line", "signature"]

_SENTENCE = 120
"""Most characters of the description."""
_VALUES = 6
"""Most values of an enumeration before `…`."""
_VALUE = 30
"""Most characters of one value."""
_OPTIONAL = 15
"""Most optional parameters before `…`; required ones are all shown."""
_CHOICES = 4
_LEVELS = 2
"""Most levels of nested objects that are expanded."""
_FOLLOWED = 20
"""Most references followed in a chain before `…`."""
_TYPES = 2_000
"""Most types written in all before `…`, since definitions that refer to each other can expand without end."""


def one_line(tool: Tool) -> str:
    """Return a tool's name and the first sentence of its description."""
    return tool.name + _sentence(tool)


def signature(tool: Tool) -> str:
    """Return a tool's name, its parameters with their types, required ones first, and the first sentence."""
    schema = dict(tool.input_schema)
    writer = _Writer(root=schema, levels=_LEVELS)
    return f"{tool.name}({writer.members(writer.resolve(schema))}){_sentence(tool)}"


def _sentence(tool: Tool) -> str:
    sentence = first_sentence(tool.description or tool.title or "", _SENTENCE)
    return f" — {sentence}" if sentence else ""


@dataclass(slots=True)
class _Left:
    """The number of types that may still be written."""

    types: int = _TYPES

    def one_more(self) -> bool:
        self.types -= 1
        return self.types >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """Writes types; `levels` is how many more levels of objects may be expanded."""

    root: Schema
    levels: int
    followed: tuple[str, ...] = ()
    left: _Left = field(default_factory=_Left)

    def members(self, schema: Schema) -> str:
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, dict):
            return "…" if bool(schema.keys() & {"anyOf", "oneOf", "allOf", "patternProperties", "$ref"}) else ""
        wanted = frozenset(each for each in required if isinstance(each, str)) if isinstance(required, list) else ()
        needed = [name for name in properties if name in wanted]
        optional = [name for name in properties if name not in wanted]
        shown = [f"{name}: {self.type(properties[name])}" for name in needed]
        shown += [f"{name}?: {self._given(properties[name])}" for name in optional[:_OPTIONAL]]
        rest = len(optional) - _OPTIONAL
        return ", ".join(shown + ([f"…{rest} more"] if rest > 0 else []))

    def _given(self, schema: Json) -> str:
        """Return the type of an optional parameter without `null`, which adds nothing there."""
        choices = self.choices(schema)
        return "|".join([choice for choice in choices if choice != "null"] or choices)

    def type(self, schema: Json) -> str:
        return "|".join(self.choices(schema))

    def choices(self, schema: Json) -> list[str]:
        if not isinstance(schema, dict):
            return ["any"]
        if not self.left.one_more():
            return ["…"]
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = _find(self.root, reference)
            if target is None or reference in self.followed or len(self.followed) >= _FOLLOWED:
                return ["…"]
            return replace(self, followed=(*self.followed, reference)).choices(target)
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list):
            return _shortened([_value(value) for value in values[: _VALUES + 2]], _VALUES)
        return self._branches(schema) or self._types(schema)

    def resolve(self, schema: Schema) -> Schema:
        """Return the object that the root refers to, if it is only a reference."""
        reference = schema.get("$ref")
        target = _find(self.root, reference) if isinstance(reference, str) else None
        return schema if target is None or "properties" in schema else target

    def _branches(self, schema: Schema) -> list[str]:
        branches = schema.get("anyOf") or schema.get("oneOf")
        if not isinstance(branches, list) or schema.keys() & {"properties", "items"}:
            return []
        return _shortened(list(dict.fromkeys(choice for each in branches for choice in self.choices(each))), _CHOICES)

    def _types(self, schema: Schema) -> list[str]:
        declared = schema.get("type")
        names = declared if isinstance(declared, list) else [declared or _guessed(schema)]
        return [self._named(str(name), schema) for name in names]

    def _named(self, name: str, schema: Schema) -> str:
        if name == "array":
            items = schema.get("items")
            inner = self.choices(items) if isinstance(items, dict) else ["any"]
            return f"{inner[0]}[]" if len(inner) == 1 else f"({'|'.join(inner)})[]"
        if name == "object":
            values = schema.get("additionalProperties")
            if not schema.get("properties"):
                return f"{{[key]: {self.type(values)}}}" if isinstance(values, dict) and values else "object"
            if not self.levels:
                return "{…}"
            return "{" + replace(self, levels=self.levels - 1).members(schema) + "}"
        return name


def _guessed(schema: Schema) -> str:
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "any"


def _shortened(texts: list[str], most: int) -> list[str]:
    """Return the first few and `…`, unless only one would be omitted."""
    return texts if len(texts) <= most + 1 else [*texts[:most], "…"]


def _value(value: Json) -> str:
    if isinstance(value, dict | list) and not is_small(value, values=_VALUE, letters=_VALUE):
        return "{…}" if isinstance(value, dict) else "[…]"
    cut = value[:_VALUE] if isinstance(value, str) else value
    text = json.dumps(cut, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= _VALUE else text[: _VALUE - 1] + "…"


def _find(root: Schema, reference: str) -> Schema | None:
    found: Json = root
    for step in reference.removeprefix("#").split("/")[1:]:
        part = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found if isinstance(found, dict) else None
