import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ullage.clients import Conversation, read_conversations
from ullage.context import Session
from ullage.context.session import Draft
from ullage.messages import Format

pytestmark = [pytest.mark.requirement("S2:formats")]


def ticking() -> Iterator[datetime]:
    now = datetime(2026, 11, 15, tzinfo=UTC)
    while True:
        now += timedelta(seconds=1)
        yield now


def said(number: int) -> dict[str, str]:
    return {"role": "assistant" if number % 2 else "user", "content": f"word {number}"}


def begun(path: Path, *, archive: bool = True) -> Session:
    times = ticking()
    session = Session.open(
        path, format=Format.ANTHROPIC, model="claude-sonnet-4-5", archive=archive, clock=lambda: next(times)
    )
    session.append([said(0)], pinned=True)
    for number in range(1, 6):
        session.append([said(number)])
    return session


def compacted(session: Session, *, keep: int) -> None:
    """The first messages become a summary, and the last `keep` stay."""
    records = session.records
    summary = Draft(message={"role": "user", "content": f"summary {session.generation + 1}"}, kind="summary")
    session.replace(0, len(records), [summary, *records[-keep:]], snapshot=records)


def texts(found: Conversation) -> list[str]:
    return [native["content"] for native in found.natives]  # type: ignore[index]


def read(path: Path) -> Conversation:
    (found,) = read_conversations(path)
    return found


def test_a_session_is_read_and_not_touched(tmp_path: Path):
    begun(tmp_path / "s.jsonl").close()
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    found = read(tmp_path / "s.jsonl")
    assert (found.program, found.format, found.model) == ("ullage", Format.ANTHROPIC, "claude-sonnet-4-5")
    assert [turn.pinned for turn in found.turns] == [True, *[False] * 5]
    assert [call.place for call in found.calls] == [1, 3, 5]
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_what_was_let_go_is_read_from_the_archives_in_the_order_in_which_it_came(tmp_path: Path):
    session = begun(tmp_path / "s.jsonl")
    compacted(session, keep=2)
    session.append([said(6)])
    session.append([said(7)])
    compacted(session, keep=1)
    session.append([said(8)])
    found = read(tmp_path / "s.jsonl")
    assert [turn.native["content"] for turn in found.turns] == [  # type: ignore[index]
        *(f"word {number}" for number in range(6)),
        "summary 1",
        "word 6",
        "word 7",
        "summary 2",
        "word 8",
    ]
    assert [(one.place, one.left) for one in found.compactions] == [(7, (6, 4, 5)), (10, (9, 8))]
    assert texts(found) == ["summary 2", "word 7", "word 8"]
    assert [call.place for call in found.calls] == [1, 3, 5, 8]


@pytest.mark.parametrize("harm", ["gone", "never kept", "torn"])
def test_without_an_archive_the_file_is_all_there_is(tmp_path: Path, harm: str):
    session = begun(tmp_path / "s.jsonl", archive=harm != "never kept")
    compacted(session, keep=2)
    for archive in tmp_path.glob("*.archive-*/*"):
        archive.write_bytes(b"\xff") if harm == "torn" else archive.unlink()
    found = read(tmp_path / "s.jsonl")
    assert found.compactions == ()
    assert texts(found) == ["summary 1", "word 4", "word 5"]


def test_an_archive_outside_its_folder_is_not_looked_for(tmp_path: Path):
    session = begun(tmp_path / "s.jsonl")
    compacted(session, keep=2)
    path = tmp_path / "s.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["type"] == "compaction":
            line["archive"]["file"] = "../s.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert read(path).compactions == ()


def test_a_session_without_a_header_is_read_as_neutral(tmp_path: Path):
    begun(tmp_path / "s.jsonl").close()
    path = tmp_path / "s.jsonl"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
    found = read(path)
    assert (found.format, found.model, len(found.turns)) == (Format.ULLAGE, None, 6)
