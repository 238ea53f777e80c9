"""`ullage install`, `uninstall` and `status` on files as programs write them."""

import json
import os
import stat
import tomllib
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from approving import approve
from ullage.app import install_plan
from ullage.cli import main, uninstall
from ullage.clients.configs import ServerEntry, replace_files
from ullage.config import Flags, examine
from ullage.gateway import Rules
from upstreams import scripted, tool, users_file

pytestmark = pytest.mark.requirement("U:scan")

ECHO = tool("echo", "Says a text again.")


def claude_file(work: Path, **servers: object) -> Path:
    path = work.parent / "home" / ".claude.json"
    path.write_text(json.dumps({"numStartups": 3, "mcpServers": servers}, indent=2), encoding="utf-8")
    return path


def gemini_file(work: Path, **servers: object) -> Path:
    path = work.parent / "home" / ".gemini" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def own(work: Path) -> dict[str, Any]:
    return tomllib.loads(users_file(work.parent).read_text(encoding="utf-8"))


def install(client: str) -> None:
    assert main(["install", client, "--yes", "--no-start"]) == 0


def test_install_moves_servers_and_uninstall_gives_the_bytes_back(work: Path, capsys: pytest.CaptureFixture[str]):
    path = claude_file(work, fs={**scripted(ECHO), "env": {"KEY": "v"}}, hub={"type": "http", "url": "http://h/mcp"})
    before = path.read_bytes()
    install("claude")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert list(document) == ["numStartups", "mcpServers"]
    assert list(document["mcpServers"]) == ["ullage"]
    assert document["mcpServers"]["ullage"]["args"][-3:] == ["serve", "--client", "claude"]
    assert Path(document["mcpServers"]["ullage"]["command"]).is_absolute()
    settings = own(work)
    assert settings["servers"]["fs"]["env"] == {"KEY": "v"}
    assert settings["groups"] == {"claude": {"servers": ["fs", "hub"]}}
    assert settings["clients"] == {"claude": {"groups": ["claude"]}}
    assert stat.S_IMODE(users_file(work.parent).stat().st_mode) == 0o600
    folder = users_file(work.parent).parent
    assert main(["uninstall", "claude"]) == 0
    assert path.read_bytes() == before
    assert not folder.exists()
    capsys.readouterr()
    assert main(["uninstall", "claude"]) == 2


