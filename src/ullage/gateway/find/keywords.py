"""How are the assertions asked that a validator asks without measure, or not as JSON has it?

Patterns are tried only where they end soon, items told apart without comparing each with each, and multiples found in
decimals, as they are written: 19.99 is one of 0.01. Every assertion costs fuel, these as much as they take. Which
dialect has which assertion, `validate` knows.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from jsonschema.exceptions import ValidationError

from .patterns import compiled, ways

__all__ = ["LONG_NAME", "Exhausted", "Fuel", "Keyword", "careful"]

Keyword = Callable[[Any, Any, Any, Any], Any]
LONG_NAME = 200
"""Letters of a property's name beyond which no pattern of names is tried, and the name is taken to match."""
_WAYS = 250
"""To match a pattern, tried in the time of one assertion."""
_ITEMS = 16
"""Looked at in the time of one assertion."""


class Exhausted(Exception):
    """The validation took more steps than it may."""


class Fuel:
    """Assertions that may still be tried."""

    def __init__(self) -> None:
        self.left = 0

    def burn(self, amount: int = 1) -> None:
        self.left -= amount
        if self.left < 0:
            raise Exhausted


def careful(keywords: Mapping[str, Keyword], fuel: Fuel) -> dict[str, Keyword]:
    """The assertions of a dialect, each costing fuel, and with ours in place of those that it has."""
    asking = _Asking(fuel)
    own: dict[str, Keyword] = {
        "pattern": asking.pattern,
        "patternProperties": asking.named,
        "additionalProperties": asking.additional,
        "uniqueItems": asking.unique,
        "multipleOf": _multiple,
    }
    return {name: _fuelled(own.get(name, keyword), fuel) for name, keyword in keywords.items()}


def _fuelled(keyword: Keyword, fuel: Fuel) -> Keyword:
    def tried(validator: Any, value: Any, instance: Any, schema: Any) -> Any:  # noqa: ANN401 — jsonschema's own shape
        fuel.burn()
        return keyword(validator, value, instance, schema)

    return tried


class _Asking:
    """The assertions that burn more the more they have to look at."""

    def __init__(self, fuel: Fuel) -> None:
        self._burn = fuel.burn

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
        self._burn(tries // _WAYS)
        expression = compiled(pattern)
        return expression is None or expression.search(text) is not None

    def _frozen(self, value: Any) -> object:  # noqa: ANN401 — any JSON
        """Equal for equal JSON and for no other: 1 is 1.0, and true is not 1."""
        if isinstance(value, dict):
            members = cast("dict[str, object]", value)
            self._burn(1 + len(members) // _ITEMS)
            return dict, frozenset((name, self._frozen(member)) for name, member in members.items())
        if isinstance(value, list):
            items = cast("list[object]", value)
            self._burn(1 + len(items) // _ITEMS)
            return list, tuple(self._frozen(item) for item in items)
        return type(value) if isinstance(value, bool) else None, value


def _members(value: Any) -> tuple[tuple[str, Any], ...]:  # noqa: ANN401 — any JSON
    return tuple(cast("dict[str, Any]", value).items()) if isinstance(value, dict) else ()


def _multiple(_: Any, unit: Any, instance: Any, __: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    is_number = isinstance(instance, int | float) and not isinstance(instance, bool)
    if is_number and (_exactly(instance) / _exactly(unit)).denominator != 1:
        yield ValidationError(f"is not a multiple of {unit}")


def _exactly(number: float) -> Fraction:
    """The number as it is written, not as the machine holds it."""
    return Fraction(number) if isinstance(number, int) else Fraction(Decimal(repr(number)))
