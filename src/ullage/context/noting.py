"""What is kept to the letter of results that were clamped or masked?

The identifiers that were in them and are nowhere else now stand behind the last of the placeholders: there the history
was changed anyway, and a prompt cache loses nothing more by it.
"""

from collections.abc import Sequence

from ullage.messages import ToolResult, join_texts, results_of, with_results, with_texts
from ullage.tokens import Steps

from .entry import Entry
from .identifiers import identifier_steps
from .text_protocol import read_as_tools
from .weighing import Scale
from .words import is_marked, is_placeholder, text_of, with_note

__all__ = ["noted"]

_WORTH = 0.5
"""The share of what was won that the note may take at most."""


def noted(before: Sequence[Entry], after: Sequence[Entry], scale: Scale, room: int) -> Steps[tuple[Entry, ...]]:
    """The entries after, with a note where something was changed; both have the same places."""
    changed = [place for place, entry in enumerate(after) if entry is not before[place]]
    # What was written in fewer words says itself what belongs together.
    masked = [place for place in changed if _is_masked(after[place])]
    won = sum(before[place].weight.tokens - after[place].weight.tokens for place in changed)
    places = [place for place in changed if after[place].message.role != "assistant"]
    if not places:
        return tuple(after)
    # Output that arrived as text is no word of the user's.
    read = read_as_tools([entry.message for entry in before])
    note = yield from identifier_steps(
        [read[place] for place in changed],
        room=min(room, int(_WORTH * won)),
        count=scale.count,
        beside=[entry.message for entry in after],
        related=[read[place] for place in masked],
        alone=False,
    )
    last = places[-1]
    return (*after[:last], _with_note(after[last], note, scale), *after[last + 1 :]) if note else tuple(after)


def _is_masked(entry: Entry) -> bool:
    results = [join_texts(part.parts) for part in entry.message.parts if isinstance(part, ToolResult)]
    return any(map(is_placeholder, results or [join_texts(entry.message.parts)]))


def _with_note(entry: Entry, note: str, scale: Scale) -> Entry:
    texts = {
        number: text_of(result, scale.format) for number, result in enumerate(results_of(entry.native, scale.format))
    }
    marked = [number for number, text in texts.items() if is_marked(text)]
    if marked:
        number = marked[-1]
        native = with_results(entry.native, scale.format, {number: with_note(texts[number], note)})
    else:
        native = with_texts(entry.native, scale.format, lambda text: with_note(text, note) if is_marked(text) else text)
    return scale.remade(entry, native)
