"""What Ullage's own entry in a program's file needs: variables, folders, and a place on the program's lists."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ullage.cli import main
from upstreams import users_file

pytestmark = pytest.mark.requirement("U:scan")


def write(work: Path, name: str, content: object) -> Path:
    path = work.parent / "home" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def install(client: str, code: int = 0) -> None:
    assert main(["install", client, "--yes", "--no-start"]) == code


def entry(path: Path, *keys: str) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    found: Any = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    for key in (*keys, "ullage"):
        found = found[key]
    return found


CODEX = """
[mcp_servers.hub]
url = "https://hub.example/mcp"
bearer_token_env_var = "HUB_TOKEN"
env_http_headers = { X-Team = "HUB_TEAM" }

[mcp_servers.fs]
command = "x"
env_vars = ["FS_KEY"]
"""


def test_codex_gives_ullage_the_variables_that_its_servers_named(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:1")
    path = write(work, ".codex/config.toml", CODEX)
    before = path.read_bytes()
    install("codex")
    given = entry(path, "mcp_servers")["env_vars"]
    assert {"HUB_TOKEN", "HUB_TEAM", "FS_KEY", "HTTPS_PROXY"} <= set(given)
    assert len(given) == len(set(given))
    assert main(["uninstall", "codex"]) == 0
    assert path.read_bytes() == before


def test_variables_of_servers_are_written_as_each_program_reads_them(work: Path):
    gemini = write(work, ".gemini/settings.json", {"mcpServers": {"hub": {"command": "x", "env": {"A": "$MY_TOKEN"}}}})
    server = {"command": "x", "env": {"A": "${env:MY_TOKEN}"}}
    cursor = write(work, ".cursor/mcp.json", {"mcpServers": {"hub": server}})
    claude = write(work, ".claude.json", {"mcpServers": {"hub": {"command": "x", "env": {"A": "${MY_TOKEN:-none}"}}}})
    for client in ("gemini", "cursor", "claude"):
        install(client)
    assert entry(gemini, "mcpServers")["env"]["MY_TOKEN"] == "$MY_TOKEN"
    assert entry(cursor, "mcpServers")["env"]["MY_TOKEN"] == "${env:MY_TOKEN}"
    # Claude Code gives a server all of its environment.
    assert "MY_TOKEN" not in entry(claude, "mcpServers")["env"]


def test_a_default_is_not_hidden_by_a_variable_that_is_not_set(work: Path, monkeypatch: pytest.MonkeyPatch):
    servers = {"hub": {"command": "x", "env": {"A": "${SPARE:-none}", "B": "${MAIN}"}}}
    path = write(work, ".gemini/settings.json", {"mcpServers": servers})
    install("gemini")
    assert set(entry(path, "mcpServers")["env"]) & {"SPARE", "MAIN"} == {"MAIN"}
    monkeypatch.setenv("SPARE", "s")
    install("gemini")
    assert set(entry(path, "mcpServers")["env"]) & {"SPARE", "MAIN"} == {"SPARE", "MAIN"}


@pytest.mark.parametrize(
    ("client", "name", "keys"),
    [
        ("codex", ".codex/config.toml", ("mcp_servers",)),
        ("claude", ".claude.json", ("mcpServers",)),
        ("zed", "config/zed/settings.json", ("context_servers",)),
        ("opencode", "config/opencode/opencode.json", ("mcp",)),
    ],
)
def test_ullage_finds_its_own_folders_wherever_variables_move_them(
    client: str, name: str, keys: tuple[str, ...], work: Path
):
    assert os.environ["XDG_CONFIG_HOME"]
    path = write(work, name, "" if name.endswith("toml") else {})
    install(client)
    key = "environment" if client == "opencode" else "env"
    given = entry(path, *keys)[key]
    assert given["XDG_CONFIG_HOME"] == str(users_file(work.parent).parent.parent)
    assert given["XDG_STATE_HOME"] == os.environ["XDG_STATE_HOME"]


def test_folders_in_their_usual_place_are_not_written(work: Path, monkeypatch: pytest.MonkeyPatch):
    home = os.environ["HOME"]
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{home}/.config")
    monkeypatch.setenv("XDG_STATE_HOME", f"{home}/.local/state")
    monkeypatch.setenv("XDG_DATA_HOME", f"{home}/.local/share")
    path = write(work, ".claude.json", {"mcpServers": {}})
    install("claude")
    assert entry(path, "mcpServers")["env"] == {}


def test_what_the_user_added_to_the_entry_stays_when_installed_again(work: Path):
    path = write(work, ".gemini/settings.json", {"mcpServers": {"a": {"command": "x", "trust": True}}})
    install("gemini")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["mcpServers"]["ullage"] |= {"timeout": 5000, "includeTools": ["find_tool"], "trust": True}
    document["mcpServers"]["ullage"]["env"]["MINE"] = "1"
    document["mcpServers"]["b"] = {"command": "y"}
    path.write_text(json.dumps(document), encoding="utf-8")
    install("gemini")
    found = entry(path, "mcpServers")
    assert (found["timeout"], found["includeTools"], found["env"]["MINE"]) == (5000, ["find_tool"], "1")
    # A server that asks came to those that did not.
    assert "trust" not in found


def test_settings_of_an_extension_that_are_empty_keep_no_server_in_zed(work: Path):
    command = {"path": "x", "args": ["1"], "env": {"K": "v"}}
    servers = {"old": {"command": command, "settings": {}}, "kept": {"command": command, "settings": {"key": "v"}}}
    path = write(work, "config/zed/settings.json", {"context_servers": servers})
    install("zed")
    assert list(json.loads(path.read_text(encoding="utf-8"))["context_servers"]) == ["kept", "ullage"]
    own = tomllib.loads(users_file(work.parent).read_text(encoding="utf-8"))
    assert own["servers"]["old"] == {"command": "x", "args": ["1"], "env": {"K": "v"}}


@pytest.mark.requirement("U:access")
def test_ullage_joins_the_users_own_list_of_servers_that_gemini_starts(work: Path):
    settings = {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}, "mcp": {"allowed": ["a"]}}
    path = write(work, ".gemini/settings.json", settings)
    before = path.read_bytes()
    install("gemini")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["mcp"]["allowed"] == ["a", "ullage"]
    assert list(document["mcpServers"]) == ["b", "ullage"]
    assert main(["uninstall", "gemini"]) == 0
    assert path.read_bytes() == before


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize(
    "rules",
    [
        {"allowedMcpServers": [{"serverName": "a"}]},
        {"deniedMcpServers": [{"serverName": "ullage"}]},
        {"permissions": {"deny": ["mcp__ullage"]}},
        {"permissions": {"deny": ["mcp__*"]}},
    ],
)
def test_install_is_refused_where_the_program_would_leave_ullage_out(
    rules: object, work: Path, capsys: pytest.CaptureFixture[str]
):
    path = write(work, ".claude.json", {"mcpServers": {"a": {"command": "x"}}})
    write(work, ".claude/settings.json", rules)
    before = path.read_bytes()
    install("claude", 2)
    assert "would not let Ullage serve" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert not users_file(work.parent).exists()


@pytest.mark.requirement("U:access")
def test_a_server_that_claude_code_refuses_to_start_is_not_moved(work: Path):
    servers = {
        "by-name": {"command": "a"},
        "by-command": {"command": "npx", "args": ["-y", "bad"]},
        "by-url": {"type": "http", "url": "https://mcp.bad.example/mcp"},
        "fine": {"command": "npx", "args": ["-y", "good"]},
    }
    path = write(work, ".claude.json", {"mcpServers": servers})
    denied = [
        {"serverName": "by-name"},
        {"serverCommand": ["npx", "-y", "bad"]},
        {"serverUrl": "https://*.bad.example/*"},
    ]
    write(work, ".claude/settings.json", {"deniedMcpServers": denied})
    install("claude")
    assert list(json.loads(path.read_text(encoding="utf-8"))["mcpServers"]) == [
        "by-name",
        "by-command",
        "by-url",
        "ullage",
    ]


@pytest.mark.requirement("U:access")
def test_of_the_servers_that_claude_code_may_start_only_those_are_moved(work: Path):
    servers = {"named": {"command": "a"}, "started": {"command": "b", "args": ["1"]}, "far": {"url": "https://x/mcp"}}
    path = write(work, ".claude.json", {"mcpServers": servers})
    ours = {"serverName": "ullage"}
    settings = write(work, ".claude/settings.json", {"allowedMcpServers": [{"serverName": "named"}, ours]})
    install("claude")
    assert list(json.loads(path.read_text(encoding="utf-8"))["mcpServers"]) == ["started", "far", "ullage"]
    assert main(["uninstall", "claude"]) == 0
    # With a command on the list, names admit no server that is started by one, and so not Ullage either.
    listed = [{"serverName": "named"}, {"serverCommand": ["b", "1"]}, ours]
    settings.write_text(json.dumps({"allowedMcpServers": listed}), encoding="utf-8")
    install("claude", 2)


@pytest.mark.requirement("U:access")
def test_a_server_that_is_switched_on_for_one_agent_only_stays_in_opencode(work: Path):
    settings = {
        "mcp": {"fs": {"type": "local", "command": ["x"]}, "db": {"type": "local", "command": ["y"]}},
        "tools": {"fs*": False},
        "agent": {"files": {"tools": {"fs*": True}}},
    }
    path = write(work, "config/opencode/opencode.json", settings)
    install("opencode")
    assert list(json.loads(path.read_text(encoding="utf-8"))["mcp"]) == ["fs", "ullage"]
