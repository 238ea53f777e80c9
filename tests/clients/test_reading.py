import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.files import SAMPLES, lines, written
from ullage.clients import Compaction, Conversation, Program, Turn, read_conversations, read_text
from ullage.clients.conversation import moment
from ullage.errors import UnreadableFile
from ullage.messages import Format

pytestmark = pytest.mark.requirement("S2:formats")

KEYS = st.sampled_from(
    (
        *("type", "role", "content", "message", "messages", "uuid", "payload", "parts", "id", "cwd", "sessionId"),
        *("projectHash", "info", "agent", "input", "model", "$set", "usage", "tokens", "toolCalls", "v", "seq", "crc"),
    )
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
VALUES = st.sampled_from(["user", "assistant", "session", "message", "compaction", "response_item", "gemini", "text"])


@pytest.mark.parametrize("text", ["", "nothing", "{}", "[]", "[1, 2]", "{torn", '{"type": "other"}', "[" * 100_000])
def test_what_is_no_session_is_refused_and_says_what_would_do(text: str):
    with pytest.raises(UnreadableFile) as caught:
        read_text(text, "x.json")
    assert "x.json" in caught.value.message
    assert "claude-code" in caught.value.options


@pytest.mark.parametrize("name", ["nowhere.json", "."])
def test_a_file_that_cannot_be_opened_says_why(name: str, tmp_path: Path):
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_conversations(tmp_path / name)


def test_the_name_of_a_file_says_nothing(tmp_path: Path):
    path = written(
        tmp_path / "picture.png", {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hi."}
    )
    assert len(read_conversations(path)[0].turns) == 2


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"role": "user", "content": "caf\xe9"}\n\xff\xfe\n{"role": "assistant", "content": "Yes."}\n')
    (found,) = read_conversations(path)
    assert len(found.turns) == 2
    assert found.unread == {"lines that are not JSON": 1}


@given(st.lists(st.dictionaries(KEYS, JSON | VALUES, max_size=6), max_size=6))
def test_whatever_the_lines_hold_reading_ends_in_a_conversation_or_in_the_one_error(records: list[dict[str, object]]):
    text = "\n".join(map(json.dumps, records))
    try:
        found = read_text(text, "x")
    except UnreadableFile:
        return
    for one in found:
        assert set(one.turns_in_window()) <= set(range(len(one.turns)))
        assert all(call.place < len(one.turns) for call in one.calls)


@pytest.mark.parametrize("program", get_args(Program))
def test_each_program_is_recognised_by_its_files(program: str):
    (found,) = read_text(lines(*SAMPLES[program]), "x")
    assert found.program == program
    assert found.turns


def replaced(value: object, place: int, junk: object) -> tuple[object, int]:
    """The value with its node at `place` replaced, counted from its root, and how many it has."""
    if place == 0:
        return junk, 1
    if not isinstance(value, dict | list):
        return value, 1
    seen, changed = 1, []
    for inner in value.values() if isinstance(value, dict) else value:
        new, nodes = replaced(inner, place - seen if place >= seen else -1, junk)
        changed.append(new)
        seen += nodes
    return (dict(zip(value, changed, strict=True)) if isinstance(value, dict) else changed), seen


@given(st.sampled_from(sorted(SAMPLES)), st.integers(1, 80), JSON)
def test_whatever_stands_in_one_place_the_rest_is_read(program: str, place: int, junk: object):
    records, _ = replaced(SAMPLES[program], place, junk)
    try:
        found = read_text("\n".join(map(json.dumps, records)), "x")  # type: ignore[call-overload]
    except UnreadableFile:
        return
    for one in found:
        assert set(one.turns_in_window()) <= set(range(len(one.turns)))


def test_the_window_before_a_turn_follows_from_the_last_compaction():
    turns = tuple(Turn(number) for number in range(8))
    marks = (Compaction(place=4, left=(3, 2)), Compaction(place=7, left=(5, 6)))
    found = Conversation(program="messages", format=Format.ULLAGE, turns=turns, compactions=marks)
    assert found.turns_in_window(3) == (0, 1, 2)
    assert found.turns_in_window(4) == (3, 2)
    assert found.turns_in_window(5) == (3, 2, 4)
    assert found.turns_in_window() == (5, 6, 7)


@pytest.mark.parametrize("value", [None, True, "yesterday", 10**30, float("inf"), [], ""])
def test_an_invalid_time_is_none(value: object):
    assert moment(value) is None  # type: ignore[arg-type]


def test_times_are_read_in_words_and_in_milliseconds():
    assert str(moment("2026-11-15T17:46:31.958Z")) == "2026-11-15 17:46:31.958000+00:00"
    assert str(moment("2026-11-15T17:46:31")) == "2026-11-15 17:46:31+00:00"
    assert str(moment(0)) == "1970-01-01 00:00:00+00:00"
