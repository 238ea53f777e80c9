"""Validation by jsonschema, for arguments and schemas that the direct check does not decide.

A schema is read in the dialect it declares, 2020-12 by default. Nothing is fetched, and formats are not asserted. If a
schema cannot be read, the call is not refused: the verdict says why nothing was checked, and the server still validates
the arguments itself.

Work is bounded: compiling a schema and every assertion spend from the caller's `StepBudget`, and `OutOfSteps` ends
both. Assertions cost as many steps as they have values to examine, and unbounded ones of jsonschema are replaced: items
are compared by hash, enumerations without writing them as text, and multiples as decimals, so that 19.99 is a multiple
of 0.01.

Regular expressions come from untrusted servers, Python's engine backtracks, and a running match cannot be stopped. So a
pattern is tried only if the number of ways to match it is small: the product of what each of its repetitions and
alternations allows, with nested repetitions refused altogether. A pattern that is not tried is not asserted; the server
validates it.

Servers write schemas by hand. With some, a validator would refuse what the server accepts; with others it would fetch
another document, hang or recurse without end. The meta-schema would find the first kind, but validating against it is
slow; `troubles` looks only for the faults that cause wrong refusals. All other faults raise an error during validation.

jsonschema writes the offending value into every error, also into those of branches that are discarded. For an
argument of 200 kB under a choice of a thousand schemas, that takes most of a second. Values of the `Quiet` types
have a short `repr` and are otherwise unchanged.
"""

import re
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

from jsonschema import Draft3Validator, Draft4Validator, Draft202012Validator, exceptions, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

from ullage.tool import Json, JsonObject

from ..slim.schema_walk import Schema, depth_exceeds
from ..tool_source import OutOfSteps, StepBudget
from .argument_repair import Verdict

__all__ = [
    "LONG_NAME",
    "Keyword",
    "QuietDict",
    "QuietList",
    "Spending",
    "Validators",
    "affordable",
    "careful",
    "compiled",
    "quiet",
    "troubles",
    "undeclared",
    "ways",
]

_LONG = 200
"""Characters above which a string is wrapped."""
_VALUES = 16
"""Values that cost one step to wrap."""


