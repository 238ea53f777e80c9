"""Completion scripts: what they offer, and that the shells read them."""

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