def test_dry_run_changes_nothing(work: Path, capsys: pytest.CaptureFixture[str]):
    path = claude_file(work, fs={"command": "x", "env": {"TOKEN": "hush"}})
    before = path.read_bytes()
    assert main(["install", "claude", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "fs" in said
    assert "hush" not in said
    assert path.read_bytes() == before
    assert not users_file(work.parent).exists()


def test_dry_run_ends_with_the_next_command(work: Path, capsys: pytest.CaptureFixture[str]):
    claude_file(work, fs=scripted(ECHO))
    assert main(["install", "claude", "--dry-run", "--no-start"]) == 0
    assert capsys.readouterr().out.endswith("\nNothing was changed. Next: ullage install claude\n")


def test_a_second_installation_asks_nothing_and_changes_nothing(work: Path, capsys: pytest.CaptureFixture[str]):
    path = claude_file(work, fs=scripted(ECHO))
    install("claude")
    before = path.read_bytes(), own(work)
    capsys.readouterr()
    assert main(["install", "claude", "--no-start"]) == 0
    assert "already installed here, and there is nothing to move" in capsys.readouterr().out
    assert (path.read_bytes(), own(work)) == before


def test_without_a_terminal_nothing_is_changed_unasked(work: Path):
    path = claude_file(work, fs={"command": "x"})
    before = path.read_bytes()
    assert main(["install", "claude"]) == 2
    assert path.read_bytes() == before


def test_install_counts_tokens_before_and_after(work: Path, capsys: pytest.CaptureFixture[str]):
    claude_file(work, fs=scripted(ECHO))
    assert main(["install", "claude", "--yes", "--json"]) == 0
    tokens = json.loads(capsys.readouterr().out)["tokens"]
    assert tokens["before"] > 0
    assert tokens["after"] > 0
    assert tokens["not_counted"] == []


@pytest.mark.requirement("U:access")
def test_excluded_and_asked_tools_stay_so(work: Path):
    claude_file(work, fs={"command": "x"})
    settings = work.parent / "home" / ".claude" / "settings.json"
    settings.parent.mkdir()
    permissions = {"deny": ["mcp__fs__delete"], "ask": ["mcp__fs__write*"], "allow": ["mcp__fs__read"]}
    settings.write_text(json.dumps({"permissions": permissions}), encoding="utf-8")
    gemini_file(
        work,
        fs={"command": "x", "includeTools": ["a", "b"], "excludeTools": ["b"]},
        none={"command": "y", "includeTools": []},
    )
    install("claude")
    install("gemini")
    servers = own(work)["servers"]
    assert (servers["fs"]["deny"], servers["fs"]["ask"]) == (["delete"], ["write*"])
    assert (servers["fs-gemini"]["only"], servers["fs-gemini"]["deny"]) == (["a", "b"], ["b"])
    assert servers["none"]["deny"] == ["*"]


@pytest.mark.requirement("U:access")
def test_servers_of_a_project_are_not_moved(work: Path, capsys: pytest.CaptureFixture[str]):
    claude_file(work, fs={"command": "x"})
    project = work / ".mcp.json"
    project.write_text(json.dumps({"mcpServers": {"evil": {"command": "/bin/false"}}}), encoding="utf-8")
    before = project.read_bytes()
    install("claude")
    assert project.read_bytes() == before
    assert list(own(work)["servers"]) == ["fs"]
    assert "evil" in capsys.readouterr().out


def test_what_only_the_program_can_fill_in_stays(work: Path, capsys: pytest.CaptureFixture[str]):
    path = work.parent / "home" / "config" / "Code" / "User" / "mcp.json"
    path.parent.mkdir(parents=True)
    servers = {"gh": {"url": "http://h", "headers": {"A": "${input:token}"}}, "fs": {"command": "x"}}
    path.write_text(json.dumps({"servers": servers, "inputs": [{"id": "token"}]}), encoding="utf-8")
    install("vscode")
    assert list(json.loads(path.read_text(encoding="utf-8"))["servers"]) == ["gh", "ullage"]
    assert "${input:token}" in capsys.readouterr().out


def test_identical_servers_of_two_programs_become_one(work: Path):
    claude, gemini = (
        claude_file(work, fs={"command": "x"}, t={"command": "a"}),
        gemini_file(work, fs={"command": "x"}, t={"command": "b"}),
    )
    before = claude.read_bytes(), gemini.read_bytes()
    install("claude")
    install("gemini")
    assert sorted(own(work)["servers"]) == ["fs", "t", "t-gemini"]
    assert own(work)["groups"] == {"claude": {"servers": ["fs", "t"]}, "gemini": {"servers": ["fs", "t-gemini"]}}
    assert main(["uninstall", "claude"]) == 0
    settings = own(work)
    assert (sorted(settings["servers"]), list(settings["groups"])) == (["fs", "t-gemini"], ["gemini"])
    assert main(["uninstall", "gemini"]) == 0
    assert (claude.read_bytes(), gemini.read_bytes()) == before


@pytest.mark.parametrize(("first", "second", "names"), [
    ({"timeout": 200_000}, {}, ["fs", "fs-gemini"]),
    ({"timeout": 900_000}, {}, ["fs"]),
    ({}, {"timeout": 200_000}, ["fs"]),
    ({}, {"timeout": 900_000}, ["fs", "fs-gemini"]),
])  # fmt: skip
def test_a_server_that_waits_long_enough_serves_a_program_with_a_shorter_timeout(
    work: Path, first: dict[str, Any], second: dict[str, Any], names: list[str]
):
    claude_file(work, fs={"command": "x", **first})
    gemini_file(work, fs={"command": "x", **second})
    install("claude")
    install("gemini")
    assert sorted(own(work)["servers"]) == names


def test_uninstall_keeps_what_others_changed(work: Path):
    path = claude_file(work, fs={"command": "x"})
    install("claude")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["numStartups"] = 4
    document["mcpServers"]["new"] = {"command": "n"}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert main(["uninstall", "claude"]) == 0
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found == {"numStartups": 4, "mcpServers": {"new": {"command": "n"}, "fs": {"command": "x"}}}


def test_uninstall_cleans_a_file_that_another_process_changes_meanwhile(work: Path, monkeypatch: pytest.MonkeyPatch):
    claude_file(work, fs={"command": "x"})
    gemini_file(work, hub={"command": "y"})
    install("claude")
    install("gemini")
    plan, changes = install_plan.plan_uninstall, iter(["# one\n", "# two\n"])

    def plan_beside_another(program: str, file: dict[str, object], added: Iterable[tuple[str, ...]]) -> object:
        if change := next(changes, None):
            with users_file(work.parent).open("a", encoding="utf-8") as appended:
                appended.write(change)
        return plan(program, file, added)

    monkeypatch.setattr(uninstall, "plan_uninstall", plan_beside_another)
    assert main(["uninstall", "claude"]) == 0
    assert list(own(work)["servers"]) == ["hub"]
    assert list(own(work)["clients"]) == ["gemini"]
    assert users_file(work.parent).read_text(encoding="utf-8").endswith("# one\n# two\n")


def test_uninstall_at_the_same_time_as_another_leaves_nothing_behind(work: Path, monkeypatch: pytest.MonkeyPatch):
    claude_file(work, fs={"command": "x"})
    gemini_file(work, hub={"command": "y"})
    install("claude")
    install("gemini")
    read, others = replace_files.read_bytes, iter([["uninstall", "claude"]])

    def read_before_another(path: str) -> bytes | None:
        content = read(path)
        if words := next(others, None):
            assert main(words) == 0
        return content

    monkeypatch.setattr(uninstall, "read_bytes", read_before_another)
    assert main(["uninstall", "gemini"]) == 0
    assert not users_file(work.parent).exists()


@pytest.mark.parametrize("order", list(permutations(["claude", "gemini", "codex"])))
def test_a_shared_server_goes_with_the_last_program_that_uses_it(work: Path, order: tuple[str, ...]):
    shared = {"command": "x"}
    claude_file(work, fs=shared, git={"command": "y"})
    gemini_file(work, fs=shared)
    codex = work.parent / "home" / ".codex" / "config.toml"
    codex.parent.mkdir()
    codex.write_text('[mcp_servers.fs]\ncommand = "x"\n[mcp_servers.git]\ncommand = "y"\n', encoding="utf-8")
    for program in ("claude", "gemini", "codex"):
        install(program)
    assert list(own(work)["servers"]) == ["fs", "git"]
    assert main(["uninstall", order[0]]) == 0
    assert main(["uninstall", order[1]]) == 0
    assert list(own(work)["servers"]) == (["fs"] if order[2] == "gemini" else ["fs", "git"])
    assert main(["uninstall", order[2]]) == 0
    assert not users_file(work.parent).exists()


def test_a_read_only_file_leaves_everything_as_it_was(work: Path):
    path = claude_file(work, fs={"command": "x"})
    path.chmod(0o400)
    before = path.read_bytes()
    assert main(["install", "claude", "--yes", "--no-start"]) == 2
    assert path.read_bytes() == before
    assert not users_file(work.parent).exists()
    assert main(["uninstall", "claude"]) == 2


@pytest.mark.requirement("U:status")
def test_status_warns_of_servers_that_are_paid_for_twice(work: Path, capsys: pytest.CaptureFixture[str]):
    path = claude_file(work, fs={"command": "x"})
    assert main(["status"]) == 0
    assert "ullage install claude" in capsys.readouterr().out
    install("claude")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["mcpServers"]["fs"] = {"command": "x"}
    path.write_text(json.dumps(document), encoding="utf-8")
    capsys.readouterr()
    assert main(["status", "--json"]) == 0
    (client,) = json.loads(capsys.readouterr().out)["clients"]
    assert (client["installed"], client["behind"], client["doubled"]) == (True, ["fs"], ["fs"])


@pytest.mark.requirement("U:status")
def test_status_as_json_says_all_of_a_client(work: Path, capsys: pytest.CaptureFixture[str]):
    remote = {"type": "http", "url": "https://host.test/mcp"}
    path = claude_file(work, fs={"command": "x"}, off={"command": "y", "disabled": True}, far=remote)
    assert main(["status", "--json"]) == 0
    (client,) = json.loads(capsys.readouterr().out)["clients"]
    servers = {one.pop("name"): one for one in client.pop("servers")}
    assert client == {
        "client": "claude",
        "files": [str(path)],
        "installed": False,
        "behind": [],
        "doubled": [],
        "model": None,
        "defers_tools": client["defers_tools"],
        "problems": [],
    }
    plain = {"scope": "user", "transport": "stdio", "disabled": False, "needs_sign_in": False}
    assert set(servers) == {"fs", "off", "far"}
    assert servers["fs"] == plain
    assert servers["far"] == {**plain, "transport": "http", "needs_sign_in": servers["far"]["needs_sign_in"]}


def test_an_unknown_program_is_named_with_those_there_are(work: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["install", "nothing"]) == 2
    assert "codex" in capsys.readouterr().err


def test_install_refuses_rules_that_it_cannot_read(work: Path, capsys: pytest.CaptureFixture[str]):
    path = gemini_file(work, fs={"command": "x"})
    before = path.read_bytes()
    (path.parent / "policies").mkdir()
    (path.parent / "policies" / "mine.toml").write_text("[[rule]\n", encoding="utf-8")
    assert main(["install", "gemini", "--yes", "--no-start"]) == 2
    assert "policies" in capsys.readouterr().err
    assert path.read_bytes() == before


POLICIES = """
[[rule]]
mcpName = "fs"
toolName = ["drop", "wipe"]
decision = "deny"
priority = 200

[[rule]]
toolName = "mcp_fs_put"
decision = "ask_user"
priority = 150

[[rule]]
toolName = "fs__move"
argsPattern = "secret"
decision = "deny"
priority = 140

[[rule]]
mcpName = "locked"
toolName = "read"
decision = "allow"
priority = 120

[[rule]]
mcpName = "locked"
decision = "deny"
priority = 100

[[rule]]
toolName = "run_shell_command"
decision = "deny"
priority = 999
"""


def rules_in_force(work: Path) -> dict[str, Rules]:
    """Return the rules of each server as `ullage serve` would apply them."""
    loaded = examine(Flags(), dict(os.environ), work)
    return {server.name: server.rules for server in loaded.settings.servers}


@pytest.mark.requirement("U:access")
def test_what_claude_code_asks_for_is_asked_for_though_it_is_also_allowed(work: Path):
    claude_file(work, fs={"command": "x"})
    settings = work.parent / "home" / ".claude" / "settings.json"
    settings.parent.mkdir()
    permissions = {"ask": ["mcp__fs__*"], "allow": ["mcp__fs__read"]}
    settings.write_text(json.dumps({"permissions": permissions}), encoding="utf-8")
    install("claude")
    assert rules_in_force(work)["fs"].access("read") == "ask"


@pytest.mark.requirement("U:access")
def test_what_codex_and_opencode_free_from_a_wider_question_is_not_asked_for(work: Path):
    home = work.parent / "home"
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        '[mcp_servers.a]\ncommand = "x"\ndefault_tools_approval_mode = "prompt"\n'
        '[mcp_servers.a.tools.read]\napproval_mode = "approve"\n',
        encoding="utf-8",
    )
    opencode = home / "config" / "opencode" / "opencode.json"
    opencode.parent.mkdir(parents=True)
    permission = {"b_read": "allow", "b_*": "ask", "b_list": "allow"}
    server = {"type": "local", "command": ["y"]}
    opencode.write_text(json.dumps({"mcp": {"b": server}, "permission": permission}), encoding="utf-8")
    install("codex")
    install("opencode")
    assert [rules_in_force(work)["a"].access(tool) for tool in ("read", "write")] == ["allow", "ask"]
    assert [rules_in_force(work)["b"].access(tool) for tool in ("read", "list", "write")] == ["ask", "allow", "ask"]


@pytest.mark.requirement("U:access")
def test_policies_of_gemini_stay_in_force(work: Path):
    path = gemini_file(work, fs={"command": "x"}, locked={"command": "y"}, free={"command": "z"})
    (path.parent / "policies").mkdir()
    (path.parent / "policies" / "mine.toml").write_text(POLICIES, encoding="utf-8")
    install("gemini")
    rules = rules_in_force(work)
    assert [rules["fs"].access(tool) for tool in ("drop", "wipe", "put", "move", "get")] == [
        "deny", "deny", "ask", "deny", "allow",
    ]  # fmt: skip
    assert [rules["locked"].access(tool) for tool in ("read", "write")] == ["allow", "deny"]
    assert rules["free"].access("anything") == "allow"


@pytest.mark.requirement("U:access")
def test_a_permission_of_gemini_does_not_waive_an_earlier_question(work: Path):
    path = gemini_file(work, fs={"command": "x"})
    (path.parent / "policies").mkdir()
    rule = '[[rule]]\nmcpName = "fs"\ndecision = "{}"\npriority = {}\ntoolName = "{}"\n'
    said = [("ask_user", 500, "*"), ("allow", 100, "drop"), ("deny", 50, "*")]
    policies = "".join(rule.format(*one) for one in said)
    (path.parent / "policies" / "mine.toml").write_text(policies, encoding="utf-8")
    install("gemini")
    assert [rules_in_force(work)["fs"].access(tool) for tool in ("drop", "get")] == ["ask", "ask"]


@pytest.mark.requirement("U:project")
def test_permissions_of_a_project_do_not_reach_the_users_file(work: Path):
    home = work.parent / "home"
    claude_file(work, fs={"command": "x"})
    gemini = gemini_file(work, fs={"command": "x"})
    for name, rules in (
        (".claude/settings.json", {"permissions": {"allow": ["mcp__fs"]}}),
        (".gemini/settings.json", {"tools": {"allowed": ["mcp_fs_*"]}}),
    ):
        (work / name).parent.mkdir()
        (work / name).write_text(json.dumps(rules), encoding="utf-8")
    install("claude")
    install("gemini")
    allowed = json.loads((home / ".claude" / "settings.json").read_text(encoding="utf-8"))["permissions"]["allow"]
    assert allowed == ["mcp__ullage__find_tool", "mcp__ullage__read_result"]
    assert "trust" not in json.loads(gemini.read_text(encoding="utf-8"))["mcpServers"]["ullage"]


@pytest.mark.requirement("U:project")
def test_a_policy_of_a_project_permits_nothing(work: Path):
    gemini = gemini_file(work, fs={"command": "x"})
    (work / ".gemini" / "policies").mkdir(parents=True)
    policy = '[[rule]]\nmcpName = "fs"\ndecision = "{}"\npriority = {}\ntoolName = "{}"\n'
    said = policy.format("allow", 900, "*") + policy.format("deny", 100, "*")
    (work / ".gemini" / "policies" / "a.toml").write_text(said, encoding="utf-8")
    install("gemini")
    assert "trust" not in json.loads(gemini.read_text(encoding="utf-8"))["mcpServers"]["ullage"]
    assert rules_in_force(work)["fs"].access("get") == "allow"


@pytest.mark.requirement("U:access")
def test_a_server_with_rules_of_single_agents_stays_in_opencode(work: Path, capsys: pytest.CaptureFixture[str]):
    path = work.parent / "home" / "config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True)
    server = {"type": "local", "command": ["x"]}
    agents = {"plan": {"permission": {"fs_write*": "deny", "edit": "deny"}}, "review": {"tools": {"bash": False}}}
    path.write_text(json.dumps({"mcp": {"fs": server, "db": server}, "agent": agents}), encoding="utf-8")
    install("opencode")
    assert list(json.loads(path.read_text(encoding="utf-8"))["mcp"]) == ["fs", "ullage"]
    assert "fs: it needs opencode for the rules of single agents" in capsys.readouterr().out


CODEX = """
[mcp_servers.fs]
command = {command}
args = {args}
enabled_tools = ["read", "echo"]
disabled_tools = ["echo"]
"""


@pytest.mark.requirement("U:access")
def test_tools_that_codex_left_out_cannot_be_called_or_seen(work: Path, capsys: pytest.CaptureFixture[str]):
    server = scripted(ECHO, tool("read", "Reads."), tool("wipe", "Wipes."))
    path = work.parent / "home" / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(
        CODEX.format(command=json.dumps(server["command"]), args=json.dumps(server["args"])), encoding="utf-8"
    )
    capsys.readouterr()
    assert main(["scan", "codex", "--json"]) == 0
    (scanned,) = json.loads(capsys.readouterr().out)["clients"][0]["servers"]
    assert [one["name"] for one in scanned["tools"]] == ["read"]
    install("codex")
    rules = rules_in_force(work)["fs"]
    assert [rules.access(name) for name in ("read", "echo", "wipe", "new")] == ["allow", "deny", "deny", "deny"]
    capsys.readouterr()
    assert main(["call", "wipe", "{}"]) != 0
    capsys.readouterr()
    assert main(["tools", "fs", "--json"]) == 0
    assert [one["original_name"] for one in json.loads(capsys.readouterr().out)["tools"]] == ["read"]


OPENCODE_AGENT = """---
description: Uses db_query only when asked
mode: subagent
tools: {"*": false, "fs_read": true}
---
Use net_fetch.
"""
CLAUDE_AGENT = """---
name: reviewer
description: "Reviews: use mcp__db__query, never mcp__net__fetch"
disallowedTools:
  - Write
  - mcp__fs__write_file   # not this one
mcpServers: [git]
---
"""
GEMINI_AGENT = "---\r\nname: x\r\ntools: read_file, mcp_fs_read, 'mcp_git_*'\r\n---\r\n"


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize("folder", ["agent", "agents/deep", "mode"])
def test_a_server_named_by_an_agents_file_stays_in_opencode(work: Path, folder: str):
    path = work.parent / "home" / "config" / "opencode" / "opencode.json"
    (path.parent / folder).mkdir(parents=True)
    (path.parent / folder / "plan.md").write_text(OPENCODE_AGENT, encoding="utf-8")
    server = {"type": "local", "command": ["x"]}
    path.write_text(json.dumps({"mcp": {"fs": server, "db": server, "net": server}}), encoding="utf-8")
    install("opencode")
    assert list(json.loads(path.read_text(encoding="utf-8"))["mcp"]) == ["fs", "ullage"]


@pytest.mark.requirement("U:access")
def test_a_server_named_by_an_agents_file_stays_in_claude_code(work: Path):
    home = work.parent / "home"
    (home / ".claude" / "agents").mkdir(parents=True, exist_ok=True)
    (home / ".claude" / "agents" / "reviewer.md").write_text(CLAUDE_AGENT, encoding="utf-8")
    servers = {name: {"command": name} for name in ("fs", "git", "db", "net")}
    path = home / ".claude.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    install("claude")
    assert list(json.loads(path.read_text(encoding="utf-8"))["mcpServers"]) == ["fs", "git", "ullage"]


@pytest.mark.requirement("U:access")
def test_a_server_named_by_an_agents_file_stays_in_gemini(work: Path):
    path = gemini_file(work, fs={"command": "x"}, git={"command": "y"}, db={"command": "z"})
    (path.parent / "agents").mkdir()
    (path.parent / "agents" / "one.md").write_bytes(GEMINI_AGENT.encode())
    install("gemini")
    assert list(json.loads(path.read_text(encoding="utf-8"))["mcpServers"]) == ["fs", "git", "ullage"]


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize(
    "matcher",
    [
        "mcp__fs__.*",
        "mcp__fs__(write|delete)_file",
        "Write|mcp__(fs|git)__.+",
        "mcp__[a-f]s__w",
        ".*__write.*",
        "^mcp__fs",
    ],
)
def test_a_server_on_whose_tools_hooks_are_run_stays_in_claude_code(matcher: str, work: Path):
    home = work.parent / "home"
    (home / ".claude").mkdir(exist_ok=True)
    hooks = {"PreToolUse": [{"matcher": matcher, "hooks": [{"type": "command", "command": "check"}]}]}
    (home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
    path = claude_file(work, fs={"command": "x"}, db={"command": "y"})
    install("claude")
    left = list(json.loads(path.read_text(encoding="utf-8"))["mcpServers"])
    assert "fs" in left
    # A class of characters is read as any text, which can only keep more.
    assert ("db" in left) == (matcher[0] == "." or "[" in matcher)


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize(
    "matcher", ["*", "", ".*", "mcp__.*", "Write|Edit", "Bash(git.*)", "mcp__other__.*", "(", "[", 3]
)
def test_hooks_on_other_tools_or_on_all_keep_no_server_in_claude_code(matcher: object, work: Path):
    home = work.parent / "home"
    (home / ".claude").mkdir(exist_ok=True)
    hooks = {"PreToolUse": [{"matcher": matcher, "hooks": []}, {"hooks": []}, 3], "Stop": "x"}
    (home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
    path = claude_file(work, fs={"command": "x"})
    install("claude")
    assert list(json.loads(path.read_text(encoding="utf-8"))["mcpServers"]) == ["ullage"]


@pytest.mark.requirement("U:access")
def test_a_server_that_a_profile_of_codex_changes_stays_there(work: Path, capsys: pytest.CaptureFixture[str]):
    """Codex does not start with a profile that names a part of a server which is configured nowhere."""
    folder = work.parent / "home" / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text('[mcp_servers.fs]\ncommand = "x"\n[mcp_servers.db]\ncommand = "y"\n', "utf-8")
    (folder / "ci.config.toml").write_text('model = "gpt-4"\n[mcp_servers.fs]\ndisabled_tools = ["w"]\n', "utf-8")
    install("codex")
    assert list(tomllib.loads((folder / "config.toml").read_text("utf-8"))["mcp_servers"]) == ["fs", "ullage"]
    assert "fs: it needs Codex for the settings of single profiles" in capsys.readouterr().out
    assert "model" not in own(work)["clients"]["codex"]


def project_file(work: Path, **servers: object) -> Path:
    path = work / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}, indent=2), encoding="utf-8")
    return path


