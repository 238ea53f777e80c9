"""What a project's file may do before and after it is approved, and how its limits lower the user's own."""

from dataclasses import replace
from decimal import Decimal

import pytest

from ullage.config.layers import (
    USER_ONLY_SERVER_KEYS,
    USER_ONLY_VALUES,
    Delegation,
    Layer,
    is_switched_off,
    lower_budget,
    restricted_database,
    restricted_results,
    restricted_rules,
    restrictions_of,
    without_user_only_keys,
)
from ullage.config.permissions import Withheld
from ullage.config.settings import Budget, Folders, Scope, Token
from ullage.options import DatabaseSettings, Limits, Rules, Server, ServerResults

pytestmark = pytest.mark.requirement("U:project", "U:access")

STRICT = Rules(ask=("a",), deny=("d",), hidden=("h",), writing=("w",), only=("o", "a"))
LOOSE = Rules(allow=("x",), read_only=("r",), pinned=("p",), under=Rules(deny=("all",)))
TOKEN = Token(name="ada", env="ADAS")
FILES = Server(name="files", transport="stdio", command="x")


def test_a_pending_file_keeps_only_what_restricts():
    values = {
        "own.ask": ("query",), "own.deny": ("schema",), "own.hidden": ("count",), "results.budget": 9,
        "own.allow": ("query",), "search.learn": False, "search.shapes": False, "gateway.mode": "direct",
    }  # fmt: skip
    mixed = replace(STRICT, allow=LOOSE.allow, read_only=LOOSE.read_only, pinned=LOOSE.pinned, under=LOOSE.under)
    limits = DatabaseSettings(name="shop", url="sqlite:///x", masked=("t.c",))
    budgets: dict[Scope, Budget] = {"day": Budget(dollars=Decimal(1))}
    layer = Layer(
        source="ullage.toml",
        values=values,
        servers={"files": FILES, "Git Hub": replace(FILES, name="Git Hub", disabled=True), "gone": None},
        handling={"files": ServerResults(budget=5)},
        databases={"shop": limits, "none": None},
        delegation=Delegation(is_mentioned=True, conf="/x", budgets=budgets, values={"delegate.mode": 1}),
        retrieves={"docs": Folders(name="docs")},
        groups={"g": ("files",)},
        tokens={"ada": TOKEN},
        include=("other.toml",),
        withheld=Withheld(
            rules={"files": mixed}, called={"files": frozenset({"f"})}, off=frozenset({"old"}), on=frozenset({"files"})
        ),
        is_foreign=True,
    )
    kept = restrictions_of(layer)
    assert kept == Layer(
        source="ullage.toml",
        values={
            "own.ask": ("query",),
            "own.deny": ("schema",),
            "own.hidden": ("count",),
            "results.budget": 9,
            "search.learn": False,
            "search.shapes": False,
        },
        handling={"files": ServerResults(budget=5)},
        delegation=Delegation(budgets=budgets),
        database_limits={"shop": limits},
        is_foreign=True,
        is_project=True,
        is_pending=True,
        withheld=Withheld(
            rules={"files": STRICT},
            called={"files": frozenset({"f"})},
            off=frozenset({"old", *kept.withheld.off - {"old"}}),
        ),
    )
    assert len(kept.withheld.off) == 2
    assert is_switched_off(replace(FILES, name="Git Hub"), kept)
    assert not is_switched_off(FILES, kept)


@pytest.mark.parametrize("key", ["search.learn", "search.shapes"])
def test_a_pending_file_switches_learning_off_and_not_on(key: str):
    assert restrictions_of(Layer(source="x", values={key: False})).values == {key: False}
    for said in (True, None, 0, "no"):
        assert restrictions_of(Layer(source="x", values={key: said})).values == {}


def test_an_approved_file_loses_the_keys_that_are_the_users_alone_and_says_which():
    values = {**dict.fromkeys(USER_ONLY_VALUES, 1), "gateway.mode": "direct"}
    odd = replace(FILES, inherit_env=("*",), definition_changes="accept", command="y")
    layer = Layer(
        source="ullage.toml",
        values=values,
        servers={"odd": odd, "files": FILES, "gone": None},
        tokens={"ada": TOKEN},
        withheld=Withheld(off=frozenset({"old"}), on=frozenset({"files"})),
    )
    kept = without_user_only_keys(layer)
    assert kept.values == {"gateway.mode": "direct"}
    assert kept.tokens == {}
    assert kept.servers == {"odd": replace(FILES, command="y"), "files": FILES, "gone": None}
    assert kept.withheld == Withheld(off=frozenset({"old"}))
    said = {issue.key: issue for issue in kept.issues}
    servers = {f"servers.odd.{key}" for key in USER_ONLY_SERVER_KEYS}
    assert set(said) == {*USER_ONLY_VALUES, "http.tokens.ada", *servers}
    assert {(issue.severity, issue.file) for issue in kept.issues} == {("note", "ullage.toml")}
    assert all(f"`{key}` is ignored in a project's file: " in issue.message for key, issue in said.items())
    assert "${NAME}" in str(said["servers.odd.inherit_env"].suggestion)
    assert "under another name" in str(said["servers.odd.definition_changes"].suggestion)
    assert said["store.url"].suggestion == "write it into your own ullage.toml if you want it"


