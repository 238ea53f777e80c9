import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.session.sessions import archive_of, opened, summary, talked, texts, user
from ullage.context.session import Session
from ullage.errors import InvalidArguments

pytestmark = pytest.mark.requirement("S2:compact:persist")


def twice_compacted(path: Path) -> tuple[Session, list[bytes]]:
    """And the file as it was at every generation."""
    session = talked(path, 6)
    states = [session.path.read_bytes()]
    for _ in range(2):
        records = session.records
        session.replace(0, 3, [summary(), records[1]], snapshot=records)
        states.append(session.path.read_bytes())
    return session, states


@pytest.mark.requirement("S2:compact:persist")
@pytest.mark.parametrize("generation", [0, 1])
def test_restoring_brings_back_the_file_byte_for_byte(tmp_path: Path, generation: int):
    session, states = twice_compacted(tmp_path / "s.jsonl")
    assert session.restore(generation) == 2
    assert session.path.read_bytes() == states[generation]
    assert session.generation == generation


def test_what_was_appended_since_stands_behind_it(tmp_path: Path):
    session, states = twice_compacted(tmp_path / "s.jsonl")
    (late,) = session.append([user("late")])
    session.restore(0)
    assert session.path.read_bytes() == states[0] + late.line
    assert texts(session.records)[-1] == "late"


def test_restoring_can_be_undone_with_what_was_appended_in_between(tmp_path: Path):
    session, states = twice_compacted(tmp_path / "s.jsonl")
    was = session.restore(0)
    (late,) = session.append([user("late")])
    session.restore(was)
    assert session.path.read_bytes() == states[2] + late.line
    session.restore(0)
    session.restore(1)
    assert session.path.read_bytes() == states[1] + late.line
    assert session.verify().ok


def test_restoring_the_present_changes_nothing(tmp_path: Path):
    session, states = twice_compacted(tmp_path / "s.jsonl")
    assert session.restore(2) == 2
    assert session.path.read_bytes() == states[2]


def test_after_a_restore_another_way_can_be_taken_and_left_again(tmp_path: Path):
    session, states = twice_compacted(tmp_path / "s.jsonl")
    session.restore(0)
    session.replace(1, 6, [summary("another way")], snapshot=session.records)
    another = session.path.read_bytes()
    session.restore(2)
    assert session.path.read_bytes() == states[2]
    session.restore(0)
    assert session.path.read_bytes() == states[0]
    # The latest that led through a generation 1 is not the one that was there first.
    session.restore(1)
    assert session.path.read_bytes() == states[1] != another


@pytest.mark.parametrize("generation", [-1, 3, 99])
def test_a_generation_that_never_was_is_refused_with_those_that_were(tmp_path: Path, generation: int):
    session, states = twice_compacted(tmp_path / "s.jsonl")
    with pytest.raises(InvalidArguments, match=f"no archive leads to generation {generation}") as caught:
        session.restore(generation)
    assert caught.value.options == ("0", "1", "2")
    assert session.path.read_bytes() == states[2]


def test_without_its_archive_a_generation_cannot_be_undone_but_later_ones_can(tmp_path: Path):
    session, states = twice_compacted(tmp_path / "s.jsonl")
    first = session.generations()[0].archive
    assert first is not None
    (archive_of(session) / first.file).unlink()
    with pytest.raises(InvalidArguments):
        session.restore(0)
    assert session.verify().faults == (f"generation 1 cannot be undone: the archive `{first.file}` does not exist",)
    assert texts(session.history(full=True))[1:] == ["message 2", "message 4", "message 5", "message 6"]
    session.restore(1)
    assert session.path.read_bytes() == states[1]
    session.restore(2)
    assert session.path.read_bytes() == states[2]


def test_an_archive_that_was_changed_is_not_believed(tmp_path: Path):
    session, states = twice_compacted(tmp_path / "s.jsonl")
    second = session.generations()[1].archive
    assert second is not None
    path = archive_of(session) / second.file
    path.write_bytes(path.read_bytes().replace(b"message 4", b"message X"))
    with pytest.raises(InvalidArguments):
        session.restore(1)
    assert session.verify().faults == (f"generation 2 cannot be undone: the archive `{second.file}` was changed",)
    assert session.path.read_bytes() == states[2]