@pytest.mark.requirement("U:project")
def test_servers_of_an_approved_project_move_with_the_scope_and_stay_in_their_folder(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    user = claude_file(work, fs={"command": "x"})
    project = approve(project_file(work, db=scripted(ECHO), other={"command": "y", "cwd": "sub"}))
    before = user.read_bytes(), project.read_bytes()
    assert main(["install", "claude", "--yes", "--no-start", "--scope", "project"]) == 0
    assert json.loads(project.read_text(encoding="utf-8")) == {"mcpServers": {}}
    assert list(json.loads(user.read_text(encoding="utf-8"))["mcpServers"]) == ["fs", "ullage"]
    servers = own(work)["servers"]
    assert servers["db"]["folders"] == servers["other"]["folders"] == [str(work)]
    assert servers["other"]["cwd"] == f"{work}/sub"
    assert (behind(capsys), "db" in seen_by_tools(capsys)) == (["db", "other"], True)
    # In another folder none of them is there.
    elsewhere = work.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert (behind(capsys), "db" in seen_by_tools(capsys)) == ([], False)
    assert main(["uninstall", "claude"]) == 0
    assert (user.read_bytes(), project.read_bytes()) == before


def behind(capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["status", "--json"]) == 0
    clients = json.loads(capsys.readouterr().out)["clients"]
    return next(one["behind"] for one in clients if one["client"] == "claude")


def seen_by_tools(capsys: pytest.CaptureFixture[str]) -> set[str]:
    capsys.readouterr()
    assert main(["tools", "--json", "--client", "claude"]) == 0
    return {one["server"] for one in json.loads(capsys.readouterr().out)["tools"]}


@pytest.mark.requirement("U:project")
def test_servers_of_an_unapproved_project_stay_whatever_the_scope(work: Path, capsys: pytest.CaptureFixture[str]):
    claude_file(work, fs={"command": "x"})
    project = approve(project_file(work, evil={"command": "/bin/false"}))
    project.write_text(project.read_text(encoding="utf-8").replace("/bin/false", "/bin/true"), encoding="utf-8")
    before = project.read_bytes()
    for scope in ("project", "all"):
        assert main(["install", "claude", "--yes", "--no-start", "--scope", scope]) == 0
    assert project.read_bytes() == before
    assert list(own(work)["servers"]) == ["fs"]
    assert "ullage trust" in capsys.readouterr().out


def test_servers_of_one_folder_in_the_users_file_move_with_the_scope(work: Path):
    path = work.parent / "home" / ".claude.json"
    local = {"projects": {str(work): {"mcpServers": {"db": {"command": "y"}}}}, "mcpServers": {"fs": {"command": "x"}}}
    path.write_text(json.dumps(local), encoding="utf-8")
    before = path.read_bytes()
    assert main(["install", "claude", "--yes", "--no-start", "--scope", "all"]) == 0
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["projects"][str(work)]["mcpServers"] == {}
    assert list(document["mcpServers"]) == ["ullage"]
    assert own(work)["servers"]["db"]["folders"] == [str(work)]
    assert "folders" not in own(work)["servers"]["fs"]
    assert main(["uninstall", "claude"]) == 0
    assert path.read_bytes() == before


@pytest.mark.requirement("U:access")
def test_claude_code_runs_what_only_looks_things_up_unasked(work: Path):
    claude_file(work, fs={"command": "x"})
    settings = work.parent / "home" / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"permissions": {"allow": ["Bash(ls)"]}, "theme": "dark"}), encoding="utf-8")
    before = settings.read_bytes()
    install("claude")
    document = json.loads(settings.read_text(encoding="utf-8"))
    assert document["permissions"]["allow"] == ["Bash(ls)", "mcp__ullage__find_tool", "mcp__ullage__read_result"]
    # A rule that the user adds meanwhile stays; ours goes.
    document["permissions"]["allow"].append("Bash(cat)")
    settings.write_text(json.dumps(document), encoding="utf-8")
    assert main(["uninstall", "claude"]) == 0
    assert json.loads(settings.read_text(encoding="utf-8"))["permissions"]["allow"] == ["Bash(ls)", "Bash(cat)"]
    settings.write_bytes(before)
    install("claude")
    assert main(["uninstall", "claude"]) == 0
    assert settings.read_bytes() == before


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize(("is_asked", "expected"), [(False, True), (True, None)])
def test_calls_run_unasked_only_where_every_moved_server_did(work: Path, *, is_asked: bool, expected: bool | None):
    path = gemini_file(
        work, a={"command": "x", "trust": True}, b={"command": "y", **({} if is_asked else {"trust": True})}
    )
    install("gemini")
    entry = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["ullage"]
    assert entry.get("trust") is expected


