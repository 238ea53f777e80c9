import json
import os
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.clients.configs import PROGRAMS, ConfigFile, Surroundings, find_program, read_client, read_clients
from ullage.clients.configs.config_locations import Platform, tools_named_by
from ullage.clients.configs.server_entries import read_entry

pytestmark = pytest.mark.requirement("U:scan")


def around(home: Path, project: Path | None = None, **environment: str) -> Surroundings:
    folders = () if project is None else (str(project),)
    return Surroundings(platform="linux", home=str(home), environment=environment, folders=folders)


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_files_lie_where_each_platform_has_them():
    def main_file(name: str, platform: Platform, home: str, **environment: str) -> str:
        seen = Surroundings(platform=platform, home=home, environment=environment)
        return next(one.path for one in PROGRAMS[name].list_files(seen) if one.is_main and one.scope == "user")

    assert main_file("claude", "linux", "/h") == "/h/.claude.json"
    assert main_file("claude", "linux", "/h", CLAUDE_CONFIG_DIR="/c") == "/c/.claude.json"
    assert (
        main_file("claude-desktop", "darwin", "/h")
        == "/h/Library/Application Support/Claude/claude_desktop_config.json"
    )
    windows = main_file("claude-desktop", "win32", "C:\\h", APPDATA="C:\\h\\Roam")
    assert windows == "C:\\h\\Roam\\Claude\\claude_desktop_config.json"
    assert main_file("vscode", "linux", "/h") == "/h/.config/Code/User/mcp.json"
    assert main_file("vscode", "win32", "C:\\h") == "C:\\h\\AppData\\Roaming\\Code\\User\\mcp.json"
    assert main_file("codex", "darwin", "/h") == "/h/.codex/config.toml"
    assert main_file("zed", "darwin", "/h") == "/h/.config/zed/settings.json"
    assert main_file("zed", "win32", "C:\\h") == "C:\\h\\AppData\\Roaming\\Zed\\settings.json"
    assert main_file("opencode", "linux", "/h", XDG_CONFIG_HOME="/x") == "/x/opencode/opencode.json"
    assert main_file("windsurf", "linux", "/h") == "/h/.codeium/windsurf/mcp_config.json"
    assert main_file("gemini", "linux", "/h") == "/h/.gemini/settings.json"
    assert main_file("qwen", "linux", "/h") == "/h/.qwen/settings.json"
    assert main_file("cursor", "linux", "/h") == "/h/.cursor/mcp.json"
    assert main_file("cline", "linux", "/h").endswith("saoudrizwan.claude-dev/settings/cline_mcp_settings.json")


def test_claude_code_scopes_and_permissions(tmp_path: Path):
    project = tmp_path / "work"
    write(
        tmp_path / ".claude.json",
        {
            "mcpServers": {"fs": {"type": "stdio", "command": "npx", "args": ["-y"], "env": {"KEY": "${TOKEN:-x}"}}},
            "projects": {
                str(project): {
                    "mcpServers": {"hub": {"type": "http", "url": "http://h/mcp", "headers": {"A": "b"}}},
                    "disabledMcpjsonServers": ["events"],
                },
                "/elsewhere": {"mcpServers": {"other": {"command": "x"}}},
            },
        },
    )
    write(
        project / ".mcp.json",
        {"mcpServers": {"events": {"type": "sse", "url": "http://h/sse"}, "fs": {"command": "y"}}},
    )
    write(
        tmp_path / ".claude" / "settings.json",
        {
            "model": "opus",
            "permissions": {"deny": ["mcp__fs__delete", "Bash(rm:*)"], "ask": ["mcp__hub", "mcp__fs__w*"]},
        },
    )
    found = read_client(PROGRAMS["claude"], around(tmp_path, project))
    assert [(one.name, one.scope, one.folder) for one in found.servers] == [
        ("hub", "local", str(project)),
        ("events", "project", str(project)),
        ("fs", "project", str(project)),
        ("fs", "user", None),
    ]
    hub, events, near, far = found.servers
    assert (hub.transport, hub.url, hub.headers) == ("http", "http://h/mcp", {"A": "b"})
    assert hub.path == ("projects", str(project), "mcpServers", "hub")
    assert (hub.rules.ask, far.rules.deny, far.rules.ask) == (("*",), ("delete",), ("w*",))
    assert (events.transport, events.disabled) == ("sse", True)
    assert (near.is_shadowed, far.is_shadowed) == (False, True)
    assert far.environment == {"KEY": "${TOKEN:-x}"}
    assert (found.model, found.defers_tools, found.problems) == ("opus", True, ())


