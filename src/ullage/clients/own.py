"""What does a session of Ullage hold?

What stands in its file, and as far as its archives lead back, what stood there: every message in the order in which it
came, and after each compaction what was left.
"""

from collections.abc import Sequence

from ullage.messages import Format, read_message, table_at, text_at, tokens_at
from ullage.tool import JsonObject

from .archived import Archived, State, states_of
from .conversation import Compaction, Conversation
from .document import Document
from .draft import Draft, moment

__all__ = ["read", "recognises"]

_MESSAGES = frozenset({"message", "summary", "bridge"})


def recognises(document: Document) -> bool:
    return any({"v", "seq", "crc"} <= one.keys() for one in document.objects[:50])


def read(document: Document, archived: Archived) -> Conversation:
    headers = [one for one in document.objects if one.get("type") == "session"]
    header: JsonObject = headers[0] if headers else {}
    reader = _Reader(_format(header), text_at(header, "model"))
    reader.draft.unread["lines that are no JSON"] = document.broken
    reader.take(states_of(document.objects, archived))
    return reader.draft.finished(
        Conversation(
            program="ullage",
            format=reader.format,
            id=text_at(header, "id"),
            model=text_at(header, "model"),
            window=_window(document.objects),
        )
    )


def _window(lines: Sequence[JsonObject]) -> int | None:
    """The window that the session ran in last, as far as it was noted."""
    noted = (tokens_at(one, "window") for one in reversed(lines) if one.get("type") in ("session", "window"))
    return next((tokens for tokens in noted if tokens), None)


def _format(header: JsonObject) -> Format:
    said = text_at(header, "format")
    return Format(said) if said in tuple(Format) else Format.ULLAGE


class _Reader:
    def __init__(self, format: Format, model: str | None) -> None:  # noqa: A002
        self.draft = Draft()
        self.format = format
        self._model = model
        self._places: dict[str, int] = {}
        self._was_answer = False

    def take(self, states: Sequence[State]) -> None:
        """The messages of the first state are all that were ever appended; each compaction came behind those that are
        older than it."""
        later = list(states[1:])
        for line in _said(states[0].lines):
            while later and _is_before(later[0], line):
                self._let_go(later.pop(0))
            self._add(line)
        for state in later:
            self._let_go(state)

    def _add(self, line: JsonObject) -> None:
        native, at = dict(table_at(line, "message")), moment(line.get("ts"))
        place = self.draft.add(native, at, pinned=line.get("pinned") is True)
        self._places[str(line.get("id"))] = place
        is_answer = read_message(native, self.format).role == "assistant"
        if is_answer and not self._was_answer and line.get("type") == "message" and not line.get("generation"):
            self.draft.answered(place, None, self._model, at)
        self._was_answer = is_answer

    def _let_go(self, state: State) -> None:
        """What was appended later has no place yet, and so is not among what was left."""
        made = state.compaction or {}
        written = made.get("ids")
        ids = frozenset(map(str, written)) if isinstance(written, list) else frozenset[str]()
        for line in _said(state.lines):
            if str(line.get("id")) in ids and str(line.get("id")) not in self._places:
                self._add(line)
        self._was_answer = False
        left = [self._places[str(line.get("id"))] for line in _said(state.lines) if str(line.get("id")) in self._places]
        self.draft.compactions.append(
            Compaction(place=len(self.draft.turns), left=tuple(left), at=moment(made.get("ts")))
        )


def _said(lines: Sequence[JsonObject]) -> list[JsonObject]:
    return [line for line in lines if text_at(line, "type") in _MESSAGES]


def _is_before(state: State, line: JsonObject) -> bool:
    compacted, said = moment((state.compaction or {}).get("ts")), moment(line.get("ts"))
    return compacted is not None and said is not None and compacted < said
