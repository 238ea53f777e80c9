"""By whose tokens is counted for a client, if not by a model's?

By a plain rule of so many characters a token, where the user named that in a model's place. Everybody else's reference
is the gateway's matter.
"""

from collections.abc import Callable

from ullage.gateway import ASSUMED, Reference, References
from ullage.tokens import PLAIN_RULES, Meter
from ullage.tool import Caller

__all__ = ["Weighing", "references"]


def references(meter: Meter, window: int | None = None) -> Callable[[Caller], Reference]:
    """What counts for each caller of a client; with the window, where the user set one."""
    models, wide = References(meter.models, window), window or ASSUMED.window
    rules = {name: Reference(model=None, counted_as=name, label=name, window=wide, exact=False) for name in PLAIN_RULES}

    def reference(caller: Caller) -> Reference:
        return rules.get(caller.model or "") or models(caller)

    return reference


class Weighing:
    """What a text weighs for a caller at the most: for caps."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._reference = references(meter)

    def __call__(self, caller: Caller) -> Callable[[str], int]:
        counted_as = self._reference(caller).counted_as
        return lambda text: self._meter.count(text, counted_as).high
