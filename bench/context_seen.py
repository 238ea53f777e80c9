"""How often did a compaction go as it must?

What `context_validity` saw, in numbers and as a table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ullage.messages import Format

HALF, RESERVE = 0.50, 0.15
ROOMY, TOLD = 16_000, 0.95
"""The window from which on a summary or digest must come to half, and the share of those that must."""
ENOUGH = 20
"""Compactions with a summary or digest from which on the share of a family, or of its windows, is told apart."""
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
    """Whether the user's last message is in it, as the same object or to the letter in the summary."""
    keeps_task: bool
    """Whether the user's first words are in it to the letter; of very many, both ends and every constraint."""
    keeps_pinned: bool
    stuck: float
    """Of the window: what must stay as it is, the system prompt included."""

    @property
    def is_withheld(self) -> bool:
        """Whether the compaction found its own work broken, and gave it up."""
        return "nothing was dropped:" in self.warning

    @property
    def is_told(self) -> bool:
        return not {"summarise", "digest"}.isdisjoint(self.tiers)

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

    @property
    def told(self) -> list[Seen]:
        """Where a summary or a digest was made, in windows that have room for one."""
        return [one for one in self.made if one.window >= ROOMY and one.is_told]

    def share(self, holds: Callable[[Seen], bool]) -> float | None:
        """Of the compactions that were made; None where none was."""
        return _share(self.made, holds)

    @property
    def shares(self) -> dict[str, float | None]:
        return {
            "valid": self.share(lambda one: not one.faults),
            "last user": self.share(lambda one: one.keeps_last),
            "task": self.share(lambda one: one.keeps_task),
            "pinned": self.share(lambda one: one.keeps_pinned),
            "told under half": _share(self.told, lambda one: one.is_under_half),
            "under half": self.share(lambda one: one.is_under_half),
            "or stuck": self.share(lambda one: one.is_under_half or one.is_stuck),
            "over": self.share(lambda one: one.is_over),
        }

    @property
    def withheld(self) -> int:
        return sum(one.is_withheld for one in self.seen)

    def missed(self) -> list[str]:
        floors = {
            "valid": (1.0, "are valid"),
            "last user": (1.0, "keep the user's last message"),
            "task": (1.0, "keep the user's task"),
            "pinned": (1.0, "keep what is pinned"),
            "told under half": (TOLD, f"with a summary or digest in windows from {ROOMY:,} on use at most half"),
        }
        shares = self.shares
        short = [
            f"{share:.2%} of compactions {words}"
            for key, (floor, words) in floors.items()
            if (share := shares[key]) is not None and share < floor
        ]
        kinds: tuple[Callable[[Seen], str], ...] = (
            lambda one: one.family,
            lambda one: f"{one.family} in windows of {one.window:,}",
        )
        for kind in kinds:
            for name in dict.fromkeys(map(kind, self.told)):
                told = [one for one in self.told if kind(one) == name]
                share = sum(one.is_under_half for one in told) / len(told)
                if len(told) >= ENOUGH and share < TOLD:
                    short.append(f"{share:.2%} of compactions of {name} with a summary or digest use at most half")
        return short + ([f"{self.withheld} compactions were broken and withheld"] if self.withheld else [])

    def to_json(self) -> dict[str, float | None]:
        rounded = {name: None if share is None else round(share, 4) for name, share in self.shares.items()}
        return {"traces": self.traces, "asked": len(self.seen), "made": len(self.made), **rounded}


def _share(seen: Sequence[Seen], holds: Callable[[Seen], bool]) -> float | None:
    return sum(map(holds, seen)) / len(seen) if seen else None


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def report(figures: Figures) -> None:
    print(f"{'':40}{'asked':>7}{'made':>7}" + "".join(f"{name:>{max(8, len(name) + 2)}}" for name in figures.shares))
    rows: dict[str, Callable[[Seen], object]] = {
        "format": lambda one: one.format.value,
        "window": lambda one: one.window,
        "session": lambda one: one.family,
        "": lambda one: f"{one.family} in windows of {one.window:,}",
        "summarising model": lambda one: one.summarizer,
    }
    for name, kind in rows.items():
        for value in dict.fromkeys(map(kind, figures.seen)):
            _row(f"{name} {value}".strip(), Figures(0, [one for one in figures.seen if kind(one) == value]))
    _row("all", figures)


def _row(name: str, figures: Figures) -> None:
    shares = "".join(f"{_percent(share):>{max(8, len(key) + 2)}}" for key, share in figures.shares.items())
    print(f"{name:40}{len(figures.seen):>7}{len(figures.made):>7}{shares}")
