import json
from collections.abc import Callable
from pathlib import Path

import pytest

from approving import examine, load
from ullage.config import Flags, Loaded, Places, Results
from ullage.config.config_file import Page
from ullage.config.layers import Layer
from ullage.config.ullage_toml import read_ullage_toml
from ullage.errors import BadConfiguration
from ullage.gateway import ResultRules, ServerResults
from ullage.sql import SAMPLE, DatabaseSettings, Limits
from ullage.tool import Origin

pytestmark = pytest.mark.requirement("U:project")

MakePage = Callable[..., Page]

WHOLE = """
[sources.shop]
database = "postgresql://me:${PASSWORD}@host/shop"
default = true
description = "What was sold"
max_rows = 50
timeout = 2.5
max_cell = 300
max_megabytes = 1.5
concurrency = 2
max_tokens = 900
masked = ["users.email"]
functions = ["fair_price"]
cache = 5
schema_cache = 0

[results]
budget = 0
encode = false
keep_hours = 2
keep_megabytes = 0.5

[servers.github]
command = "github"
budget = 500
budgets = { "list_*" = 200, get = 0 }
whole = ["render"]
cache = { "get_*" = 60, now = 0.5 }
"""


class Desk:
    """A home folder with a project in it."""

    def __init__(self, root: Path) -> None:
        self.home = root
        self.project = root / "project"
        (self.project / ".git").mkdir(parents=True)
        self.places = Places(home=root, config=root / ".config", data=root / ".data")

    def write(self, *, user: str = "", project: str = "") -> None:
        self.places.config.mkdir(exist_ok=True)
        (self.places.config / "ullage.toml").write_text(user, encoding="utf-8")
        (self.project / "ullage.toml").write_text(project, encoding="utf-8")

    def load(self, flags: Flags | None = None, **environment: str) -> Loaded:
        return load(flags or Flags(), environment, self.project, places=self.places)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def errors(layer: Layer) -> list[str]:
    return [issue.message for issue in layer.issues if issue.severity == "error"]


def test_every_key_of_a_source_and_of_results_is_read(page: MakePage):
    layer = read_ullage_toml(page(WHOLE, {"PASSWORD": "hunter2"}))
    assert layer.issues == ()
    assert layer.databases["shop"] == DatabaseSettings(
        name="shop",
        url="postgresql://me:hunter2@host/shop",
        default=True,
        description="What was sold",
        limits=Limits(rows=50, seconds=2.5, cell=300, bytes=1_500_000, concurrency=2),
        max_tokens=900,
        masked=("users.email",),
        functions=("fair_price",),
        cache=5.0,
        schema_cache=0.0,
        came_from="/home/me/ullage.toml [sources.shop]",
    )
    assert "hunter2" not in repr(layer.databases)
    assert layer.values["results.budget"] == 0
    assert layer.handling["github"] == ServerResults(
        budget=500, budgets={"list_*": 200, "get": 0}, whole=("render",), cache={"get_*": 60.0, "now": 0.5}
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("sample", SAMPLE),
        ("shop.db", "/home/me/shop.db"),
        ("~/shop.duckdb", "/home/me/shop.duckdb"),
        ("/var/shop.db", "/var/shop.db"),
        ("sqlite:///shop.db?mode=ro", "sqlite:////home/me/shop.db?mode=ro"),
        ("duckdb:////var/shop.duckdb", "duckdb:////var/shop.duckdb"),
        ("sqlite+pysqlite:///shop.db", "sqlite+pysqlite:////home/me/shop.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("sqlite://", "sqlite://"),
        ("mysql+pymysql://host/shop.db", "mysql+pymysql://host/shop.db"),
        ("${DB}", "/home/me/from-a-variable.db"),
        ("${NONE:-mssql://host/shop}", "mssql://host/shop"),
    ],
)
def test_a_path_is_from_the_files_folder_and_a_url_is_left_as_it_is(page: MakePage, written: str, meant: str):
    layer = read_ullage_toml(page(f'[sources.x]\ndatabase = "{written}"\n', {"DB": "from-a-variable.db"}))
    database = layer.databases["x"]
    assert (database and database.url, layer.issues) == (meant, ())


