import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.retrieve.folder_files import is_binary, lines_of

pytestmark = pytest.mark.requirement("S4:more")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_text_in_any_unicode_is_read(encoding: str):
    content = "Grüße\n日本\n".encode(encoding)
    assert not is_binary(content)
    assert lines_of(content) == ["Grüße", "日本"]


def test_a_few_letters_of_another_encoding_are_marked_and_the_rest_is_read():
    content = "a café in Orléans".encode("latin-1")
    assert not is_binary(content)
    assert lines_of(content) == ["a caf\ufffd in Orl\ufffdans"]


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\0\0", b"text\0more", bytes(range(128, 255)) * 9])
def test_what_is_no_text_is_known(content: bytes):
    assert is_binary(content)


def test_lines_are_those_that_an_editor_counts():
    assert lines_of(b"one\r\ntwo\rthree\n\nfive\x0c still\n") == ["one", "two", "three", "", "five\x0c still"]
    assert lines_of(b"") == []


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail(content: bytes):
    assert isinstance(is_binary(content), bool)
    assert all("\n" not in line for line in lines_of(content))
