"""Where the programs keep the logs of their calls."""

from pathlib import Path

import pytest

from ullage.clients.call_logs import find_logs

pytestmark = pytest.mark.requirement("U:usage")


def write(path: Path, text: str = "x") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def found(**environment: str | Path) -> list[tuple[str, str]]:
    return [(one.program, one.path) for one in find_logs({name: str(said) for name, said in environment.items()})]


EXTENSION = "User/globalStorage/saoudrizwan.claude-dev"
HOMES = {
    "claude-code": (".claude/projects/p/a.jsonl", ".config/claude/projects/p/b.jsonl"),
    "codex": (".codex/sessions/2026/a.jsonl", ".codex/archived_sessions/b.jsonl"),
    "gemini-cli": (".gemini/tmp/h/chats/a.json", ".gemini/tmp/h/chats/b.jsonl"),
    "opencode": (".local/share/opencode/storage/message/s/a.json", ".local/share/opencode/opencode.db"),
    "pi": (".pi/agent/sessions/p/a.jsonl",),
    "cline": (
        ".cline/data/tasks/1/ui_messages.json",
        f".config/Code/{EXTENSION}/tasks/2/ui_messages.json",
        f".config/Cursor/{EXTENSION}/tasks/3/ui_messages.json",
        f"Library/Application Support/Code - Insiders/{EXTENSION}/tasks/4/ui_messages.json",
        f".config/VSCodium/{EXTENSION}/tasks/5/ui_messages.json",
        f".config/Windsurf/{EXTENSION}/tasks/6/ui_messages.json",
        ".cline/data/sessions/s.messages.json",
    ),
}
"""Files below the home folder that are logs."""


def test_each_program_keeps_its_logs_below_the_home_folder(tmp_path: Path):
    expected = {(program, write(tmp_path / path)) for program, paths in HOMES.items() for path in paths}
    assert set(found(HOME=tmp_path)) == expected
    assert len(found(HOME=tmp_path)) == len(expected)


@pytest.mark.parametrize(
    "path",
    [
        ".claude/projects/p/a.json",
        ".codex/sessions/a.json",
        ".gemini/tmp/h/logs.json",
        ".gemini/tmp/h/chats/a.txt",
        ".local/share/opencode/storage/message/s/a.jsonl",
        ".pi/agent/sessions/p/a.json",
        ".cline/data/tasks/1/api_messages.json",
        ".cline/data/sessions/s.json",
        ".config/Zed/User/globalStorage/saoudrizwan.claude-dev/tasks/1/ui_messages.json",
    ],
)
def test_other_files_beside_them_are_no_logs(tmp_path: Path, path: str):
    write(tmp_path / path)
    assert found(HOME=tmp_path) == []


@pytest.mark.parametrize(
    ("variable", "folder", "program", "path"),
    [
        ("CLAUDE_CONFIG_DIR", "moved", "claude-code", "moved/projects/p/a.jsonl"),
        ("CODEX_HOME", "moved", "codex", "moved/sessions/a.jsonl"),
        ("GEMINI_CLI_HOME", "moved", "gemini-cli", "moved/.gemini/tmp/h/chats/a.json"),
        ("XDG_DATA_HOME", "moved", "opencode", "moved/opencode/storage/message/a.json"),
        ("XDG_DATA_HOME", "moved", "opencode", "moved/opencode/opencode.db"),
        ("CLINE_DIR", "moved", "cline", "moved/data/tasks/1/ui_messages.json"),
        ("CLINE_DATA_DIR", "moved", "cline", "moved/tasks/1/ui_messages.json"),
        ("CLINE_DATA_DIR", "moved", "cline", "moved/sessions/a.messages.json"),
        ("CLINE_SESSION_DATA_DIR", "moved", "cline", "moved/a.messages.json"),
        (
            "XDG_CONFIG_HOME",
            "moved",
            "cline",
            f"moved/Code/{EXTENSION}/tasks/9/ui_messages.json",
        ),
        ("APPDATA", "moved", "cline", f"moved/Code/{EXTENSION}/tasks/9/ui_messages.json"),
    ],
)
def test_a_variable_moves_the_logs_of_a_program(tmp_path: Path, variable: str, folder: str, program: str, path: str):
    expected = write(tmp_path / path)
    home = {"HOME": tmp_path / "home"}
    assert found(**home, **{variable: tmp_path / folder}) == [(program, expected)]
    assert found(**home) == []
    usual = HOMES[program][0]
    write(tmp_path / "home" / usual)
    assert len(found(**home)) == 1
    is_beside = variable in ("CLINE_SESSION_DATA_DIR", "APPDATA", "XDG_CONFIG_HOME")
    assert len(found(**home, **{variable: tmp_path / folder})) == (2 if is_beside else 1)


def test_several_folders_of_claude_code_are_read(tmp_path: Path):
    first, second = (write(tmp_path / name / "projects" / "p" / "x.jsonl") for name in ("a", "b"))
    assert found(HOME=tmp_path, CLAUDE_CONFIG_DIR=f"{tmp_path}/a, {tmp_path}/b") == [
        ("claude-code", first),
        ("claude-code", second),
    ]


def test_a_task_of_cline_in_several_places_is_read_from_the_first_and_names_its_session(tmp_path: Path):
    task = write(tmp_path / ".cline/data/tasks/7/ui_messages.json")
    write(tmp_path / f".config/Code/{EXTENSION}/tasks/7/ui_messages.json")
    session = write(tmp_path / ".cline/data/sessions/7.messages.json")
    alone = write(tmp_path / ".cline/data/sessions/8.messages.json")
    logs = {one.path: one for one in find_logs({"HOME": str(tmp_path)})}
    assert {path: one.task for path, one in logs.items()} == {task: None, session: task, alone: None}


def test_size_and_time_are_those_of_the_file_and_of_the_newer_part_of_a_database(tmp_path: Path):
    database = Path(write(tmp_path / ".local/share/opencode/opencode.db", "12345"))
    (one,) = find_logs({"HOME": str(tmp_path)})
    assert (one.size, one.changed) == (5, database.stat().st_mtime)
    beside = Path(write(Path(f"{database}-wal"), "123"))
    (both,) = find_logs({"HOME": str(tmp_path)})
    assert (both.size, both.changed) == (8, beside.stat().st_mtime)


def test_links_to_folders_and_pipes_are_passed_over(tmp_path: Path):
    write(tmp_path / "elsewhere" / "a.jsonl")
    (tmp_path / ".codex" / "sessions").mkdir(parents=True)
    (tmp_path / ".codex" / "sessions" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".codex" / "sessions" / "folder.jsonl").mkdir()
    assert found(HOME=tmp_path) == []
