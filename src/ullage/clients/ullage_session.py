"""Reads Ullage's own sessions, with the content of their archives.

The result contains every message in the order in which it came, from the file and as far back as its archives reach,
and the messages left after each compaction.

Archives are in a folder beside the file, named after their content. They are only read; history ends at an
archive that is missing or damaged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ullage.messages import Format, read_message, table_at, text_at, tokens_at
from ullage.tool import JsonObject

from .conversation import Compaction, Conversation, Document, Draft, moment, parse

__all__ = ["Archived", "State", "archived_at", "read_own", "recognises_own", "states_of"]

Archived = Callable[[str], Sequence[JsonObject] | None]
"""Returns the lines of an archive, by its name."""


@dataclass(frozen=True, slots=True)
class State:
    """The lines of the file right after a compaction, and all lines appended since."""

    lines: tuple[JsonObject, ...]
    compaction: JsonObject | None
    """The compaction; None for the file as it was before the first known compaction."""


def archived_at(path: Path) -> Archived:
    def archived(name: str) -> Sequence[JsonObject] | None:
        if Path(name).name != name:
            return None
        files = path.parent.glob(f"{_literal(path.name)}.archive-*/{_literal(name)}")
        try:
            return next((parse(file.read_text(encoding="utf-8")).objects for file in files), None)
        except (OSError, ValueError):
            return None

    return archived


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def states_of(lines: Sequence[JsonObject], archived: Archived) -> list[State]:
    """Return the states from the first known to the last."""
    states: list[State] = []
    while (latest := _latest(lines)) is not None:
        before = archived(text_at(table_at(latest, "archive"), "file") or "")
        if before is None or _generation(_latest(before)) >= _generation(latest):
            break
        states.append(State(tuple(lines), latest))
        ids = latest.get("ids")
        replaced = frozenset(map(str, ids)) if isinstance(ids, list) else frozenset[str]()
        undone: list[JsonObject] = []
        for line in lines:
            if line is latest:
                undone += before
            elif str(line.get("id")) not in replaced:
                undone.append(line)
        lines = undone
    return [State(tuple(lines), None), *reversed(states)]


def _latest(lines: Sequence[JsonObject]) -> JsonObject | None:
    return max((line for line in lines if line.get("type") == "compaction"), key=_generation, default=None)


def _generation(line: JsonObject | None) -> int:
    return 0 if line is None else tokens_at(line, "generation") or 0


_MESSAGES = frozenset({"message", "summary", "bridge"})


def recognises_own(document: Document) -> bool:
    return any({"v", "seq", "crc"} <= one.keys() for one in document.objects[:50])


def read_own(document: Document, archived: Archived) -> Conversation:
    headers = [one for one in document.objects if one.get("type") == "session"]
    header: JsonObject = headers[0] if headers else {}
    said = text_at(header, "format")
    reader = _Reader(Format(said) if said in tuple(Format) else Format.ULLAGE, text_at(header, "model"))
    reader.draft.unread["lines that are not JSON"] = document.broken
    reader.take(states_of(document.objects, archived))
    # The window that the session used last, if it was recorded.
    lines = document.objects
    noted = (tokens_at(one, "window") for one in reversed(lines) if one.get("type") in ("session", "window"))
    window = next((tokens for tokens in noted if tokens), None)
    return reader.draft.complete(
        Conversation(
            program="ullage",
            format=reader.format,
            id=text_at(header, "id"),
            model=text_at(header, "model"),
            window=window,
        )
    )


class _Reader:
    def __init__(self, format: Format, model: str | None) -> None:  # noqa: A002
        self.draft = Draft()
        self.format = format
        self._model = model
        self._places: dict[str, int] = {}
        self._was_answer = False

    def take(self, states: Sequence[State]) -> None:
        """Add the messages and compactions. The first state has every message that was ever appended; each compaction
        follows the messages that are older than it."""
        later = list(states[1:])
        for line in _select_messages(states[0].lines):
            while later and _is_before(later[0], line):
                self._add_compaction(later.pop(0))
            self._add(line)
        for state in later:
            self._add_compaction(state)

    def _add(self, line: JsonObject) -> None:
        native, at = dict(table_at(line, "message")), moment(line.get("ts"))
        place = self.draft.add(native, at, pinned=line.get("pinned") is True)
        self._places[str(line.get("id"))] = place
        is_answer = read_message(native, self.format).role == "assistant"
        if is_answer and not self._was_answer and line.get("type") == "message" and not line.get("generation"):
            self.draft.add_answer(place, None, self._model, at)
        self._was_answer = is_answer

    def _add_compaction(self, state: State) -> None:
        """Add a compaction. Lines appended after it have no place yet, so they are not counted as left by it."""
        made = state.compaction or {}
        written = made.get("ids")
        ids = frozenset(map(str, written)) if isinstance(written, list) else frozenset[str]()
        for line in _select_messages(state.lines):
            if str(line.get("id")) in ids and str(line.get("id")) not in self._places:
                self._add(line)
        self._was_answer = False
        left = [
            self._places[str(line.get("id"))]
            for line in _select_messages(state.lines)
            if str(line.get("id")) in self._places
        ]
        self.draft.compactions.append(
            Compaction(place=len(self.draft.turns), left=tuple(left), at=moment(made.get("ts")))
        )


def _select_messages(lines: Sequence[JsonObject]) -> list[JsonObject]:
    return [line for line in lines if text_at(line, "type") in _MESSAGES]


def _is_before(state: State, line: JsonObject) -> bool:
    compacted, said = moment((state.compaction or {}).get("ts")), moment(line.get("ts"))
    return compacted is not None and said is not None and compacted < said
