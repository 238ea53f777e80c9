"""Rules on the command line of Claude Code and Qwen Code hold for the servers behind Ullage in that run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from start.test_session import CLIENT, INITIALIZED, ask
from start.test_start import HANDSHAKE, ULLAGE
from ullage.cli import main
from ullage.client_command import parse_client_rules
from upstreams import scripted, tool, users_file, write_toml

pytestmark = [
    pytest.mark.requirement("U:access"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads command lines on Linux"),
]

BANK = scripted(tool("echo"), tool("seen"), tool("listening"))
DENIED, ASKED = "mcp__bank__seen", "mcp__bank__echo"


def test_settings_and_names_are_read_from_a_command_line(tmp_path: Path):
    (tmp_path / "s.json").write_text(json.dumps({"permissions": {"deny": [DENIED], "ask": [ASKED]}}), encoding="utf-8")
    ruled = {"deny": [DENIED], "ask": [ASKED]}
    for words in (
        ["claude", "--settings", "s.json", "-p", "x"],
        ["claude", f"--settings={tmp_path}/s.json"],
        ["claude", "--settings", (tmp_path / "s.json").read_text(encoding="utf-8")],
    ):
        assert parse_client_rules(words, str(tmp_path)) == ruled
    listed = ["claude", "--disallowedTools", "Bash(git * x),mcp__a__b", "mcp__c", "-p", "mcp__d__e"]
    assert parse_client_rules(listed, "/") == {"deny": ["Bash", "mcp__a__b", "mcp__c"], "ask": []}
    assert parse_client_rules(["claude", "--disallowed-tools=mcp__a__b"], "/") == {"deny": ["mcp__a__b"], "ask": []}


@pytest.mark.parametrize(
    "value", ["", "not there", "{", "[]", "{}", '{"permissions": 3}', '{"permissions": {"deny": "x"}}', "[" * 9999]
)
def test_settings_that_cannot_be_read_make_no_rules(value: str, tmp_path: Path):
    assert parse_client_rules(["claude", "--settings", value], str(tmp_path)) is None
    assert parse_client_rules(["claude", "--settings"], str(tmp_path)) is None


def start_by(client: str, work: Path, *flags: str, listing: bool = False) -> subprocess.CompletedProcess[bytes]:
    """Run a gateway as the child of a program of this name with these flags, and call three tools or list all."""
    program = work / client
    program.write_text(f'#!/bin/sh\nsh -c \'"$0" "$@"\' {" ".join(ULLAGE)}\n:\n', encoding="utf-8")
    program.chmod(0o755)
    calls = [
        ask(name, "tools/call", {"name": "call_tool_write", "arguments": {"tool_name": name, "parameters": {}}})
        for name in ("bank__seen", "bank__echo", "bank__listening")
    ]
    messages = HANDSHAKE if listing else (ask(0, "initialize", CLIENT), INITIALIZED, *calls)
    said = "".join(json.dumps(one) + "\n" for one in messages).encode()
    return subprocess.run([str(program), *flags], input=said, capture_output=True, timeout=60, check=True)


def outcomes(run: subprocess.CompletedProcess[bytes]) -> dict[str, str]:
    """Return how each of the calls ended: with the code of its error, or `ok`."""
    found = dict[str, str]()
    for line in map(json.loads, run.stdout.splitlines()):
        reply: dict[str, Any] = line.get("result", {})
        if isinstance(line.get("id"), str):
            text = reply["content"][0]["text"]
            found[line["id"].partition("__")[2]] = json.loads(text)["error_code"] if reply.get("isError") else "ok"
    return found


def test_tools_that_a_run_of_claude_code_excludes_stay_excluded(work: Path):
    write_toml(users_file(work.parent), '[gateway]\nmode = "search"\n', bank=BANK)
    (work / "ci.json").write_text(json.dumps({"permissions": {"deny": [DENIED], "ask": [ASKED]}}), encoding="utf-8")
    assert outcomes(start_by("claude", work)) == {"seen": "ok", "echo": "ok", "listening": "ok"}
    flags = ("--settings", "ci.json", "--disallowedTools", "mcp__bank__listening")
    assert outcomes(start_by("claude", work, *flags)) == {"seen": "DENIED", "echo": "DENIED", "listening": "DENIED"}
    assert outcomes(start_by("qwen", work, "--exclude-tools", "mcp__bank__echo"))["echo"] == "DENIED"
    assert outcomes(start_by("other", work, *flags)) == {"seen": "ok", "echo": "ok", "listening": "ok"}


def test_a_server_that_install_gave_another_name_is_ruled_under_its_own(work: Path):
    write_toml(users_file(work.parent), '[gateway]\nmode = "direct"\n', **{"bank-claude": BANK})
    text = start_by("claude", work, "--disallowedTools", DENIED, listing=True).stdout.decode()
    assert "bank-claude__echo" in text
    assert "bank-claude__seen" not in text


def test_the_first_answers_of_such_a_run_are_its_own(work: Path):
    """The cached list of another run would show a tool that this one excludes."""
    write_toml(users_file(work.parent), '[gateway]\nmode = "direct"\n', bank=BANK)
    assert main(["tools"]) == 0

    def listed(*flags: str) -> bytes:
        return start_by("claude", work, *flags, listing=True).stdout

    assert b"bank__seen" in listed()
    assert b"bank__seen" not in listed("--disallowedTools", DENIED)
    assert b"bank__echo" in listed("--disallowedTools", DENIED)
