import contextlib
import json
import os
import resource
import stat
from collections.abc import Generator
from errno import EACCES, ENOSPC, EROFS
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from context.session.crashing import Quick
from context.session.sessions import START, Clock, archive_of, lines_of, opened, summary, talked, texts, user
from ullage.context.session import Files, Session
from ullage.errors import InvalidArguments, StoreFailed, UnreadableFile
from ullage.messages import Format

pytestmark = pytest.mark.requirement("S2:compact:persist")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_session_is_a_file_that_nobody_else_reads(tmp_path: Path):
    session = opened(tmp_path / "runs" / "ünder way.jsonl", format=Format.ANTHROPIC, model="claude-sonnet-4-5")
    assert mode(session.path) == 0o600
    assert [line["type"] for line in lines_of(session)] == ["session"]
    assert (session.format, session.model) == (Format.ANTHROPIC, "claude-sonnet-4-5")
    assert session.records == ()
    assert session.notes == ()
    assert session.verify().ok


@pytest.mark.requirement("S2:compact:persist")
def test_messages_are_lines_as_they_are_documented(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl")
    (record,) = session.append([user("hello")], pinned=True)
    line = lines_of(session)[1]
    assert line == {
        "v": 1,
        "seq": 1,
        "id": record.id,
        "ts": START.isoformat(),
        "type": "message",
        "pinned": True,
        "message": {"role": "user", "content": "hello"},
        "crc": line["crc"],
    }
    assert (record.seq, record.kind, record.pinned, record.generation) == (1, "message", True, 0)
    assert session.path.read_bytes().endswith(record.line)


def test_what_was_said_is_there_when_the_session_is_opened_again(tmp_path: Path):
    first = talked(tmp_path / "s.jsonl", format=Format.OPENAI_CHAT, model="gpt-4o")
    again = opened(tmp_path / "s.jsonl")
    assert again.records == again.history() == first.records
    assert (again.id, again.format, again.model) == (first.id, Format.OPENAI_CHAT, "gpt-4o")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "half a surrogate: \ud83d, and a whole one: 😀"},
        {"role": "user", "content": "breaks: \r\n \u2028 \x00 \x1f", "n": [1.5, 1e300, -0.0, 10**30, None, True]},
        {"role": "user", "content": [{"type": "text", "text": "}\n{"}], "crc": "deadbeef"},
        {},
        MappingProxyType({"role": "user"}),
    ],
)
def test_a_message_comes_back_as_it_was_given(tmp_path: Path, message: dict[str, Any]):
    session = opened(tmp_path / "s.jsonl")
    session.append([message])
    (record,) = opened(tmp_path / "s.jsonl").records
    assert json.dumps(record.message) == json.dumps(dict(message))
    assert session.verify().ok


