"""JSON values that are cheap to name in an error message.

jsonschema writes the value that does not fit into every error it makes, also into those of branches that nobody will
see. For an argument of 200 kB under a choice of a thousand schemas, that is most of a second. Values of these types
have a short `repr` and are otherwise what they were.
"""

from typing import Any

from ullage.tool import Json

from ..step_budget import StepBudget

__all__ = ["QuietDict", "QuietList", "quiet"]

_LONG = 200
"""Characters of a string above which it is wrapped."""
_VALUES = 16
"""Values wrapped in the time of one step."""


class QuietDict(dict[str, Any]):
    """An object."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "{…}"


class QuietList(list[Any]):
    """An array."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[…]"


class _QuietText(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return f"'{self[:_LONG]}…'"


def quiet(value: Json, budget: StepBudget) -> Any:  # noqa: ANN401 - any JSON
    """The same value with a short `repr`, whatever its size. Raises `OutOfSteps` where it is too large."""
    if isinstance(value, dict):
        budget.spend(1 + len(value) // _VALUES)
        return QuietDict((key, quiet(member, budget)) for key, member in value.items())
    if isinstance(value, list):
        budget.spend(1 + len(value) // _VALUES)
        return QuietList(quiet(member, budget) for member in value)
    return _QuietText(value) if isinstance(value, str) and len(value) > _LONG else value
