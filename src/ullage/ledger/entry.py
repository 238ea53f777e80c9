"""Values that the ledger records: entries for everything that costs tokens, and the additional data of a model call.

Entries contain figures and names, never a prompt, an argument or a result.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

from ullage.models import Usage
from ullage.tokens import Method

__all__ = ["DIRECTNESS", "Entry", "Kind", "ModelUse", "Scalar", "Source"]

Kind = Literal["definitions", "search", "result", "page", "history", "model"]
"""
- `definitions`: tool definitions and instructions carried by requests, with the replies of searches carried again
- `search`: a search reply, which the next request carries for the first time
- `result`: a tool's result; `baseline_tokens` is its size before its budget was applied
- `page`: a part of a stored result that was read back, which reduces a saving
- `history`: messages carried to a model; `baseline_tokens` is their size before a compaction
- `model`: a model call, the only kind that costs money
"""
Source = Literal["log", "delegate", "proxy"]
"""Where a model call was observed: in a program's log, by Ullage in its own process (the delegate, or a `Context` that
was told of it), or on the way to the provider."""
DIRECTNESS: Mapping[Source, int] = {"log": 1, "delegate": 2, "proxy": 3}
"""Of two rows of one model call, the row from the more direct source is kept."""
Scalar = str | int | float | bool | None

_LONGEST = 200
"""Maximum characters of a text in `detail`: enough for a name or a reason, not for a result."""
_MOST = 20
"""Maximum number of texts and numbers in `detail`."""
_BEYOND = 2**63
"""The smallest number that is too large for a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """The usage and the cost of a model call."""

    usage: Usage
    dollars: Decimal | None = None
    """None where the price is unknown."""
    key: str | None = None
    """The provider's response id. Without one, a call is identified by client, model, usage and time."""
    source: Source = "delegate"
    missed_tokens: int = 0
    """Tokens that the provider had already read for the previous request and that did not come from its cache."""
    missed_dollars: Decimal | None = None
    """Cost of these tokens beyond the price of reading them from the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One record of tokens that were passed on, saved or paid for."""

    time: datetime
    """A time with its zone."""
    kind: Kind
    principal: str
    session: str
    session_inferred: bool = False
    client: str | None = None
    project: str | None = None
    """The client's working folder."""
    server: str | None = None
    """The MCP server, or the provider of a model call."""
    tool: str | None = None
    model: str | None = None
    """The model that tokens were counted for, or that was called."""
    tokens: int
    """Tokens that were passed on."""
    method: Method = Method.EXACT
    """The method of counting `tokens`."""
    baseline_tokens: int | None = None
    """Tokens that would have been passed on without Ullage; None if unknown."""
    saved_tokens: int | None = None
    """May be negative; None if the baseline is unknown."""
    milliseconds: float | None = None
    is_error: bool = False
    cached: bool = False
    """Whether the result came from a cache."""
    detail: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    """A few more figures or short names; long texts are cut."""
    use: ModelUse | None = None
    """Set for model calls only."""

    def __post_init__(self) -> None:
        if self.time.tzinfo is None:
            raise ValueError("an entry's time must know its zone")
        if not (0 <= self.tokens < _BEYOND and 0 <= (self.baseline_tokens or 0) < _BEYOND):
            raise ValueError(f"no numbers of tokens: {self.tokens}, {self.baseline_tokens}")
        if abs(self.saved_tokens or 0) >= _BEYOND:
            raise ValueError(f"no number of tokens: {self.saved_tokens}")

    def small_detail(self) -> dict[str, Scalar]:
        """Return `detail` in the form in which it is stored."""
        few = list(self.detail.items())[:_MOST]
        return {key[:_LONGEST]: value[:_LONGEST] if isinstance(value, str) else value for key, value in few}
