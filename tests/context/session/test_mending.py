import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from context.session.sessions import archive_of, opened, summary, talked, texts, user
from ullage.context.session.session_file import locked

pytestmark = pytest.mark.requirement("S2:compact:persist")

TORN = b'{"v":1,"seq":4,"id":"ab","ts":"2026'


def aside(folder: Path, kind: str) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir() if f".{kind}-" in path.name]


@pytest.mark.requirement("S2:compact:persist")
def test_a_torn_last_line_is_set_aside_and_the_rest_kept(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 3)
    before = session.path.read_bytes()
    session.path.write_bytes(before + TORN)
    again = opened(session.path)
    assert again.records == session.records
    assert again.path.read_bytes() == before
    assert aside(tmp_path, "torn") == [TORN]
    assert again.notes[0].startswith("the last line was torn: its 35 bytes are set aside in `s.jsonl.torn-")
    assert opened(session.path).notes == ()


def test_a_whole_last_line_that_lacks_only_its_break_is_kept(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 3)
    before = session.path.read_bytes()
    session.path.write_bytes(before[:-1])
    again = opened(session.path)
    assert again.records == session.records
    assert again.path.read_bytes() == before
    assert again.notes == ()


def test_a_header_that_lacks_only_its_break_is_kept(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl")
    session.path.write_bytes(session.path.read_bytes()[:-1])
    assert opened(session.path).id == session.id


@pytest.mark.parametrize("damage", [b"\x00" * 60 + b"\n", b"{}\n", b"[1]\n", b'{"v":1,"type":"message"}\n', b"\n"])
def test_lines_that_cannot_be_read_are_set_aside_and_the_rest_kept(tmp_path: Path, damage: bytes):
    session = talked(tmp_path / "s.jsonl", 3)
    header, *lines = session.path.read_bytes().splitlines(keepends=True)
    session.path.write_bytes(b"".join([header, lines[0], damage, lines[1], damage, lines[2]]))
    again = opened(session.path)
    assert again.records == session.records
    assert aside(tmp_path, "corrupt") == [damage * 2]
    assert "set aside in `s.jsonl.corrupt-" in again.notes[0]
    assert again.verify().ok


def test_a_lost_message_is_missed(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 5)
    lines = session.path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:40] + b"\n"
    session.path.write_bytes(b"".join(lines))
    assert session.verify().faults == ("1 lines cannot be read", "message 2 cannot be found")
    again = opened(session.path)
    assert texts(again.records) == ["message 1", "message 3", "message 4", "message 5"]
    assert again.verify().faults == ("message 2 cannot be found",)


def test_a_torn_line_is_found_by_whoever_appends_next(tmp_path: Path):
    """A process that died in the midst of a write must not spoil the next one's line."""
    session = talked(tmp_path / "s.jsonl", 3)
    with session.path.open("ab") as file:
        file.write(TORN)
    session.append([user("after the crash")])
    assert texts(opened(session.path).records)[-1] == "after the crash"
    assert aside(tmp_path, "torn") == [TORN]
    assert len(session.notes) == 1
    assert [record.seq for record in session.records] == [1, 2, 3, 4]


def test_a_reader_does_not_mend(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 3)
    damaged = session.path.read_bytes() + b"no line\n" + TORN
    session.path.write_bytes(damaged)
    assert len(session.refresh()) == 3
    assert session.path.read_bytes() == damaged
    assert session.verify().faults == ("1 lines cannot be read", "the last 35 bytes are no whole line")


def test_a_line_that_is_just_being_written_is_no_fault(tmp_path: Path):
    session, line = talked(tmp_path / "s.jsonl", 3), talked(tmp_path / "t.jsonl", 4).records[3].line
    with ThreadPoolExecutor(1) as pool, session.path.open("ab", buffering=0) as file:
        with locked(session.path.with_name("s.jsonl.lock"), 5):
            file.write(line[:20])
            verified = pool.submit(session.verify)
            time.sleep(0.05)
            file.write(line[20:])
        assert verified.result().ok


def test_a_lost_header_costs_neither_the_messages_nor_the_archives(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 4)
    session.replace(0, 2, [summary()], snapshot=session.records)
    session.path.write_bytes(session.path.read_bytes().partition(b"\n")[2])
    again = opened(session.path)
    assert again.id == session.id
    assert again.notes == ("the first line was lost and is written anew",)
    assert again.records == session.records
    assert len(again.history(full=True)) == 4
    assert again.verify().ok


def test_a_header_that_is_lost_while_the_session_is_open_is_written_as_it_was(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 2, model="gpt-4o")
    session.path.write_bytes(session.path.read_bytes().partition(b"\n")[2])
    session.append([user("x")])
    assert (opened(session.path).id, opened(session.path).model) == (session.id, "gpt-4o")


def test_a_header_behind_other_lines_is_put_first(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 2)
    header, *lines = session.path.read_bytes().splitlines(keepends=True)
    session.path.write_bytes(b"".join([*lines, header]))
    again = opened(session.path)
    assert again.path.read_bytes() == b"".join([header, *lines])
    assert again.id == session.id


def test_what_was_left_unfinished_is_removed(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 4)
    session.replace(0, 2, [summary()], snapshot=session.records)
    left = (session.path.with_name("s.jsonl.tmp"), archive_of(session) / "0002-0123456789abcdef.jsonl.tmp")
    other = tmp_path / "mine.tmp"
    for path in (*left, other):
        path.write_bytes(b"half")
    opened(session.path)
    assert not any(path.exists() for path in left)
    assert other.exists()


def test_a_line_changed_by_hand_is_kept_and_told_of(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 3)
    session.path.write_bytes(session.path.read_bytes().replace(b"message 2", b"something else"))
    again = opened(session.path)
    assert texts(again.records) == ["message 1", "something else", "message 3"]
    assert again.verify().faults == ("message 2 has another checksum than its bytes",)
    again.replace(0, 2, [summary()], snapshot=again.records)
    assert again.verify().faults == ("message 2 has another checksum than its bytes",)


def test_messages_in_another_order_are_told_of(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 6)
    lines = session.path.read_bytes().splitlines(keepends=True)
    session.path.write_bytes(b"".join([lines[0], lines[2], lines[1], lines[6]]))
    assert session.verify().faults == (
        "message 1 cannot be found",
        "message 1 stands behind message 2",
        "messages 2 to 5 cannot be found",
    )


def test_a_session_with_a_strange_id_keeps_to_its_folder(tmp_path: Path):
    session = talked(tmp_path / "deep" / "s.jsonl", 3)
    session.path.write_bytes(session.path.read_bytes().replace(session.id.encode(), b"../../away", 1))
    again = opened(session.path)
    again.replace(0, 2, [summary()], snapshot=again.records)
    assert {path.name for path in tmp_path.iterdir()} == {"deep"}
    assert len(again.history(full=True)) == 3
