"""How an error is printed for people and for programs, on streams that have all letters and on those that do not."""

import io
import json
import sys
from pathlib import Path

import pytest

from ullage.cli import main
from ullage.cli.output import columns, complain, cut, emit_json, emit_json_text, how_many, short_path, width_of
from ullage.errors import UllageError

pytestmark = pytest.mark.requirement("U:errors")

ERROR = UllageError("größer\nals 3", suggestion="nimm 3\x1b[31m", options=("ä", "b\n"))
BARE = UllageError("no")


class Screen(io.TextIOWrapper):
    """A terminal with an encoding."""

    def isatty(self) -> bool:
        return True


def printed(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode(stream.encoding)


@pytest.mark.parametrize(
    ("encoding", "is_escaped"), [("utf-8", False), ("UTF-16", False), ("ascii", True), ("latin-1", True)]
)
def test_json_is_escaped_only_for_a_stream_that_lacks_letters(
    encoding: str, monkeypatch: pytest.MonkeyPatch, *, is_escaped: bool
):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    emit_json({"ä": [1]})
    complain(ERROR, as_json=True)
    said = printed(out)
    assert json.loads(said) == {"ä": [1]}
    assert ("\\u00e4" in said) is is_escaped
    assert said.splitlines()[1].startswith("  "), "indented for people"
    wire = printed(err)
    assert json.loads(wire) == ERROR.wire()
    assert ("gr\\u00f6" in wire) is is_escaped
    assert len(wire.splitlines()) == 1


def test_on_a_terminal_json_escapes_what_would_steer_it_and_in_a_file_it_does_not(monkeypatch: pytest.MonkeyPatch):
    said = '{"a":"\x9b31m"}'
    for make, expected in ((Screen, '{"a":"\\u009b31m"}\n'), (io.TextIOWrapper, said + "\n")):
        stream = make(io.BytesIO(), encoding="utf-8")
        monkeypatch.setattr(sys, "stdout", stream)
        emit_json_text(said)
        assert printed(stream) == expected
        emit_json({"a": "\x9b"})
        assert ("\x9b" in printed(stream).splitlines()[-2]) is (make is io.TextIOWrapper)


def test_an_error_for_people_has_its_suggestion_and_options_on_lines_of_their_own(capsys: pytest.CaptureFixture[str]):
    complain(ERROR, as_json=False)
    assert capsys.readouterr().err == ("error: größer\nals 3\n  nimm 3\\x1b[31m\n  options: ä, b\\n\n")
    complain(BARE, as_json=False)
    assert capsys.readouterr() == ("", "error: no\n")


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("ab, def", 5, "ab…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("e\u0301e\u0301e", 3, "e\u0301e\u0301e"),
        ("abc", 1, "…"),
        ("abc", 0, "…"),
    ],
)
def test_a_text_is_cut_to_its_columns(text: str, width: int, shown: str):
    assert cut(text, width) == shown
    assert width_of(cut(text, width)) <= max(1, width)


def test_columns_are_as_wide_as_their_widest_cell():
    assert columns([["a", "1", "x"], ["日本", "200", ""]], right=frozenset({1})) == ["a       1  x", "日本  200"]
    assert columns([]) == []


def test_numbers_of_things_and_paths_are_written_for_people(monkeypatch: pytest.MonkeyPatch, tmp_path: object):
    assert [how_many(number, "tool") for number in (0, 1, 2)] == ["0 tools", "1 tool", "2 tools"]
    place = str(tmp_path)
    monkeypatch.setenv("HOME", place)
    assert [short_path(path) for path in (f"{place}/a/b", place, f"{place}x", "/x\ny")] == [
        *("~/a/b", place, f"{place}x", "/x\\ny"),
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be removed there")
@pytest.mark.parametrize("words", [("scan",), ("status", "--json"), ("trust",), ("serve",)])
def test_a_working_folder_that_was_removed_is_reported(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    gone = tmp_path / "gone"
    gone.mkdir()
    with monkeypatch.context() as scope:
        scope.chdir(gone)
        gone.rmdir()
        assert main(words) == 2
    shown = capsys.readouterr()
    assert "the working folder does not exist any more" in shown.out + shown.err
