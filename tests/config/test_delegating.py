"""What the settings say of asking other models, and what a project may not say of it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from approving import examine, load
from delegate.policies import MODELS, POLICIES, policy
from ullage.config import BUILT_IN, Budget, Flags, Folders, Issue, Loaded, Places, ProviderSettings, Timing
from ullage.config.config_file import Page
from ullage.config.ullage_toml import read_ullage_toml
from ullage.errors import BadConfiguration

pytestmark = pytest.mark.requirement("S4:config")

MakePage = Callable[..., Page]

TABLES = """
[delegate.aliases]
small = "mine:tiny"

[delegate.models."mine:tiny"]
provider = "mine"
model = "gpt-4o-mini"
cap = { default = 100, hard = 200 }
pricing = { input = 0.000003, output = 0.000009 }

[delegate.routing]
defaultAlias = "small"

[[delegate.routing.tokenBuckets]]
alias = "small"
maxPromptTokens = 100

[[delegate.routing.tokenBuckets]]
alias = "lost"

[delegate.prompts]
run = "Be brief."
"""


class Desk:
    """A home folder with a project in it."""

    def __init__(self, root: Path) -> None:
        self.home = root
        self.project = root / "project"
        (self.project / ".git").mkdir(parents=True)
        self.places = Places(home=root, config=root / ".config", data=root / ".data")

    def write(self, *, user: str = "", project: str | None = None) -> None:
        self.places.config.mkdir(exist_ok=True)
        (self.places.config / "ullage.toml").write_text(user, encoding="utf-8")
        if project is not None:
            (self.project / "ullage.toml").write_text(project, encoding="utf-8")

    def conf(self, folder: Path, models: Any = MODELS, policies: Any = POLICIES) -> Path:  # noqa: ANN401
        (folder / "conf").mkdir(parents=True)
        for name, said in (("models", models), ("policies", policies)):
            text = said if isinstance(said, str) else json.dumps(said, indent=2)
            (folder / "conf" / f"{name}.json").write_text(text, encoding="utf-8")
        return folder / "conf"

    def load(self, flags: Flags | None = None, /, **environment: str) -> Loaded:
        return self.load_in(self.project, flags, **environment)

    def load_in(self, directory: Path, flags: Flags | None = None, /, **environment: str) -> Loaded:
        return load(flags or Flags(), environment, directory, places=self.places)

    def examine(self, **environment: str) -> Loaded:
        return examine(Flags(), environment, self.project, places=self.places)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def provider_of(loaded: Loaded, name: str) -> ProviderSettings:
    return next(one for one in loaded.settings.providers if one.name == name)


def errors(loaded: Loaded) -> list[str]:
    return [issue.message for issue in loaded.errors]


def test_three_providers_are_there_without_a_table_and_nothing_is_wanted(desk: Desk):
    settings = desk.load().settings
    assert settings.providers == tuple(BUILT_IN.values())
    assert [one.key_env for one in settings.providers] == ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"]
    assert not settings.delegate.is_wanted
    assert desk.load(OPENAI_API_KEY="x").settings == settings


@pytest.mark.requirement("S4:risks")
def test_a_prompt_is_cut_only_where_someone_says_so(desk: Desk):
    desk.write(user="[delegate]\n")
    assert desk.load().settings.delegate.cut is False
    desk.write(user="[delegate]\ncut = true\n")
    assert desk.load().settings.delegate.cut is True


@pytest.mark.requirement("S4:providers")
def test_every_key_of_a_provider_is_read(page: MakePage):
    text = """