def test_claude_code_defers_tools_unless_told_otherwise(tmp_path: Path):
    write(tmp_path / ".claude.json", {"mcpServers": {}})
    claude = PROGRAMS["claude"]
    assert read_client(claude, around(tmp_path)).defers_tools
    # Another address for its model's API changes nothing, as `make bench-clients` shows for 2.1.325.
    assert read_client(claude, around(tmp_path, ANTHROPIC_BASE_URL="http://127.0.0.1")).defers_tools
    assert not read_client(claude, around(tmp_path, ENABLE_TOOL_SEARCH="false")).defers_tools
    assert not read_client(claude, around(tmp_path, ENABLE_TOOL_SEARCH="auto:100")).defers_tools
    write(tmp_path / ".claude" / "settings.json", {"env": {"ENABLE_TOOL_SEARCH": "true"}})
    assert read_client(claude, around(tmp_path, ENABLE_TOOL_SEARCH="false")).defers_tools
    write(tmp_path / ".claude" / "settings.json", {"env": {"ENABLE_TOOL_SEARCH": "false"}})
    assert not read_client(claude, around(tmp_path)).defers_tools


def test_codex_entries(tmp_path: Path):
    write(
        tmp_path / ".codex" / "config.toml",
        """
model = "gpt-5.5"
profile = "deep"
[profiles.deep]
model = "gpt-5.5-pro"
[mcp_servers.fs]
command = "npx"
args = ["-y", "server-fs"]
env_vars = ["HOME", {name = "TOKEN"}]
startup_timeout_ms = 5000
tool_timeout_sec = 90
enabled_tools = ["read", "write"]
disabled_tools = ["write"]
default_tools_approval_mode = "prompt"
[mcp_servers.fs.tools.read]
approval_mode = "approve"
[mcp_servers.hub]
url = "http://h/mcp"
bearer_token_env_var = "TOK"
env_http_headers = {X = "XVAR"}
enabled = false
[mcp_servers.odd]
command = "echo"
args = ["${HOME}"]
""",
    )
    found = read_client(PROGRAMS["codex"], around(tmp_path))
    fs, hub, odd = found.servers
    assert (fs.inherited, fs.start_timeout, fs.call_timeout) == (("HOME", "TOKEN"), 5.0, 90.0)
    assert (fs.rules.only, fs.rules.deny, fs.rules.ask, fs.rules.allow) == (
        ("read", "write"), ("write",), ("*",), ("read",),
    )  # fmt: skip
    assert (hub.headers, hub.disabled) == ({"X": "${XVAR}", "Authorization": "Bearer ${TOK}"}, True)
    assert odd.unresolved == ("`${HOME}` taken literally",)
    assert found.model == "gpt-5.5-pro"
    assert found.problems == ()


def test_gemini_and_qwen_entries(tmp_path: Path):
    settings = {
        "mcpServers": {
            "fs": {
                "command": "npx",
                "args": ["$HOME", 'exec "$RUNNER"'],
                "env": {"TOKEN": "$TOKEN"},
                "timeout": 5000,
                "trust": True,
                "includeTools": ["a"],
                "excludeTools": ["c"],
            },
            "hub": {"httpUrl": "http://h/x"},
            "ev": {"url": "http://h/sse"},
        },
        "mcp": {"excluded": ["hub"]},
        "tools": {"exclude": ["mcp_ev_drop", "mcp__ev__wipe", "run_shell_command"]},
        "model": {"name": "gemini-3-pro"},
    }
    for name in ("gemini", "qwen"):
        write(tmp_path / f".{name}" / "settings.json", settings)
        found = read_client(PROGRAMS[name], around(tmp_path, HOME="/h"))
        fs, hub, ev = found.servers
        # What is not set stays as it is in an argument, where it may be a shell's.
        assert (fs.arguments, fs.environment) == (("${HOME}", 'exec "$RUNNER"'), {"TOKEN": "${TOKEN}"})
        assert (fs.call_timeout, fs.rules.only, fs.rules.deny) == (5.0, ("a",), ("c",))
        assert fs.rules.allow == ("*",)
        assert (hub.transport, hub.disabled, ev.transport) == ("http", True, "sse")
        assert ev.rules.deny == ("drop", "wipe")
        assert found.model == "gemini-3-pro"
    write(tmp_path / ".gemini" / "mcp-server-enablement.json", {"fs": {"enabled": False}})
    assert read_client(PROGRAMS["gemini"], around(tmp_path)).servers[0].disabled


