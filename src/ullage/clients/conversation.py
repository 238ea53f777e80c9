"""A conversation read from a session file, and the parsing that all readers share.

Everything that ever stood in the window, in order, with the marks at which something was let go. Nothing is weighed
here, and how a program writes its files, that program's own file knows.

A whole value, or one a line. A line that is none is counted, and the others are read.

For programs whose messages are in no provider's format.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from ullage.messages import Format, Message, Text, text_at
from ullage.models import Usage
from ullage.tool import Json, JsonObject

__all__ = [
    "Call",
    "Compaction",
    "Conversation",
    "Document",
    "Draft",
    "Program",
    "Turn",
    "moment",
    "parse",
    "shown_command",
    "shown_file",
    "summary_message",
]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    values: tuple[Json, ...]
    """One where the text is one value, else one a line."""
    broken: int = 0
    """Lines that are no JSON."""

    @property
    def objects(self) -> list[JsonObject]:
        return [value for value in self.values if isinstance(value, dict)]

    @property
    def first(self) -> JsonObject:
        """An empty one where there is none."""
        found = self.objects
        return found[0] if found else {}

    @property
    def whole(self) -> Json:
        """The only value; None where there are several."""
        return self.values[0] if len(self.values) == 1 else None


def parse(text: str) -> Document:
    try:
        return Document(values=(json.loads(text),))
    except (ValueError, RecursionError):
        return _by_line(text)


def _by_line(text: str) -> Document:
    values = list[Json]()
    broken = 0
    # Only a line feed ends a line of JSON: U+2028 and its like may stand in a string.
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            broken += 1
    return Document(values=tuple(values), broken=broken)


def summary_message(summary: str) -> Message:
    """Marked as Ullage marks its own, so that a later summary takes it up."""
    return Message(role="user", parts=(Text(f"<context_summary>\n{summary}\n</context_summary>"),))


def shown_command(record: JsonObject) -> str:
    """A command that the user ran, with what came of it."""
    code = record.get("exitCode")
    ended = f"\nIt ended with {code}." if isinstance(code, int) and code else ""
    return f"$ {text_at(record, 'command') or ''}\n{text_at(record, 'output') or ''}{ended}"


def shown_file(path: str, content: str) -> str:
    return f'<file path="{path}">\n{content}\n</file>'


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
