import io
import subprocess
import sys

import pytest

from ullage.cli.progress import with_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_where_a_person_watches_and_wiped_at_the_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(with_progress([("a", 1), ("b", 3)], 4, "counting")) == ["a", "b"]
    drawn = sys.stderr.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert "counting" in drawn
    assert drawn.endswith("\r\x1b[K")


def test_no_bar_is_drawn_into_a_file(capsys: pytest.CaptureFixture[str]):
    assert list(with_progress([("a", 1)], 1, "counting")) == ["a"]
    assert capsys.readouterr().err == ""


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m ullage models | head -n 1"
    run = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert run.stdout.startswith("model")
    assert run.stderr == ""


def test_an_unknown_verb_and_no_verb_are_told_how(capsys: pytest.CaptureFixture[str]):
    from ullage.cli import main

    for words in ([], ["weigh"]):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == 2
        assert "usage: ullage" in capsys.readouterr().err
