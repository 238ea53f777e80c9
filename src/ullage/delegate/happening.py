"""What is told of a run when it is over, well or not?

To the ledger, to the log, to whoever watches the money. Never the prompt, the answer or a key.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ullage.models import Cost
from ullage.tool import Caller

from .outcome import Attempt, Outcome
from .route import Route

__all__ = ["Happening", "Observer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    time: datetime
    caller: Caller
    task: str | None
    route: Route
    estimated_input: int
    attempts: tuple[Attempt, ...]
    cost: Cost | None
    outcome: Outcome | None
    """None where nobody answered."""
    error: str | None = None
    """Why, in our words."""
    tool: str | None = None
    """Which tool or command asked, such as `run`."""
    earlier: tuple[Attempt, ...] = ()
    """Of the runs of the same call that were over before this one, where there are several."""


class Observer(Protocol):
    def happened(self, happening: Happening) -> None:
        """Must neither wait nor raise."""
        ...
