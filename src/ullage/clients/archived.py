"""What did a session of Ullage hold before something was let go?

Its archives lie in a folder beside it, each under a name that says what is in it. They are only read; one that is not
there, or no longer whole, leads no further back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ullage.messages import table_at, text_at, tokens_at
from ullage.tool import JsonObject

from .document import parse

__all__ = ["Archived", "State", "archived_at", "states_of"]

Archived = Callable[[str], Sequence[JsonObject] | None]
"""The lines of an archive, by its name."""


@dataclass(frozen=True, slots=True)
class State:
    """The lines of the file right after a compaction, and whatever was appended since."""

    lines: tuple[JsonObject, ...]
    compaction: JsonObject | None
    """None for the file as it was before the first one that is known."""


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
    """From the first that is known to the last."""
    states: list[State] = []
    while (latest := _latest(lines)) is not None:
        before = archived(text_at(table_at(latest, "archive"), "file") or "")
        if before is None or _generation(_latest(before)) >= _generation(latest):
            break
        states.append(State(tuple(lines), latest))
        lines = _undone(lines, latest, before)
    return [State(tuple(lines), None), *reversed(states)]


def _latest(lines: Sequence[JsonObject]) -> JsonObject | None:
    return max((line for line in lines if line.get("type") == "compaction"), key=_generation, default=None)


def _generation(line: JsonObject | None) -> int:
    return 0 if line is None else tokens_at(line, "generation") or 0


def _undone(lines: Sequence[JsonObject], latest: JsonObject, before: Sequence[JsonObject]) -> list[JsonObject]:
    ids = latest.get("ids")
    replaced = frozenset(map(str, ids)) if isinstance(ids, list) else frozenset[str]()
    undone: list[JsonObject] = []
    for line in lines:
        if line is latest:
            undone += before
        elif str(line.get("id")) not in replaced:
            undone.append(line)
    return undone
