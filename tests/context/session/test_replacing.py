from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from context.session.sessions import archive_of, lines_of, opened, summary, talked, texts, user
from ullage.context.session import Draft, Session, SessionChanged
from ullage.errors import InvalidArguments

pytestmark = pytest.mark.requirement("S2:compact:persist")


def compact(session: Session, first: int, last: int, *kept: int, **options: Any):  # noqa: ANN401 - as `replace` has them
    records = session.records
    return session.replace(first, last, [summary(), *(records[at] for at in kept)], snapshot=records, **options)


@pytest.mark.requirement("S2:compact:persist")
def test_the_summary_takes_the_place_of_the_originals_which_lie_in_an_archive(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 6)
    before = session.path.read_bytes().splitlines(keepends=True)
    made = compact(session, 0, 4, 2, meta={"tier": "summarise"})
    assert texts(session.records) == [
        "<context_summary>\nwhat was said\n</context_summary>",
        *(f"message {n}" for n in (3, 5, 6)),
    ]
    assert made.archive is not None
    archive = archive_of(session) / made.archive.file
    assert archive.read_bytes() == b"".join(before[1:5])
    assert made.archive.sha256 == sha256(archive.read_bytes()).hexdigest()
    assert (made.archive.lines, made.archive.bytes) == (4, len(archive.read_bytes()))
    marked = lines_of(session)[1]
    assert (marked["type"], marked["generation"], marked["meta"]) == ("compaction", 1, {"tier": "summarise"})
    assert marked["archive"]["file"] == made.archive.file
    assert session.generation == made.number == 1
    assert session.generations() == (made,)


def test_what_stays_keeps_its_bytes(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 6)
    before = session.path.read_bytes().splitlines(keepends=True)
    compact(session, 0, 4, 2)
    after = session.path.read_bytes().splitlines(keepends=True)
    assert after[0] == before[0]
    assert after[3:] == [before[3], *before[5:]]


def test_only_what_differs_is_archived(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 6)
    records = session.records
    masked = Draft(message=user("masked"), of=records[3].id)
    made = session.replace(0, 6, [*records[:3], masked, *records[4:]], snapshot=records)
    assert made.archive is not None
    assert made.archive.lines == 1
    changed = session.records[3]
    assert (changed.seq, changed.generation, changed.kind) == (4, 1, "message")
    assert session.records[:3] == records[:3]
    assert texts(session.history(full=True)) == [f"message {n}" for n in range(1, 7)]


def test_a_message_can_be_put_between_others(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 3)
    records = session.records
    bridge = Draft(message={"role": "assistant", "content": "Understood."}, kind="bridge")
    session.replace(0, 3, [records[0], bridge, *records[1:]], snapshot=records)
    assert texts(session.records) == ["message 1", "Understood.", "message 2", "message 3"]
    assert session.history(full=True) == records


def test_messages_can_be_left_out_without_a_word(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 3)
    session.replace(0, 3, [], snapshot=session.records)
    assert session.records == ()
    session.append([user("and on")])
    assert session.records[0].seq == 4
    assert len(session.history(full=True)) == 4


def test_a_summary_has_the_number_of_the_last_message_it_stands_for(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 6)
    compact(session, 0, 4)
    assert [record.seq for record in session.records] == [4, 5, 6]
    assert session.append([user("more")])[0].seq == 7


@pytest.mark.requirement("S2:compact:persist")
def test_what_is_appended_while_a_summary_is_made_survives(tmp_path: Path):
    session, other = talked(tmp_path / "s.jsonl", 4), opened(tmp_path / "s.jsonl")
    snapshot = session.records
    other.append([user("from another process")])
    session.append([user("from this one")])
    session.replace(0, 3, [summary()], snapshot=snapshot)
    assert texts(session.records)[1:] == ["message 4", "from another process", "from this one"]
    assert len(session.history(full=True)) == 6


def test_of_two_compactors_the_second_is_refused_and_writes_nothing(tmp_path: Path):
    one, other = talked(tmp_path / "s.jsonl", 6), opened(tmp_path / "s.jsonl")
    compact(one, 0, 4)
    before = one.path.read_bytes()
    with pytest.raises(SessionChanged, match="replaced in"):
        compact(other, 1, 3)
    assert one.path.read_bytes() == before
    assert other.records == one.records
    assert len(list(archive_of(one).iterdir())) == 1


def test_two_compactors_that_want_different_messages_both_get_their_way(tmp_path: Path):
    one, other = talked(tmp_path / "s.jsonl", 8), opened(tmp_path / "s.jsonl")
    compact(one, 0, 3)
    assert compact(other, 4, 6).number == 2
    assert texts(other.records)[1:3] == ["message 4", "<context_summary>\nwhat was said\n</context_summary>"]
    one.refresh()
    assert [record.seq for record in one.history(full=True)] == list(range(1, 9))


