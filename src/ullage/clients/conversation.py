"""What was said in a session, whichever program wrote it down?

Everything that ever stood in the window, in order, with the marks at which something was let go. Nothing is weighed
here, and how a program writes its files, that program's own file knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ullage.messages import Format
from ullage.models import Usage

__all__ = ["Call", "Compaction", "Conversation", "Program", "Turn"]

Program = Literal["ullage", "claude-code", "codex", "opencode", "pi", "cline", "gemini-cli", "messages"]
"""`messages` is a list of messages or a request's body, of whomever."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message."""

    native: object
    """In the conversation's format."""
    at: datetime | None = None
    pinned: bool = False
    """Whether it must stay, whatever is let go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One answer of a model."""

    place: int
    """Of the turn with which the answer begins; what stood before it is what the model was asked with."""
    model: str | None = None
    usage: Usage | None = None
    """What the provider reported; None where the program wrote down nothing."""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Where something was let go."""

    place: int
    """Of the first turn that came after it."""
    left: tuple[int, ...]
    """Places of the turns that stood in the window then, in the order in which they stood: those that were made for it
    and those that stayed."""
    before: int | None = None
    """Tokens, as the program says."""
    after: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    program: Program
    format: Format
    id: str | None = None
    title: str | None = None
    model: str | None = None
    """The one that answered last."""
    window: int | None = None
    """Of that model, where the program says it."""
    system: object = None
    """As the provider's format writes it; None where the file does not hold it."""
    tools: tuple[object, ...] | None = None
    """None where the file does not hold them."""
    turns: tuple[Turn, ...] = ()
    calls: tuple[Call, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the file holds beside it, and how often."""

    def standing(self, place: int | None = None) -> tuple[int, ...]:
        """Places of the turns that stood in the window before the turn at `place`, in the order in which they stood;
        at the end of the conversation where none is given."""
        end = len(self.turns) if place is None else place
        last = next((one for one in reversed(self.compactions) if one.place <= end), None)
        return tuple(range(end)) if last is None else (*last.left, *range(last.place, end))

    @property
    def natives(self) -> list[object]:
        """What stands in the window at the end."""
        return [self.turns[place].native for place in self.standing()]