def test_a_project_restricts_the_rules_of_a_users_server_and_allows_nothing():
    server = replace(FILES, rules=Rules(allow=("read",), deny=("drop",), hidden=("old",)))
    theirs = Rules(allow=("drop",), deny=("read",), hidden=("secret", "old"))
    project = [Layer(source="x", withheld=Withheld(rules={"files": theirs, "other": Rules(hidden=("never",))}))]
    rules = restricted_rules(server, project)
    assert [rules.access(tool) for tool in ("read", "drop", "write")] == ["deny", "deny", "allow"]
    assert rules.hidden == ("old", "secret")
    assert restricted_rules(server, []).hidden == ("old",)


@pytest.mark.parametrize(
    ("first", "second", "lower"),
    [
        *((5, 9, 5), (9, 5, 5), (5, 0, 5), (0, 5, 5), (5, None, 5), (None, 5, 5)),
        *((0, 0, 0), (0, None, 0), (None, 0, 0), (None, None, None)),
    ],
)
def test_of_two_budgets_the_lower_applies_and_0_is_no_limit(first: int | None, second: int | None, lower: int | None):
    assert lower_budget(first, second) == lower


@pytest.mark.parametrize(
    ("own", "ceiling", "theirs", "budget", "budgets"),
    [
        (None, 0, {"budget": 5}, 5, {}),
        (None, 3, {"budget": 5}, 3, {}),
        (None, 9, {"budget": 5}, 5, {}),
        (None, 9, {"budget": 0}, None, {}),
        ({"budget": 4}, 9, {"budget": 5}, 4, {}),
        ({"budget": 6}, 3, {"budget": 5}, 5, {}),
        ({"budget": 0}, 3, {"budget": 5}, 5, {}),
        (None, 0, {"budgets": {"a": 5, "b": 0}}, None, {"a": 5}),
        (None, 4, {"budgets": {"a": 5, "b": 4}}, None, {"b": 4}),
        ({"budgets": {"a": 3}}, 0, {"budgets": {"a": 1, "b": 3, "c": 4}}, None, {"a": 3, "b": 3}),
        ({"budgets": {"a": 0}}, 0, {"budgets": {"a": 1, "b": 9}}, None, {"a": 0, "b": 9}),
    ],
)
def test_a_project_lowers_the_budgets_of_results(
    own: dict[str, object] | None, ceiling: int, theirs: dict[str, object], budget: int | None, budgets: dict[str, int]
):
    said = None if own is None else ServerResults(**own)  # pyright: ignore[reportArgumentType]
    found = restricted_results(said, ceiling, [ServerResults(**theirs)])  # pyright: ignore[reportArgumentType]
    assert ((found or ServerResults()).budget, (found or ServerResults()).budgets) == (budget, budgets)


def test_settings_of_results_that_a_project_does_not_lower_are_the_same():
    assert restricted_results(None, 0, [ServerResults()]) is None
    own = ServerResults(budget=3, encode=False)
    assert restricted_results(own, 0, [ServerResults(budget=4)]) is own


def test_a_project_lowers_the_limits_of_a_database_and_masks_more():
    own = DatabaseSettings(name="shop", url="sqlite:///x", masked=("t.a",), max_tokens=100)
    usual = own.limits
    theirs = DatabaseSettings(
        name="shop", url="", masked=("t.b", "t.a"), max_tokens=50, limits=replace(usual, seconds=usual.seconds - 1)
    )
    lowered = restricted_database(own, [theirs])
    assert (lowered.masked, lowered.max_tokens, lowered.url) == (("t.a", "t.b"), 50, "sqlite:///x")
    assert lowered.limits == replace(usual, seconds=usual.seconds - 1)
    wider = replace(theirs, limits=replace(usual, seconds=usual.seconds + 1), max_tokens=None)
    assert restricted_database(own, [wider]).limits == usual
    assert restricted_database(own, [wider]).max_tokens == 100
    assert restricted_database(replace(own, max_tokens=None), [theirs]).max_tokens == 50
    tight = replace(own, limits=Limits(seconds=1))
    assert restricted_database(tight, [replace(theirs, limits=Limits())]).limits.seconds == 1
    assert restricted_database(own, []) == own
