"""The verdict on a call's arguments."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the arguments fit; `misfit` is the error that says most where they do not.

    What was not checked neither fits nor does not.
    """

    misfit: "ValidationError | None" = None
    unchecked: str | None = None
    """Why nothing was checked, where nothing was."""

    @property
    def fits(self) -> bool:
        return self.misfit is None and self.unchecked is None
