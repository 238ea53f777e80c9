import argparse
import json
import os
import subprocess
import sys

import pytest

from ullage.cli import main
from ullage.cli.main import VERB_GROUPS, VERBS, _run_verb
from ullage.errors import Unavailable

DEEP = ExceptionGroup("outer", [ExceptionGroup("inner", [ValueError("x"), Unavailable("the point")])])


def raising(error: BaseException):
    def run(arguments: argparse.Namespace) -> int:
        del arguments
        raise error

    return run


@pytest.mark.requirement("U:errors")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unavailable("the point"), 2),
        (DEEP, 2),
        (KeyboardInterrupt(), 130),
        (BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [KeyboardInterrupt()])]), 130),
    ],
)
def test_what_went_wrong_is_said_without_what_it_was_wrapped_in(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
):
    assert _run_verb(raising(error), argparse.Namespace()) == code
    assert capsys.readouterr().err == ("error: the point\n" if code == 2 else "")


@pytest.mark.requirement("U:errors")
def test_an_unforeseen_error_is_not_hidden():
    with pytest.raises(ExceptionGroup):
        _run_verb(raising(ExceptionGroup("outer", [ValueError("x")])), argparse.Namespace())


def test_ctrl_c_while_a_verb_is_imported_leaves_no_trace(monkeypatch: pytest.MonkeyPatch):
    def interrupt(module: str) -> None:
        raise KeyboardInterrupt(module)

    monkeypatch.setattr(sys.modules["ullage.cli.main"], "_import_verb", interrupt)
    assert main(["count", "-"]) == 130


def test_without_a_verb_every_verb_is_named_with_its_question(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    shown = capsys.readouterr().err
    assert all(verb in shown and question in shown for verb, question in VERBS.items())


def test_help_lists_every_verb_once():
    assert sorted(verb for verbs in VERB_GROUPS.values() for verb in verbs) == sorted(VERBS)


@pytest.mark.parametrize(("said", "here"), [(None, "1"), ("3", "3")])
def test_numpy_is_told_to_start_no_threads_and_nothing_that_is_started_from_here_is(said: str | None, here: str):
    ask = "import os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    script = (
        "import os, subprocess, sys\n"
        "from ullage.cli.main import use_one_thread\n"
        "use_one_thread()\n"
        f"for passed_on in (None, os.environ): subprocess.run([sys.executable, '-c', {ask!r}], env=passed_on)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment |= {} if said is None else {"OPENBLAS_NUM_THREADS": said}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [here, str(said)]


def test_options_are_accepted_anywhere(capsys: pytest.CaptureFixture[str]):
    for words in (["--json", "models", "gpt-4"], ["models", "--json", "gpt-4"], ["models", "gpt-4", "--json"]):
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["asked"] == "gpt-4"


@pytest.mark.requirement("U:errors")
def test_a_mistyped_verb_gets_the_nearest_name(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["uninstal"])
    assert "did you mean `ullage uninstall`?" in capsys.readouterr().err


@pytest.mark.requirement("U:errors")
@pytest.mark.parametrize(
    ("words", "message", "suggestion", "options"),
    [
        ("weigh", "unknown command `weigh`", "`ullage --help` lists all commands", []),
        ("instal codex", "unknown command `instal`", "did you mean `ullage install`?", []),
        ("--store x count", "`ullage` has no option `--store`", "options go after the command", []),
        ("count --modl=x", "`ullage count` has no option `--modl`", "did you mean `--model`?", []),
        ("models a b", "`ullage models` takes no further argument: `b`", "`ullage models --help`", []),
        ("install", "`ullage install` needs CLIENT", "CLIENT: claude, ", []),
        ("completion csh", "shell cannot be `csh`", "choose one", ["bash", "zsh", "fish"]),
        ("audit --limit x", "--limit cannot be `x`", "it takes a whole number", []),
        ("scan --wait soon", "--wait cannot be `soon`", "it takes a number", []),
        ("usage --since", "--since needs a value", "`ullage usage --help`", []),
    ],
)
def test_mistakes_on_the_command_line_are_reported_like_every_other_error(
    words: str, message: str, suggestion: str, options: list[str], capsys: pytest.CaptureFixture[str]
):
    for given in ([*words.split(), "--json"], ["--json", *words.split()]):
        with pytest.raises(SystemExit) as caught:
            main(given)
        found = json.loads(capsys.readouterr().err)
        assert caught.value.code == 2
        assert found["message"] == message
        assert found["suggestion"].startswith(suggestion)
        assert found["available_options"] == options
