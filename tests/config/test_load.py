import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from approving import examine, load
from ullage.config import Flags, Gateway, Loaded, Places, read_tokens
from ullage.config.settings import Token
from ullage.errors import BadConfiguration

pytestmark = pytest.mark.requirement("U:project")


class Desk:
    """A home folder with a project in it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = self.home / "work" / "project"
        (self.project / ".git").mkdir(parents=True)
        self.places = Places(home=self.home, config=self.home / ".config", data=self.home / ".data")

    def write(self, path: str, text: str | object) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return file

    def load(self, flags: Flags | None = None, *, folder: str = "", **environment: str) -> Loaded:
        return load(flags or Flags(), environment, self.project / folder, places=self.places)

    def examine(self, flags: Flags | None = None, **environment: str) -> Loaded:
        return examine(flags or Flags(), environment, self.project, places=self.places)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


PROJECT = "work/project/ullage.toml"
USER = ".config/ullage.toml"


def messages(loaded: Loaded, severity: str = "problem") -> list[str]:
    return [issue.message for issue in loaded.issues if issue.severity == severity]


def test_without_any_file_the_defaults_hold(desk: Desk):
    loaded = desk.load()
    assert loaded.settings.gateway == Gateway()
    assert loaded.settings.store == f"sqlite:///{desk.home}/.data/ullage.db"
    assert (loaded.settings.servers, loaded.issues) == ((), ())
    assert set(loaded.why.values()) == {"default"}
    assert loaded.why["gateway.mode"] == "default"
    conf = [desk.home / "work" / "project" / "conf" / name for name in ("models.json", "policies.json")]
    assert set(loaded.files) == {desk.home / PROJECT, desk.home / USER, *conf}


def test_flags_come_before_variables_before_the_project_before_the_user(desk: Desk):
    user = desk.write(
        USER, "[gateway]\nmode = 'direct'\nmodel = 'gpt-4'\nwindow = 5\nfind_budget = 7\n[own]\ndeny = ['x']"
    )
    project = desk.write(PROJECT, "[gateway]\nmode = 'search'\nmodel = 'gpt-4-turbo'\nwindow = 6\n")
    loaded = desk.load(Flags(mode="auto"), ULLAGE_MODE="direct", ULLAGE_MODEL="gpt-4o", ULLAGE_STORE="sqlite:///x")
    gateway = loaded.settings.gateway
    assert (gateway.mode, gateway.model, gateway.window, gateway.find_budget) == ("auto", "gpt-4o", 6, 7)
    assert loaded.settings.own.deny == ("x",)
    assert loaded.settings.store == "sqlite:///x"
    assert loaded.why == {
        "gateway.mode": "--mode",
        "gateway.direct_below": "default",
        "gateway.model": "ULLAGE_MODEL",
        "gateway.window": str(project),
        "gateway.join_calls": "default",
        "gateway.find_budget": str(user),
        "gateway.start_wait": "default",
        "gateway.shutdown_grace": "default",
        "gateway.underscore_names": "default",
        "own.deny": str(user),
        "results.budget": "default",
        "results.encode": "default",
        "results.ceiling": "default",
        "results.keep_hours": "default",
        "results.keep_megabytes": "default",
        "search.index": "default",
        "search.learn": "default",
        "search.shapes": "default",
        "store.url": "ULLAGE_STORE",
    }


@pytest.mark.parametrize(
    ("user", "project", "learns", "by"),
    [
        (None, None, True, "default"),
        (None, False, False, PROJECT),
        (None, True, True, PROJECT),
        (True, False, False, PROJECT),
        (False, True, False, USER),
        (False, None, False, USER),
    ],
)
def test_a_project_may_switch_learning_off_and_not_on(
    desk: Desk, *, user: bool | None, project: bool | None, learns: bool, by: str
):
    for path, said in ((USER, user), (PROJECT, project)):
        desk.write(path, "" if said is None else f"[search]\nlearn = {str(said).lower()}\n")
    loaded = desk.load()
    assert loaded.settings.search.learn is learns
    assert loaded.why["search.learn"] == (by if by == "default" else str(desk.home / by))


def test_every_flag_decides(desk: Desk):
    loaded = desk.load(Flags(mode="direct", model="gpt-4o", store="sqlite:///y"), ULLAGE_MODE="")
    assert (loaded.settings.gateway.mode, loaded.settings.gateway.model) == ("direct", "gpt-4o")
    assert loaded.settings.store == "sqlite:///y"
    assert "sqlite:///y" not in repr(Flags(store="sqlite:///y"))


def test_a_named_file_is_read_instead_of_all_others(desk: Desk):
    desk.write(PROJECT, "[gateway]\nwindow = 1\n")
    desk.write(USER, "[gateway]\nfind_budget = 2\n")
    named = desk.write("named.toml", "[gateway]\nstart_wait = 3\n")
    expected = Gateway(start_wait=3.0)
    assert desk.load(Flags(config=named)).settings.gateway == expected
    assert desk.load(ULLAGE_CONFIG="~/named.toml").settings.gateway == expected
    assert desk.load(Flags(config=named), ULLAGE_CONFIG="/nowhere").settings.gateway == expected


def test_a_named_file_that_is_not_there_is_an_error(desk: Desk):
    with pytest.raises(BadConfiguration, match="does not exist"):
        desk.load(ULLAGE_CONFIG="nowhere.toml")


def test_the_projects_file_is_found_from_below_and_the_innermost_wins(desk: Desk):
    desk.write(PROJECT, "[gateway]\nwindow = 1\n")
    desk.write("work/ullage.toml", "[gateway]\nwindow = 2\n")
    (desk.project / "a" / "b").mkdir(parents=True)
    assert desk.load(folder="a/b").settings.gateway.window == 1
    desk.write("work/project/a/ullage.toml", "[gateway]\nwindow = 3\n")
    assert desk.load(folder="a/b").settings.gateway.window == 3


def test_outside_a_repository_the_search_ends_at_home(desk: Desk):
    desk.write("ullage.toml", "[gateway]\nwindow = 1\n")
    (desk.home / "plain" / "folder").mkdir(parents=True)
    loaded = load(Flags(), {}, desk.home / "plain" / "folder", places=desk.places)
    assert loaded.settings.gateway.window == 1


def test_a_folder_that_is_nobodys_stands_for_itself(desk: Desk, tmp_path: Path):
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere" / "ullage.toml").write_text("[gateway]\nwindow = 1\n", encoding="utf-8")
    assert load(Flags(), {}, tmp_path / "elsewhere" / "inner", places=desk.places).settings.gateway.window is None
    assert load(Flags(), {}, tmp_path / "elsewhere", places=desk.places).settings.gateway.window == 1


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have no numbers here")
def test_a_file_further_up_that_is_another_users_is_not_read(desk: Desk):
    file = desk.write(PROJECT, "[gateway]\nwindow = 1\n")
    (desk.project / "inner").mkdir()
    if os.getuid() == 0:
        os.chown(file, 4321, -1)
    desk.places = replace(desk.places, user=file.stat().st_uid + 1)
    loaded = desk.load(folder="inner")
    assert loaded.settings.gateway.window is None
    assert messages(loaded) == ["belongs to another user and is not read"]
    assert desk.load().settings.gateway.window == 1


def test_all_errors_of_all_files_are_told_at_once(desk: Desk):
    desk.write(PROJECT, "[gateway]\nmodee = 'auto'\n[servers.a]\n")
    desk.write(USER, "[own]\ndeny = 1\n")
    with pytest.raises(BadConfiguration) as caught:
        desk.load(Flags(mode="quick"), ULLAGE_STORE="here")
    error = caught.value
    assert "5 errors" in error.message
    assert f"{desk.home / PROJECT}:2: unknown key `modee` in `[gateway]` (did you mean `mode`" in error.message
    assert "`--mode` must be `auto`, `search` or `direct`" in error.message
    assert "`ULLAGE_STORE` must be a database's URL" in error.message
    assert "mode" in error.options
    assert error.wire()["error_code"] == "BAD_CONFIGURATION"


def test_a_single_error_speaks_for_itself(desk: Desk):
    desk.write(PROJECT, "[gateway]\nmodee = 'auto'\n")
    with pytest.raises(BadConfiguration) as caught:
        desk.load()
    assert caught.value.message == f"{desk.home / PROJECT}:2: unknown key `modee` in `[gateway]`"
    assert caught.value.suggestion.startswith("did you mean `mode`")


def test_examining_raises_nothing_and_shows_what_could_be_read(desk: Desk):
    desk.write(PROJECT, "[gateway]\nmodee = 'auto'\nwindow = 9\n")
    loaded = desk.examine()
    assert [issue.key for issue in loaded.errors] == ["gateway.modee"]
    assert loaded.settings.gateway.window == 9


def test_an_unknown_model_is_an_error_with_the_nearest(desk: Desk):
    desk.write(PROJECT, "[clients.codex]\nmodel = 'gtp-4o'\n")
    (issue,) = desk.examine(ULLAGE_MODEL="gpt-4o").errors
    assert issue.key == "clients.codex"
    assert "gpt-4o" in issue.options
    (issue,) = desk.examine(Flags(model="no-such-model")).errors[:1]
    assert (issue.key, issue.file) == ("gateway.model", "--model")


@pytest.mark.requirement("S1:aggregate")
def test_other_programs_files_are_read_in_place(desk: Desk):
    desk.write(".claude.json", {"mcpServers": {"claude": {"command": "a"}}})
    desk.write("work/project/.vscode/mcp.json", {"servers": {"code": {"command": "${workspaceFolder}/b"}}})
    desk.write(".codex/config.toml", "[mcp_servers.codex]\ncommand = 'c'\nargs = ['${userHome}']")
    desk.write(PROJECT, "include = ['~/.claude.json', '.vscode/mcp.json']\n")
    desk.write(USER, "include = ['../.codex/config.toml', '~/.claude.json']\n")
    loaded = desk.load()
    servers = {server.name: server for server in loaded.settings.servers}
    assert list(servers) == ["claude", "code", "codex"]
    assert servers["code"].command == f"{desk.project}/b"
    assert servers["codex"].arguments == (str(desk.home),)
    assert loaded.why["servers.code"].endswith("mcp.json")
    assert desk.home / ".claude.json" in loaded.files


@pytest.mark.requirement("U:access")
def test_a_server_in_two_places_is_the_higher_ones_and_what_was_held_back_stays(desk: Desk):
    desk.write("a.json", {"mcpServers": {"x": {"command": "low", "excludeTools": ["drop"]}}})
    desk.write("b.json", {"mcpServers": {"x": {"command": "lower", "includeTools": ["read", "drop"]}}})
    desk.write(USER, "include = ['../a.json', '../b.json']\n[servers.x]\ncommand = 'high'\ndeny = ['read']\n")
    loaded = desk.load()
    (server,) = loaded.settings.servers
    assert server.command == "high"
    assert [server.rules.access(tool) for tool in ("read", "drop", "new")] == ["deny", "deny", "deny"]
    assert len(messages(loaded, "note")) == 2
    assert all("`x` is also in" in note for note in messages(loaded, "note"))


def test_between_two_other_programs_the_first_wins_and_both_are_kept_to(desk: Desk):
    desk.write("a.json", {"mcpServers": {"x": {"command": "first", "includeTools": ["read", "drop"]}}})
    desk.write("b.json", {"mcpServers": {"x": {"command": "second", "excludeTools": ["drop"]}, "y": {"command": "y"}}})
    desk.write(PROJECT, "include = ['../../a.json', '../../b.json']\n")
    x, y = desk.load().settings.servers
    assert (x.command, y.command) == ("first", "y")
    assert [x.rules.access(tool) for tool in ("read", "drop", "new")] == ["allow", "deny", "deny"]


def test_a_server_left_out_does_not_fall_back_to_a_lower_place(desk: Desk):
    desk.write(USER, "[servers.x]\ncommand = '${UNSET}'\n[servers.y]\ncommand = 'y'")
    desk.write(PROJECT, "include = ['x.json']")
    desk.write("work/project/x.json", {"mcpServers": {"x": {"command": "other"}}})
    loaded = desk.load()
    assert [server.name for server in loaded.settings.servers] == ["y"]
    assert messages(loaded)[0] == "server `x` is left out: `UNSET` not set in the environment"


def test_profiles_are_taken_whole_from_the_higher_place_and_tokens_from_the_users_alone(desk: Desk):
    desk.write(PROJECT, "[clients.a]\nwindow = 1\n[http.tokens.t]\nenv = 'T'\n")
    desk.write(USER, "[clients.a]\nmode = 'direct'\n[clients.b]\nwindow = 2\n[http.tokens.t]\nfile = 'x'\n")
    loaded = desk.load()
    assert {name: (one.window, one.mode) for name, one in loaded.settings.clients.items()} == {
        "a": (1, None),
        "b": (2, None),
    }
    assert [(one.name, one.env) for one in loaded.settings.tokens] == [("t", None)]
    assert any("`http.tokens.t` is ignored" in note for note in messages(loaded, "note"))
    assert loaded.why["clients.b"] == str(desk.home / USER)


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize(
    "projects",
    [
        "[clients.codex]\nmode = 'direct'\n",
        "[clients.codex]\ngroups = ['codex', 'all']\n[groups.all]\nservers = ['bank', 'own']\n",
        "[clients.codex]\ngroups = ['home']\n",
        "[groups.codex]\nservers = ['files', 'bank', 'own']\n",
    ],
)
def test_a_projects_file_shows_a_client_no_servers_that_the_users_groups_do_not(desk: Desk, projects: str):
    servers = "".join(f"[servers.{name}]\ncommand = 'x'\n" for name in ("files", "bank"))
    groups = (
        "[clients.codex]\ngroups = ['codex']\n[groups.codex]\nservers = ['files']\n[groups.home]\nservers = ['bank']\n"
    )
    desk.write(USER, servers + groups)
    desk.write(PROJECT, f"[servers.own]\ncommand = 'y'\n{projects}")
    seen = desk.load().settings.servers_of("codex")
    assert seen is not None
    assert "files" in seen
    assert "bank" not in seen
    assert ("own" in seen) is ("'own'" in projects)


def test_a_projects_file_gives_no_client_whole_results(desk: Desk):
    desk.write(USER, "[results]\nbudget = 500\n")
    desk.write(PROJECT, "[clients.codex]\nmode = 'direct'\nwhole = true\n")
    loaded = desk.load()
    assert loaded.settings.whole_for("codex") == ()
    assert loaded.settings.gateway_for("codex").mode == "direct"
    assert any("`clients.codex.whole` is ignored" in note for note in messages(loaded, "note"))


def test_an_included_file_that_cannot_be_read_harms_nothing_else(desk: Desk):
    desk.write("broken.json", "{")
    (desk.home / "bytes.json").write_bytes(b"\xff\xfe\xff")
    (desk.home / "folder.json").mkdir()
    desk.write(
        PROJECT,
        "include = ['~/broken.json', '~/bytes.json', '~/folder.json', '~/gone.json']\n[servers.a]\ncommand = 'x'",
    )
    loaded = desk.load()
    assert [server.name for server in loaded.settings.servers] == ["a"]
    assert [Path(issue.file or "").name for issue in loaded.issues] == [
        "broken.json", "bytes.json", "folder.json", "gone.json",
    ]  # fmt: skip
    assert {Path(file).name for file in loaded.unread} == {"broken.json", "bytes.json", "folder.json"}


def test_a_file_of_ours_that_is_not_text_is_an_error(desk: Desk):
    (desk.home / USER).parent.mkdir(parents=True, exist_ok=True)
    (desk.home / USER).write_bytes(b"\xff")
    with pytest.raises(BadConfiguration, match="not UTF-8"):
        desk.load()


def test_a_byte_order_mark_is_no_error(desk: Desk):
    (desk.home / PROJECT).write_bytes(b"\xef\xbb\xbf[gateway]\nwindow = 1\n")
    assert desk.load().settings.gateway.window == 1


def test_tokens_are_read_from_variables_and_files(tmp_path: Path):
    (tmp_path / "token").write_text("from-file\n", encoding="utf-8")
    tokens = (Token(name="a", env="A"), Token(name="b", file=str(tmp_path / "token")))
    assert read_tokens(tokens, {"A": "from-variable"}) == {"a": "from-variable", "b": "from-file"}


@pytest.mark.parametrize(
    ("token", "named"),
    [
        (Token(name="b", env="NO_SUCH"), "NO_SUCH"),
        (Token(name="b", env="EMPTY"), "EMPTY"),
        (Token(name="b", file="/nowhere/at/all"), "/nowhere/at/all"),
        (Token(name="b", env="A"), "is another token's as well"),
    ],
)
def test_a_token_that_is_not_there_or_not_unique_is_refused_by_name(token: Token, named: str):
    with pytest.raises(BadConfiguration, match=named) as caught:
        read_tokens((Token(name="a", env="A"), token), {"A": "s3cret", "EMPTY": " "})
    assert "s3cret" not in caught.value.message


def test_the_users_places_are_the_platforms():
    places = Places.of_user()
    assert places.user_file.name == "ullage.toml"
    assert places.store.startswith("sqlite:///")


def test_importing_the_room_is_cheap():
    heavy = {"mcp", "mcp_types", "pydantic", "httpx2"}
    code = "import ullage.config, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert heavy & set(run.stdout.split()) == set()


@pytest.mark.requirement("U:access")
def test_claude_codes_permissions_hold_for_servers_of_every_file(desk: Desk):
    settings = {"permissions": {"deny": ["mcp__a__drop"], "ask": ["mcp__b"]}, "disabledMcpjsonServers": ["a", "c"]}
    desk.write(".claude/settings.json", settings)
    desk.write("work/project/.mcp.json", {"mcpServers": {"b": {"command": "b"}, "c": {"command": "c"}}})
    desk.write(PROJECT, "include = ['.mcp.json', '~/.claude/settings.json']\n[servers.a]\ncommand = 'a'\n")
    loaded = desk.load()
    a, b, c = loaded.settings.servers
    assert (a.rules.access("drop"), a.rules.access("read"), b.rules.access("any")) == ("deny", "allow", "ask")
    assert (a.disabled, b.disabled, c.disabled) == (False, False, True)
    assert [(issue.severity, issue.server) for issue in loaded.issues] == [("note", "c")]


@pytest.mark.requirement("U:access")
def test_what_one_file_wants_does_not_excuse_what_another_holds_back(desk: Desk):
    desk.write("wants.json", {"mcpServers": {"x": {"command": "1", "includeTools": ["read", "drop", "new"]}}})
    desk.write("denies.json", {"mcpServers": {"x": {"command": "${UNSET}", "excludeTools": ["drop"]}}})
    desk.write("asks.json", {"permissions": {"ask": ["mcp__x__new"]}})
    include = "include = ['~/wants.json', '~/denies.json', '~/asks.json']\n"
    for own in ("", "[servers.x]\ncommand = 'own'\n"):
        desk.write(PROJECT, include + own)
        (server,) = desk.load().settings.servers
        assert [server.rules.access(tool) for tool in ("read", "drop", "new")] == ["allow", "deny", "ask"]


def test_a_name_twice_in_one_file_is_held_to_both_entries(desk: Desk):
    project = {"mcpServers": {"x": {"command": "here"}}}
    everywhere = {"x": {"command": "everywhere", "excludeTools": ["drop"]}}
    desk.write(".claude.json", {"mcpServers": everywhere, "projects": {str(desk.project): project}})
    desk.write(PROJECT, "include = ['~/.claude.json']\n")
    (server,) = desk.load().settings.servers
    assert (server.command, server.rules.access("drop")) == ("here", "deny")