def test_messages_that_no_longer_stand_together_are_not_replaced(tmp_path: Path):
    one, other = talked(tmp_path / "s.jsonl", 6), opened(tmp_path / "s.jsonl")
    records = one.records
    one.replace(1, 3, [records[2], summary(), records[1]], snapshot=records)
    for first, last in ((0, 4), (2, 4), (1, 3)):
        with pytest.raises(SessionChanged):
            other.replace(first, last, [summary()], snapshot=records)


def test_messages_at_the_end_that_are_gone_are_not_replaced(tmp_path: Path):
    one, other = talked(tmp_path / "s.jsonl", 4), opened(tmp_path / "s.jsonl")
    one.replace(3, 4, [], snapshot=one.records)
    with pytest.raises(SessionChanged):
        compact(other, 2, 4)


def test_a_message_that_somebody_changed_in_the_file_meanwhile_is_not_replaced(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 4)
    snapshot = session.records
    edited = session.path.read_bytes().replace(b"message 2", b"MESSAGE 2")
    session.path.write_bytes(edited + opened(tmp_path / "t.jsonl").append([user("and more behind it")])[0].line)
    with pytest.raises(SessionChanged):
        session.replace(0, 3, [summary()], snapshot=snapshot)
    assert texts(session.records)[1] == "MESSAGE 2"


@pytest.mark.parametrize(("first", "last"), [(2, 2), (3, 1), (9, 12)])
def test_nothing_cannot_be_replaced(tmp_path: Path, first: int, last: int):
    session = talked(tmp_path / "s.jsonl", 4)
    with pytest.raises(InvalidArguments):
        session.replace(first, last, [summary()], snapshot=session.records)


def test_only_replaced_records_can_be_kept_and_each_once(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 4)
    records = session.records
    for values in ([records[3]], [records[0], records[0]]):
        with pytest.raises(InvalidArguments, match="each once"):
            session.replace(0, 2, values, snapshot=records)
    with pytest.raises(InvalidArguments, match="nothing would be replaced"):
        session.replace(0, 2, records[:2], snapshot=records)


@pytest.mark.requirement("S2:compact:persist")
def test_without_an_archive_the_originals_are_gone_and_the_record_says_so(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 6, archive=False)
    made = compact(session, 0, 4)
    assert not session.keeps
    assert made.archive is None
    assert lines_of(session)[1]["archive"] is None
    assert not archive_of(session).exists()
    assert b"message 2" not in session.path.read_bytes()
    assert texts(session.history(full=True)) == texts(session.records)
    verified = session.verify()
    assert verified.ok
    assert verified.notes == ("what generation 1 removed was not archived",)
    assert session.generations() == (made,)
    with pytest.raises(InvalidArguments, match="no archive leads to generation 0"):
        session.restore(0)
    compact(session, 0, 2)
    assert session.generation == 2


def test_a_summary_of_a_summary_needs_one_line_and_leads_back_to_the_first_message(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 4)
    for number in range(5):
        session.append([user(f"more {number}")])
        compact(session, 0, 3)
    assert [line["type"] for line in lines_of(session)].count("compaction") == 1
    assert [made.number for made in session.generations()] == [1, 2, 3, 4, 5]
    assert [record.seq for record in session.history(full=True)] == list(range(1, 10))


def test_two_sessions_in_one_folder_do_not_share_archives(tmp_path: Path):
    one, other = talked(tmp_path / "a.jsonl", 4), talked(tmp_path / "b.jsonl", 4)
    compact(one, 0, 3)
    compact(other, 0, 3)
    assert archive_of(one) != archive_of(other)
    one.path.unlink()
    begun_anew = talked(tmp_path / "a.jsonl", 1)
    assert archive_of(begun_anew) not in tmp_path.iterdir()


NEWER = b'{"v":9,"type":"message","message":"in another shape"}\n'
UNKNOWN = b'{"v":1,"seq":2,"id":"f00","type":"bookmark","at":3}\n'


def test_lines_of_unknown_types_and_newer_versions_are_passed_through(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 2)
    with session.path.open("ab") as file:
        file.write(UNKNOWN + NEWER)
    session.append([user("message 3"), user("message 4")])
    before = session.path.read_bytes()
    compact(session, 0, 3)
    after = session.path.read_bytes()
    assert UNKNOWN in after
    assert NEWER in after
    assert len(session.records) == 2
    compact(session, 0, 2)
    assert session.path.read_bytes().count(UNKNOWN) == 1
    session.restore(1)
    assert session.path.read_bytes() == after
    session.restore(0)
    assert session.path.read_bytes() == before


def test_a_newer_version_of_a_message_is_a_message(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl")
    with session.path.open("ab") as file:
        file.write(b'{"v":2,"seq":1,"id":"a1","type":"message","message":{"content":"x"},"new":1}\n')
    assert texts(session.refresh()) == ["x"]