def test_a_source_whose_variable_is_not_set_is_left_out_alone(page: MakePage):
    layer = read_ullage_toml(page('[sources.a]\ndatabase = "${DB_URL}"\n[sources.b]\ndatabase = "b.db"\n'))
    assert (layer.databases["a"], layer.databases["b"] is not None) == (None, True)
    (issue,) = layer.issues
    assert (issue.severity, issue.line) == ("problem", 1)
    assert issue.message == "source `a` is left out: `DB_URL` not set in the environment"
    assert "DB_URL" in issue.suggestion


@pytest.mark.parametrize(
    "url", ["postgresql://me:hunter2@host/x", "mysql://:hunter2@host/x", "mysql://host/x?a=b&password=hunter2"]
)
def test_a_password_that_stands_in_the_file_is_noted_and_not_repeated(page: MakePage, url: str):
    layer = read_ullage_toml(page(f'[sources.x]\ndatabase = "{url}"\n'))
    (issue,) = layer.issues
    assert (issue.severity, issue.key, issue.line) == ("note", "sources.x.database", 2)
    assert "hunter2" not in issue.sentence()
    assert layer.databases["x"] is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[sources.x]", "source `x` has no `database`"),
        ("[sources.x]\ndatabase = ''", "`sources.x.database` must be a database's URL"),
        ("[sources.x]\ndatabase = 'x'\nmax_row = 1", "unknown key `max_row` in `[sources.x]`"),
        ("[sources.x]\ndatabase = 'x'\nmax_rows = 0", "`sources.x.max_rows` must be a whole number above 0"),
        ("[sources.x]\ndatabase = 'x'\ncache = -1", "`sources.x.cache` must be a number of seconds, 0 or more"),
        ("[sources.x]\ndatabase = 'x'\nmax_megabytes = 0", "`sources.x.max_megabytes` must be a number above 0"),
        (
            "[sources.x]\ndatabase = 'x'\ndefault = true\n[sources.y]\ndatabase = 'y'\ndefault = true",
            "both `x` and `y` are marked `default`",
        ),
        ("sources = 1", "`sources` must be a table"),
        ("[results]\nbudget = -1", "`results.budget` must be a whole number, 0 or more"),
        ("[results]\nbudget = true", "`results.budget` must be a whole number, 0 or more"),
        ("[results]\nkeep_hours = 0", "`results.keep_hours` must be a number above 0"),
        ("[servers.x]\ncommand = 'x'\nbudgets = { a = -1 }", "`servers.x.budgets` must be a table of whole numbers"),
        ("[servers.x]\ncommand = 'x'\nbudgets = 3", "`servers.x.budgets` must be a table of whole numbers"),
        ("[servers.x]\ncommand = 'x'\ncache = { '' = 3 }", "`servers.x.cache` must be a table of seconds"),
    ],
)
def test_what_cannot_be_meant_is_an_error(page: MakePage, text: str, said: str):
    (message,) = errors(read_ullage_toml(page(text)))
    assert message.startswith(said)


def test_results_are_decided_key_by_key_and_a_variable_comes_before_files(desk: Desk):
    desk.write(user="[results]\nbudget = 5\nencode = false\n")
    assert desk.load().settings.results == Results(budget=5, encode=False)
    loaded = desk.load(ULLAGE_BUDGET="0")
    assert (loaded.settings.results.budget, loaded.why["results.budget"]) == (0, "ULLAGE_BUDGET")
    for wrong in ("-1", "many", "1.5"):
        with pytest.raises(BadConfiguration, match="`ULLAGE_BUDGET` must be a whole number"):
            desk.load(ULLAGE_BUDGET=wrong)


@pytest.mark.requirement("U:project")
@pytest.mark.parametrize(
    ("user", "project", "budget"),
    [
        ("budget = 5", "budget = 6", 5),
        ("budget = 5", "budget = 0", 5),
        ("budget = 0", "budget = 6", 6),
        ("", "budget = 0", 0),
    ],
)
def test_a_project_lowers_the_users_budget_of_results_and_never_raises_it(
    desk: Desk, user: str, project: str, budget: int
):
    desk.write(user=f"[results]\n{user}\n", project=f"[results]\n{project}\n")
    assert desk.load().settings.results.budget == budget


