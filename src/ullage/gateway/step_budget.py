"""Budget of steps for work on one definition, one set of arguments or one reply.

Servers and models send schemas and values that nobody vouches for, and some take exponential time to walk. Every
recursive function that walks them spends from a `StepBudget`; when it is spent, `OutOfSteps` ends the work. Steps are
counted, never timed, so that the same input always has the same outcome. A step is worth some 10 to 20 microseconds.
"""

import logging

__all__ = ["LimitLog", "OutOfSteps", "StepBudget"]


class OutOfSteps(Exception):
    """The work took more steps than it may."""


class StepBudget:
    """Steps that may still be taken. For one thread."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Raises `OutOfSteps` where fewer are left."""
        self.left -= steps
        if self.left < 0:
            raise OutOfSteps


class LimitLog:
    """Logs what was given up for want of steps, once for each thing and not once for each call."""

    def __init__(self, logger: logging.Logger, most: int = 1_000) -> None:
        self._logger = logger
        self._most = most
        self._said: set[str] = set()

    def warn(self, name: str, text: str) -> None:
        """Logs `text` unless something was logged of `name` before; goes silent after `most` names."""
        if name not in self._said and len(self._said) < self._most:
            self._said.add(name)
            self._logger.warning("%s", text)
