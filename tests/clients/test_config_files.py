import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from ullage.clients.configs import ChangeRecord, EditRefused, FileChanged, Put, UndoFolder, edit_content, replace_file

pytestmark = pytest.mark.requirement("U:scan")

OURS = ("mcpServers", "ullage")


def change(path: Path, *, program: str = "x", key: tuple[str, ...] = OURS) -> ChangeRecord:
    before = path.read_bytes() if path.exists() else None
    after = edit_content(before, "json", [Put(key, {"command": "u"})])
    return ChangeRecord(program=program, file=str(path), format="json", before=before, after=after, added=(key,))


def test_replacing_keeps_mode_and_link(tmp_path: Path):
    target, link = tmp_path / "real" / "settings.json", tmp_path / "settings.json"
    target.parent.mkdir()
    target.write_bytes(b"{}")
    target.chmod(0o640)
    link.symlink_to(target)
    replace_file(str(link), b"{}", b'{"a": 1}')
    assert link.is_symlink()
    assert target.read_bytes() == b'{"a": 1}'
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [one.name for one in target.parent.iterdir()] == ["settings.json"]


def test_a_file_that_changed_is_left_alone(tmp_path: Path):
    path = tmp_path / "f"
    path.write_bytes(b"theirs")
    with pytest.raises(FileChanged):
        replace_file(str(path), b"mine", b"new")
    with pytest.raises(FileChanged):
        replace_file(str(path), None, b"new")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"theirs", [path])


def test_a_change_while_writing_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda descriptor: path.write_bytes(b"theirs"))
    with pytest.raises(FileChanged):
        replace_file(str(path), b"old", b"new")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"theirs", [path])


def test_a_read_only_file_and_a_full_disk_leave_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, undo = tmp_path / "f", UndoFolder(tmp_path / "undo")
    path.write_bytes(b"{}")
    path.chmod(0o444)
    with pytest.raises(EditRefused):
        undo.change(change(path))
    assert undo.records() == ()
    path.chmod(0o644)

    fsync = os.fsync

    def full(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().parent == tmp_path:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        undo.change(change(path))
    assert path.read_bytes() == b"{}"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["f", "undo"]
    assert undo.records() == ()


def test_undo_restores_the_bytes_and_forgets_the_record(tmp_path: Path):
    path, undo = tmp_path / "f", UndoFolder(tmp_path / "undo")
    before = b'\xef\xbb\xbf{ // mine\r\n "mcpServers": {} }'
    path.write_bytes(before)
    undo.change(change(path))
    (record,) = undo.records("x")
    assert stat.S_IMODE(next((tmp_path / "undo").glob("*.json")).stat().st_mode) == 0o600
    assert undo.undo(record).is_exact
    assert path.read_bytes() == before
    assert undo.records() == ()


def test_a_file_that_the_change_made_is_removed_again(tmp_path: Path):
    path, undo = tmp_path / "deep" / "f", UndoFolder(tmp_path / "undo")
    undo.change(change(path))
    assert path.exists()
    undo.undo(undo.records()[0])
    assert not path.exists()


def test_a_second_change_is_taken_back_with_the_first(tmp_path: Path):
    path, undo = tmp_path / "f", UndoFolder(tmp_path / "undo")
    path.write_bytes(b'{"a":1}')
    undo.change(change(path))
    undo.change(change(path, key=("mcpServers", "second")))
    (record,) = undo.records()
    assert undo.undo(record).is_exact
    assert path.read_bytes() == b'{"a":1}'


def test_of_two_changes_at_once_one_is_refused(tmp_path: Path):
    path, undo = tmp_path / "f", UndoFolder(tmp_path / "undo")
    path.write_bytes(b"{}")
    records = [change(path, key=("mcpServers", name)) for name in ("one", "two")]
    failed = list[Exception]()

    def run(record: ChangeRecord) -> None:
        try:
            undo.change(record)
        except FileChanged as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(record,)) for record in records]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failed) == 1
    assert path.read_bytes() in [record.after for record in records]
    undo.undo(undo.records()[0])
    assert path.read_bytes() == b"{}"
