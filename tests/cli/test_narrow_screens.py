"""Tables and sentences on a terminal of eighty columns."""

from pathlib import Path

import pytest

from ullage.cli.main import main
from ullage.cli.output import fitted_columns, hang_line, width_of, wrap_line


@pytest.fixture(autouse=True)
def eighty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_widest_text_is_cut_and_numbers_are_not():
    lines = fitted_columns([("name", "tokens", "about"), ("a" * 30, "1,234,567", "b" * 90)], right=frozenset({1}))
    assert lines is not None
    assert max(map(width_of, lines)) == 80
    assert "1,234,567" in lines[1]
    assert lines[1].endswith("…")


def test_rows_that_cannot_be_read_any_more_have_no_table():
    assert fitted_columns([["x" * 20] * 12]) is None


def test_sentences_break_between_words_and_keep_their_indent():
    lines = wrap_line("  " + "word " * 30 + "https://example.org/" + "p" * 90)
    assert [line[:2] for line in lines] == ["  "] * len(lines)
    assert all(width_of(line) <= 80 for line in lines[:-1])
    assert " ".join(" ".join(lines).split()) == ("word " * 30 + "https://example.org/" + "p" * 90)


@pytest.mark.parametrize("gap", [" ", "x", "字", "`sh -c "])
def test_no_part_of_a_strangers_text_looks_like_a_line_of_its_own(gap: str):
    for length in range(60, 90):
        text = f"  set       a = {gap * length}  start     `true` (server `mine`)"
        first, *rest = hang_line(text, 80, 12)
        assert max(map(width_of, (first, *rest))) <= 80
        assert all(line.startswith(" " * 12) for line in rest)
        assert "".join((first, *rest)).replace(" ", "") == text.replace(" ", "")


@pytest.mark.requirement("U:project")
def test_what_an_approval_shows_fits_the_screen(work: Path, capsys: pytest.CaptureFixture[str]):
    command = "sh -c " + "x" * 120 + " y" * 60
    (work / "ullage.toml").write_text(f"[servers.evil]\ncommand = 'sh'\nargs = ['-c', '{command}']\n", encoding="utf-8")
    assert main(["trust"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(width_of, lines[:-2])) <= 80
    assert "".join(lines).replace(" ", "").count(command.replace(" ", "")) == 1


def test_nothing_is_cut_in_a_pipe(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("COLUMNS")
    assert fitted_columns([("a" * 300,)]) == ["a" * 300]


@pytest.mark.parametrize(
    "arguments",
    [
        ["models"],
        ["models", "claude-sonnet-4-5"],
        ["sql", "sample"],
        ["sql", "sample", "SELECT * FROM orders, customers LIMIT 2"],
        ["sql", "sample", "SELECT * FROM products LIMIT 2"],
    ],
)
def test_screens_fit_eighty_columns(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if width_of(line) > 80] == []