[providers.work]
kind = "anthropic"
base_url = "https://${HOST}/api"
key_env = "WORK_KEY"
headers = { "X-Team" = "blue", "X-Api-Key" = "${OTHER}" }
connect_timeout = 1
first_byte_timeout = 2.5
idle_timeout = 3
host = "aws"
"""
    layer = read_ullage_toml(page(text, {"HOST": "host.test", "OTHER": "hunter2"}))
    assert layer.issues == ()
    assert layer.delegation.providers["work"] == ProviderSettings(
        name="work",
        kind="anthropic",
        base_url="https://host.test/api",
        key_env="WORK_KEY",
        headers={"X-Team": "blue", "X-Api-Key": "hunter2"},
        timing=Timing(connect=1.0, first_byte=2.5, idle=3.0),
        host="aws",
        variables=frozenset({"HOST", "OTHER", "WORK_KEY"}),
        came_from="/home/me/ullage.toml [providers.work]",
    )
    assert "hunter2" not in repr(layer)


@pytest.mark.parametrize(
    ("text", "kind", "base_url", "key_env"),
    [
        ("[providers.google]", "google", BUILT_IN["google"].base_url, "GOOGLE_API_KEY"),
        ("[providers.openai]\nkey_env = 'MINE'", "openai", "https://api.openai.com/v1", "MINE"),
        ("[providers.openai]\nkind = 'openai-chat'", "openai-chat", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("[providers.ollama]\nbase_url = 'http://127.0.0.1:1/v1'", "compatible", "http://127.0.0.1:1/v1", None),
        ("[providers.second]\nkind = 'openai'\nkey_env = 'TWO'", "openai", "https://api.openai.com/v1", "TWO"),
    ],
)
def test_what_a_provider_leaves_out_is_its_makers(desk: Desk, text: str, kind: str, base_url: str, key_env: str):
    desk.write(user=text)
    loaded = desk.load()
    found = provider_of(loaded, text.partition("]")[0].removeprefix("[providers."))
    assert (found.kind, found.base_url, found.key_env) == (kind, base_url, key_env)
    assert loaded.settings.delegate.is_wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[providers.x]", "provider `x` has no `base_url`"),
        ("[providers.x]\nkind = 'groq'", "`providers.x.kind` must be `openai`, `openai-chat`, "),
        ("[providers.x]\nbase_url = 'ftp://x'", "`providers.x.base_url` must be an address"),
        ("[providers.x]\nbase_url = 'http://x'\nkey_evn = 'A'", "unknown key `key_evn` in `[providers.x]`"),
        ("[providers.openai]\napi_key = 'hunter2'", "a key does not belong into a file, as `providers.openai.api_key`"),
        ("[providers.openai]\nkey = 'hunter2'", "a key does not belong into a file"),
        ("[providers.openai]\nkey_env = 'sk-hunter2'", "`providers.openai.key_env` must be the name of a variable"),
        ("[providers.google]\nkey_env = 'AIzahunter2'", "`providers.google.key_env` must be the name of a variable"),
        (
            "[providers.openai]\nheaders = { Authorization = 'Bearer hunter2' }",
            "header `Authorization` of provider `openai` may be a key",
        ),
        ("[providers.openai]\nheaders = { x-api-key = 'hunter2' }", "header `x-api-key` of provider `openai`"),
        ("[providers.openai]\nbase_url = 'https://hunter2@host'", "the address of provider `openai` holds a secret"),
        (
            "[providers.openai]\nbase_url = 'https://host?key=hunter2'",
            "the address of provider `openai` holds a secret",
        ),
        ("[delegate]\nconf = ''", "`delegate.conf` must be a string"),
        ("[delegate]\nalias = {}", "unknown key `alias` in `[delegate]`"),
        ("[delegate]\naliases = 3", "`delegate.aliases` must be a table"),
        ("[delegate.budgets]\nyear = {}", "unknown key `year` in `[delegate.budgets]`"),
        ("[delegate.budgets.day]\ndollars = -1", "`delegate.budgets.day.dollars` must be an amount, 0 or more"),
        ("[delegate.budgets.day]\ntokens = 1.5", "`delegate.budgets.day.tokens` must be a whole number, 0 or more"),
        ("[delegate.budgets]\nalerts = [2]", "`delegate.budgets.alerts` must be a list of numbers above 0, up to 1"),
        ("[delegate.budgets]\nalerts = []", "`delegate.budgets.alerts` must be a list of numbers above 0, up to 1"),
        ("[retrieve.docs]", "`retrieve.docs` has neither `folders` nor `files`"),
        ("[retrieve.docs]\nfolders = ['a']\nmax_file_bytes = 0", "`retrieve.docs.max_file_bytes` must be a whole"),
    ],
)
def test_what_cannot_be_meant_is_an_error_that_repeats_no_key(desk: Desk, text: str, said: str):
    desk.write(user=text)
    loaded = desk.examine()
    (message,) = errors(loaded)
    assert message.startswith(said)
    assert "hunter2" not in "".join(issue.sentence() for issue in loaded.issues)


def test_a_provider_whose_variable_is_not_set_is_left_out_alone(desk: Desk):
    desk.write(user="[providers.a]\nbase_url = 'http://${NOWHERE}'\n[providers.b]\nbase_url = 'http://b.test'\n")
    loaded = desk.load()
    assert [one.name for one in loaded.settings.providers] == [*BUILT_IN, "b"]
    assert [issue.severity for issue in loaded.issues] == ["problem"]


@pytest.mark.requirement("S4:providers")
@pytest.mark.parametrize(
    ("project", "user", "said"),
    [
        ("[providers.openai]\nbase_url = 'http://evil.test'", "", "does not change a provider of yours"),
        ("[providers.mine]\nbase_url = 'http://evil.test'", "[providers.mine]\nbase_url = 'http://a.test'", "of yours"),
        (
            "[providers.x]\nbase_url = 'http://evil.test'\nkey_env = 'OPENAI_API_KEY'",
            "",
            "may not send `OPENAI_API_KEY`",
        ),
        ("[providers.x]\nbase_url = 'http://evil.test'\nheaders = { a = '${TOKEN}' }", "", "may not send `TOKEN`"),
        ("[providers.x]\nbase_url = 'http://evil.test/${TOKEN}'", "", "may not send `TOKEN`"),
        (
            "[delegate]\nproject_keys = ['A']\n[providers.x]\nbase_url = 'http://x'\nkey_env = 'A'",
            "",
            "may not send `A`",
        ),
    ],
)
def test_a_projects_file_sends_no_key_of_the_users_anywhere(desk: Desk, project: str, user: str, said: str):
    desk.write(user=user, project=project)
    loaded = desk.load(TOKEN="hunter2", OPENAI_API_KEY="hunter2", A="hunter2")
    assert not [one for one in loaded.settings.providers if "evil" in one.base_url or one.name == "x"]
    issue = next(one for one in loaded.issues if one.severity == "problem" and (one.key or "").startswith("providers."))
    assert said in issue.message
    assert not any("hunter2" in one.sentence() for one in loaded.issues)


def test_a_project_may_add_providers_that_need_nothing_of_the_users_or_what_the_user_named(desk: Desk):
    project = "[providers.here]\nbase_url = 'http://127.0.0.1:1'\n[providers.x]\nbase_url = 'http://x'\nkey_env = 'A'\n"
    desk.write(user="[delegate]\nproject_keys = ['A']\n", project=project)
    loaded = desk.load(A="key")
    assert loaded.issues == ()
    assert (provider_of(loaded, "here").key_env, provider_of(loaded, "x").key_env) == (None, "A")
    assert loaded.why["providers.here"] == str(desk.project / "ullage.toml")


@pytest.mark.requirement("S4:config")
def test_the_originals_two_files_are_read_as_they_are(desk: Desk):
    folder = desk.conf(desk.project)
    loaded = desk.load()
    found = loaded.settings.delegate.policy
    assert found is not None
    assert (found.aliases, found.models, found.buckets) == (policy().aliases, policy().models, policy().buckets)
    assert loaded.why["delegate.policy"] == str(folder)
    assert {folder / "models.json", folder / "policies.json"} <= set(loaded.files)
    assert loaded.settings.delegate.is_wanted


@pytest.mark.requirement("S4:config")
def test_the_same_settings_stand_in_tables(desk: Desk):
    desk.write(user=TABLES)
    found = desk.load().settings.delegate.policy
    assert found is not None
    assert found.aliases == {"small": "mine:tiny"}
    assert found.models["mine:tiny"].cap_hard == 200
    assert found.models["mine:tiny"].price is not None
    assert found.models["mine:tiny"].price.input == Decimal("0.000003")
    assert [bucket.at_most for bucket in found.buckets] == [100, None]
    assert found.prompts == {"run": "Be brief."}


def test_tables_come_before_the_files_of_the_folder_that_is_named_beside_them(desk: Desk):
    desk.conf(desk.home / "elsewhere")
    extra = "[delegate.caps]\ndefault = 7\n[delegate.aliases]\nreasoning = 'openai:gpt-4o'\n"
    desk.write(user=f"[delegate]\nconf = '{desk.home}/elsewhere/conf'\n{extra}")
    found = desk.load().settings.delegate.policy
    assert found is not None
    assert (found.cap_default, found.tiers["pro"]) == (7, 3072)
    assert (found.aliases["reasoning"], found.aliases["chat-default"]) == ("openai:gpt-4o", "openai:gpt-4o-mini")
    assert found.places["aliases.reasoning"] == f"{desk.places.config}/ullage.toml:6"
    assert found.places["aliases.chat-default"].startswith(f"{desk.home}/elsewhere/conf/models.json:")
    desk.write(user=f"[delegate]\nconf = '{desk.home}/elsewhere/conf'\n")
    alone = desk.load().settings.delegate.policy
    assert alone is not None
    assert alone.aliases == policy().aliases


def test_the_policy_is_taken_whole_from_the_highest_place(desk: Desk):
    desk.write(user=TABLES, project="")
    desk.conf(desk.project)
    assert "small" not in (desk.load().settings.delegate.policy or policy()).aliases
    desk.write(user="", project=TABLES)
    assert "small" in (desk.load().settings.delegate.policy or policy()).aliases
    named = desk.home / "named.toml"
    named.write_text(TABLES, encoding="utf-8")
    assert "small" in (desk.load(Flags(config=named)).settings.delegate.policy or policy()).aliases
    named.write_text("", encoding="utf-8")
    assert "small" not in (desk.load(Flags(config=named)).settings.delegate.policy or policy()).aliases


def test_a_folder_beside_the_projects_file_is_found_from_below_it_before_that_of_the_working_directory(desk: Desk):
    inner = desk.project / "deep" / "inner"
    desk.conf(inner, {**MODELS, "aliases": {}}, {})
    assert (desk.load_in(inner).settings.delegate.policy or policy()).aliases == {}
    desk.write(project="")
    desk.conf(desk.project)
    assert (desk.load_in(inner).settings.delegate.policy or policy()).aliases != {}


def test_one_of_the_two_files_alone_is_no_policy_and_a_named_folder_must_have_both(desk: Desk):
    (desk.conf(desk.project) / "models.json").unlink()
    assert not desk.load().settings.delegate.is_wanted
    desk.write(user=f"[delegate]\nconf = '{desk.project}/conf'\n")
    with pytest.raises(BadConfiguration, match="`conf` has not both"):
        desk.load()


@pytest.mark.parametrize(
    ("models", "policies", "file", "line", "said"),
    [
        ("{", {}, "models.json", None, "is not JSON"),
        ("[]", {}, "models.json", None, "must be an object"),
        ({"models": {"a": {"provider": "x", "model": "y", "cap": 3}}}, {}, "models.json", 6, "must be a table"),
        ({}, {"caps": {"tiers": {"pro": "many"}}}, "policies.json", 4, "`caps.tiers.pro` cannot be"),
        (
            {},
            {"routing": {"tokenBuckets": [{"alias": "a"}, {}]}},
            "policies.json",
            7,
            "must be a table with an `alias`",
        ),
        ({}, {"cap": {}}, "policies.json", 2, "`cap` is not known here"),
    ],
)
def test_a_fault_in_a_policy_is_an_error_with_its_line(  # noqa: PLR0917 - a row of the table
    desk: Desk,
    models: Any,  # noqa: ANN401
    policies: Any,  # noqa: ANN401
    file: str,
    line: int | None,
    said: str,
):
    folder = desk.conf(desk.project, models, policies)
    (issue,) = desk.examine().errors
    assert said in issue.message
    assert (issue.file, issue.line) == (str(folder / file), line)


@pytest.mark.requirement("S4:lint")
def test_what_a_policy_cannot_mean_is_noted_with_file_and_line(desk: Desk):
    desk.write(user=TABLES)
    loaded = desk.load()
    notes = {issue.message: issue for issue in loaded.issues}
    lost = notes["no alias or model is called `lost`"]
    assert (lost.severity, lost.key) == ("note", "delegate.routing.tokenBuckets.1")
    assert (
        lost.place
        == f"{desk.places.config}/ullage.toml:{TABLES.splitlines().index('[[delegate.routing.tokenBuckets]]') + 5}"
    )
    assert lost.sentence() in loaded.settings.delegate.warnings


@pytest.mark.requirement("S4:lint", "S4:config")
def test_the_shipped_example_of_the_original_is_read_and_each_dead_rule_named(desk: Desk):
    desk.conf(desk.project)
    loaded = desk.load()
    assert not loaded.errors
    said = " ".join(loaded.settings.delegate.warnings)
    for dead in ("first bucket's `chat-default` is dead", "fall back on one another", "`gemini-1.5-pro` was retired"):
        assert dead in said
    assert all(":" in one.place for one in loaded.issues)


@pytest.mark.requirement("S4:budgets")
def test_budgets_are_read_and_a_project_only_makes_them_smaller(desk: Desk):
    user = "[delegate.budgets]\nalerts = [0.9]\nday = { dollars = 5.1, tokens = 1000 }\ncall = { dollars = 1 }\n"
    project = "[delegate.budgets]\nalerts = [0.2, 0.9]\nday = { dollars = 9, tokens = 10 }\nmonth = { dollars = 0 }\n"
    desk.write(user=user, project="")
    settings = desk.load().settings.delegate
    assert settings.budgets == {"day": Budget(dollars=Decimal("5.1"), tokens=1000), "call": Budget(dollars=Decimal(1))}
    assert settings.alerts == (Decimal("0.9"),)
    desk.write(user=user, project=project)
    settings = desk.load().settings.delegate
    assert settings.budgets == {
        "day": Budget(dollars=Decimal("5.1"), tokens=10),
        "call": Budget(dollars=Decimal(1)),
        "month": Budget(dollars=Decimal(0)),
    }
    assert settings.alerts == (Decimal("0.2"), Decimal("0.9"))


@pytest.mark.requirement("S4:budgets")
def test_a_projects_own_prices_do_not_make_calls_cheap_where_the_user_has_a_budget_in_money(desk: Desk):
    desk.conf(desk.project)
    free = desk.load().settings.delegate.policy
    assert free is not None
    assert all(one.price is not None for one in free.models.values())
    desk.write(user="[delegate.budgets.day]\ndollars = 5\n")
    loaded = desk.load()
    bound = loaded.settings.delegate.policy
    assert bound is not None
    assert all(one.price is None for one in bound.models.values())
    assert any("prices of this policy" in issue.message for issue in loaded.issues)
    shutil.rmtree(desk.project / "conf")
    desk.conf(desk.project, {"aliases": {}, "models": {}}, {})
    assert not any("prices" in issue.message for issue in desk.load().issues)


@pytest.mark.requirement("S4:env")
def test_the_originals_variables_are_read_and_off_without(desk: Desk):
    settings = desk.load().settings.delegate
    assert (settings.log_level, settings.cost_alert, settings.usage_export) == (None, None, None)
    said: dict[str, str] = {"ORCH_LOG_LEVEL": "warn", "ORCH_COST_ALERT_USD": "0.05", "ORCH_USAGE_EXPORT": "use.csv"}
    settings = desk.load(**said).settings.delegate
    assert (settings.log_level, settings.cost_alert, settings.usage_export) == ("warn", Decimal("0.05"), "use.csv")
    assert desk.load(ORCH_COST_ALERT_USD="2").settings.delegate.cost_alert == Decimal(2)


@pytest.mark.parametrize(
    ("name", "value"), [("ORCH_LOG_LEVEL", "loud"), ("ORCH_COST_ALERT_USD", "much"), ("ORCH_COST_ALERT_USD", "-1")]
)
def test_a_variable_that_cannot_be_meant_is_an_error(desk: Desk, name: str, value: str):
    with pytest.raises(BadConfiguration, match=f"`{name}` must be"):
        desk.load(**{name: value})


@pytest.mark.requirement("S4:more")
def test_folders_to_be_searched_are_read(desk: Desk):
    text = """
