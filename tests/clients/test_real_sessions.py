"""The session files of real agent programs, written here and now against a model that always does the same."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from heavy.agent_programs import INSTALLED, PROGRAMS, Object, Program, Setup, Started, run
from ullage.cli import main
from ullage.clients import Conversation, read_conversations
from ullage.messages import ToolCall, ToolResult, faults, read_message

pytestmark = [pytest.mark.heavy, pytest.mark.requirement("S2:formats")]

NOTE = "quince\n" * 300
END: Object = {"text": "That was all."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Where a program keeps its sessions, and how it is made to read a file."""

    reads: str
    """The tool."""
    argument: str
    files: str


KEPT = {
    "Claude Code": Kept(reads="Read", argument="file_path", files=".claude/projects/*/*.jsonl"),
    "Codex": Kept(reads="exec_command", argument="cmd", files=".codex/sessions/**/rollout-*.jsonl"),
    "Gemini CLI": Kept(reads="read_file", argument="file_path", files=".gemini/tmp/*/chats/session-*.jsonl"),
    "opencode": Kept(reads="read", argument="filePath", files=".local/share/opencode/opencode.db"),
}


@pytest.fixture(scope="module", params=PROGRAMS, ids=[program.name for program in PROGRAMS])
def program(request: pytest.FixtureRequest) -> Program:
    if not INSTALLED.exists():
        pytest.fail("the agent programs are not installed; run `make test-heavy`")
    if request.param.executable is None:
        pytest.skip(f"{request.param.package} has nothing for this machine")
    return request.param


@pytest.fixture(scope="module")
def home(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begun(program, tmp_path_factory.mktemp("home"))


def begun(program: Program, home: Path) -> Path:
    """After one run in which a file was read."""
    note = home / "notes.txt"
    note.write_text(NOTE, encoding="utf-8")
    kept = KEPT[program.name]
    value = f"cat {note}" if kept.argument == "cmd" else str(note)
    call: Object = {"tool": kept.reads, "arguments": {kept.argument: value}}
    done = run(program, home, [], [call, END])
    assert done.code == 0, done.output
    return home


def latest(program: Program, home: Path) -> Conversation:
    files = sorted(home.glob(KEPT[program.name].files), key=lambda file: file.stat().st_mtime)
    assert files, [str(file) for file in home.rglob("*.jsonl")]
    return read_conversations(files[-1])[-1]


def test_a_real_session_is_read_with_its_call_its_result_and_its_reports(program: Program, home: Path):
    found = latest(program, home)
    messages = [read_message(native, found.format) for native in found.natives]
    parts = [part for message in messages for part in message.parts]
    assert [part.name for part in parts if isinstance(part, ToolCall)] == [KEPT[program.name].reads]
    (result,) = [part for part in parts if isinstance(part, ToolResult)]
    assert str(result).count("quince") == 300
    assert END["text"] in str(messages[-1])
    assert faults(found.natives, found.format) == ()
    assert len(found.calls) == 2
    assert all(call.usage is not None and call.usage.input == 1 for call in found.calls)
    assert all(turn.at is not None for turn in found.turns)
    assert found.compactions == ()


def test_the_command_line_shows_it(program: Program, home: Path, capsys: pytest.CaptureFixture[str]):
    (file, *_) = sorted(home.glob(KEPT[program.name].files))
    assert main(["context", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["usage"]["used"] > 500
    assert found["byTool"][0]["tool"] == KEPT[program.name].reads


def again(program: Program, *words: str, settings: Callable[[Setup], None] = lambda _: None) -> Program:
    """The same program with other arguments."""

    def prepare(setup: Setup) -> Started:
        started = program.prepare(setup)
        settings(setup)
        return replace(started, arguments=_arguments(program, started.arguments, words))

    return replace(program, prepare=prepare)


def _arguments(program: Program, given: Sequence[str], words: Sequence[str]) -> list[str]:
    """The prompt is the second word of some programs and the last of others."""
    prompt, *more = words
    if program.name == "Codex":
        return ["exec", *more, *given[1:-1], prompt]
    return [given[0], prompt, *given[2:], *more]


def low_limit(setup: Setup) -> None:
    """Codex compacts what is over a few tokens before the next turn."""
    config = setup.home / ".codex" / "config.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(f"model_auto_compact_token_limit = 1\n{text}", encoding="utf-8")


@pytest.mark.parametrize("program", PROGRAMS[:1], indirect=True, ids=["Claude Code"])
def test_a_real_compaction_of_claude_code_is_marked(program: Program, tmp_path: Path):
    home = begun(program, tmp_path)
    summary: Object = {"text": "<summary>All notes were read.</summary>"}
    for prompt, answer in (("And once more.", END), ("/compact", summary), ("Go on.", END)):
        done = run(again(program, prompt, "--continue"), home, [], [answer])
        assert done.code == 0, done.output
    found = latest(program, home)
    (compaction,) = found.compactions
    assert compaction.before is not None
    assert compaction.after is not None
    assert "All notes were read." in str(found.natives[0])
    assert str([turn.native for turn in found.turns[: compaction.place]]).count("quince") >= 300
    assert faults(found.natives, found.format) == ()
    assert found.tools


@pytest.mark.parametrize("program", PROGRAMS[1:2], indirect=True, ids=["Codex"])
def test_a_real_compaction_of_codex_is_marked(program: Program, tmp_path: Path):
    home = begun(program, tmp_path)
    changed = again(program, "Go on.", "resume", "--last", settings=low_limit)
    done = run(changed, home, [], [END])
    found = latest(program, home)
    assert found.compactions, done.output
    assert "quince" not in str(found.natives)
    assert str([turn.native for turn in found.turns]).count("quince") == 300
    assert faults(found.natives, found.format) == ()
    assert found.window
