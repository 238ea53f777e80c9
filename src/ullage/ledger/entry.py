"""What is written down of each thing that cost tokens?

Figures and names, never a prompt, an argument or a result. How an entry reaches the database is `record`'s affair.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ullage.tokens import Method

__all__ = ["Entry", "Kind", "Scalar"]

Kind = Literal["definitions", "search", "result", "history", "model"]
Scalar = str | int | float | bool | None

_LONGEST = 200
"""Characters of a text in `detail`: enough for a name or a reason, not for a result."""
_MOST = 20
"""Texts and numbers in `detail`."""
_BEYOND = 2**63
"""The first number that no column holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    time: datetime
    """With its zone."""
    kind: Kind
    """Which door it passed: definitions carried, a search reply, a tool's result, history carried, a model call."""
    principal: str
    session: str
    session_inferred: bool = False
    client: str | None = None
    server: str | None = None
    tool: str | None = None
    model: str | None = None
    """The one counted for, or called."""
    tokens: int
    """What passed."""
    method: Method = Method.EXACT
    """How `tokens` was found."""
    baseline_tokens: int | None = None
    """What would have passed without Ullage; None where nobody can say."""
    saved_tokens: int | None = None
    """May be negative; None where the baseline is unknown."""
    milliseconds: float | None = None
    is_error: bool = False
    cached: bool = False
    """Whether a cache answered."""
    detail: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    """A few figures or short names more; long texts are cut."""

    def __post_init__(self) -> None:
        if self.time.tzinfo is None:
            raise ValueError("an entry's time must know its zone")
        if not (0 <= self.tokens < _BEYOND and 0 <= (self.baseline_tokens or 0) < _BEYOND):
            raise ValueError(f"no numbers of tokens: {self.tokens}, {self.baseline_tokens}")
        if abs(self.saved_tokens or 0) >= _BEYOND:
            raise ValueError(f"no number of tokens: {self.saved_tokens}")

    def small_detail(self) -> dict[str, Scalar]:
        """`detail` as it is kept."""
        few = list(self.detail.items())[:_MOST]
        return {key[:_LONGEST]: value[:_LONGEST] if isinstance(value, str) else value for key, value in few}
