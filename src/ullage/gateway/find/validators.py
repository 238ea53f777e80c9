"""Validation by jsonschema, for what is not plainly right.

A schema is read by the dialect it declares, 2020-12 where it declares none. Nothing is fetched, formats are not
asserted, and a schema that cannot be read is not held against the caller: the verdict says why nothing was checked, and
the server remains the judge.

Work is bounded: compiling a schema and every assertion spend from the caller's `StepBudget`, and `OutOfSteps` ends
both.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from jsonschema import Draft3Validator, Draft4Validator, Draft202012Validator, exceptions, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

from ullage.tool import Json, JsonObject

from ..slim.subschemas import Schema, depth_exceeds
from ..step_budget import OutOfSteps, StepBudget
from .keywords import Keyword, Spending, careful
from .quiet import quiet
from .soundness import troubles, undeclared
from .verdict import Verdict

__all__ = ["Validators"]

_ERROR = 2
"""Steps of an error that is compared with others for the one that says most."""
_DEEPEST = 100
_OLD = (Draft3Validator, Draft4Validator)

# Typed here, because jsonschema leaves both without types.
_best_match: Callable[[Iterator[ValidationError]], ValidationError | None] = cast("Any", exceptions).best_match
_extend: Callable[[type[Validator], Mapping[str, Keyword]], type[Validator]] = cast("Any", validators).extend


class Validators:
    """Validators by key. For one thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._spending = Spending()
        self._dialects: dict[type[Validator], type[Validator]] = {}
        self._validators: OrderedDict[str, Validator | str] = OrderedDict()
        """A string says why there is none."""

    def check(self, key: str, schema: JsonObject, arguments: Json, budget: StepBudget) -> Verdict:
        """What `Checker.check` says."""
        self._spending.budget = budget
        validator = self._validator(key, schema, budget)
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

    def _validator(self, key: str, schema: JsonObject, budget: StepBudget) -> Validator | str:
        found = self._validators.get(key)
        if found is None:
            found = self._validators[key] = self._compile(dict(schema), budget)
            if len(self._validators) > self._most:
                self._validators.popitem(last=False)
        return found

    def _compile(self, schema: Schema, budget: StepBudget) -> Validator | str:
        if depth_exceeds(schema, _DEEPEST):
            return "the schema is nested too deeply"
        declared = _declared(schema)
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


def _declared(schema: Schema) -> type[Validator]:
    """The dialect that the schema says it is written in; a newer one for what nobody has heard of."""
    known = isinstance(schema.get("$schema"), str)
    return validator_for(schema, default=Draft202012Validator) if known else Draft202012Validator
