"""What one file holds back holds wherever the server stands."""

import json
from pathlib import Path

import pytest

from approving import examine, load
from ullage.config import Flags, Loaded, Places
from ullage.gateway import Server

pytestmark = pytest.mark.requirement("U:access")

X = {"command": "x"}
OWN = "[servers.gh]\ncommand = 'own'\n"


class Desk:
    def __init__(self, root: Path) -> None:
        self.home = root
        self.project = root / "project"
        (self.project / ".git").mkdir(parents=True)
        self.places = Places(home=root, config=root / ".config", data=root / ".data")

    def write(self, path: str, text: str | object) -> Path:
        """Files without a folder are other programs', which keep them in a dot folder of the home folder."""
        file = self.home / (path if "/" in path else f".clients/{path}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return file

    def include(self, *files: str, own: str = "") -> None:
        self.write(
            "project/ullage.toml",
            f"include = {json.dumps([f'~/{file}' if '/' in file else f'~/.clients/{file}' for file in files])}\n{own}",
        )

    def users(self, text: str) -> None:
        self.write(".config/ullage.toml", text)

    def load(self, flags: Flags | None = None) -> Loaded:
        return load(flags or Flags(), {}, self.project, places=self.places)

    def servers(self) -> dict[str, Server]:
        return {server.name: server for server in self.load().settings.servers}

    def only(self) -> Server:
        (server,) = self.servers().values()
        return server


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def said(loaded: Loaded, severity: str) -> list[str]:
    return [issue.message for issue in loaded.issues if issue.severity == severity]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("my server", "my_server"),
        ("My Server!", "My_Server_"),
        ("a/ b", "a__b"),
        ("é", "_"),
        ("\N{PANDA FACE}", "__"),
        ("my.server", "my_server"),
        ("my-server", "my-server"),
    ],
)
def test_rules_are_found_for_a_server_of_any_name(desk: Desk, name: str, written: str):
    desk.write("project/.mcp.json", {"mcpServers": {name: X}})
    desk.write("s.json", {"permissions": {"deny": [f"mcp__{written}__drop"], "ask": [f"mcp__{written}__put"]}})
    desk.include("project/.mcp.json", "s.json")
    assert [desk.only().rules.access(tool) for tool in ("drop", "put", "get")] == ["deny", "ask", "allow"]


def test_names_that_became_one_are_still_told_apart(desk: Desk):
    desk.write("a.json", {"mcpServers": {"é": {**X, "excludeTools": ["t1"]}, "server": {**X, "excludeTools": ["t2"]}}})
    desk.write("s.json", {"mcpServers": {}, "mcp": {"excluded": ["server"]}})
    desk.include("a.json")
    first, second = desk.servers()["server"], desk.servers()["server-2"]
    assert (first.rules.deny, second.rules.deny) == (("t1",), ("t2",))
    desk.include("a.json", "s.json")
    assert desk.servers()["server-2"].disabled


def test_a_list_in_the_same_file_finds_the_server_it_names(desk: Desk):
    desk.write(
        "a.json", {"mcpServers": {"a b": X, "c d": X, "e": X}, "mcp": {"allowed": ["a b", "c d"], "excluded": ["c d"]}}
    )
    desk.include("a.json")
    assert {name: server.disabled for name, server in desk.servers().items()} == {"a-b": False, "c-d": True, "e": True}


def test_a_declined_server_of_any_name_is_not_started(desk: Desk):
    desk.write("project/.mcp.json", {"mcpServers": {"my server": X}})
    desk.write("s.json", {"disabledMcpjsonServers": ["my server"]})
    desk.include("project/.mcp.json", "s.json")
    assert desk.only().disabled


@pytest.mark.parametrize("deny", [["mcp__gh__drop", ""], ["mcp__gh__drop", 5], "mcp__gh__drop"])
def test_an_odd_item_undoes_no_rule_and_is_a_problem(desk: Desk, deny: object):
    desk.write("a.json", {"mcpServers": {"gh": X}, "permissions": {"deny": deny}})
    desk.include("a.json")
    assert desk.only().rules.access("drop") == "deny"
    assert said(desk.load(), "problem") == ["`permissions.deny` cannot be read whole; what could be read is kept to"]