def test_what_is_no_json_is_refused_and_nothing_is_written(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl")
    before = session.path.read_bytes()
    with pytest.raises(InvalidArguments, match="must be JSON"):
        session.append([user("fine"), {"role": "user", "content": b"bytes"}])  # pyright: ignore[reportArgumentType]
    assert session.path.read_bytes() == before
    assert session.append([]) == ()


def test_the_same_words_said_twice_are_two_messages(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl")
    first, second = session.append([user("yes"), user("yes")])
    assert first.id != second.id
    assert (first.seq, second.seq) == (1, 2)


def test_records_stay_the_same_tuple_as_long_as_nothing_changes(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 2)
    before = session.records
    assert session.records is before
    assert session.refresh() is before
    session.append([user("more")])
    assert before == session.records[:2]


def test_another_reader_sees_what_is_appended_and_what_is_let_go(tmp_path: Path):
    writer, reader = talked(tmp_path / "s.jsonl", 4), opened(tmp_path / "s.jsonl")
    writer.append([user("more")])
    assert texts(reader.records)[-1] == "message 4"
    assert texts(reader.refresh())[-1] == "more"
    writer.replace(0, 3, [summary()], snapshot=writer.records)
    assert texts(reader.refresh())[1:] == ["message 4", "more"]


def test_a_line_that_is_still_being_written_is_not_seen_and_not_touched(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 2)
    line = opened(tmp_path / "other.jsonl").append([user("late")])[0].line
    for part, seen in ((line[:20], 2), (line[20:-1], 2), (line[-1:], 3)):
        with session.path.open("ab") as file:
            file.write(part)
        assert len(session.refresh()) == seen


def test_nobody_writes_into_a_file_that_was_swapped_out(tmp_path: Path):
    one, other = talked(tmp_path / "s.jsonl", 4), opened(tmp_path / "s.jsonl")
    one.replace(0, 2, [summary()], snapshot=one.records)
    other.append([user("from another")])
    assert texts(one.refresh())[1:] == ["message 3", "message 4", "from another"]
    assert [record.seq for record in one.history(full=True)] == [1, 2, 3, 4, 5]


def test_a_file_that_somebody_changed_in_place_is_read_anew(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 3)
    changed = session.path.read_bytes().replace(b"message 2", b"MESSAGE 2")
    session.path.write_bytes(changed)
    os.utime(session.path, ns=(0, 0))
    assert texts(session.refresh()) == ["message 1", "MESSAGE 2", "message 3"]
    assert session.verify().faults == ("message 2 has another checksum than its bytes",)


def test_a_changed_last_line_with_more_behind_it_is_read_anew(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 2)
    line = opened(tmp_path / "other.jsonl").append([user("x")])[0].line
    session.path.write_bytes(session.path.read_bytes().replace(b"message 2", b"MESSAGE 2") + line)
    assert texts(session.refresh()) == ["message 1", "MESSAGE 2", "x"]


def test_the_format_of_a_session_does_not_change(tmp_path: Path):
    opened(tmp_path / "s.jsonl", format=Format.GEMINI)
    assert opened(tmp_path / "s.jsonl", format=Format.GEMINI).format is Format.GEMINI
    with pytest.raises(InvalidArguments, match="in the format `gemini`, not `anthropic`"):
        opened(tmp_path / "s.jsonl", format=Format.ANTHROPIC)


def test_a_format_that_nobody_knows_yet_is_none(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl", format=Format.GEMINI)
    session.path.write_bytes(session.path.read_bytes().replace(b"gemini", b"tomorr"))
    assert opened(tmp_path / "s.jsonl").format is None


FOREIGN = {
    "another program's session": b'{"type":"session","version":3,"id":"x"}\n{"type":"message","message":{}}\n',
    "lines of JSON": b'{"type":"user","message":{"role":"user"}}\n[1]\n',
    "JSON of another kind": b"[]\n",
    "a note": b"Dear diary,\nnothing happened.\n",
    "bytes": bytes(range(256)) * 10,
    "zeros": bytes(4096),
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
def test_a_file_that_is_no_session_is_refused_and_left_as_it_is(tmp_path: Path, data: bytes):
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    with pytest.raises(UnreadableFile, match="is not a session of Ullage's"):
        opened(path)
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_file_is_begun_and_keeps_its_mode(tmp_path: Path):
    path = tmp_path / "s.jsonl"
    path.touch(mode=0o640)
    path.chmod(0o640)
    session = talked(path, 3)
    session.replace(0, 2, [summary()], snapshot=session.records)
    assert mode(path) == 0o640
    assert mode(archive_of(session)) == 0o700
    assert {mode(kept) for kept in archive_of(session).iterdir()} == {0o600}


def test_a_link_stays_a_link(tmp_path: Path):
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    session = talked(tmp_path / "link.jsonl", 3)
    session.replace(0, 2, [summary()], snapshot=session.records)
    assert (tmp_path / "link.jsonl").is_symlink()
    assert opened(tmp_path / "real.jsonl").records == session.records


def test_a_file_that_is_gone_is_said_to_be(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 2)
    session.path.unlink()
    with pytest.raises(StoreFailed, match="is gone"):
        session.append([user("x")])
    with pytest.raises(StoreFailed, match="is gone"):
        session.refresh()


def test_a_folder_is_no_session(tmp_path: Path):
    with pytest.raises(StoreFailed, match="Is a directory"):
        opened(tmp_path)


class Barred(Quick):
    """A disk on which nothing may be written, to this or that error."""

    def __init__(self, number: int) -> None:
        self._number = number

    def locked(self, path: Path):
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize("number", [EACCES, EROFS])
def test_where_nothing_may_be_written_a_session_can_be_read(tmp_path: Path, number: int):
    written = talked(tmp_path / "s.jsonl", 3)
    with written.path.open("ab") as file:
        file.write(b"half a line")
    session = opened(written.path, files=Barred(number))
    assert session.records == written.records
    assert os.strerror(number) in session.notes[0]
    for change in (lambda: session.append([user("x")]), session.flush, lambda: session.restore(0)):
        with pytest.raises(StoreFailed, match=os.strerror(number)):
            change()
    session.close()


def test_where_nothing_may_be_written_no_session_is_begun(tmp_path: Path):
    with pytest.raises(StoreFailed, match=f"s.jsonl` cannot be read or written: {os.strerror(EROFS)}"):
        opened(tmp_path / "s.jsonl", files=Barred(EROFS))
    written = talked(tmp_path / "t.jsonl", 1)
    with pytest.raises(StoreFailed, match=os.strerror(ENOSPC)):
        opened(written.path, files=Barred(ENOSPC))


class Closed(Quick):
    """A folder into which nobody may look."""

    def stamp(self, path: Path):
        raise OSError(EACCES, os.strerror(EACCES))


def test_where_nothing_may_be_read_nothing_is_opened(tmp_path: Path):
    with pytest.raises(StoreFailed, match=os.strerror(EACCES)):
        opened(tmp_path / "s.jsonl", files=Closed())
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailed, match="Not a directory"):
        opened(tmp_path / "file" / "s.jsonl")


class Counting(Files):
    """Counts how often it was waited for."""

    def __init__(self) -> None:
        self.syncs = 0

    def sync(self, path: Path) -> None:
        self.syncs += 1
        super().sync(path)


def test_appended_lines_become_durable_together(tmp_path: Path):
    clock, files = Clock(), Counting()
    session = opened(tmp_path / "s.jsonl", clock=clock, files=files)
    begun = files.syncs
    for _ in range(5):
        session.append([user("x")])
        clock.pass_by(0.1)
    assert files.syncs == begun
    clock.pass_by(1)
    session.append([user("x")])
    assert files.syncs == begun + 1
    session.append([user("x")], durable=True)
    assert files.syncs == begun + 2
    session.close()
    assert files.syncs == begun + 2
    session.flush()
    assert files.syncs == begun + 2
    with session:
        session.append([user("x")])
    assert files.syncs == begun + 3


class Full(Quick):
    """A disk with room for so many bytes."""

    def __init__(self, room: int) -> None:
        self.room = room

    def create(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        super().create(path, data[: self.room], mode)
        self.room -= len(data)
        if self.room < 0:
            raise OSError(ENOSPC, os.strerror(ENOSPC))


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 5)
    before = session.path.read_bytes()
    for room in (0, 100, 1_000):
        full = opened(session.path, files=Full(room))
        with pytest.raises(StoreFailed, match="No space left"):
            full.replace(0, 4, [summary()], snapshot=full.records)
        assert session.path.read_bytes() == before
        assert not list(tmp_path.rglob("*.tmp"))
    assert opened(session.path).verify().ok


@contextlib.contextmanager
def room_for(size: int) -> Generator[None]:
    """No file of this process grows beyond that, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_lines_that_do_not_fit_on_the_disk_are_taken_back(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 2)
    before = session.path.read_bytes()
    with room_for(len(before) + 50), pytest.raises(StoreFailed, match="No space left"):
        session.append([user("x" * 100)])
    assert session.path.read_bytes() == before
    session.append([user("there is room again")])
    assert len(opened(session.path).records) == 3


def test_a_session_of_real_files_is_opened_by_its_path_alone(tmp_path: Path):
    with Session.open(str(tmp_path / "s.jsonl")) as session:
        session.append([user("x")], durable=True)
    assert texts(Session.open(tmp_path / "s.jsonl").records) == ["x"]
