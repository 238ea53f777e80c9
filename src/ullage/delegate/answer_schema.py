"""Answers that must fit a JSON Schema.

A provider is told the schema on its wire and in words; what it writes is read and checked here all the same, since few
of them keep to it. Regular expressions of a schema are not run: one that takes for ever would hold up everybody.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from ullage.errors import InvalidArguments
from ullage.tool import Json, JsonObject

from .asking import Unfit
from .strictness import tables_of

__all__ = ["check_schema", "describe_schema", "read_fitting"]

_LARGEST = 20_000
"""Characters of a schema."""
_FENCE = re.compile(r"\A\s*```[a-zA-Z]*\n(.*)\n```\s*\Z", re.DOTALL)
_UNCHECKED = ("pattern", "format")
"""Keywords that are told the model and not checked."""


def check_schema(schema: JsonObject) -> None:
    """Raises `InvalidArguments` for what is no JSON Schema, or one that cannot be checked safely."""
    if len(json.dumps(schema)) > _LARGEST:
        raise InvalidArguments(f"`schema` has more than {_LARGEST:,} characters", suggestion="give a smaller schema")
    for table in tables_of(dict(schema)):
        reference = table.get("$ref", "#")
        if "patternProperties" in table or "$dynamicRef" in table or not str(reference).startswith("#"):
            raise InvalidArguments(
                "`schema` may have neither `patternProperties` nor references to elsewhere",
                suggestion="write the schema out with `properties` and local references",
            )
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InvalidArguments(
            f"`schema` is no JSON Schema: {error.message[:200]}", suggestion="give a JSON Schema of draft 2020-12"
        ) from error


def describe_schema(schema: JsonObject) -> str:
    """The words that ask for it, for providers whose wire does not."""
    written = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Answer with JSON alone, without a fence or a word around it, that fits this JSON Schema: {written}"


def read_fitting(text: str, schema: JsonObject) -> str:
    """The JSON of an answer; raises `Unfit` where it is none, or does not fit."""
    fenced = _FENCE.match(text)
    body = (fenced[1] if fenced else text).strip()
    try:
        value = cast("Json", json.loads(body))
    except (ValueError, RecursionError) as error:
        raise Unfit("it is not JSON") from error
    fault = next(iter(_checker(schema).iter_errors(value)), None)
    if fault is not None:
        place = "/".join(str(step) for step in fault.absolute_path) or "the whole"
        raise Unfit(f"at `{place}` it does not fit the schema: {fault.message[:200]}")
    return body


def _checker(schema: JsonObject) -> Any:  # noqa: ANN401 - of a class that jsonschema makes
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]

    def passes(*_: object) -> Iterator[Any]:
        return iter(())

    checker: Any = extend(Draft202012Validator, dict.fromkeys(_UNCHECKED, passes))  # pyright: ignore[reportUnknownVariableType]
    return cast("Any", checker(schema))