def test_an_odd_list_of_servers_switches_off_what_it_can(desk: Desk):
    desk.write("a.json", {"mcpServers": {"gh": X, "z": X}, "mcp": {"excluded": "gh"}})
    desk.include("a.json")
    assert {name: server.disabled for name, server in desk.servers().items()} == {"gh": True, "z": False}
    assert len(said(desk.load(), "problem")) == 1
    desk.write("a.json", {"mcpServers": {"gh": X, "z": X}, "mcp": {"allowed": "z"}})
    assert all(server.disabled for server in desk.servers().values())
    assert len(said(desk.load(), "problem")) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"mcpServers": {"gh": {**X, "disabled": True}}},
        {"mcpServers": {"gh": {"command": "${UNSET}", "enabled": False}}},
        {"mcpServers": {}, "mcp": {"excluded": ["gh"]}},
        {"mcpServers": {"gh": {"command": "${UNSET}"}}, "mcp": {"allowed": ["z"]}},
        {"mcpServers": {}, "excludeMCPServers": ["gh"]},
        {"projects": {"PROJECT": {"disabledMcpServers": ["gh"]}}, "mcpServers": {}},
    ],
)
@pytest.mark.parametrize("own", ["", OWN])
def test_a_server_switched_off_in_one_file_is_off_in_all(desk: Desk, other: object, own: str):
    desk.write("a.json", {"mcpServers": {"gh": X}})
    desk.write("b.json", json.dumps(other).replace("PROJECT", str(desk.project)))
    desk.include("a.json", "b.json", own=own)
    assert desk.only().disabled
    assert any("`gh` is not used" in note and "b.json" in note for note in said(desk.load(), "note"))
    desk.include("a.json", own=own)
    assert not desk.only().disabled


def test_codex_switches_off_for_all_as_well(desk: Desk):
    desk.write("a.json", {"mcpServers": {"gh": X}})
    desk.write("c.toml", "[mcp_servers.gh]\ncommand = 'x'\nenabled = false\n")
    desk.include("a.json", "c.toml")
    assert desk.only().disabled


def test_a_name_twice_in_one_file_is_off_where_one_of_them_is(desk: Desk):
    projects = {str(desk.project): {"mcpServers": {"gh": X}}}
    desk.write("a.json", {"projects": projects, "mcpServers": {"gh": {**X, "disabled": True}}})
    desk.include("a.json")
    assert desk.only().disabled


def test_only_the_users_own_file_switches_a_server_on_again_and_only_outright(desk: Desk):
    desk.write("b.json", {"mcpServers": {"gh": {**X, "disabled": True}}})
    desk.include("b.json", own=OWN + "disabled = false\n")
    assert desk.only().disabled
    desk.users(OWN)
    assert desk.only().disabled
    desk.users(OWN + "disabled = false\n")
    assert not desk.only().disabled
    desk.include("b.json")
    assert not desk.only().disabled


def test_a_named_file_is_the_users_own(desk: Desk):
    desk.write("b.json", {"mcpServers": {"gh": {**X, "disabled": True, "excludeTools": ["drop"]}}})
    named = desk.write("n.toml", f"include = ['~/.clients/b.json']\n{OWN}disabled = false\nallow = ['drop']\n")
    (server,) = desk.load(Flags(config=named)).settings.servers
    assert (server.disabled, server.rules.access("drop")) == (False, "allow")


@pytest.mark.requirement("U:access", "U:project")
@pytest.mark.parametrize(
    ("project", "access"),
    [
        ("", ["deny", "ask", "allow"]),
        ("allow = ['*']\n", ["deny", "ask", "allow"]),
        ("deny = ['*']\nallow = ['drop', 'put', 'get']\n", ["deny", "deny", "deny"]),
        ("ask = ['get']\nhidden = ['put']\n", ["deny", "ask", "ask"]),
    ],
)
def test_a_projects_file_restricts_a_server_of_the_users_and_never_replaces_it(
    desk: Desk, project: str, access: list[str]
):
    desk.users("[servers.gh]\ncommand = 'gh'\ndeny = ['d*']\nask = ['put']\nwriting = ['get']\n")
    desk.include(own=OWN + project + "read_only = ['*']\n")
    server = desk.only()
    assert server.command == "gh"
    assert [server.rules.access(tool) for tool in ("drop", "put", "get")] == access
    assert not server.rules.is_read_only("get", {})
    assert server.rules.is_hidden("put") == ("hidden" in project)
    assert any("`gh` of this project is not used" in problem for problem in said(desk.load(), "problem"))


def test_a_project_does_not_take_the_name_of_a_server_that_the_user_could_not_start(desk: Desk):
    desk.users("[servers.gh]\ncommand = '${UNSET}'\n")
    desk.include(own=OWN)
    assert desk.load().settings.servers == ()


def test_a_projects_file_starts_nothing_the_user_disabled(desk: Desk):
    desk.users("[servers.gh]\ncommand = 'gh'\ndisabled = true\n")
    desk.include(own=OWN + "disabled = false\n")
    assert desk.only().disabled