def test_an_archive_outside_the_folder_is_never_read(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 4)
    made = session.replace(0, 3, [summary()], snapshot=session.records)
    assert made.archive is not None
    name = f"../{archive_of(session).name}/{made.archive.file}"
    session.path.write_bytes(session.path.read_bytes().replace(made.archive.file.encode(), name.encode()))
    again = opened(session.path)
    assert len(again.records) == 2
    assert any("does not exist" in fault for fault in again.verify().faults)


def test_without_archives_a_restore_keeps_no_copy(tmp_path: Path):
    session, states = twice_compacted(tmp_path / "s.jsonl")
    frugal = opened(session.path, archive=False)
    frugal.restore(0)
    assert session.path.read_bytes() == states[0]
    with pytest.raises(InvalidArguments):
        frugal.restore(2)


def test_a_chain_that_leads_in_a_circle_ends(tmp_path: Path):
    session = talked(tmp_path / "s.jsonl", 4)
    session.replace(0, 3, [summary()], snapshot=session.records)
    marked = session.path.read_bytes().splitlines(keepends=True)[1]
    # A generation 2 whose archive holds a generation 2.
    looped = marked.replace(b'"generation":1', b'"generation":2')
    digest = sha256(looped).hexdigest()
    (archive_of(session) / f"0002-{digest[:16]}.jsonl").write_bytes(looped)
    archive = json.loads(marked)["archive"]
    led = looped.replace(archive["sha256"].encode(), digest.encode())
    led = led.replace(archive["file"].encode(), f"0002-{digest[:16]}.jsonl".encode())
    session.path.write_bytes(session.path.read_bytes().replace(marked, led))
    again = opened(session.path)
    assert again.generation == 2
    assert len(again.history(full=True)) == 2
    assert "generation 2 cannot be undone: it leads nowhere" in again.verify().faults


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(1, 3)),
        st.tuples(st.just("compact"), st.integers(0, 8), st.integers(1, 8), st.sets(st.integers(0, 8)), st.booleans()),
        st.tuples(st.just("restore"), st.integers(0, 6)),
        st.tuples(st.just("reopen")),
    ),
    max_size=14,
)


@pytest.mark.requirement("S2:compact:persist")
@settings(max_examples=60)
@given(steps=STEPS)
def test_whatever_is_done_every_message_is_there_and_every_state_comes_back(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, ...]]
):
    session = opened(tmp_path_factory.mktemp("any") / "s.jsonl")
    said: list[bytes] = []
    states = {0: (session.path.read_bytes(), 0)}
    """The file at every generation that the archives lead to, and how many messages there were."""
    for kind, *values in steps:
        match kind, values:
            case "say", [int() as number]:
                said += [record.line for record in session.append([user(f"{len(said)}") for _ in range(number)])]
            case "compact", [int() as first, int() as length, set() as kept, bool() as masks]:
                session = compacted(session, first, length, kept, masks)
                states[session.generation] = session.path.read_bytes(), len(said)
            case "restore", [int() as number] if number <= session.generation:
                session.restore(number)
                states = {one: state for one, state in states.items() if one <= number}
            case _:
                session = opened(session.path)
        assert [record.line for record in session.history(full=True)] == said
        assert session.verify().ok
    for number, (state, before) in states.items():
        session.restore(number)
        assert session.path.read_bytes() == state + b"".join(said[before:])


def compacted(session: Session, first: int, length: int, kept: set[int], masks: bool) -> Session:  # noqa: FBT001
    records = session.records
    old = records[first : first + length]
    staying = [record for place, record in enumerate(old) if place in kept]
    if old and (masks or len(staying) < len(old)):
        values = [summary(), *staying] if masks else staying
        session.replace(first, first + length, values, snapshot=records)
    return session
