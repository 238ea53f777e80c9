"""How often did a compaction go as it must?

What `context_validity` saw, in numbers and as a table.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ullage.messages import Format

HALF, RESERVE = 0.50, 0.15
ACCOUNT = 0.20
"""The share of a small window that a summary and its identifiers may fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One compaction, as it went."""

    family: str
    name: str
    format: Format
    window: int
    summarizer: str
    before: float
    """Of the window."""
    after: float
    tiers: tuple[str, ...]
    """By which means; none where the history was left as it was."""
    warning: str
    faults: tuple[str, ...]
    keeps_last: bool
    """Whether the user's last message is in it, the very same object."""
    keeps_pinned: bool
    stuck: float
    """Of the window: what must stay as it is, the system prompt included."""

    @property
    def is_withheld(self) -> bool:
        """Whether the compaction found its own work broken, and gave it up."""
        return "nothing was let go:" in self.warning

    @property
    def is_under_half(self) -> bool:
        return self.after <= HALF

    @property
    def is_stuck(self) -> bool:
        """Whether what must stay leaves no room for half."""
        return self.stuck + ACCOUNT > HALF

    @property
    def is_over(self) -> bool:
        """Whether the next call would overflow."""
        return self.after > 1 - RESERVE


@dataclass(slots=True)
class Figures:
    traces: int
    seen: list[Seen] = field(default_factory=list[Seen])

    @property
    def made(self) -> list[Seen]:
        return [one for one in self.seen if one.tiers]

    def share(self, holds: Callable[[Seen], bool]) -> float:
        """Of the compactions that were made."""
        return sum(map(holds, self.made)) / max(1, len(self.made))

    @property
    def shares(self) -> dict[str, float]:
        return {
            "valid": self.share(lambda one: not one.faults),
            "last user": self.share(lambda one: one.keeps_last),
            "pinned": self.share(lambda one: one.keeps_pinned),
            "under half": self.share(lambda one: one.is_under_half),
            "or stuck": self.share(lambda one: one.is_under_half or one.is_stuck),
            "over": self.share(lambda one: one.is_over),
        }

    @property
    def withheld(self) -> int:
        return sum(one.is_withheld for one in self.seen)

    def missed(self) -> list[str]:
        floors = {"valid": "are valid", "last user": "keep the user's last message", "pinned": "keep what is pinned"}
        shares = self.shares
        short = [f"{shares[key]:.2%} of compactions {words}" for key, words in floors.items() if shares[key] < 1]
        return short + ([f"{self.withheld} compactions were broken and withheld"] if self.withheld else [])

    def to_json(self) -> dict[str, float]:
        rounded = {name: round(share, 4) for name, share in self.shares.items()}
        return {"traces": self.traces, "asked": len(self.seen), "made": len(self.made), **rounded}


def report(figures: Figures) -> None:
    print(f"{'':40}{'asked':>7}{'made':>7}{'valid':>8}{'last':>8}{'pinned':>8}{'≤ 50 %':>8}{'or stuck':>10}{'over':>8}")
    rows: dict[str, Callable[[Seen], object]] = {
        "format": lambda one: one.format.value,
        "window": lambda one: one.window,
        "session": lambda one: one.family,
        "summarising model": lambda one: one.summarizer,
    }
    for name, kind in rows.items():
        for value in dict.fromkeys(map(kind, figures.seen)):
            _row(f"{name} {value}", Figures(0, [one for one in figures.seen if kind(one) == value]))
    _row("all", figures)


def _row(name: str, figures: Figures) -> None:
    shares = "".join(f"{share:>{10 if key == 'or stuck' else 8}.1%}" for key, share in figures.shares.items())
    print(f"{name:40}{len(figures.seen):>7}{len(figures.made):>7}{shares}")
