import pytest

from ullage.gateway import Server
from ullage.wire.upstream.child_env import ChildEnvironment, depth, lines_to_add

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


def test_a_depth_has_at_most_nine_digits():
    assert [depth({"ULLAGE_DEPTH": "1" * length}) for length in (9, 10)] == [111_111_111, 0]


@pytest.mark.parametrize(
    ("name", "command", "arguments", "variable", "fits"),
    [
        ("acme", "run", (), "ACME_MODE", True),
        ("acme", "run", (), "MODE_ACME", False),
        ("acme", "run", (), "ACME", False),
        ("acme", "run", (), "MODE_ACME_KEY", True),
        ("acme", "run", (), "ACMES_KEY", False),
        ("acme-server", "run", (), "SERVER_KEY", False),
        ("acmeserver", "run", (), "ACME_KEY", True),
        ("xacb", "run", (), "ACB_KEY", False),
        ("acb", "run", (), "ACB_KEY", True),
        ("ac", "run", (), "AC_KEY", False),
        ("one", "/opt/acme/start.sh", (), "ACME_MODE", False),
        ("one", "/opt/acme/start.sh", (), "START_MODE", True),
        ("one", "C:\\tools\\acme.exe", (), "ACME_MODE", True),
        ("one", "/usr/bin/node", (), "NODE_OPTIONS", False),
        ("one", "python3.12", (), "PYTHON3_KEY", False),
        ("one", "npx", ("@acme/mcp",), "ACME_MODE", True),
        ("one", "npx", ("/opt/acme/x.js",), "ACME_MODE", False),
        ("one", "npx", ("./acme/x.js",), "ACME_MODE", False),
        ("one", "npx", ("~/acme/x.js",), "ACME_MODE", False),
        ("one", "npx", ("C:\\acme\\x.js",), "ACME_MODE", False),
        ("one", "npx", ("/opt/x/acme.js",), "ACME_MODE", True),
        ("one", "npx", ("run acme",), "ACME_MODE", False),
        ("one", "npx", ("acme" + "-" * 196,), "ACME_MODE", True),
        ("one", "npx", ("acme" + "-" * 197,), "ACME_MODE", False),
        ("github", "run", (), "GH_HOST", True),
        ("postgres", "run", (), "PG_PASSWORD", True),
        ("postgres", "run", (), "PGPASSWORD", False),
    ],
)
def test_a_variable_fits_by_its_first_word_and_a_secret_by_any(
    name: str, command: str, arguments: tuple[str, ...], variable: str, *, fits: bool
):
    one = server(name, command=command, arguments=arguments)
    found = ChildEnvironment({variable: "x"}).withheld(one)
    assert found.fitting == ((variable,) if fits else ())
    is_secret = variable.endswith(("KEY", "PASSWORD"))
    assert found.secret == ((variable,) if is_secret and not fits else ())
    assert bool(found) is (fits or is_secret)


def test_a_password_in_an_address_makes_a_variable_a_secret_and_a_user_alone_does_not():
    values = {"A_B": "x://u:p@h", "C_D": "x://u@h", "E_F": "u:p@h", "G_H": "x://h/?u:p@h", "PWD": "x", "OLDPWD": "x"}
    assert ChildEnvironment(values).withheld(server()).secret == ("A_B",)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("set A_KEY and B_MODE", ["A_KEY", "B_MODE"]),
        ("B_MODE before A_KEY, and B_MODE again", ["B_MODE", "A_KEY"]),
        ("DEBUG is on", []),
        ("_DEBUG_ is on", []),
        ("SECRET is missing", ["SECRET"]),
        ("PATH and HOME", []),
        ("A_KEY1", []),
        ("a C_1 C_2 C_3 C_4 C_5", ["C_1", "C_2", "C_3", "C_4"]),
    ],
)
def test_a_hint_names_the_variables_that_an_output_mentions(text: str, named: list[str]):
    names = ("A_KEY", "B_MODE", "DEBUG", "_DEBUG_", "SECRET", "PATH", "HOME", *(f"C_{n}" for n in range(1, 6)))
    said = ChildEnvironment(dict.fromkeys(names, "x")).hint(server(), text)
    listed = ", ".join(f"`{name}`" for name in named)
    assert said == (
        f"it names {listed}, which is set but not given to it: {lines_to_add(server(), tuple(named))}" if named else ""
    )


def test_a_sentence_says_what_to_write_for_what_fits_and_else_for_one_secret():
    one = server("acme")
    fitting = ChildEnvironment({"ACME_A": "x", "ACME_B_KEY": "x", "OTHER_KEY": "x"}).withheld(one)
    assert fitting.names == ("ACME_B_KEY", "ACME_A", "OTHER_KEY")
    wanted = lines_to_add(one, ("ACME_B_KEY", "ACME_A"))
    assert fitting.sentence(one) == f"does not get `ACME_B_KEY`, `ACME_A` and 1 more; if it needs one, {wanted}"
    secret = ChildEnvironment({f"{letter}_KEY": "x" for letter in "ABCD"}).withheld(one)
    assert secret.sentence(one) == (
        f"does not get `A_KEY`, `B_KEY`, `C_KEY`, `D_KEY`; if it needs one, {lines_to_add(one, ('A_KEY',))}"
    )


def test_an_entry_without_a_file_is_named_by_its_server():
    assert lines_to_add(server("acme"), ("A", "B")) == 'add `inherit_env = ["A", "B"]` to the entry of `acme`'
    one = server("acme", origin="project", came_from="/p/x.toml [servers.acme]")
    assert lines_to_add(one, ("A", "B")).startswith('add `env = { A = "${A}", B = "${B}" }` to `[servers.acme]`')


def test_a_shell_function_is_given_only_where_the_entry_asks_for_it():
    values = {"LC_X": "() { :; }", "LC_Y": "y", "PIP_INDEX_URL": "https://u@h/", "UV_INDEX_URL": "https://h/"}
    assert given(values) == {"LC_Y", "UV_INDEX_URL"}
    assert given(values, inherit_env=("LC_*", "PIP_*")) == {"LC_X", "LC_Y", "PIP_INDEX_URL", "UV_INDEX_URL"}
