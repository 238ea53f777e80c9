"""What is one message of a history: as it was given, as it is read, and what it weighs?

Nothing is weighed or decided here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ullage.messages import Message
from ullage.tokens import Count

__all__ = ["Category", "Entry", "Kind"]

Category = Literal["user", "assistant", "tool_calls", "tool_results", "images", "thinking", "summary", "system"]
"""What the tokens of a message are spent on; `system` is for system messages that stand among the others."""

Kind = Literal["message", "summary", "bridge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    native: object
    """A provider's dict, an SDK's object or a neutral `Message`; handed back as it is."""
    message: Message
    """The same in neutral parts."""
    weight: Count
    """Its own framing included."""
    shares: Mapping[Category, int] = field(default_factory=dict[Category, int])
    """What the weight is spent on; they sum to it."""
    pinned: bool = False
    """Whether it stays as it is, whatever is let go."""
    kind: Kind = "message"
    """A summary stands for what was let go; a bridge is a word of the assistant's between two turns of the user's."""
    record: str | None = None
    """The id under which the session's file has it; None where there is no session."""
