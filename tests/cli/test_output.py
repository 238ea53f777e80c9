import io
import subprocess
import sys
from dataclasses import dataclass

import anyio
import pytest

from ullage.cli import main
from ullage.cli.output import Progress, show_running, wrap_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class Part:
    size: int


def test_a_bar_is_drawn_where_a_person_watches_and_wiped_at_the_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    parts = [Part(1), Part(3)]
    with Progress(4, "counting") as progress:
        assert list(progress.through(parts)) == parts
    drawn = sys.stderr.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert "counting" in drawn
    assert drawn.endswith("\r\x1b[K")


def test_a_terminal_that_cannot_wipe_a_line_gets_no_bar_and_nothing_drawn_is_nothing_wiped(
    monkeypatch: pytest.MonkeyPatch,
):
    for terminal, parts in (("dumb", [Part(1)]), ("xterm", [])):
        monkeypatch.setenv("TERM", terminal)
        monkeypatch.setattr(sys, "stderr", Terminal())
        with Progress(1, "counting") as progress:
            assert list(progress.through(parts)) == parts
        assert sys.stderr.getvalue() == ""  # pyright: ignore[reportAttributeAccessIssue]


def test_no_bar_is_drawn_into_a_file(capsys: pytest.CaptureFixture[str]):
    with Progress(1, "counting") as progress:
        assert list(progress.through([Part(1)])) == [Part(1)]
    assert capsys.readouterr().err == ""


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m ullage models | head -n 1"
    run = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert run.stdout.startswith("model")
    assert run.stderr == ""


def test_a_reader_that_is_gone_before_the_first_line_is_no_error_either():
    command = f"env -u PYTHONUNBUFFERED {sys.executable} -m ullage models gpt-4o | true"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert run.stderr == ""


def test_an_unknown_or_missing_verb_gets_a_hint(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert "Count the tokens of files" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["weigh"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == "error: unknown command `weigh`\n  `ullage --help` lists all commands\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run `ullage trust a.toml` now or", ["run `ullage trust a.toml`", "  now or"]),
        ("it was started in about 0.5 s", ["it was started in about", "  0.5 s"]),
        ("  a long `command with many more words` b", ["  a long `command with many more words`", "    b"]),
        ("one ` two three four five six seven", ["one ` two three four five", "  six seven"]),
        ("a\u00a0b c d e f g h i j k l m n o p", ["a\u00a0b c d e f g h i j k l m", "  n o p"]),
    ],
)
def test_no_line_break_goes_through_a_command_or_between_a_number_and_its_unit(line: str, expected: list[str]):
    assert wrap_line(line, 26) == expected


def test_what_runs_for_long_is_shown_until_it_ends_but_not_over_a_question(monkeypatch: pytest.MonkeyPatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("ullage.cli.output._LINE_SECONDS", 0.01)
    is_asking = True

    async def run() -> str:
        nonlocal is_asking
        async with show_running("calling tool", lambda: is_asking):
            await anyio.sleep(0.3)
            before = stream.getvalue()
            is_asking = False
            await anyio.sleep(0.5)
        return before

    assert anyio.run(run) == ""
    assert "\r\x1b[Kcalling tool (0 s)" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
