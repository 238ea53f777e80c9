"""How does this room learn what a text weighs?

By a function it is given, in steps where the text may be long. It never counts for itself.
"""

from collections.abc import Callable

from ullage.tokens import Steps

__all__ = ["Weigh", "WeighSteps", "in_steps"]

Weigh = Callable[[str], int]
"""The tokens of a text, at once. For a model whose counts have a band, the upper edge of it."""
WeighSteps = Callable[[str], Steps[int]]
"""The same, letting others in now and then."""


def in_steps(weigh: Weigh) -> WeighSteps:
    def steps(text: str) -> Steps[int]:
        yield
        return weigh(text)

    return steps