def test_a_projects_allow_lifts_nothing_of_another_program(desk: Desk):
    desk.write("b.json", {"mcpServers": {"gh": {**X, "excludeTools": ["drop"], "includeTools": ["drop", "get"]}}})
    desk.include("b.json", own=OWN + "ask = ['get']\nallow = ['drop', 'get', 'new']\n")
    assert [desk.only().rules.access(tool) for tool in ("drop", "get", "new")] == ["deny", "ask", "deny"]
    assert any("`gh` of this project is not used" in problem for problem in said(desk.load(), "problem"))


def test_the_users_allow_lifts_what_another_program_holds_back_of_a_projects_server(desk: Desk):
    desk.write("b.json", {"mcpServers": {"gh": {**X, "excludeTools": ["drop", "put"]}}})
    desk.users(OWN + "allow = ['drop', 'put']\n")
    desk.include("b.json", own=OWN + "deny = ['put']\n")
    assert [desk.only().rules.access(tool) for tool in ("drop", "put", "get")] == ["allow", "deny", "allow"]


def test_a_projects_allow_still_answers_its_own_deny_without_a_word(desk: Desk):
    desk.include(own=OWN + "deny = ['*']\nallow = ['get']\n")
    assert [desk.only().rules.access(tool) for tool in ("drop", "get")] == ["deny", "allow"]
    assert desk.load().issues == ()


def test_a_project_lifts_no_rule_for_our_own_tools_either(desk: Desk):
    desk.users("[own]\ndeny = ['query', 'find_tool']\npinned = ['a']\nhidden = ['b']\n")
    desk.include(own="[own]\ndeny = ['call_tool*']\nallow = ['*']\npinned = ['c']\n")
    own = desk.load().settings.own
    assert [own.access(tool) for tool in ("query", "find_tool", "call_tool", "other")] == [
        "deny",
        "deny",
        "allow",
        "allow",
    ]
    assert (own.pinned, own.hidden) == (("c",), ("b",))


def test_rules_for_find_tool_and_its_kin_reach_the_settings_as_they_are(desk: Desk):
    desk.users("[own]\ndeny = ['find_tool', 'call_tool']\nhidden = ['*']\nask = ['call_*']\n")
    loaded = desk.load()
    assert loaded.issues == ()
    own = loaded.settings.own
    assert (own.deny, own.hidden, own.ask) == (("find_tool", "call_tool"), ("*",), ("call_*",))


def test_hiding_what_cannot_be_hidden_is_a_problem(desk: Desk):
    desk.users("[own]\nhidden = ['query', 'call_tool_write']\n")
    loaded = desk.load()
    assert said(loaded, "problem") == ["`call_tool_write` cannot be hidden, it stays listed"]
    assert loaded.settings.own.hidden == ("query", "call_tool_write")


def test_an_exclusion_with_a_star_arguments_or_a_prefix_is_kept(desk: Desk):
    lists = {"a": ["run(rm)"], "b": ["mcp__b__run"], "c": ["*"], "my server": ["mcp__my_server__run"]}
    desk.write("a.json", {"mcpServers": {name: {**X, "excludeTools": tools} for name, tools in lists.items()}})
    desk.include("a.json")
    assert {server.rules.access("run") for server in desk.servers().values()} == {"deny"}


def test_what_could_be_read_of_an_odd_exclusion_holds_elsewhere(desk: Desk):
    desk.write("a.json", {"mcpServers": {"gh": X}})
    desk.write("b.json", {"mcpServers": {"gh": {**X, "excludeTools": ["drop", 5]}}})
    desk.include("a.json", "b.json")
    assert desk.only().rules.access("drop") == "deny"
    assert said(examine(Flags(), {}, desk.project, places=desk.places), "problem") != []


@pytest.mark.requirement("U:access", "U:project")
@pytest.mark.parametrize(
    "project", ["", "ask = ['?et']\n", "only = ['*']\n", "deny = ['put']\n", "writing = ['get']\n"]
)
@pytest.mark.parametrize("is_users", [True, False], ids=["users server", "projects server"])
def test_what_a_project_restricts_lifts_no_list_of_wanted_tools(desk: Desk, project: str, *, is_users: bool):
    desk.write("b.json", {"mcpServers": {"gh": {**X, "includeTools": ["list"]}}})
    own = f"{OWN}only = ['get', 'list']\nask = ['list']\n"
    desk.users(f"include = ['~/.clients/b.json']\n{own if is_users else ''}")
    if project or not is_users:
        desk.write("project/ullage.toml", f"{OWN}{project}")
    rules = desk.only().rules
    assert [rules.access(tool) for tool in ("get", "put", "drop")] == ["deny", "deny", "deny"]
    assert [rules.strictest_access(tool) for tool in ("get", "Put")] == ["deny", "deny"]
    assert rules.access("list") == ("ask" if is_users else "allow")
