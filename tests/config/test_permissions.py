import pytest

from ullage.config.permissions import Lists, Permissions, fold_server_name, permissions_of, rules_for
from ullage.gateway import Rules

pytestmark = pytest.mark.requirement("U:access")


def denying(rule: str, server: str = "gh") -> Rules:
    permissions = permissions_of(Lists({"permissions": {"deny": [rule]}}), [])
    assert permissions
    return rules_for([fold_server_name(server)], permissions)


@pytest.mark.parametrize(
    ("server", "tool", "expected"),
    [
        ("github", "delete_repo", "deny"),
        ("github", "get_repo", "allow"),
        ("github", "create_issue", "ask"),
        ("github", "create_[x]", "ask"),
        ("git", "hub__delete_repo", "allow"),
        ("shop", "anything", "deny"),
        ("my.server", "drop", "deny"),
        ("my server", "drop", "deny"),
        ("my-server", "drop", "deny"),
        ("fs", "files.read", "deny"),
        ("fs", "files-read", "deny"),
        ("fs", "filesXread", "allow"),
        ("fs", "write", "deny"),
    ],
)
def test_what_claude_code_denies_or_asks_about_stays_so(server: str, tool: str, expected: str):
    document = {
        "permissions": {
            "allow": ["mcp__github"],
            "deny": [
                "Bash(rm:*)",
                "mcp__github__delete_repo",
                "mcp__shop",
                "mcp__my_server__*",
                "mcp__fs__files_read",
                "mcp__fs__write(*)",
            ],
            "ask": ["mcp__github__create_*"],
        }
    }
    permissions = permissions_of(Lists(document), [])
    assert permissions
    assert rules_for([fold_server_name(server)], permissions).access(tool) == expected


def test_a_name_with_brackets_is_no_pattern():
    rules = denying("mcp__gh__x[1]")
    assert (rules.access("x[1]"), rules.access("x1")) == ("deny", "allow")


@pytest.mark.parametrize("rule", ["*", "mcp__*", "mcp__g*", "mcp__*h", "mcp__gh", "mcp__gh__*", "mcp**", "*__gh__**"])
def test_a_star_may_stand_for_servers_and_tools(rule: str):
    assert denying(rule).access("any_tool") == "deny"


@pytest.mark.parametrize(
    ("rule", "tool", "expected"),
    [
        ("mcp__*__delete", "delete", "deny"),
        ("mcp__*__delete", "undelete", "allow"),
        ("mcp__*delete", "undelete", "deny"),
        ("mcp__git*", "tool", "allow"),
        ("Bash*", "tool", "allow"),
        ("mcp__gh__get_*_secret", "get_my_secret", "deny"),
        ("mcp__gh__get_*_secret", "get_my_name", "allow"),
    ],
)
def test_a_star_stands_for_no_more_than_it_says(rule: str, tool: str, expected: str):
    assert denying(rule).access(tool) == expected


def test_a_rule_of_nothing_but_stars_takes_no_time():
    assert denying("mcp__" + "*a" * 2000, "a" * 60).access("b") == "allow"


def test_a_server_is_found_under_any_of_its_names():
    rules = rules_for(["server", "__"], Permissions(ask=("mcp______drop",)))
    assert rules.access("drop") == "ask"
    assert fold_server_name("\N{PANDA FACE}") == "__"


def test_declined_servers_are_found_at_the_top_and_in_the_project():
    document = {"disabledMcpjsonServers": ["a 1"], "projects": {"/here": {"disabledMcpjsonServers": ["b"]}}}
    assert permissions_of(Lists(document), ["/here"]) == Permissions(declined=("a_1", "b"))


@pytest.mark.parametrize("document", [{}, [], {"permissions": 1}, {"projects": {"/here": 1}}])
def test_a_file_without_permissions_has_none(document: object):
    assert permissions_of(Lists(document), ["/here"]) is None


def test_an_empty_table_of_permissions_is_still_one():
    assert permissions_of(Lists({"permissions": {"allow": []}}), []) == Permissions()


@pytest.mark.parametrize("odd", ["", " ", 5, None, {}, ["mcp__gh__x"]])
def test_one_odd_item_undoes_no_other_and_is_remembered(odd: object):
    lists = Lists({"permissions": {"deny": ["mcp__gh__delete", odd], "ask": "mcp__gh__put"}})
    assert permissions_of(lists, []) == Permissions(deny=("mcp__gh__delete",), ask=("mcp__gh__put",))
    assert lists.unclear == [("permissions", "deny"), ("permissions", "ask")]


def test_permissions_that_are_no_table_are_remembered():
    lists = Lists({"permissions": ["mcp__gh__delete"]})
    assert permissions_of(lists, []) is None
    assert lists.unclear == [("permissions",)]
