import io
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from ullage.cli import main
from ullage.models import CURRENT_MODEL

pytestmark = pytest.mark.requirement("S3:count")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "one.txt").write_text("Hello, world!", encoding="utf-8")
    (tmp_path / "notes" / "two.md").write_text("안녕하세요, 세계", encoding="utf-8")
    (tmp_path / "notes" / "deep" / "three.py").write_text("def f(x):\n    return x + 1\n", encoding="utf-8")
    (tmp_path / "notes" / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "notes" / ".hidden").write_text("secret", encoding="utf-8")
    return tmp_path


@pytest.mark.requirement("S3:offline")
def test_a_file_is_counted_for_several_models_side_by_side(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["count", "notes/one.txt", "-m", "gpt-4", "-m", "gpt-4-turbo"]) == 0
    assert capsys.readouterr().out == snapshot("""\
               gpt-4         of 8,192  gpt-4-turbo         of 128,000
notes/one.txt      4  exact     <0.1%            4  exact       <0.1%
gpt-4 retired 2026-10-23, use gpt-5.6-sol
gpt-4: 0.00012 USD as input, at 30 USD per million tokens
gpt-4-turbo retired 2026-10-23, use gpt-5.6-sol
gpt-4-turbo: 0.00004 USD as input, at 10 USD per million tokens
""")


@pytest.mark.requirement("S3:offline")
def test_a_folder_is_a_tree_with_totals(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["count", "notes", "-m", "gpt-4-turbo"]) == 0
    assert capsys.readouterr().out == snapshot("""\
              gpt-4-turbo         of 128,000
notes/                 25  exact       <0.1%
  deep/                11  exact       <0.1%
    three.py           11  exact       <0.1%
  one.txt               4  exact       <0.1%
  two.md               10  exact       <0.1%
gpt-4-turbo retired 2026-10-23, use gpt-5.6-sol
gpt-4-turbo: 0.00025 USD as input, at 10 USD per million tokens
not counted, because it cannot be opened or is not text: notes/picture.png
""")


@pytest.mark.requirement("S3:offline")
def test_json_has_every_figure(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["count", "notes/one.txt", "--json", "-m", "claude-sonnet-4-5"]) == 0
    found = json.loads(capsys.readouterr().out)
    (model,) = found["models"]
    assert (model["model"], model["resolved"], model["window"]) == ("claude-sonnet-4-5", "claude-sonnet-4-5", 200_000)
    assert model["price"]["input"] == "0.000003"
    (line,) = found["lines"]
    (counted,) = line["counts"]
    assert counted["method"] == "calibrated"
    assert counted["exact"] is False
    assert counted["error_band"]["low"] <= counted["token_count"] <= counted["error_band"]["high"]
    assert counted["window_percent"] >= 0
    assert Decimal(counted["input_cost"]) == counted["token_count"] * Decimal("0.000003")


