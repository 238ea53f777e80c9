"""Are the tools shown as they are, or found by searching?

A catalogue that takes little of the window is shown directly, because finding would cost more than it saves. Decided
when the configuration changes and then kept, since every client's prompt cache hangs on the list; a margin keeps a
catalogue near the threshold from flipping. Nothing is measured or stored here.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

__all__ = ["Decision", "Mode", "Remembered", "Surface", "SurfaceMemory", "decide"]

Mode = Literal["auto", "direct", "search"]
Surface = Literal["direct", "search"]

_MARGIN = 0.25
"""Part of the threshold that a catalogue must pass it by before a standing decision changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    surface: Surface
    reason: str
    configuration: str = ""
    """What was configured when it was decided."""
    certain: bool = True
    """False where the catalogue was not yet known: good for now, not to be kept."""


def decide(
    mode: Mode,
    *,
    catalogue: int | None,
    window: int,
    share: float = 0.02,
    previous: Surface | None = None,
) -> Decision:
    """`catalogue` is what all definitions weigh in tokens, None where not all of them are known."""
    if mode != "auto":
        return Decision(surface=mode, reason=f"the settings say {mode}")
    if catalogue is None:
        return Decision(surface="search", reason="the catalogue is not known yet", certain=False)
    threshold = window * share
    leaning = {"direct": 1 + _MARGIN, "search": 1 - _MARGIN, None: 1.0}[previous]
    surface: Surface = "direct" if catalogue < threshold * leaning else "search"
    kept = " (kept: within the margin)" if (catalogue < threshold) != (surface == "direct") else ""
    reason = f"{catalogue:,} tokens of definitions against {threshold:,.0f}, {share:.1%} of {window:,}{kept}"
    return Decision(surface=surface, reason=reason)


class SurfaceMemory(Protocol):
    """Keeps decisions, by whatever key a gateway has."""

    def recall(self, key: str) -> Decision | None: ...

    def remember(self, key: str, decision: Decision) -> None: ...


@dataclass(frozen=True, slots=True)
class Remembered:
    """Keeps decisions as long as the process lives."""

    decisions: dict[str, Decision] = field(default_factory=dict[str, Decision])

    def recall(self, key: str) -> Decision | None:
        return self.decisions.get(key)

    def remember(self, key: str, decision: Decision) -> None:
        self.decisions[key] = decision
