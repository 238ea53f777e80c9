"""The error for a caller whose arguments do not fit.

Where and what, in a sentence; the part of the schema that matters, short enough to be read; and the names or values
that would have done. The caller's own values are not repeated: they are known to it, may be long and may be secret.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ullage.errors import InvalidArguments
from ullage.tool import Json, Tool

from ..merge.spelling import nearest
from ..slim.subschemas import Schema, is_small
from .forms import written

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["misfit"]

_FRAGMENT = 800
"""Characters of schema that are shown: some 200 tokens."""
_VALUES = 10
_STRANGERS = 3
"""Unknown names for which the nearest parameters are looked up."""
_KNOWN = 500
"""Parameters among which they are looked up."""
_LETTERS = 100_000
"""Of a part of a schema that may be shown once its words are left out."""
_SAID = 160
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def misfit(tool: Tool, error: "ValidationError") -> InvalidArguments:
    path = _path(error.absolute_path)
    return InvalidArguments(
        f"`{tool.name}` was not called: {_problem(error, path)}",
        suggestion=f"It takes {_fragment(tool, error)}",
        options=_options(error),
    )


def _path(steps: Iterable[str | int]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return _cut(text.removeprefix("."))


def _problem(error: "ValidationError", path: str) -> str:
    place = f"`{path}`" if path else "it"
    value: Any = error.validator_value
    keyword = cast("str | None", error.validator)
    match keyword:
        case "required":
            given = frozenset(_keys(error.instance))
            absent = [name for name in _names(value) if name not in given]
            return f"{_listed(absent)} missing{f' in {place}' if path else ''}"
        case "additionalProperties" | "unevaluatedProperties":
            strange = _strangers(error)
            return f"{_listed(strange)} not {'a parameter' if len(strange) == 1 else 'parameters'} of {place}"
        case "type":
            return f"{place} must be {_either(value)}, not {_kind(error.instance)}"
        case "enum" | "const":
            return f"{place} must be {_either(_allowed(error))}"
        case "anyOf" | "oneOf" | "not" | "if" | "allOf":
            return f"{place} fits none of the forms it may have"
        case "pattern":
            return f"{place} must match {_cut(str(value))}"
        case None:
            return f"{place} is not allowed"
        case _:
            return f"{place} must have {keyword} {_cut(_text(value))}"


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS.items() if isinstance(value, kind)), "null")


def _strangers(error: "ValidationError") -> list[str]:
    known = frozenset(_keys(error.schema.get("properties") if isinstance(error.schema, Mapping) else None))
    return [name for name in _keys(error.instance) if name not in known]


def _options(error: "ValidationError") -> tuple[str, ...]:
    """The names or values that would have done, the nearest first."""
    if error.validator in ("enum", "const"):
        return tuple(_text(value) for value in _allowed(error)[:_VALUES])
    schema = error.schema
    known = _keys(schema.get("properties") if isinstance(schema, Mapping) else None)
    if error.validator == "required":
        given = frozenset(_keys(error.instance))
        return tuple(name for name in _names(error.validator_value) if name not in given)[:_VALUES]
    if error.validator in ("additionalProperties", "unevaluatedProperties"):
        given = frozenset(_keys(error.instance))
        spellings = [(name,) for name in known[:_KNOWN]]
        near = [one for name in _strangers(error)[:_STRANGERS] for one in nearest(name, spellings, most=3)]
        return tuple(dict.fromkeys([*near, *(name for name in known if name not in given)]))[:_VALUES]
    return ()


def _fragment(tool: Tool, error: "ValidationError") -> str:
    """The part that was broken where that is a parameter, else the whole tool in a line."""
    path = _path(error.absolute_path)
    return _shown(path, cast("Json", error.schema)) if path else _cut(_signature(tool), _FRAGMENT)


def _shown(name: str, schema: Json) -> str:
    for said in (schema, _without_words(schema)) if is_small(schema, values=_FRAGMENT, letters=_LETTERS) else ():
        text = f"{name}: {written(said)}"
        if len(text) <= _FRAGMENT:
            return text
    whole: Schema = {"type": "object", "properties": {name: schema}, "required": [name]}
    return _cut(_signature(Tool(name="", input_schema=whole)), _FRAGMENT)


def _without_words(schema: Json) -> Json:
    """Without what explains and does not assert."""
    if isinstance(schema, list):
        return [_without_words(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    silent = ("description", "title", "examples", "default")
    return {key: _without_words(value) for key, value in schema.items() if key not in silent or isinstance(value, dict)}


def _allowed(error: "ValidationError") -> list[Any]:
    value: Any = error.validator_value
    return list(value) if error.validator == "enum" else [value]


def _text(value: Json) -> str:
    """A value that would have done, as far as it is short."""
    if isinstance(value, str):
        return value if len(value) <= _FRAGMENT else _cut(value)
    return written(value) if is_small(value, values=_FRAGMENT, letters=_FRAGMENT) else f"a long {_kind(value)}"


def _either(values: Json) -> str:
    listed = values if isinstance(values, list) else [values]
    shown = [_cut(_text(each)) for each in listed[:_VALUES]]
    return _cut(" or ".join(shown) + (" or …" if len(listed) > _VALUES else ""))


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{_cut(name)}`" for name in names[:_VALUES])
    return f"{shown} {'is' if len(names) == 1 else 'are'}"


def _names(value: object) -> list[str]:
    return [each for each in cast("list[object]", value) if isinstance(each, str)] if isinstance(value, list) else []


def _keys(value: object) -> list[str]:
    return list(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else []


def _cut(text: str, most: int = _SAID) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _signature(tool: Tool) -> str:
    from ..slim import signature  # with all that makes signatures, for calls that go wrong

    return signature(tool)
