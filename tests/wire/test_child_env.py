import pytest

from ullage.gateway import Server
from ullage.wire.upstream.child_env import ChildEnvironment, depth

pytestmark = pytest.mark.requirement("U:env")

ENVIRONMENT = {
    "PATH": "/bin",
    "HOME": "/home/ada",
    "LC_ALL": "C",
    "XDG_CACHE_HOME": "/cache",
    "XDG_MUSIC_DIR": "/music",
    "HTTPS_PROXY": "http://ada:hunter2@proxy:3128",
    "no_proxy": "localhost",
    "NODE_EXTRA_CA_CERTS": "/ca.pem",
    "NVM_DIR": "/nvm",
    "npm_config_registry": "http://packages.internal/",
    "ULLAGE_TOKENS": "a:b",
    "ULLAGE_STORE": "sqlite:///s",
    "ALICE": "an http token of ours",
    "GITHUB_TOKEN": "g",
    "GITHUB_HOST": "git.internal",
    "AWS_SECRET_ACCESS_KEY": "a",
    "DATABASE_URL": "postgres://ada:hunter2@db/x",
    "SSH_AUTH_SOCK": "/agent",
    "PWD": "/work",
    "EDITOR": "vi",
}


def server(name: str = "notes", *, command: str | None = "npx", **more) -> Server:
    return Server(name=name, transport="stdio", command=command, **more)


def given(environment: dict[str, str] | None = None, **more) -> set[str]:
    inherited = ChildEnvironment(environment or ENVIRONMENT, {"ALICE"}).of(server(**more))
    return set(inherited) - {"ULLAGE_DEPTH"}


USUAL = {
    "PATH", "HOME", "LC_ALL", "XDG_CACHE_HOME", "XDG_MUSIC_DIR", "HTTPS_PROXY", "no_proxy", "NODE_EXTRA_CA_CERTS",
    "NVM_DIR", "npm_config_registry",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "number"),
    [(None, 0), ("", 0), ("0", 0), ("3", 3), (" 3 ", 3), ("-1", 0), ("x", 0), ("²", 0), ("9" * 99, 0)],
)
def test_a_depth_that_is_no_number_is_zero(text: str | None, number: int):
    assert depth({} if text is None else {"ULLAGE_DEPTH": text}) == number


def test_each_generation_is_one_deeper():
    first = ChildEnvironment({}).of(server())
    assert depth(ChildEnvironment(first).of(server())) == 2


@pytest.mark.requirement("U:env")
def test_a_server_gets_places_proxies_and_certificates_and_no_credential():
    assert given() == USUAL


@pytest.mark.requirement("U:env")
@pytest.mark.parametrize(
    ("patterns", "more"),
    [
        (("GITHUB_TOKEN",), {"GITHUB_TOKEN"}),
        (("GITHUB_*",), {"GITHUB_TOKEN", "GITHUB_HOST"}),
        (("github_token", "GITHUB"), set[str]()),
        (("ULLAGE_*", "ALICE"), set[str]()),
        (("*",), set(ENVIRONMENT) - USUAL - {"ULLAGE_TOKENS", "ULLAGE_STORE", "ALICE"}),
    ],
)
def test_what_inherit_env_names_is_given_and_never_what_is_ullages_own(patterns: tuple[str, ...], more: set[str]):
    assert given(inherit_env=patterns) == USUAL | more


def test_shell_functions_and_indexes_with_a_password_are_not_given():
    environment = {
        "PATH": "/bin",
        "SHELL": "() { echo hi; }",
        "PIP_INDEX_URL": "http://ada:hunter2@packages.internal/simple",
        "UV_INDEX_URL": "http://packages.internal/simple",
    }
    assert given(environment) == {"PATH", "UV_INDEX_URL"}


def test_what_the_sdk_gives_is_given():
    names = ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE")
    names += ("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE", "PROGRAMFILES")
    names += ("HOME", "LOGNAME", "SHELL", "TERM", "USER")
    assert given(dict.fromkeys(names, "x")) == set(names)


def test_variables_that_fit_the_server_come_first_and_values_are_never_said():
    environment = ChildEnvironment(ENVIRONMENT, {"ALICE"})
    one = server("code", arguments=("-y", "@modelcontextprotocol/server-github"))
    found = environment.withheld(one)
    assert found.fitting == ("GITHUB_TOKEN", "GITHUB_HOST")
    assert found.secret == ("AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "SSH_AUTH_SOCK")
    assert "hunter2" not in repr(found) + repr(environment) + found.sentence(one)


def test_short_names_of_services_fit_too():
    environment = ChildEnvironment({"GH_TOKEN": "g", "AWS_PROFILE": "a", "NODE_OPTIONS": "x"})
    assert environment.withheld(server("github")).fitting == ("GH_TOKEN",)
    assert environment.withheld(server("aws-docs", command="node")).fitting == ("AWS_PROFILE",)


def test_what_an_entry_sets_itself_and_what_is_reached_by_address_misses_nothing():
    environment = ChildEnvironment({"GITHUB_TOKEN": "g"})
    assert not environment.withheld(server("github", environment={"GITHUB_TOKEN": "mine"}))
    assert not environment.withheld(server("github", inherit_env=("GITHUB_*",)))
    assert not environment.withheld(Server(name="github", transport="http", url="https://x"))
    assert not environment.hint(Server(name="github", transport="http", url="https://x"), "GITHUB_TOKEN")


@pytest.mark.parametrize(
    ("origin", "file", "more", "line"),
    [
        ("user", "/u/ullage.toml", (), 'add `inherit_env = ["A_KEY"]` to `[servers.a]` in /u/ullage.toml'),
        ("user", "/u/ullage.toml", ("B_*",), 'add `inherit_env = ["B_*", "A_KEY"]` to'),
        ("project", "/p/ullage.toml", (), 'add `env = { A_KEY = "${A_KEY}" }` to `[servers.a]` in /p/ullage.toml'),
        ("client", "/u/.mcp.json", (), 'add `"env": { "A_KEY": "${A_KEY}" }` to `[servers.a]` in /u/.mcp.json'),
        ("client", "/u/.codex/config.toml", (), 'add `env_vars = ["A_KEY"]` to'),
    ],
)
def test_the_line_to_add_suits_the_file_of_the_entry(origin, file: str, more: tuple[str, ...], line: str):
    one = server("a", origin=origin, came_from=f"{file} [servers.a]", inherit_env=more)
    said = ChildEnvironment({"A_KEY": "x"}).hint(one, "fatal: A_KEY is not set")
    assert said.startswith("it names `A_KEY`, which is set but not given to it: ")
    assert line in said


def test_only_a_variable_that_is_set_and_not_given_is_hinted_at():
    environment = ChildEnvironment({"A_KEY": "x", "DEBUG": "1", "PATH": "/bin"})
    assert environment.hint(server(), "DEBUG: PATH B_KEY MY_A_KEY") == ""
    assert environment.hint(server(inherit_env=("A_KEY",)), "A_KEY is wrong") == ""


def test_a_line_names_few_variables_and_counts_the_rest():
    environment = ChildEnvironment({f"SERVICE_{number}_TOKEN": "x" for number in range(9)})
    said = environment.withheld(server()).sentence(server())
    assert said.count("SERVICE_") == 5
    assert "and 5 more" in said
    assert 'inherit_env = ["SERVICE_0_TOKEN"]' in said
