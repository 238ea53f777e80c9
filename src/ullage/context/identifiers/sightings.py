"""Where was each word seen: who said it, how often, when last, and as what?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from json import loads

from ullage.messages import Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.tokens import Steps
from ullage.tool import Json

from .words import LONGEST, candidates, named_values, names, phrases, slices, words

__all__ = ["Seen", "Sighting", "Sightings"]

_SHORT = 80
"""Characters of a value that is one thing, not a text."""
_BODY = 200
"""Characters from which an argument is a text with words of its own: code to write, a letter to send."""


class Seen:
    """Where a word was seen; the places add up. Plain numbers, for there are many words."""

    USER = 1
    ASSISTANT = 2
    ARGUMENT = 4
    BODY = 8
    """In a long argument."""
    RESULT = 16
    TOOL = 32
    """As a tool's name."""
    FIELD = 64
    """As a name that values stand under."""
    WHOLE = 128
    """As the whole of an argument."""
    NAMED = 256
    """As a value under a name."""
    NAME = 512
    """With a capital though it begins no sentence."""
    EARLIER = 1024
    """In the ledger of an earlier compaction."""


@dataclass(slots=True, kw_only=True)
class Sighting:
    """Changed while messages are read, and by nobody afterwards."""

    seen: int
    last: int
    """The place of the message that had it last, from 0."""
    times: int = 1
    name: str | None = None
    """Under which it stood last."""
    rank: float = 1.0
    """Where it stood in its line of an earlier ledger: from 0 for the first to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A text of a message, and where it stands."""

    seen: int
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Sightings:
    """Grows while messages are read."""

    found: dict[str, Sighting] = field(default_factory=dict[str, Sighting])

    def read(self, messages: Sequence[Message]) -> Steps[None]:
        for place, message in enumerate(messages):
            for said in _said(message):
                for text in slices(said.text):
                    self._read(text, said.seen, place)
                    yield
                self._read_whole(said, place)

    def _read(self, text: str, seen: int, place: int) -> None:
        for word, times in words(text).items():
            for one in candidates(word) if len(word) <= LONGEST else ():
                self.add(one, seen, place, times=times)
        if seen in (Seen.RESULT, Seen.USER):
            self._read_values(text, seen, place)
        if seen in (Seen.ASSISTANT, Seen.USER, Seen.RESULT):
            for phrase in phrases(text):
                self.add(phrase, seen | Seen.NAME, place)
        if seen in (Seen.ASSISTANT, Seen.USER):
            for name in names(text):
                self.add(name, Seen.NAME, place)

    def read_text(self, text: str, seen: int = Seen.EARLIER, rank: float = 1.0) -> None:
        """The words of a text that is no message."""
        for word in words(text):
            for one in candidates(word) if len(word) <= LONGEST else ():
                known = self.add(one, seen, -1)
                known.rank = min(known.rank, rank)

    def _read_values(self, text: str, seen: int, place: int) -> None:
        for name, value in named_values(text):
            self.add(value, seen | Seen.NAMED, place, name=name)
            self.add(name, Seen.FIELD, place)

    def _read_whole(self, said: _Said, place: int) -> None:
        """A short argument is one value, though it may be several words."""
        whole = said.text.strip()
        if said.seen == Seen.ARGUMENT and 1 < len(whole) <= _SHORT:
            self.add(whole, Seen.WHOLE | Seen.ARGUMENT, place, name=said.name)

    def add(self, word: str, seen: int, place: int, *, times: int = 0, name: str | None = None) -> Sighting:
        """`times` is 0 where the word was counted elsewhere."""
        known = self.found.get(word)
        if known is None:
            known = self.found[word] = Sighting(seen=seen, last=place, times=times or 1, name=name)
            return known
        known.seen |= seen
        known.last = max(known.last, place)
        known.times += times
        known.name = name or known.name
        return known


def _said(message: Message) -> Iterator[_Said]:
    speaker = Seen.ASSISTANT if message.role == "assistant" else Seen.USER
    for part in message.parts:
        yield from _said_in(part, speaker)


def _said_in(part: Part, speaker: int) -> Iterator[_Said]:
    match part:
        case Text(text) | Thinking(text=text):
            yield _Said(seen=speaker, text=text)
        case ToolCall():
            yield _Said(seen=Seen.TOOL, text=part.name)
            yield from _values(_arguments(part.arguments), Seen.ARGUMENT)
        case ToolResult():
            for inner in part.parts:
                yield from _said_in(inner, Seen.RESULT)
        case Unknown(value):
            yield from _values(value, speaker)
        case _:
            yield _Said(seen=speaker, text=part.url or "")


def _arguments(text: str) -> Json:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text


def _values(value: Json, seen: int) -> Iterator[_Said]:
    """The texts and numbers within a JSON value, each with the name it stands under; however deep."""
    waiting: list[tuple[str | None, Json]] = [(None, value)]
    while waiting:
        name, one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(one.items())
        elif isinstance(one, list):
            waiting.extend((name, inner) for inner in one)
        elif isinstance(one, str | int | float) and not isinstance(one, bool):
            yield _said_under(name, str(one), seen)


def _said_under(name: str | None, text: str, seen: int) -> _Said:
    is_body = seen == Seen.ARGUMENT and (len(text) > _BODY or "\n" in text)
    return _Said(seen=Seen.BODY if is_body else seen, text=text, name=name)
