from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.talks import (
    PICTURE,
    Scale,
    assistant,
    call,
    entries_of,
    refusals,
    result,
    system,
    talks,
    texts_of,
    tool,
    user,
)
from ullage.context.boundaries import requests_of
from ullage.context.truncate_messages import difference, trim, weight_of
from ullage.messages import Message, Thinking

pytestmark = pytest.mark.requirement("S2:long", "S2:compact:valid")

LONG = "a line of what the tool said\n" * 200


@settings(max_examples=80, deadline=None)
@given(talks(), st.integers(0, 12_000), st.data())
@pytest.mark.requirement("S2:compact:valid", "S2:long")
def test_trimming_keeps_a_history_valid_and_tells_whether_it_fits(
    messages: list[Message], room: int, data: st.DataObject
):
    pinned = data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=2))
    entries = entries_of(messages, pinned=pinned)
    trimmed = trim(entries, Scale(), room)
    left = trimmed.change.entries
    assert left
    assert refusals([entry.message for entry in left], [entry.message for entry in (*entries, *left)]) == []
    same = {id(entry) for entry in trimmed.kept}
    asked = requests_of(entries)
    assert all(id(entries[place]) in same for place in asked.last | {*asked.first} | pinned)
    assert all(id(entries[place]) in {id(entry) for entry in left} for place in pinned)
    assert trimmed.over == max(0, weight_of(left) - room)
    assert trimmed.fits == (weight_of(left) <= room)
    shed = trimmed.change.shed
    assert shed.tokens == weight_of(entries) - weight_of(left)
    assert shed.reread == weight_of(left[shed.broke_at :])


def test_a_history_that_fits_is_left_as_it_is():
    entries = entries_of([user("a"), assistant("b")])
    trimmed = trim(entries, Scale(), 1_000)
    assert trimmed.change.entries == entries
    assert (trimmed.change.shed.tokens, trimmed.change.shed.messages, trimmed.change.shed.broke_at) == (0, 0, 2)
    assert trim((), Scale(), 0).fits


def test_the_oldest_are_left_out_first_and_no_more_than_are_needed():
    turns = [message for n in range(10) for message in (user(f"question {n} " + "x" * 400), assistant(f"answer {n}"))]
    entries = entries_of([system("be brief"), *turns])
    trimmed = trim(entries, Scale(), 400)
    assert trimmed.fits
    assert trimmed.change.shed.tier == "trim"
    left = trimmed.change.entries
    assert left[:2] == entries[:2]
    assert left[2:] == entries[-len(left) + 2 :]
    assert weight_of(left) + entries[1].weight.tokens > 400


def test_a_loop_without_end_keeps_the_users_words_and_its_thinking():
    first = [assistant(Thinking(text="hm", signature="s"), call("t")), user(result("t", "short"))]
    steps = [message for n in range(50) for message in (assistant(call(str(n))), user(result(str(n), LONG)))]
    entries = entries_of([user("old"), assistant("ok"), user("do it"), *first, *steps])
    trimmed = trim(entries, Scale(), 6_000)
    assert trimmed.fits
    assert trimmed.change.entries[0] is entries[0]
    assert trimmed.change.entries[1].kind == "bridge"
    assert trimmed.change.entries[2:5] == entries[2:5]
    assert trimmed.change.entries[5:] == entries[-len(trimmed.change.entries) + 5 :]


def test_a_summary_and_its_bridge_stay_where_they_are():
    messages = [user("<context_summary>…</context_summary>"), assistant("I go on."), user("a"), assistant("b" * 4_000)]
    told, bridge, *rest = entries_of([*messages, user("c"), assistant("d")])
    entries = (replace(told, kind="summary"), replace(bridge, kind="bridge"), *rest)
    trimmed = trim(entries, Scale(), 200)
    assert trimmed.change.entries == (*entries[:2], *entries[4:])
    assert (trimmed.change.shed.broke_at, trimmed.change.shed.messages) == (2, 2)


def test_what_begins_with_the_assistant_is_led_by_a_word_of_the_users():
    steps = [assistant("b" * 4_000), assistant("c"), user("d"), assistant("e")]
    entries = entries_of([user(result("lost")), *steps], pinned=[2])
    left = trim(entries, Scale(), 200).change.entries
    assert [entry.kind for entry in left] == ["bridge", "message", "message", "message"]
    assert texts_of(left)[1:] == ["c", "d", "e"]


def test_a_last_group_that_is_too_large_is_clamped_ever_harder():
    entries = entries_of(
        [user("go"), assistant(*(call(str(n)) for n in range(4))), *(tool(result(str(n), LONG)) for n in range(4))]
    )
    trimmed = trim(entries, Scale(), 1_200, recalls=True)
    assert trimmed.fits
    assert [entry.message.role for entry in trimmed.change.entries] == [entry.message.role for entry in entries]
    assert "recall(" in str(trimmed.change.entries[-1].message)


def test_pictures_are_let_go_at_the_very_last():
    entries = entries_of([user("go"), assistant(call("1")), tool(result("1", "see", PICTURE, PICTURE))])
    trimmed = trim(entries, Scale(), 900)
    assert trimmed.fits
    assert "2 images" in str(trimmed.change.entries[-1].message)


def test_what_cannot_be_made_to_fit_is_said():
    entries = entries_of([user("x" * 8_000), assistant("y" * 8_000), user("z" * 8_000)], pinned=[0])
    trimmed = trim(entries, Scale(), 1_000)
    assert not trimmed.fits
    assert trimmed.over == weight_of(trimmed.change.entries) - 1_000 > 0
    assert trimmed.change.entries[0] is entries[0]
    assert trimmed.change.entries[-1].weight.tokens <= 200


def test_the_users_own_words_are_truncated_last_of_all():
    first, last = "x" * 4_000, "z" * 4_000
    steps = [assistant(call("1")), tool(result("1", LONG * 4))]
    entries = entries_of([user(first), *steps, user(last)])
    spared = trim(entries, Scale(), 2_600)
    assert spared.fits
    assert [spared.change.entries[0], spared.change.entries[-1]] == [entries[0], entries[-1]]
    assert trim(entries, Scale(), 900).fits


def test_a_difference_tells_of_what_was_only_left_out_at_the_end():
    entries = entries_of([user("a"), assistant("b"), user("c")])
    shed = difference("trim", entries, entries[:2]).shed
    assert (shed.messages, shed.broke_at, shed.reread) == (1, 2, 0)
