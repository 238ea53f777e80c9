import pytest

from ullage.config.permissions import Permissions, permissions_of, rules_for

pytestmark = pytest.mark.requirement("U:access")


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
    ],
)
def test_what_claude_code_denies_or_asks_about_stays_so(server: str, tool: str, expected: str):
    document = {
        "permissions": {
            "allow": ["mcp__github"],
            "deny": ["Bash(rm:*)", "mcp__github__delete_repo", "mcp__shop", "mcp__my_server__*"],
            "ask": ["mcp__github__create_*"],
        }
    }
    permissions = permissions_of(document, [])
    assert permissions
    assert rules_for(server, permissions).access(tool) == expected


def test_a_name_with_brackets_is_no_pattern():
    assert rules_for("a", Permissions(deny=("mcp__a__x[1]",))).access("x[1]") == "deny"


def test_a_star_for_every_server_is_every_server():
    assert rules_for("any", Permissions(deny=("mcp__*",))).access("tool") == "deny"


def test_declined_servers_are_found_at_the_top_and_in_the_project():
    document = {"disabledMcpjsonServers": ["a"], "projects": {"/here": {"disabledMcpjsonServers": ["b"]}}}
    assert permissions_of(document, ["/here"]) == Permissions(declined=("a", "b"))


@pytest.mark.parametrize("document", [{}, [], {"permissions": 1}, {"projects": {"/here": 1}}])
def test_a_file_without_permissions_has_none(document: object):
    assert permissions_of(document, ["/here"]) is None


def test_an_empty_table_of_permissions_is_still_one():
    assert permissions_of({"permissions": {"allow": []}}, []) == Permissions()