@pytest.mark.requirement("S3:offline")
def test_without_a_model_a_current_one_is_counted_for(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["count", "notes/one.txt", "--json"]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert model["model"] == CURRENT_MODEL
    assert model["retired"] is None
    assert model["price"] is not None


@pytest.mark.requirement("S3:offline")
def test_a_retired_model_is_named_with_the_one_that_replaces_it(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["count", "notes/one.txt", "-m", "gpt-4"]) == 0
    assert "gpt-4 retired 2026-10-23, use gpt-5.6-sol" in capsys.readouterr().out
    assert main(["count", "notes/one.txt", "-m", "gpt-4", "--json"]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert (model["retired"], model["replaced_by"]) == ("2026-10-23", "gpt-5.6-sol")


def test_a_plain_rule_has_no_price(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["count", "notes/one.txt", "-m", "character_count_div_4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["models"][0]["price"] is None
    assert found["lines"][0]["counts"][0]["input_cost"] is None


def test_several_files_have_a_total(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["count", "notes/one.txt", "notes/two.md", "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["lines"]
    counts = [line["counts"][0]["token_count"] for line in lines]
    assert [line["kind"] for line in lines] == ["file", "file", "total"]
    assert counts[2] == counts[0] + counts[1]


@pytest.mark.requirement("S3:offline")
def test_standard_input_is_counted(folder: Path):
    run = subprocess.run(
        [sys.executable, "-m", "ullage", "count", "--json"],
        input="Hello, world!",
        text=True,
        capture_output=True,
        check=True,
    )
    assert json.loads(run.stdout)["lines"][0]["counts"][0]["token_count"] == 4


@pytest.mark.requirement("S3:offline")
def test_a_character_rule_can_be_named_instead_of_a_model(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["count", "notes/one.txt", "-m", "character_count_div_4", "--json"]) == 0
    (counted,) = json.loads(capsys.readouterr().out)["lines"][0]["counts"]
    assert (counted["token_count"], counted["method"]) == (4, "estimated")


def test_an_empty_folder_counts_nothing(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "empty").mkdir()
    assert main(["count", "empty", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"][0]["counts"][0]["token_count"] == 0


def test_a_folder_that_cannot_be_opened_is_an_error_and_not_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def refuse(self: Path) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)  # the owner of these tests may be allowed everything
    assert main(["count", "notes"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "`notes` cannot be read: Permission denied" in captured.err
    assert main(["count", "notes", "notes/one.txt", "--json"]) == 2
    captured = capsys.readouterr()
    shown = json.loads(captured.out)
    assert [line["path"] for line in shown["lines"]] == ["notes/one.txt", "total"]
    assert shown["skipped"] == ["notes"]
    assert captured.err.count("cannot be read") == 1


@pytest.mark.requirement("S3:offline")
def test_of_several_files_those_that_can_be_counted_are(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["count", "notes/one.txt", "notes/picture.png", "nowhere"]) == 2
    captured = capsys.readouterr()
    assert [line.split()[:2] for line in captured.out.splitlines()[1:3]] == [["notes/one.txt", "4"], ["total", "4"]]
    assert "`notes/picture.png` is not text" in captured.err
    assert "`nowhere` cannot be read" in captured.err


@pytest.mark.requirement("S3:offline")
def test_a_name_neither_steers_the_terminal_nor_moves_its_figures(folder: Path, capsys: pytest.CaptureFixture[str]):
    names = folder / "names"
    names.mkdir()
    for name in ("red\x1b[31m.txt", "new\nline.txt", "日本語.txt", "\udcff.txt", "plain.txt"):
        (names / name).write_text("Hello", encoding="utf-8")
    assert main(["count", "names", "-m", "gpt-4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    assert lines[2:7] == [
        "  new\\nline.txt        1  exact     <0.1%",
        "  plain.txt            1  exact     <0.1%",
        "  red\\x1b[31m.txt      1  exact     <0.1%",
        "  日本語.txt           1  exact     <0.1%",
        "  \\udcff.txt           1  exact     <0.1%",
    ]
    assert main(["count", "no\x1b[31m"]) == 2
    assert "\x1b" not in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.requirement("S3:offline")
def test_models_that_do_not_fit_side_by_side_are_printed_below_each_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    words = ["count", "notes/one.txt", "-m", "gpt-4", "-m", "gpt-4o"]
    for wide, tables in ((80, 1), (50, 2)):
        monkeypatch.setenv("COLUMNS", str(wide))
        monkeypatch.setattr(sys, "stdout", Terminal())
        assert main(words) == 0
        lines = sys.stdout.getvalue().splitlines()  # pyright: ignore[reportAttributeAccessIssue]
        assert len(lines) == 2 * tables + 4
        assert max(map(len, lines[: 2 * tables])) <= wide


def test_json_is_json_in_every_encoding(folder: Path):
    (folder / "notes" / "👩 é.txt").write_text("Hello", encoding="utf-8")
    command = [sys.executable, "-m", "ullage", "count", "notes", "--json"]
    run = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, check=True)
    assert "notes/👩 é.txt" in [line["path"] for line in json.loads(run.stdout)["lines"]]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("count <&-", "error: standard input is closed"),
        ("count - <&-", "error: standard input is closed"),
        ("run - <&-", "error: standard input is closed"),
        ("call count-tokens - <&-", "error: standard input is closed"),
        ("count notes/one.txt >/dev/full", "error: the output cannot be written: No space left on device"),
        ("count notes/one.txt >&-", ""),
        (
            "count notes/one.txt --modle gpt-4",
            "error: `ullage count` has no option `--modle`\n  did you mean `--model`?",
        ),
    ],
)
def test_closed_and_full_streams_and_misspelt_options_are_reported_in_words(folder: Path, how: str, said: str):
    run = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m ullage {how}"], capture_output=True, text=True, check=False
    )
    assert run.stderr.startswith(said)
    assert "Traceback" not in run.stderr
    assert run.returncode == (2 if said else 0)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["nowhere.txt"], "UNREADABLE_FILE"),
        (["notes/picture.png"], "UNREADABLE_FILE"),
        (["notes/one.txt", "-m", "gpt-44"], "UNSUPPORTED_MODEL"),
    ],
)
@pytest.mark.requirement("U:errors")
def test_bad_input_is_one_shape_on_standard_error(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: str
):
    assert main(["count", "--json", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["error_code"] == code


def test_bad_input_is_said_in_words_to_a_person(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["count", "notes/one.txt", "-m", "gpt4o"]) == 2
    assert capsys.readouterr().err == snapshot("""\
error: no model is known as `gpt4o`
  Use `gpt-4`, the default, or an option below; `ullage models` lists all. Nearest: `gpt-4o`, `gpt-4`, `gpt-4.1`.
  options: gpt-4, gpt-3.5-turbo, gpt-4o, claude, gpt-4.1, gpt-5.4, gpt-4-turbo, gpt-4o-mini, gpt-5.4-pro
""")


def test_a_file_that_is_not_utf_8_says_which_byte(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    assert main(["count", "latin.txt"]) == 2
    assert "byte 3 is 0xe9" in capsys.readouterr().err


@pytest.mark.requirement("S3:offline")
def test_a_deep_tree_an_odd_name_and_a_file_called_dash_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "-").write_text("Hello", encoding="utf-8")
    deep = folder / "deep"
    for _ in range(300):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "end.txt").write_text("Hello", encoding="utf-8")
    assert main(["count", "./-", "deep", "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["lines"]
    assert [line["counts"][0]["token_count"] for line in lines if line["kind"] == "file"] == [1, 1]
    for name in ("", "x" * 300, "a\0b"):
        assert main(["count", name]) == 2


@pytest.mark.requirement("S3:offline")
def test_everything_counts_with_sockets_closed_and_an_empty_home(tmp_path: Path):
    script = """
import socket
def closed(*_, **__): raise OSError("the network is closed")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = closed
from ullage import count, count_request, find_model
from ullage.models import price_of, shipped
from datetime import datetime, UTC
models = "gpt-4 gpt-4o claude gemini-2.5-pro deepseek-chat qwen3-32b llama-3.3-70b mistral-large-latest glm-4.5 kimi-k2"
for model in (*models.split(), "grok-4"):
    assert count("Hello, world!", model).tokens > 0
    find_model(model)
assert count_request({"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}).total.tokens > 0
assert price_of(shipped().find("gpt-4o"), when=datetime.now(UTC)) is not None
import ullage.cli
assert ullage.cli.main(["models", "gpt-4o", "--json"]) == 0
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": ""},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert list(tmp_path.iterdir()) == []
