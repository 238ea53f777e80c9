"""Completion scripts: what they offer, and that the shells read them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ullage.cli import main
from ullage.cli.main import VERBS
from ullage.clients.configs import PROGRAMS


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]):
    text = script(shell, capsys)
    assert all(verb in text for verb in VERBS)
    assert all(program in text for program in PROGRAMS)
    assert "scope" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_can_read_its_script(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    file = tmp_path / "script"
    file.write_text(script(shell, capsys), encoding="utf-8")
    subprocess.run([shell, "-n", str(file)], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ullage ", sorted([*VERBS, "--help", "--version", "--json"])),
        ("ullage sca", ["scan"]),
        ("ullage install co", ["codex"]),
        ("ullage --json uninstall claude", ["claude", "claude-desktop"]),
        ("ullage install codex --scope ", ["all", "project", "user"]),
        ("ullage install codex --dry", ["--dry-run"]),
        ("ullage completion ", ["bash", "fish", "zsh"]),
    ],
)
def test_bash_offers_what_fits(line: str, offered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "script"
    file.write_text(script("bash", capsys), encoding="utf-8")
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    line = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}"
    asking = f"source {file}; {line}; _ullage; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", asking], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == offered


OFFERED = [
    ("ullage sca", ["scan"]),
    ("ullage install co", ["codex"]),
    ("ullage --json uninstall claude", ["claude", "claude-desktop"]),
    ("ullage install codex --scope ", ["all", "project", "user"]),
    ("ullage install codex --dry", ["--dry-run"]),
    ("ullage completion ", ["bash", "fish", "zsh"]),
    ("ullage --vers", ["--version"]),
]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
@pytest.mark.parametrize(("line", "offered"), OFFERED)
def test_fish_offers_what_fits(line: str, offered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "script"
    file.write_text(script("fish", capsys), encoding="utf-8")
    asking = f"source {file}; complete -C '{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", asking], capture_output=True, text=True, check=True)
    assert sorted(one.partition("\t")[0] for one in done.stdout.splitlines()) == offered


ASK_ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -D; stty cols 100; echo REA''DY"
while zpty -r shell line; do [[ $line == *READY* ]] && break; done
zpty -w -n shell "$2"$'\\t\\t'
sleep 1
zpty -w -n shell $'\\C-a#\\n'
zpty -w shell "echo DO''NE"
while zpty -r shell line; do print -r -- "$line"; [[ $line == *DONE* ]] && break; done
zpty -d shell
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not here")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ullage install codex --scope ", ["all", "project", "user"]),
        ("ullage --json uninstall claude", ["claude", "claude-desktop"]),
        ("ullage --vers", ["--version"]),
        ("ullage sca", ["scan"]),
    ],
)
def test_zsh_lists_what_fits(line: str, offered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "_ullage").write_text(script("zsh", capsys), encoding="utf-8")
    (tmp_path / "ask.zsh").write_text(ASK_ZSH, encoding="utf-8")
    asking = ["zsh", "-f", str(tmp_path / "ask.zsh"), str(tmp_path), line]
    done = subprocess.run(asking, capture_output=True, text=True, check=True, timeout=60)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", done.stdout)
    # Zsh writes the only word that fits into the line, and lists several.
    whole = f"{line.rpartition(' ')[0]} {offered[0]} " if len(offered) == 1 else ""
    assert whole in shown
    assert set(offered) <= set(re.findall(r"[\w-]+", shown.replace(line, "") + whole))