[retrieve.docs]
folders = ["docs", "~/notes"]
files = ["README.md"]
include = ["*.md"]
exclude = ["old/"]
gitignore = false
max_file_bytes = 5
"""
    desk.write(user="[retrieve.more]\nfolders = ['mine']\n", project=text + "[retrieve.more]\nfiles = ['x']\n")
    found, more = desk.load().settings.retrieves
    assert found == Folders(
        name="docs",
        folders=(str(desk.project / "docs"), str(desk.home / "notes")),
        files=(str(desk.project / "README.md"),),
        include=("*.md",),
        exclude=("old/",),
        gitignore=False,
        max_file_bytes=5,
        within=str(desk.project),
        came_from=f"{desk.project}/ullage.toml [retrieve.docs]",
    )
    assert more.name == "more"


def test_a_source_and_folders_of_one_name_are_refused(desk: Desk):
    desk.write(user="[sources.docs]\ndatabase = 'x.db'\n[retrieve.docs]\nfolders = ['docs']\n")
    (message,) = errors(desk.examine())
    assert message.startswith("`docs` is a source in `")
    assert "and a collection of folders in" in message


def test_results_of_models_are_not_written_otherwise(desk: Desk):
    desk.write(user="[delegate]\n[servers.delegate]\ncommand = 'x'\n[retrieve.docs]\nfolders = ['docs']\n")
    settings = desk.load().settings
    assert settings.delegate_name == "delegate (own)"
    assert {name for name, one in settings.result_rules.servers.items() if one.encode is False} == {
        "delegate (own)",
        "docs",
    }


@pytest.mark.requirement("U:project")
def test_folders_whose_files_are_sent_come_from_the_users_own_file_alone(desk: Desk):
    desk.write(user="", project="[delegate]\nfile_roots = ['/etc', '.']\n")
    loaded = desk.load()
    assert loaded.settings.delegate.file_roots == ()
    assert any("`delegate.file_roots` is ignored in a project's file" in one.message for one in loaded.issues)
    desk.write(user="[delegate]\nfile_roots = ['~/work', 'here']\n", project="[delegate]\nfile_roots = ['/etc']\n")
    first, second = desk.load().settings.delegate.file_roots
    assert first.endswith("/work")
    assert not first.startswith("~")
    assert second.endswith("/here")


@pytest.mark.requirement("S4:config")
def test_an_issue_is_one_line_with_its_place_where_it_has_one():
    issue = Issue(severity="error", message="`cap` is no number", file="policy.toml", line=3, suggestion="write 5")
    assert issue.sentence() == "policy.toml:3: `cap` is no number (write 5)"
    assert replace(issue, line=None, suggestion="").sentence() == "policy.toml: `cap` is no number"
    assert replace(issue, file=None, line=None).sentence() == "`cap` is no number (write 5)"
