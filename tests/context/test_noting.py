import pytest

from context.talks import Scale, assistant, call, entries_of, result, tool, user
from ullage.context import DEFAULTS, Entry
from ullage.context.context_options import limits_of
from ullage.context.tool_pairs import is_marked, is_placeholder
from ullage.context.truncate_messages import mask, noted, weight_of
from ullage.messages import Text, ToolResult
from ullage.tokens import drain

pytestmark = pytest.mark.requirement("S2:compact:how", "S2:task")

COMMIT = "4f0c2d9e7b1a58c36d2e90f4a7b8c1d2e3f40516"
BODY = f"commit {COMMIT} touches src/gauge/needle.py\n" + "a line of what the tool said\n" * 200


def masked(*results: str) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """A history before and after its old results were masked."""
    steps = [
        message
        for number, text in enumerate((*results, *["a short one\n" * 60] * 8))
        for message in (assistant(call(str(number))), tool(result(str(number), text)))
    ]
    before = entries_of([user("look into it"), *steps])
    change = mask(before, Scale(), limits_of(DEFAULTS, 2_000, fixed=0, used=10**9), recalls=False)
    assert change is not None
    return before, change.entries


def note(before: tuple[Entry, ...], after: tuple[Entry, ...], room: int = 1_000) -> tuple[Entry, ...]:
    return drain(noted(before, after, Scale(), room))  # type: ignore[arg-type]


def bodies(entries: tuple[Entry, ...]) -> list[str]:
    return [
        "".join(part.text for part in one.parts if isinstance(part, Text))
        for entry in entries
        for one in entry.message.parts
        if isinstance(one, ToolResult)
    ]


def test_what_is_masked_leaves_its_identifiers_behind_the_last_placeholder():
    before, after = masked(BODY, "nothing of note\n" * 200)
    assert not any(COMMIT in body for body in bodies(after))
    *others, last = [body for body in bodies(note(before, after)) if is_marked(body)]
    assert len(others) > 1
    assert not any(COMMIT in body for body in others)
    assert last.index(COMMIT) > last.index("removed to make room")


def test_an_identifier_that_still_stands_somewhere_is_not_repeated():
    before, after = masked(BODY)
    kept = entries_of([user(f"it was {COMMIT}")])
    assert not any(COMMIT in body for body in bodies(note((*kept, *before), (*kept, *after))))


def test_a_note_takes_no_more_than_its_room_and_half_of_what_was_won():
    before, after = masked("\n".join(f"see src/part_{number}/file_{number}.py" for number in range(400)))
    for room in (0, 50, 10**6):
        grown = weight_of(note(before, after, room)) - weight_of(after)
        assert grown <= min(room, (weight_of(before) - weight_of(after)) // 2) + 5


def test_where_nothing_was_changed_nothing_is_noted():
    before, _ = masked(BODY)
    assert note(before, before) == before


def test_a_text_without_a_part_is_marked_and_a_placeholder_is_all_that_is_left():
    before, after = masked(BODY)
    assert not any(is_marked(body) or is_placeholder(body) for body in bodies(before))
    first, *_ = bodies(after)
    assert is_placeholder(first)
    assert is_placeholder(f"{first}\nand a note")
    assert not is_placeholder(f"a line before\n{first}")
    assert not is_placeholder(f"[x]\n{first}")
    assert is_marked(f"a line before\n{first}")
