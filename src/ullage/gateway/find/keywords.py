"""Assertions of JSON Schema with a cost in steps, and safe versions of those that jsonschema runs without bound.

Patterns are tried only where they end soon, items are compared by hash, enumerations without writing them out, and
multiples in decimals as they are written: 19.99 is a multiple of 0.01. Every assertion spends steps, as many as it has
to look at.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from jsonschema.exceptions import ValidationError

from ..step_budget import StepBudget
from .patterns import compiled, ways

__all__ = ["LONG_NAME", "Keyword", "Spending", "careful"]

Keyword = Callable[[Any, Any, Any, Any], Any]
LONG_NAME = 200
"""Letters of a property's name beyond which no pattern of names is tried, and the name is taken to match."""
_WAYS = 250
"""To match a pattern, tried in the time of one assertion."""
_ITEMS = 16
"""Looked at in the time of one assertion."""


_REFERENCE = 4
"""Steps of following a `$ref`, which takes that much longer than an assertion."""
_DIGITS = 50
"""Binary digits of a number that is divided in the time of one assertion."""
_PAIRS = 1_000
"""Pairs compared in the time of one assertion."""


class Spending:
    """The budget that the assertions of one checker spend at the moment."""

    __slots__ = ("budget",)

    def __init__(self) -> None:
        self.budget = StepBudget(0)

    def spend(self, steps: int = 1) -> None:
        self.budget.spend(steps)


def careful(keywords: Mapping[str, Keyword], spending: Spending) -> dict[str, Keyword]:
    """The assertions of a dialect, each spending steps, and with ours in place of those that it has."""
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
    """The assertion after its cost is paid: one step, and more for what it goes through without asking anything."""
    base = _REFERENCE if name in ("$ref", "$dynamicRef", "$recursiveRef") else 1
    is_quadratic = name.startswith("unevaluated")

    def tried(validator: Any, value: Any, instance: Any, schema: Any) -> Any:  # noqa: ANN401 — jsonschema's own shape
        steps = base + (len(cast("Any", value)) // _ITEMS if isinstance(value, dict | list | str) else 0)
        if isinstance(instance, dict | list):
            size = len(cast("Any", instance))
            steps += size // _ITEMS
            if is_quadratic:
                # jsonschema looks up each member in a list of those that others have looked at.
                steps += size * size // _PAIRS
        spending.spend(steps)
        return keyword(validator, value, instance, schema)

    return tried


class _Asking:
    """The assertions that spend more the more they have to look at."""

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
        """What stands under names that match; under a name too long to be tried, nothing is asked."""
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
        """True also where the pattern is not tried."""
        tries = ways(pattern, len(text))
        if tries is None:
            return True
        self._spend(tries // _WAYS)
        expression = compiled(pattern)
        return expression is None or expression.search(text) is not None

    def _is_same(self, one: Any, other: Any) -> bool:  # noqa: ANN401 — any JSON
        """Whether two values are equal as JSON: 1 is 1.0, and true is not 1."""
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
        """Equal for equal JSON and for no other: 1 is 1.0, and true is not 1."""
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
    """The number as it is written, not as the machine holds it."""
    return Fraction(number) if isinstance(number, int) else Fraction(Decimal(repr(number)))
