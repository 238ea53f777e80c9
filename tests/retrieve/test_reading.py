import os
from pathlib import Path

import pytest

from retrieve.retrievers import grown
from ullage.retrieve.folder_files import Unread, opened_plainly, read_lines

pytestmark = pytest.mark.requirement("S4:more")

SECRET = "outside and secret"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    grown(tmp_path, {"outside/secret.txt": SECRET, "in/plain.txt": "one\ntwo\n", "in/deep/down.txt": "three\n"})
    return tmp_path / "in"


def test_a_file_below_a_folder_is_read(folder: Path):
    assert read_lines(folder, ("plain.txt",), 100) == ["one", "two"]
    assert read_lines(folder, ("deep", "down.txt"), 100) == ["three"]


def test_no_link_is_followed(folder: Path):
    (folder / "file.txt").symlink_to(folder.parent / "outside/secret.txt")
    (folder / "folder").symlink_to(folder.parent / "outside")
    for parts in (("file.txt",), ("folder", "secret.txt"), ("..", "outside", "absent.txt")):
        assert read_lines(folder, parts, 100) is Unread.UNREADABLE


def test_what_is_no_plain_file_is_not_waited_for(folder: Path):
    os.mkfifo(folder / "pipe")
    for name in ("pipe", "deep", "absent", "nul\0"):
        assert read_lines(folder, (name,), 100) is Unread.UNREADABLE


def test_a_large_file_is_not_read_and_one_byte_decides(folder: Path):
    assert read_lines(folder, ("plain.txt",), 8) == ["one", "two"]
    assert read_lines(folder, ("plain.txt",), 7) is Unread.LARGE


def test_a_binary_file_is_known_whatever_its_size(folder: Path):
    (folder / "image").write_bytes(b"\0" * 20_000)
    assert read_lines(folder, ("image",), 100) is Unread.BINARY


def test_no_file_is_left_open(folder: Path):
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 - /dev/fd is no folder to be iterated while it changes
    for _ in range(50):
        read_lines(folder, ("deep", "down.txt"), 100)
        read_lines(folder, ("deep",), 100)
        read_lines(folder, ("deep", "absent"), 100)
        read_lines(folder, ("absent", "absent"), 100)
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208


def test_where_folders_cannot_be_held_open_a_path_must_lead_where_it_says(folder: Path):
    (folder / "folder").symlink_to(folder.parent / "outside")
    descriptor = opened_plainly(folder, ("deep", "down.txt"))
    os.close(descriptor)
    for parts in (("folder", "secret.txt"), ("..", "outside", "secret.txt")):
        with pytest.raises(PermissionError):
            opened_plainly(folder, parts)