class QuietDict(dict[str, Any]):
    """An object with a short `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "{…}"


class QuietList(list[Any]):
    """An array with a short `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[…]"


class _QuietText(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return f"'{self[:_LONG]}…'"


def quiet(value: Json, budget: StepBudget) -> Any:  # noqa: ANN401 - any JSON
    """Return the value with a short `repr`, whatever its size. Raises `OutOfSteps` if it is too large."""
    if isinstance(value, dict):
        budget.spend(1 + len(value) // _VALUES)
        return QuietDict((key, quiet(member, budget)) for key, member in value.items())
    if isinstance(value, list):
        budget.spend(1 + len(value) // _VALUES)
        return QuietList(quiet(member, budget) for member in value)
    return _QuietText(value) if isinstance(value, str) and len(value) > _LONG else value


_WAYS = 1_000_000
"""Most ways to match that are tried."""
_LONG_PATTERN = 2_000
_ATOMS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""Escapes and classes, which each match one character."""
_QUANTIFIER = re.compile(r"(?<!\()([*+?]|\{(\d*)(,?)(\d*)\})[?+]?")
_GROUP = re.compile(r"\([^()]*\)")
_FLAGS = re.compile(r"\(\?[aiLmsux-]+[:)]")
"""Python's own flags, which JSON Schema lacks; a large class takes long to compile if case is ignored."""
_REPEATED = re.compile(r"[*+{]|\?(?![:=!<])")


@lru_cache(maxsize=4_096)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """Compile a pattern; None if Python cannot read it."""
    if _FLAGS.search(pattern):
        return None
    try:
        with warnings.catch_warnings():
            # Python warns of syntax whose meaning may change, such as `[[:alpha:]]`.
            warnings.simplefilter("error")
            return re.compile(pattern)
    except (re.error, Warning, OverflowError, RecursionError):
        return None


def affordable(pattern: str, length: int) -> bool:
    """Return whether matching the pattern against a text of that length ends soon."""
    return ways(pattern, length) is not None


@lru_cache(maxsize=4_096)
def ways(pattern: str, length: int) -> int | None:
    """Return how many ways there may be to match a text of that length; None if there are too many."""
    if len(pattern) > _LONG_PATTERN:
        return None
    plain = _ATOMS.sub("x", pattern)
    choices = _choices(plain)
    if choices is None:
        return None
    found = choices if plain.startswith("^") and "|" not in plain else choices * max(1, length)
    for quantifier in _QUANTIFIER.finditer(plain):
        whole, least, comma, most = quantifier.groups()
        if whole == "?":
            found *= 2
        elif whole in "*+" or (comma and not most):
            found *= max(1, length)
        elif not comma:
            found *= 1
        else:
            found *= max(1, int(most) - int(least or 0) + 1)
        if found > _WAYS:
            return None
    return found if found <= _WAYS else None


def _choices(plain: str) -> int | None:
    """Return how many ways its alternations allow; None if a group that can itself match in several ways is
    repeated."""
    choices = 1
    while (group := _GROUP.search(plain)) is not None:
        inside = group[0][1:-1].removeprefix("?:")
        choosy = _REPEATED.search(inside) is not None or "|" in inside or "\1" in inside
        if choosy and plain[group.end() : group.end() + 1] in ("*", "+", "{"):
            return None
        choices *= 1 + inside.count("|")
        if choices > _WAYS:
            return None
        plain = plain[: group.start()] + ("\1" if choosy else "x") + plain[group.end() :]
    return choices * (1 + plain.count("|"))


Keyword = Callable[[Any, Any, Any, Any], Any]
LONG_NAME = 200
"""Characters of a property's name above which no pattern is tried and the name counts as matching."""
_KEYWORDS_WAYS = 250
"""Ways to match a pattern that cost one step."""
_ITEMS = 16
"""Items that cost one step to examine."""


_REFERENCE = 4
"""Steps of following a `$ref`, which takes that many times as long as an assertion."""
_DIGITS = 50
"""Binary digits of a number that cost one step to divide."""
_PAIRS = 1_000
"""Pairs that cost one step to compare."""


class Spending:
    """The budget that the assertions of one checker currently spend from."""

    __slots__ = ("budget",)

    def __init__(self) -> None:
        self.budget = StepBudget(0)

    def spend(self, steps: int = 1) -> None:
        self.budget.spend(steps)


def careful(keywords: Mapping[str, Keyword], spending: Spending) -> dict[str, Keyword]:
    """Return the assertions of a dialect, each spending steps, with Ullage's bounded ones in place of the originals."""
    asking = _Asking(spending)
    own: dict[str, Keyword] = {
        "pattern": asking.pattern,
        "patternProperties": asking.named,
        "additionalProperties": asking.additional,
        "uniqueItems": asking.unique,
        "multipleOf": asking.multiple,
        "enum": asking.enum,
        "const": asking.const,
    }
    return {name: _spending(name, own.get(name, keyword), spending) for name, keyword in keywords.items()}


def _spending(name: str, keyword: Keyword, spending: Spending) -> Keyword:
    """Wrap an assertion so that it first spends its cost: one step, and more for the items it iterates itself."""
    base = _REFERENCE if name in ("$ref", "$dynamicRef", "$recursiveRef") else 1
    is_quadratic = name.startswith("unevaluated")

    def tried(validator: Any, value: Any, instance: Any, schema: Any) -> Any:  # noqa: ANN401 — jsonschema's own shape
        steps = base + (len(cast("Any", value)) // _ITEMS if isinstance(value, dict | list | str) else 0)
        if isinstance(instance, dict | list):
            size = len(cast("Any", instance))
            steps += size // _ITEMS
            if is_quadratic:
                # jsonschema searches each member in a list of those already examined.
                steps += size * size // _PAIRS
        spending.spend(steps)
        return keyword(validator, value, instance, schema)

    return tried


class _Asking:
    """Assertions whose cost grows with the number of values they examine."""

    def __init__(self, spending: Spending) -> None:
        self._spend = spending.spend

    def enum(self, _: Any, values: Any, instance: Any, __: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        if not any(self._is_same(value, instance) for value in values):
            yield ValidationError("is not one of the values allowed")

    def const(self, _: Any, value: Any, instance: Any, __: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        if not self._is_same(value, instance):
            yield ValidationError("is not the value allowed")

    def pattern(self, _: Any, pattern: Any, instance: Any, __: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        if isinstance(instance, str) and isinstance(pattern, str) and not self._matches(pattern, instance):
            yield ValidationError(f"does not match the pattern {pattern}")

    def named(self, validator: Any, patterns: Any, instance: Any, _: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        """Validate the values under matching names; values under a name too long to be tried are not validated."""
        for name, member in _members(instance):
            for pattern, schema in _members(patterns) if len(name) <= LONG_NAME else ():
                if self._matches(pattern, name):
                    yield from validator.descend(member, schema, path=name, schema_path=pattern)

    def additional(self, validator: Any, rest: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        strange = [name for name, _ in _members(instance) if name not in known and not self._any(patterns, name)]
        if isinstance(rest, dict):
            for name in strange:
                yield from validator.descend(instance[name], rest, path=name)
        elif not rest and strange:
            yield ValidationError("additional properties are not allowed")

    def unique(self, _: Any, wanted: Any, instance: Any, __: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        if wanted and isinstance(instance, list):
            items = cast("list[object]", instance)
            if len({self._frozen(item) for item in items}) < len(items):
                yield ValidationError("items are not unique")

    def _any(self, patterns: Mapping[str, object], name: str) -> bool:
        return bool(patterns) and (len(name) > LONG_NAME or any(self._matches(pattern, name) for pattern in patterns))

    def _matches(self, pattern: str, text: str) -> bool:
        """Return whether the pattern matches; True also if it is not tried."""
        tries = ways(pattern, len(text))
        if tries is None:
            return True
        self._spend(tries // _KEYWORDS_WAYS)
        expression = compiled(pattern)
        return expression is None or expression.search(text) is not None

    def _is_same(self, one: Any, other: Any) -> bool:  # noqa: ANN401 — any JSON
        """Return whether two values are equal as JSON: 1 equals 1.0, but true does not equal 1."""
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        if isinstance(one, list) and isinstance(other, list):
            items, others = cast("list[object]", one), cast("list[object]", other)
            self._spend(1 + len(items) // _ITEMS)
            return len(items) == len(others) and all(map(self._is_same, items, others))
        if isinstance(one, dict) and isinstance(other, dict):
            mine, its = cast("dict[str, object]", one), cast("dict[str, object]", other)
            self._spend(1 + len(mine) // _ITEMS)
            return mine.keys() == its.keys() and all(self._is_same(member, its[name]) for name, member in mine.items())
        return one == other

    def _frozen(self, value: Any) -> object:  # noqa: ANN401 — any JSON
        """Return a hashable value that is equal only for equal JSON: 1 equals 1.0, but true does not equal 1."""
        if isinstance(value, dict):
            members = cast("dict[str, object]", value)
            self._spend(1 + len(members) // _ITEMS)
            return dict, frozenset((name, self._frozen(member)) for name, member in members.items())
        if isinstance(value, list):
            items = cast("list[object]", value)
            self._spend(1 + len(items) // _ITEMS)
            return list, tuple(self._frozen(item) for item in items)
        return type(value) if isinstance(value, bool) else None, value

    def multiple(self, _: Any, unit: Any, instance: Any, __: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        if isinstance(instance, int | float) and not isinstance(instance, bool):
            # Dividing two numbers of thousands of digits takes as long as hundreds of assertions.
            self._spend(sum(number.bit_length() for number in (instance, unit) if isinstance(number, int)) // _DIGITS)
            if (_exactly(instance) / _exactly(unit)).denominator != 1:
                yield ValidationError(f"is not a multiple of {unit}")


def _members(value: Any) -> tuple[tuple[str, Any], ...]:  # noqa: ANN401 — any JSON
    return tuple(cast("dict[str, Any]", value).items()) if isinstance(value, dict) else ()


def _exactly(number: float) -> Fraction:
    """Return the number as written, not its binary approximation."""
    return Fraction(number) if isinstance(number, int) else Fraction(Decimal(repr(number)))


_DATA = frozenset({"enum", "const", "default", "examples", "example"})
"""Keywords whose values are not schemas."""
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_WORDS = 16
"""Members that cost one step to examine."""
_PATTERN = 30
"""Steps for parsing a pattern."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_types(value: Json) -> bool:
    listed = value if isinstance(value, list) else [value]
    return all(isinstance(each, str) and each in _TYPES for each in listed)


_SHAPES: dict[str, Callable[[Json], bool]] = {
    "type": _are_types,
    "required": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "enum": lambda value: isinstance(value, list),
    **dict.fromkeys(("anyOf", "oneOf", "allOf"), lambda value: isinstance(value, list) and bool(value)),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_number),
}


def troubles(schema: Json, budget: StepBudget, *, is_old: bool, is_root: bool = True) -> Iterator[str]:
    """Yield reasons not to pass the schema to a validator. Drafts 3 and 4 (`is_old`) have their own forms."""
    if not isinstance(schema, dict):
        return
    budget.spend(1 + len(schema) // _WORDS)
    broken = next((key for key, fits in _SHAPES.items() if key in schema and not fits(schema[key])), None)
    if broken is not None and not is_old:
        yield f"the schema's `{broken}` breaks the rules of JSON Schema"
    if any(isinstance(at := schema.get(key), str) and not at.startswith("#") for key in _REFERENCES):
        yield "the schema refers to another document"
    if not is_root and (isinstance(schema.get("$id"), str) or isinstance(schema.get("id"), str)):
        yield "the schema holds another document"
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict):
        budget.spend(_PATTERN * len(patterns))
    if isinstance(patterns, dict) and not all(affordable(each, LONG_NAME) and compiled(each) for each in patterns):
        yield "the schema's patterns of names cannot be read"
    if is_root and _says(schema, "unevaluatedProperties", budget):
        # The validator finds the remaining names by following these two keywords without any limit.
        slow = next((word for word in ("patternProperties", "dependentSchemas") if _says(schema, word, budget)), None)
        if slow is not None:
            yield f"the schema's `{slow}` beside `unevaluatedProperties` may take too long"
    for inner in _inner(schema):
        yield from troubles(inner, budget, is_old=is_old, is_root=False)


def _says(schema: Json, word: str, budget: StepBudget) -> bool:
    if not isinstance(schema, dict):
        return False
    budget.spend(1 + len(schema) // _WORDS)
    return word in schema or any(_says(inner, word, budget) for inner in _inner(schema))


def _inner(schema: dict[str, Json]) -> Iterator[Json]:
    """Yield everything inside that may be a schema, for keywords of any dialect."""
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            yield from value.values()
        elif key not in _DATA:
            yield from value if isinstance(value, list) else [value]


def undeclared(schema: Json, budget: StepBudget, *, is_root: bool = True) -> Any:  # noqa: ANN401 — any JSON
    """Return the schema without keywords that would make a validator change its dialect or base address midway."""
    if isinstance(schema, list):
        budget.spend(1 + len(schema) // _WORDS)
        return QuietList(undeclared(each, budget, is_root=False) for each in schema)
    if not isinstance(schema, dict):
        return schema
    budget.spend(1 + len(schema) // _WORDS)
    return QuietDict(
        (key, quiet(value, budget) if key in _DATA else undeclared(value, budget, is_root=False))
        for key, value in schema.items()
        if not (key == "$schema" and isinstance(value, str)) and not (is_root and key in ("$id", "id"))
    )


_ERROR = 2
"""Steps for comparing an error with others to find the most informative."""
_DEEPEST = 100
_OLD = (Draft3Validator, Draft4Validator)

# Typed here, because jsonschema leaves both without types.
_best_match: Callable[[Iterator[ValidationError]], ValidationError | None] = cast("Any", exceptions).best_match
_extend: Callable[[type[Validator], Mapping[str, Keyword]], type[Validator]] = cast("Any", validators).extend


class Validators:
    """Cache of validators by key. Not thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._spending = Spending()
        self._dialects: dict[type[Validator], type[Validator]] = {}
        self._validators: OrderedDict[str, Validator | str] = OrderedDict()
        """A string says why there is no validator."""

    def check(self, key: str, schema: JsonObject, arguments: Json, budget: StepBudget) -> Verdict:
        """Check arguments as `Checker.check` does."""
        self._spending.budget = budget
        found = self._validators.get(key)
        if found is None:
            found = self._validators[key] = self._compile(dict(schema), budget)
            if len(self._validators) > self._most:
                self._validators.popitem(last=False)
        validator = found
        if isinstance(validator, str):
            return Verdict(unchecked=validator)
        return self._ask(validator, quiet(arguments, budget), budget)

    def _ask(self, validator: Validator, arguments: Json, budget: StepBudget) -> Verdict:
        first: ValidationError | None = None
        try:
            first = next(validator.iter_errors(arguments), None)
            if first is None:
                return Verdict()
            return Verdict(misfit=_best_match(_counted(validator.iter_errors(arguments), budget)))
        except OutOfSteps:
            if first is None:
                raise
            return Verdict(misfit=first)
        except Exception as error:  # noqa: BLE001 — whatever a foreign schema raises, the call is not to blame
            return Verdict(unchecked=f"the schema cannot be read ({type(error).__name__})")

    def _compile(self, schema: Schema, budget: StepBudget) -> Validator | str:
        if depth_exceeds(schema, _DEEPEST):
            return "the schema is nested too deeply"
        # The dialect that the schema declares; a recent one for an unknown dialect.
        known = isinstance(schema.get("$schema"), str)
        declared = validator_for(schema, default=Draft202012Validator) if known else Draft202012Validator
        trouble = next(troubles(schema, budget, is_old=declared in _OLD), None)
        return trouble or self._dialect(declared)(undeclared(schema, budget))

    def _dialect(self, declared: type[Validator]) -> type[Validator]:
        """The dialect with every assertion spending steps."""
        found = self._dialects.get(declared)
        if found is None:
            found = self._dialects[declared] = _extend(declared, careful(declared.VALIDATORS, self._spending))
        return found


def _counted(errors: Iterator[ValidationError], budget: StepBudget) -> Iterator[ValidationError]:
    for error in errors:
        budget.spend(_ERROR)
        yield error