def test_opencode_entries(tmp_path: Path):
    write(
        tmp_path / "opencode.json",
        """{ // comment
  "model": "openai/gpt-5",
  "mcp": {
    "fs": {"type": "local", "command": ["npx", "-y", "fs"], "environment": {"A": "{env:HOME}"}, "timeout": 5000},
    "hub": {"type": "remote", "url": "http://h/mcp", "headers": {"K": "{file:~/key}"}, "enabled": false},
    "elsewhere": {"enabled": false},
  },
  "tools": {"fs_delete*": false}, "permission": {"hub_*": "ask", "*": "allow"}
}""",
    )
    seen = Surroundings(platform="linux", home="/nobody", environment={}, folders=(str(tmp_path),))
    found = read_client(PROGRAMS["opencode"], seen)
    fs, hub = found.servers
    assert (fs.command, fs.arguments, fs.environment) == ("npx", ("-y", "fs"), {"A": "${HOME:-}"})
    assert (fs.start_timeout, fs.rules.deny) == (5.0, ("delete*",))
    assert (hub.transport, hub.disabled, hub.unresolved, hub.rules.ask) == ("http", True, ("`{file:~/key}`",), ("*",))
    assert found.model == "openai/gpt-5"


def test_entries_of_editors(tmp_path: Path):
    project = tmp_path / "p"
    write(
        project / ".vscode" / "mcp.json",
        {
            "inputs": [{"id": "t", "type": "promptString"}],
            "servers": {
                "gh": {"type": "http", "url": "http://h", "headers": {"A": "Bearer ${input:t}"}},
                "fs": {"command": "x", "args": ["${workspaceFolder}", "${userHome}", "${env:K}"], "envFile": ".env"},
            },
        },
    )
    gh, fs = read_client(PROGRAMS["vscode"], around(tmp_path, project)).servers
    assert gh.unresolved == ("`${input:t}`",)
    assert fs.arguments == (str(project), str(tmp_path), "${K}")
    assert fs.unresolved == ("`envFile`",)

    write(
        tmp_path / ".cursor" / "mcp.json", {"mcpServers": {"gh": {"url": "http://h/mcp", "auth": {"CLIENT_ID": "x"}}}}
    )
    write(tmp_path / ".cursor" / "cli-config.json", {"permissions": {"deny": ["Mcp(gh:drop*)", "Shell(rm)"]}})
    (gh,) = read_client(PROGRAMS["cursor"], around(tmp_path)).servers
    assert (gh.signs_in, gh.rules.deny) == (True, ("drop*",))

    write(
        tmp_path / ".codeium" / "windsurf" / "mcp_config.json",
        {"mcpServers": {"w": {"serverUrl": "http://h/x", "disabled": True, "disabledTools": ["a"]}}},
    )
    (one,) = read_client(PROGRAMS["windsurf"], around(tmp_path)).servers
    assert (one.url, one.disabled, one.rules.deny) == ("http://h/x", True, ("a",))

    write(
        tmp_path / ".config" / "zed" / "settings.json",
        """{
  "agent": {"default_model": {"model": "claude-opus"},
            "tool_permissions": {"tools": {"mcp:old:drop": {"default": "deny"}}}},
  "context_servers": {
    "new": {"source": "custom", "command": "a", "args": ["b"], "enabled": false},
    "old": {"command": {"path": "c", "args": ["d"], "env": {"E": "f"}}},
    "ext": {"source": "extension", "settings": {}},
  },
}""",
    )
    found = read_client(PROGRAMS["zed"], around(tmp_path))
    new, old, ext = found.servers
    assert (new.command, new.disabled, new.arguments) == ("a", True, ("b",))
    assert (old.command, old.arguments, old.environment, old.rules.deny) == ("c", ("d",), {"E": "f"}, ("drop",))
    assert ext.faults
    assert found.model == "claude-opus"

    storage = tmp_path / ".config" / "Code" / "User" / "globalStorage" / "saoudrizwan.claude-dev" / "settings"
    write(
        storage / "cline_mcp_settings.json",
        {"mcpServers": {"c": {"command": "x", "timeout": 60, "autoApprove": ["a"]}}},
    )
    (one,) = read_client(PROGRAMS["cline"], around(tmp_path)).servers
    assert (one.call_timeout, one.rules.allow) == (60.0, ("a",))


