import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

import ullage.config.loader
from ullage.config import (
    ClientProfile,
    DelegateSettings,
    Flags,
    Folders,
    Gateway,
    ProviderSettings,
    Results,
    Search,
    Timing,
)
from ullage.config.config_file import Page
from ullage.config.setting_definitions import (
    CEILING,
    CLIENT,
    DELEGATE,
    GATEWAY,
    HANDLING,
    LIMITS,
    OWN,
    POLICY,
    PROVIDER,
    RESULTS,
    RETRIEVE,
    SCOPES,
    SEARCH,
    SERVER,
    SOURCE,
    SPENDING,
    TABLES,
    TIMING,
    reference,
)
from ullage.config.settings import Budget
from ullage.config.ullage_toml import read_ullage_toml
from ullage.delegate import Ceilings, Scope, Timeouts
from ullage.gateway import Rules, Server, ServerResults
from ullage.retrieve import RetrieveSettings
from ullage.sql import DatabaseSettings, Limits

MakePage = Callable[..., Page]

GUIDE, _, REFERENCE = (
    (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8").partition("## Reference\n\n")
)


def names(kind: type[object]) -> set[str]:
    return {field.name for field in fields(kind)}  # type: ignore[arg-type]


def test_the_reference_is_what_the_table_of_keys_says():
    hint = "put what `ullage.config.setting_definitions.reference()` returns after `## Reference`"
    assert reference() == REFERENCE, hint


def test_every_key_is_explained():
    keys = [key for table in TABLES.values() for key in table]
    assert [key.name for key in keys if not key.means.endswith(".")] == []
    assert all(f"`{key.name}`" in REFERENCE for key in keys)


@pytest.mark.requirement("S1:aggregate")
def test_every_setting_has_a_key_and_every_key_a_setting():
    assert {key.target for key in GATEWAY} == names(Gateway)
    assert {key.target for key in CLIENT} == names(ClientProfile)
    # `under` is how a project's rules are bound by the user's.
    written = names(Rules) - {"under"}
    handled = names(ServerResults)
    assert {key.target for key in HANDLING} == handled
    made = {"name", "rules", "came_from", "launch", "origin"}
    assert {key.target for key in SERVER} == (names(Server) | written | handled) - made
    assert {key.target for key in RESULTS} == names(Results)
    assert {key.target for key in SEARCH} == names(Search)
    assert set(LIMITS) == names(Limits)
    known = names(DatabaseSettings) | names(Limits)
    assert {key.target for key in SOURCE} == known - {"name", "limits", "came_from", "within"}
    assert {key.target for key in OWN} == written - {"read_only", "writing", "only"}


@pytest.mark.requirement("S4:config")
def test_every_setting_of_delegating_has_a_key_and_every_key_a_setting():
    assert set(TIMING) == names(Timing) == names(Timeouts)
    known = names(ProviderSettings) | names(Timing)
    assert {key.target for key in PROVIDER} == known - {"name", "timing", "variables", "came_from"}
    assert {key.target for key in CEILING} == names(Budget)
    assert {key.name for key in SPENDING} - {"alerts"} == set(SCOPES) == set(get_args(Scope))
    assert {key.name for key in RETRIEVE} == names(Folders) - {"name", "came_from", "within"}
    assert names(Folders) - {"came_from"} == names(RetrieveSettings) - {"bounds"}
    own = {key.name for key in DELEGATE} - {key.name for key in POLICY}
    assert own == {"conf", "cut", "budgets", "file_roots", "project_keys"}
    assert {"policy", "cut", "budgets", "alerts"} < names(DelegateSettings)


@pytest.mark.requirement("S4:config")
def test_the_defaults_of_delegating_in_the_reference_are_the_defaults():
    for key in PROVIDER:
        if key.target in TIMING:
            assert float(key.default) == getattr(Timeouts(), key.target)
    assert {key.name: key.default for key in SPENDING}["alerts"] == f"[{', '.join(map(str, Ceilings().alert_at))}]"
    shown = {key.name: key.default for key in RETRIEVE}
    assert int(shown["max_file_bytes"]) == RetrieveSettings(name="x").max_file_bytes == Folders(name="x").max_file_bytes
    assert shown["gitignore"] == str(RetrieveSettings(name="x").gitignore).lower()


@pytest.mark.requirement("S1:aggregate")
def test_the_defaults_in_the_reference_are_the_defaults():
    shown = {key.name: key.default.strip("`") for key in (*GATEWAY, *SERVER)}
    gateway, server = Gateway(), Server(name="x", transport="stdio")
    for name in ("mode", "direct_below", "find_budget", "start_wait", "join_calls", "underscore_names"):
        assert shown[name] == f"{getattr(gateway, name)}".lower().removesuffix(".0")
    for name in ("disabled", "shared", "start_timeout", "call_timeout"):
        assert shown[name] == f"{getattr(server, name)}".lower().removesuffix(".0")
    for key in RESULTS:
        assert key.default == f"{getattr(Results(), key.name)}".lower().removesuffix(".0")
    for key in SEARCH:
        assert key.default.strip("`") == f"{getattr(Search(), key.name)}".lower()


def test_the_defaults_of_a_source_in_the_reference_are_the_defaults():
    shown = {key.target: key.default for key in SOURCE}
    limits, database = Limits(), DatabaseSettings(name="x", url="y")
    assert int(shown["bytes"]) * 1_000_000 == limits.bytes
    for name in ("rows", "seconds", "cell", "concurrency"):
        assert shown[name] == f"{getattr(limits, name)}".removesuffix(".0")
    for name in ("cache", "schema_cache"):
        assert shown[name] == f"{getattr(database, name)}".removesuffix(".0")


def test_every_flag_and_variable_is_in_the_guide():
    variables = set(re.findall(r'"((?:ULLAGE|ORCH)_[A-Z_]+)"', inspect.getsource(ullage.config.loader)))
    assert variables
    assert [one for one in (*variables, *(f"--{name}" for name in names(Flags))) if f"`{one}`" not in GUIDE] == []


def test_the_example_of_the_guide_is_valid(page: MakePage):
    example = textwrap.dedent(GUIDE.partition("programs:\n\n")[2].partition("\n`ullage doctor`")[0])
    layer = read_ullage_toml(page(example, {"GITHUB_TOKEN": "x", "DOCS_TOKEN": "y", "SHOP_PASSWORD": "z"}))
    assert layer.issues == ()
    assert set(layer.servers) == {"github", "docs"}
    assert set(layer.databases) == {"shop"}


@pytest.mark.parametrize("heading", ["## Databases", "## Results", "## Models to delegate to", "## Folders to search"])
def test_the_examples_of_the_guides_sections_are_valid(page: MakePage, heading: str):
    text = GUIDE.partition(f"{heading}\n")[2].partition("\n## ")[0]
    example = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    layer = read_ullage_toml(page(example, {"SHOP_URL": "postgresql://host/shop"}))
    assert layer.issues == ()
    assert layer.databases or layer.handling or layer.delegation.providers or layer.retrieves


def test_the_python_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code = textwrap.dedent(GUIDE.partition("## In Python\n\n")[2].partition("\n`load` raises")[0])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.toml").write_text("", encoding="utf-8")
    monkeypatch.setenv("ULLAGE_CONFIG", str(tmp_path / "empty.toml"))
    found: dict[str, object] = {}
    exec(compile(code, "configuration.md", "exec"), found)
    assert found["loaded"]