@pytest.mark.requirement("U:budget")
def test_a_servers_own_rules_for_results_come_from_the_file_that_has_the_server(desk: Desk):
    server = "[servers.x]\ncommand = 'x'\n"
    desk.write(user=f"{server}[results]\nbudget = 100\n", project=f"{server}budget = 9\nencode = false\n")
    assert desk.load().settings.result_rules == ResultRules(budget=100, servers={"x": ServerResults(budget=9)})
    desk.write(
        user=f"{server}budget = 9\n", project=f"{server}budget = 500\nwhole = ['*']\nbudgets = {{ get = 4, put = 0 }}\n"
    )
    assert desk.load().settings.handling == {"x": ServerResults(budget=9, budgets={"get": 4})}
    desk.write(user=f"{server}budget = 9\ncache = {{ get = 4 }}\n")
    rules = desk.load().settings.result_rules
    assert rules.handling(Origin("x", "get")).budget == 9
    assert rules.handling(Origin("y", "get")).budget == 10_000
    assert (rules.cached_for(Origin("x", "get")), rules.cached_for(Origin("x", "set"))) == (4.0, 0.0)


def test_the_default_database_is_the_one_marked_else_the_first(desk: Desk):
    desk.write(project="[sources.zebra]\ndatabase = 'z.db'\n[sources.ant]\ndatabase = 'a.db'\n")
    settings = desk.load().settings
    assert [database.name for database in settings.databases] == ["zebra", "ant"]
    assert settings.default_database is settings.databases[0]
    desk.write(
        user="[sources.ant]\ndatabase = 'a.db'\ndefault = true\n", project="[sources.zebra]\ndatabase = 'z.db'\n"
    )
    default = desk.load().settings.default_database
    assert default is not None
    assert (default.name, default.url) == ("ant", str(desk.home / ".config" / "a.db"))
    desk.write()
    assert desk.load().settings.default_database is None


@pytest.mark.requirement("U:project")
def test_a_projects_source_does_not_replace_the_users_of_that_name(desk: Desk):
    desk.write(user="[sources.x]\ndatabase = '${UNSET}'\n", project="[sources.x]\ndatabase = 'other.db'\n")
    loaded = desk.load()
    assert loaded.settings.databases == ()
    assert [issue.severity for issue in loaded.issues] == ["problem", "problem"]
    assert loaded.why["sources.x"] == str(desk.home / ".config" / "ullage.toml")


@pytest.mark.requirement("U:project")
def test_a_project_restricts_the_users_source_of_that_name(desk: Desk):
    head = "[sources.x]\ndatabase = 'x.db'\n"
    desk.write(
        user=f"{head}masked = ['*.password']\nfunctions = ['a']\nmax_rows = 10\nmax_tokens = 70",
        project=f"{head}masked = ['b.c']\nfunctions = ['a', 'evil']\nmax_rows = 99\ntimeout = 1",
    )
    (found,) = desk.load().settings.databases
    assert found.url == str(desk.home / ".config" / "x.db")
    assert found.masked == ("*.password", "b.c")
    assert found.functions == ("a",)
    assert found.limits == Limits(rows=10, seconds=1.0)
    assert found.max_tokens == 70
    desk.write(project="[sources.x]\ndatabase = 'x.db'\nfunctions = ['own']\n")
    (alone,) = desk.load().settings.databases
    assert alone.functions == ("own",)


def test_a_server_and_a_source_of_one_name_are_refused_and_both_named(desk: Desk):
    file = desk.home / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"shop": {"command": "x"}}}), encoding="utf-8")
    desk.write(project="[sources.shop]\ndatabase = 'x.db'\n")
    (issue,) = examine(Flags(include=(file,)), {}, desk.project, places=desk.places).errors
    assert str(file) in issue.message
    assert str(desk.project / "ullage.toml") in issue.message


def test_the_sample_is_added_last_and_yields_to_one_of_that_name(desk: Desk):
    desk.write(user="[sources.own]\ndatabase = 'own.db'\n")
    settings = desk.load(Flags(sample=True)).settings
    assert [(one.name, one.url == SAMPLE) for one in settings.databases] == [("own", False), ("shop", True)]
    assert settings.sample == str(desk.home / ".data" / "sample-shop.db")
    desk.write(user="[sources.shop]\ndatabase = 'own.db'\n")
    (mine,) = desk.load(Flags(sample=True)).settings.databases
    assert mine.url != SAMPLE


def test_a_plain_rule_may_stand_where_a_model_does(desk: Desk):
    desk.write(user="[gateway]\nmodel = 'character_count_div_4'\n[clients.x]\nmodel = 'character_count_div_3'\n")
    assert desk.load().settings.gateway_for("x").model == "character_count_div_3"
    desk.write(user="[gateway]\nmodel = 'character_count_div_5'\n")
    with pytest.raises(BadConfiguration):
        desk.load()