def test_every_new_entry_is_read_back(tmp_path: Path):
    for program in PROGRAMS.values():
        raw = program.make_entry("/opt/ullage", ("serve", "--client", program.name), ("find_tool",))
        place = ConfigFile(path="f", scope="user")
        entry = read_entry(
            raw, program.keys, name="ullage", place=place, path=("s", "ullage"), program=program.name, home="/h"
        )
        assert (entry.command, entry.arguments) == ("/opt/ullage", ("serve", "--client", program.name))
        assert (entry.faults, entry.other_keys, entry.unresolved, entry.disabled) == ((), (), (), False), program.name


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}", b"[1]", b"{", b'{"mcpServers": 3, "servers": [], "mcp": "x"}',
     b"\x00" * 9, b'{"mcpServers": {"a": null, "b": {"command": 3, "args": {}, "env": 1, "url": []}}}',
     b'{"mcp_servers": ' + b"[" * 5000],
)  # fmt: skip
def test_reading_survives_any_file(tmp_path: Path, content: bytes):
    project = tmp_path / "p"
    for program in PROGRAMS.values():
        for file in program.list_files(around(tmp_path, project)):
            if file.path.startswith(str(tmp_path)):
                # Most folders are a file here, which reading survives too; one contains the program's main file.
                path = Path(file.path, f"one{file.ending}") if file.ending else Path(file.path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    for found in read_clients(around(tmp_path, project)):
        assert not found.active_servers


def test_reading_survives_what_is_no_file(tmp_path: Path):
    codex = tmp_path / ".codex" / "config.toml"
    codex.mkdir(parents=True)
    loop = tmp_path / ".claude.json"
    loop.symlink_to(loop)
    (tmp_path / ".gemini").mkdir()
    os.mkfifo(tmp_path / ".gemini" / "settings.json")
    said = {
        found.program.name: [problem.file for problem in found.problems] for found in read_clients(around(tmp_path))
    }
    assert said == {
        "claude": [str(loop)],
        "codex": [str(codex)],
        "gemini": [str(tmp_path / ".gemini" / "settings.json")],
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "command",
                    "args",
                    "env",
                    "url",
                    "tools",
                    "type",
                    "headers",
                    "timeout",
                    "trust",
                    "enabled",
                    "path",
                    "env_vars",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(JSON)
def test_any_entry_is_read(raw: object):
    place = ConfigFile(path="f", scope="user")
    for program in PROGRAMS.values():
        entry = read_entry(raw, program.keys, name="n", place=place, path=("s", "n"), program="p", home="/h")
        if program.finish_entry and isinstance(raw, dict):
            entry = program.finish_entry(entry, cast("dict[str, object]", raw))
        assert entry.faults or entry.command is not None or entry.url is not None


def test_rules_name_tools_of_one_server():
    prefixes, wholes = ("mcp__my_fs__",), ("mcp__my_fs",)
    assert tools_named_by(["mcp__my-fs__read", "mcp__my_fs2__x", "mcp__other"], prefixes, wholes) == ("read",)
    assert tools_named_by(["mcp__my_fs"], prefixes, wholes) == ("*",)
    assert "*" in tools_named_by(["mcp__*"], prefixes, wholes)
    assert {"drop", "*__drop"} <= set(tools_named_by(["mcp__*__drop(x)"], prefixes, wholes))


def test_programs_are_found_by_name_and_alias():
    assert [find_program(name).name for name in ("Codex", "claude-code", "VS Code", "gemini_cli")] == [  # type: ignore[union-attr]
        "codex", "claude", "vscode", "gemini",
    ]  # fmt: skip
    assert find_program("nothing") is None
