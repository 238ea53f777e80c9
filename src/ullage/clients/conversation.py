"""A conversation read from a session file, and the parsing that all readers share.

A conversation contains everything that was ever in the window, in order, with the compactions that dropped something.
Tokens are not counted here. Each program's module reads its own file format.

A file is one JSON value, or one per line. Lines that are not JSON are counted, and the others are read.

`Draft` and the helpers at the end serve programs whose messages are in no provider's format.
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
"""The program that wrote the file. `messages` is a list of messages or a request's body, from any source."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message."""

    native: object
    """The message in the conversation's format."""
    at: datetime | None = None
    pinned: bool = False
    """Whether compactions must keep the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One answer of a model."""

    place: int
    """Place of the turn with which the answer begins; the turns before it are the prompt."""
    model: str | None = None
    usage: Usage | None = None
    """The usage that the provider reported; None if the program recorded none."""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A point at which turns were dropped from the window."""

    place: int
    """Place of the first turn that came after it."""
    left: tuple[int, ...]
    """Places of the turns then left in the window, in window order: those created by the compaction and those kept."""
    before: int | None = None
    """Tokens reported by the program."""
    after: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation read from a session file."""

    program: Program
    format: Format
    id: str | None = None
    title: str | None = None
    model: str | None = None
    """The model that answered last."""
    window: int | None = None
    """The window of that model, if the program records it."""
    system: object = None
    """The system prompt in the provider's format; None if the file does not contain it."""
    tools: tuple[object, ...] | None = None
    """None if the file does not contain them."""
    turns: tuple[Turn, ...] = ()
    calls: tuple[Call, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict[str, int])
    """Kinds of records that were not read, with the number of each."""

    def turns_in_window(self, place: int | None = None) -> tuple[int, ...]:
        """Return places of the turns that were in the window before the turn at `place`, in window order; without
        `place`, at the end of the conversation."""
        end = len(self.turns) if place is None else place
        last = next((one for one in reversed(self.compactions) if one.place <= end), None)
        return tuple(range(end)) if last is None else (*last.left, *range(last.place, end))

    @property
    def natives(self) -> list[object]:
        """The messages in the window at the end."""
        return [self.turns[place].native for place in self.turns_in_window()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The JSON values of a file."""

    values: tuple[Json, ...]
    """One value if the text is a single value, else one per line."""
    broken: int = 0
    """Number of lines that are not JSON."""

    @property
    def objects(self) -> list[JsonObject]:
        return [value for value in self.values if isinstance(value, dict)]

    @property
    def first(self) -> JsonObject:
        """The first object; an empty one if there is none."""
        found = self.objects
        return found[0] if found else {}

    @property
    def whole(self) -> Json:
        """The only value; None if there are several."""
        return self.values[0] if len(self.values) == 1 else None


def parse(text: str) -> Document:
    """Parse a text that is one JSON value, or one per line."""
    try:
        return Document(values=(json.loads(text),))
    except (ValueError, RecursionError):
        values = list[Json]()
        broken = 0
        # Only a line feed ends a line of JSON: U+2028 and similar characters may be part of a string.
        for line in text.split("\n"):
            if not line.strip():
                continue
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError):
                broken += 1
        return Document(values=tuple(values), broken=broken)


def summary_message(summary: str) -> Message:
    """Return a summary as a message, marked like Ullage's own so that a later summary includes it."""
    return Message(role="user", parts=(Text(f"<context_summary>\n{summary}\n</context_summary>"),))


def shown_command(record: JsonObject) -> str:
    """Return a command that the user ran, with its output."""
    code = record.get("exitCode")
    ended = f"\nIt ended with {code}." if isinstance(code, int) and code else ""
    return f"$ {text_at(record, 'command') or ''}\n{text_at(record, 'output') or ''}{ended}"


def shown_file(path: str, content: str) -> str:
    return f'<file path="{path}">\n{content}\n</file>'


class Draft:
    """Turns, calls and compactions collected so far."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.calls: list[Call] = []
        self.compactions: list[Compaction] = []
        self.unread: Counter[str] = Counter()

    def add(self, native: object, at: datetime | None = None, *, pinned: bool = False) -> int:
        self.turns.append(Turn(native, at, pinned))
        return len(self.turns) - 1

    def add_answer(self, place: int, usage: Usage | None, model: str | None, at: datetime | None) -> None:
        """Add an answer. A usage without any input tokens belongs to a failed call and is ignored, as it does not
        reflect the window."""
        reported = None if usage is None or usage.input is None else usage
        if reported is None or reported.input:
            self.calls.append(Call(place=place, model=model, usage=reported, at=at))

    def add_compaction(
        self,
        made: Iterable[object],
        *,
        kept: Iterable[int] = (),
        before: int | None = None,
        after: int | None = None,
        at: datetime | None = None,
    ) -> None:
        """Add a compaction; the turns in `made` precede the turns that were kept."""
        new = [self.add(native, at) for native in made]
        place = len(self.turns)
        self.compactions.append(Compaction(place=place, left=(*new, *kept), before=before, after=after, at=at))

    def complete(self, about: Conversation) -> Conversation:
        """Return the conversation with the collected turns. Its model is the one that answered last."""
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
    """Parse a time as programs write it: as text, or in milliseconds since 1970. Return None for other values."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read if read.tzinfo else read.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None
