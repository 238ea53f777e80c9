"""How does a conversation come together while a file is read?"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from ullage.models import Usage
from ullage.tool import Json

from .conversation import Call, Compaction, Conversation, Turn

__all__ = ["Draft", "moment"]


class Draft:
    """Turns, calls and compactions so far."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.calls: list[Call] = []
        self.compactions: list[Compaction] = []
        self.unread: Counter[str] = Counter()

    def add(self, native: object, at: datetime | None = None, *, pinned: bool = False) -> int:
        self.turns.append(Turn(native, at, pinned))
        return len(self.turns) - 1

    def answered(self, place: int, usage: Usage | None, model: str | None, at: datetime | None) -> None:
        """A usage of nothing is that of a call which failed; it says nothing of the window."""
        reported = None if usage is None or usage.input is None else usage
        if reported is None or reported.input:
            self.calls.append(Call(place=place, model=model, usage=reported, at=at))

    def let_go(
        self,
        made: Iterable[object],
        *,
        kept: Iterable[int] = (),
        before: int | None = None,
        after: int | None = None,
        at: datetime | None = None,
    ) -> None:
        """What was made for it stands before what was kept."""
        new = [self.add(native, at) for native in made]
        place = len(self.turns)
        self.compactions.append(Compaction(place=place, left=(*new, *kept), before=before, after=after, at=at))

    def finished(self, about: Conversation) -> Conversation:
        """With what has come together; the model is the one that answered last."""
        answered = next((call.model for call in reversed(self.calls) if call.model), None)
        return replace(
            about,
            model=answered or about.model,
            turns=tuple(self.turns),
            calls=tuple(self.calls),
            compactions=tuple(self.compactions),
            unread={what: count for what, count in self.unread.items() if count},
        )


def moment(value: Json) -> datetime | None:
    """A time as programs write it: in words, or in milliseconds since 1970; None where it is none."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read if read.tzinfo else read.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None
