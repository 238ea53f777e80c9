"""In what order stands what remains?

    what the system says first · the summary · what stays of the head · the tail

Two turns of one side never come to stand side by side, and the user keeps the first word: where something was let go
between two such turns, a bridge takes its place. What stood side by side from the first is left so. Entries that remain
are the same objects.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal

from ullage.messages import Message, assistant_message, user_message
from ullage.tokens import drain

from .entry import Entry
from .groups import is_instruction, leading
from .remake import Remake

__all__ = ["Bridge", "Side", "assembled", "bridges"]

Side = Literal["user", "assistant"]
"""Results are brought in the user's turn (Anthropic, Gemini) or count as such."""
Bridge = Callable[[Side], Entry]
"""Makes a few words of that side."""
_ACROSS: dict[Side, Side] = {"user": "assistant", "assistant": "user"}
_ASSISTANTS = "Understood. I go on from there."
_USERS = "[Messages that stood here were let go to make room. Go on.]"


def bridges(scale: Remake) -> Bridge:
    """Bridges in the format of a history; each side's is made once."""

    @cache
    def bridge(side: Side) -> Entry:
        native = user_message(scale.format, _USERS) if side == "user" else assistant_message(scale.format, _ASSISTANTS)
        (entry,) = drain(scale.entries((native,)))
        return replace(entry, kind="bridge")

    return bridge


def assembled(
    summary: Entry | None, entries: Sequence[Entry], places: Sequence[int], bridge: Bridge
) -> tuple[Entry, ...]:
    """What is at these places of a history, in order, with a summary of what is not."""
    return tuple(_laid(summary, entries, places, bridge))


def _laid(summary: Entry | None, entries: Sequence[Entry], places: Sequence[int], bridge: Bridge) -> Iterator[Entry]:
    opening = leading([entry.message for entry in entries])
    yield from (entries[place] for place in places if place < opening)
    behind: Side | None = None
    since = after = opening
    is_parted = summary is not None
    if summary is not None:
        yield summary
        behind = "user"
    for place in (place for place in places if place >= opening):
        side, is_parted = _side(entries[place].message), is_parted or place > after
        after = place + 1
        if side is not None:
            if is_parted and side == (behind or "assistant"):
                yield _found(entries[since:place], _ACROSS[side]) or bridge(_ACROSS[side])
            behind, since, is_parted = side, after, False
        yield entries[place]


def _side(message: Message) -> Side | None:
    """None for what the system says, which is no turn."""
    if is_instruction(message):
        return None
    return "assistant" if message.role == "assistant" else "user"


def _found(let_go: Sequence[Entry], side: Side) -> Entry | None:
    """A bridge of an earlier time that may as well stay."""
    return next((entry for entry in let_go if entry.kind == "bridge" and _side(entry.message) == side), None)
