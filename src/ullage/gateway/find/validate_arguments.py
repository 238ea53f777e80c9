"""Validates a call's arguments against the schema that the server gave for its tool.

Most calls fit a schema of types, properties and enumerations, which is checked here directly. All others are passed
to jsonschema (`schema_validation`), which is imported on first use and reports what is wrong.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from ullage.tool import Json, JsonObject

from ..tool_source import OutOfSteps, StepBudget
from .argument_repair import Verdict

if TYPE_CHECKING:
    from .schema_validation import Validators

__all__ = ["STEPS", "Checker", "Verdict", "is_plain", "plainly_fits"]

STEPS = 50_000
"""Most steps for one set of arguments before it is passed on unvalidated: half a second of work."""
_KEPT = 1_000
"""Most validators kept."""
_DEEPEST = 8
"""Most levels of a schema that are checked here."""
_MOST = 64
"""Most keywords of a schema, and members of its properties, choices and enumerations, that are checked here."""
_STEPS = 500
"""Most steps taken here: a millisecond or two."""
_DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
)
"""Dialects in which the plain keywords have the meaning implemented here."""


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Json], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}
_BOUNDS: Mapping[str, Callable[[Any, Json], bool]] = {
    "minimum": lambda bound, value: not _is_number(value) or value >= bound,
    "maximum": lambda bound, value: not _is_number(value) or value <= bound,
    "minLength": lambda bound, value: not isinstance(value, str) or len(value) >= bound,
    "maxLength": lambda bound, value: not isinstance(value, str) or len(value) <= bound,
    "minItems": lambda bound, value: not isinstance(value, list) or len(value) >= bound,
    "maxItems": lambda bound, value: not isinstance(value, list) or len(value) <= bound,
}
_NOTES = frozenset({"title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly"})
"""Keywords that assert nothing; formats are not asserted."""


_FITS = Verdict()


class Checker:
    """Checks arguments and caches validators by key. Not thread-safe."""

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self._plain: dict[str, bool] = {}
        self._validators: Validators | None = None

    def check(self, key: str, schema: JsonObject, arguments: Json, budget: StepBudget | None = None) -> Verdict:
        """Check arguments within a budget, `STEPS` by default.

        Args:
            key: Identifies the schema: equal keys mean equal schemas.
            schema: The tool's input schema.
            arguments: The arguments to check.
            budget: Steps for the check.

        Raises:
            OutOfSteps: The budget was spent before anything was found wrong.
        """
        if self._is_plain(key, schema) and plainly_fits(schema, arguments):
            return _FITS
        if self._validators is None:
            from .schema_validation import Validators

            self._validators = Validators(self._most)
        return self._validators.check(key, schema, arguments, StepBudget(STEPS) if budget is None else budget)

    def _is_plain(self, key: str, schema: JsonObject) -> bool:
        found = self._plain.get(key)
        if found is None:
            if len(self._plain) >= self._most:
                self._plain.clear()
            found = self._plain[key] = is_plain(schema)
        return found


def is_plain(schema: JsonObject) -> bool:
    """Return whether a schema is valid and uses only the keywords that `plainly_fits` implements."""
    try:
        return _is_plain(dict(schema), 0, StepBudget(_STEPS))
    except OutOfSteps:
        return False


def _is_plain(schema: Json, depth: int, budget: StepBudget) -> bool:
    if not isinstance(schema, dict) or depth > _DEEPEST or len(schema) > _MOST:
        return False
    budget.spend()
    return all(
        word in _NOTES or (word in _SHAPES and _SHAPES[word](said, depth + 1, budget)) for word, said in schema.items()
    )


def _are_plain(schemas: Iterable[Json], depth: int, budget: StepBudget) -> bool:
    return all(_is_plain(one, depth, budget) for one in schemas)


def _is_few(said: Json) -> bool:
    return isinstance(said, list) and 0 < len(said) <= _MOST


def _is_type(said: Json) -> bool:
    return isinstance(said, str) and said in _TYPES


def _are_texts(said: Json) -> bool:
    return isinstance(said, list) and 0 < len(said) <= _MOST and all(isinstance(one, str) for one in said)


def _are_properties(said: Json, depth: int, budget: StepBudget) -> bool:
    return isinstance(said, dict) and len(said) <= _MOST and _are_plain(said.values(), depth, budget)


def _is_bound(said: Json, _depth: int, _budget: StepBudget) -> bool:
    return _is_number(said)


_SHAPES: Mapping[str, Callable[[Any, int, StepBudget], bool]] = {
    "$schema": lambda said, depth, _: depth == 1 and said in _DIALECTS,
    "type": lambda said, _depth, _budget: _is_type(said) or (_is_few(said) and all(map(_is_type, said))),
    "enum": lambda said, _depth, _budget: _are_texts(said),
    "required": lambda said, _depth, _budget: said == [] or _are_texts(said),
    "additionalProperties": lambda said, _depth, _budget: isinstance(said, bool),
    "properties": _are_properties,
    "items": _is_plain,
    "anyOf": lambda said, depth, budget: _is_few(said) and _are_plain(said, depth, budget),
    **dict.fromkeys(_BOUNDS, _is_bound),
}
"""Checks the value of each keyword, at a depth."""


def plainly_fits(schema: JsonObject, value: Json) -> bool:
    """Return whether a value certainly fits a plain schema. False means only that a full validation is needed."""
    try:
        return _fits(schema, value, StepBudget(_STEPS))
    except OutOfSteps:
        return False


def _fits(schema: Mapping[str, Any], value: Json, budget: StepBudget) -> bool:
    budget.spend()
    kind = schema.get("type")
    if kind is not None and not any(_TYPES[one](value) for one in ([kind] if isinstance(kind, str) else kind)):
        return False
    if "enum" in schema and not (isinstance(value, str) and value in schema["enum"]):
        return False
    if "anyOf" in schema and not any(_fits(one, value, budget) for one in schema["anyOf"]):
        return False
    if not _BOUNDS.keys().isdisjoint(schema) and any(
        word in schema and not within(schema[word], value) for word, within in _BOUNDS.items()
    ):
        return False
    if isinstance(value, list):
        items = schema.get("items")
        return items is None or all(_fits(items, one, budget) for one in value)
    return not isinstance(value, dict) or _members_fit(schema, value, budget)


def _members_fit(schema: Mapping[str, Any], value: JsonObject, budget: StepBudget) -> bool:
    properties: Mapping[str, Any] = schema.get("properties", {})
    if not all(name in value for name in schema.get("required", ())):
        return False
    if not schema.get("additionalProperties", True) and not value.keys() <= properties.keys():
        return False
    return all(_fits(properties[name], member, budget) for name, member in value.items() if name in properties)