@pytest.mark.requirement("U:status")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], install_plan.ServeFlags()),
        (["--client", "codex"], install_plan.ServeFlags()),
        (["serve", "--client", "codex"], install_plan.ServeFlags(client="codex")),
        (["-m", "ullage", "serve", "--client=codex", "--client", "work"], install_plan.ServeFlags(client="work")),
        (["serve", "--include=a=b", "--include", "c.json"], install_plan.ServeFlags(include=("a=b", "c.json"))),
        (["serve", "--mode", "search", "--store", "s.db"], install_plan.ServeFlags(store="s.db")),
        (["serve", "--config"], install_plan.ServeFlags(config="")),
    ],
)  # fmt: skip
def test_the_flags_of_an_installed_entry_are_read(words: list[str], expected: install_plan.ServeFlags):
    entry = ServerEntry(
        name="ullage", program="codex", file="config.toml", path=(), scope="user", arguments=tuple(words)
    )
    assert install_plan.serve_flags(entry) == expected


def test_a_file_that_cannot_be_edited_is_named(work: Path, capsys: pytest.CaptureFixture[str]):
    path = gemini_file(work)
    path.write_text('{"mcpServers": []}', encoding="utf-8")
    assert main(["install", "gemini", "--yes", "--no-start"]) == 2
    assert f"`{path}` cannot be edited: `mcpServers` is not a table" in capsys.readouterr().err
