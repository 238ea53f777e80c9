import json
from collections.abc import Callable

import pytest

from ullage.config.config_file import Page
from ullage.config.included_files import read_mcp_json
from ullage.config.layers import Layer
from ullage.gateway import Rules, Server

pytestmark = pytest.mark.requirement("S1:aggregate")

MakePage = Callable[..., Page]


@pytest.fixture
def read(page: MakePage) -> Callable[..., Layer]:
    def reading(document: object, environment: dict[str, str] | None = None, file: str = "/home/me/.mcp.json") -> Layer:
        text = document if isinstance(document, str) else json.dumps(document, indent=1)
        return read_mcp_json(page(text, environment, file))

    return reading


Read = Callable[..., Layer]


def only(layer: Layer) -> Server:
    (server,) = layer.servers.values()
    assert server is not None, layer.issues
    return server


def notes(layer: Layer) -> list[str]:
    return [issue.message for issue in layer.issues if issue.severity == "note"]


@pytest.mark.requirement("S1:aggregate")
def test_claude_codes_file_is_read_as_it_is(read: Read):
    layer = read(
        {
            "mcpServers": {
                "github": {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "${TOKEN}"}, "type": "stdio"},
                "remote": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
                "old": {"type": "sse", "url": "https://h/x"},
            }
        },
        {"TOKEN": "s3cret"},
    )
    assert layer.issues == ()
    assert layer.is_foreign
    assert layer.servers["github"] == Server(
        name="github",
        transport="stdio",
        command="npx",
        arguments=("-y", "x"),
        environment={"TOKEN": "s3cret"},
        came_from="/home/me/.mcp.json [mcpServers.github]",
    )
    remote, old = layer.servers["remote"], layer.servers["old"]
    assert remote
    assert old
    assert (remote.transport, remote.headers, old.transport) == ("http", {"Authorization": "Bearer s3cret"}, "sse")


def test_claude_codes_servers_of_a_project_come_before_those_for_all(read: Read):
    layer = read(
        {
            "numStartups": 9,
            "mcpServers": {"a": {"command": "everywhere"}, "b": {"command": "b"}},
            "projects": {
                "/home/me/work": {"mcpServers": {"a": {"command": "here"}}, "disabledMcpServers": ["b"]},
                "/home/me/other": {"mcpServers": {"c": {"command": "elsewhere"}}},
            },
        },
        file="/home/me/.claude.json",
    )
    a, b = layer.servers["a"], layer.servers["b"]
    assert a
    assert b
    assert set(layer.servers) == {"a", "b"}
    assert (a.command, a.disabled, b.disabled) == ("here", False, True)
    assert notes(layer) == [
        "this entry of server `a` is not used: there is another one above",
        "server `b` is switched off here",
    ]


@pytest.mark.requirement("U:access")
def test_what_gemini_excludes_stays_excluded(read: Read):
    layer = read(
        {
            "theme": "Dracula",
            "mcp": {"allowed": ["a", "b"], "excluded": ["b"]},
            "mcpServers": {
                "a": {
                    "httpUrl": "https://h/sse",
                    "includeTools": ["read", "list(recent)", "drop"],
                    "excludeTools": ["drop"],
                    "timeout": 30000,
                    "trust": True,
                    "description": "What a does",
                },
                "b": {"command": "b"},
                "c": {"command": "c"},
            },
        },
        file="/home/me/.gemini/settings.json",
    )
    a, b, c = layer.servers["a"], layer.servers["b"], layer.servers["c"]
    assert a
    assert b
    assert c
    assert [a.rules.access(tool) for tool in ("read", "list", "drop", "new")] == ["allow", "allow", "deny", "deny"]
    assert (a.transport, a.call_timeout, a.description) == ("http", 30.0, "What a does")
    assert (a.disabled, b.disabled, c.disabled) == (False, True, True)
    assert "`trust` of server `a` is not taken over" in notes(layer)[0]


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize(
    ("entry", "allowed", "denied"),
    [
        ({"excludeTools": ["x"]}, "y", "x"),
        ({"disabledTools": ["x"]}, "y", "x"),
        ({"includeTools": ["y"]}, "y", "x"),
        ({"tools": ["y"]}, "y", "x"),
        ({"includeTools": ["y", "x"], "tools": ["y"]}, "y", "x"),
        ({"enabledTools": ["y", "x"], "disabledTools": ["x"]}, "y", "x"),
    ],
)
def test_every_dialects_exclusions_are_kept(read: Read, entry: dict[str, object], allowed: str, denied: str):
    server = only(read({"mcpServers": {"a": {"command": "x", **entry}}}))
    assert (server.rules.access(allowed), server.rules.access(denied)) == ("allow", "deny")


def test_a_star_means_every_tool(read: Read):
    assert only(read({"mcpServers": {"a": {"type": "local", "command": "x", "tools": ["*"]}}})).rules == Rules()


@pytest.mark.parametrize("entry", [{"disabled": True}, {"enabled": False}, {"disabled": True, "enabled": True}])
def test_a_disabled_server_stays_disabled(read: Read, entry: dict[str, object]):
    assert only(read({"mcpServers": {"a": {"command": "${NO}", **entry}}})).disabled


@pytest.mark.requirement("S1:aggregate")
def test_vs_codes_file_is_read_with_comments_and_trailing_commas(read: Read):
    layer = read(
        """{
          // asked for once
          "inputs": [{"type": "promptString", "id": "key", "password": true}],
          "servers": {
            "local": {"type": "stdio", "command": "npx", "args": ["${workspaceFolder}/x"],},
            "asks": {"type": "http", "url": "https://h/mcp", "headers": {"X": "${input:key}"}}, /* secret */
          },
        }""",
        {"workspaceFolder": "/home/me/work"},
        file="/home/me/work/.vscode/mcp.json",
    )
    local = layer.servers["local"]
    assert local
    assert local.arguments == ("/home/me/work/x",)
    assert layer.servers["asks"] is None
    (issue,) = layer.issues
    assert (issue.severity, issue.server, issue.line) == ("problem", "asks", 6)
    assert "`${input:key}`" in issue.message


def test_vs_codes_settings_are_read_too(read: Read):
    assert only(read({"mcp": {"servers": {"a": {"command": "x"}}}})).name == "a"


def test_unknown_keys_are_notes_and_never_errors(read: Read):
    layer = read(
        {"mcpServers": {"a": {"command": "x", "autoApprove": ["y"], "alwaysAllow": [], "envFile": ".env", "novel": 1}}}
    )
    assert only(layer).rules == Rules()
    assert {issue.severity for issue in layer.issues} == {"note"}
    assert [issue.key for issue in layer.issues] == [
        f"mcpServers.a.{key}" for key in ("autoApprove", "alwaysAllow", "envFile", "novel")
    ]
    assert notes(layer)[3] == "`novel` of server `a` means nothing to Ullage"


@pytest.mark.parametrize(
    ("file", "given", "expected"),
    [
        ("/home/me/.gemini/settings.json", 5000, 5.0),
        ("/home/me/.mcp.json", 60, 60.0),
        ("/x/cline_mcp_settings.json", 3600, 3600.0),
        ("/x/.roo/mcp.json", 1800, 1800.0),
    ],
)
def test_a_time_out_is_read_in_the_programs_own_unit(read: Read, file: str, given: int, expected: float):
    assert only(read({"mcpServers": {"a": {"command": "x", "timeout": given}}}, file=file)).call_timeout == expected


def test_values_are_read_forgivingly(read: Read):
    server = only(
        read(
            {
                "mcpServers": {
                    "a": {
                        "command": "~/x",
                        "args": ["--port", 80],
                        "env": {"PORT": 80, "DEBUG": True, "NOT": None},
                        "url": "",
                        "headers": None,
                        "cwd": "~/work",
                    }
                }
            }
        )
    )
    assert (server.command, server.arguments) == ("/home/me/x", ("--port", "80"))
    assert (server.environment, server.directory) == ({"PORT": "80", "DEBUG": "true"}, "/home/me/work")


@pytest.mark.parametrize(("transport", "command", "url"), [("stdio", "x", None), ("http", None, "http://h")])
def test_where_both_are_given_the_type_decides(read: Read, transport: str, command: str | None, url: str | None):
    server = only(read({"mcpServers": {"a": {"type": transport, "command": "x", "url": "http://h"}}}))
    assert (server.command, server.url) == (command, url)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("x", "its entry is a string, not a table"),
        ({}, "it has neither `command` nor `url`"),
        ({"command": "x", "url": "http://h"}, "it has both `command` and `url`"),
        ({"command": ["x"]}, "its `command` is a list, which cannot be meant"),
        ({"command": "x", "args": "y"}, "its `args` is a string, which cannot be meant"),
        ({"command": "x", "args": [{}]}, "its `args` is a list, which cannot be meant"),
        ({"command": "x", "env": "A=b"}, "its `env` is a string, which cannot be meant"),
        ({"command": "x", "env": {"A": []}}, "its `env` is a table, which cannot be meant"),
        ({"command": "x", "disabled": "yes"}, "its `disabled` is a string, which cannot be meant"),
        ({"command": "x", "excludeTools": "y"}, "its `excludeTools` is a string, which cannot be meant"),
        ({"command": "x", "excludeTools": [1]}, "its `excludeTools` is a list, which cannot be meant"),
        ({"type": "ws", "url": "http://h"}, "its `type` is a string, which cannot be meant"),
        ({"command": "x", "timeout": -1}, "its `timeout` is a number, which cannot be meant"),
    ],
)
def test_an_entry_nobody_understands_harms_no_other(read: Read, entry: object, why: str):
    layer = read({"mcpServers": {"bad": entry, "good": {"command": "x"}}})
    assert [issue.message for issue in layer.issues] == [f"server `bad` is left out: {why}"]
    assert layer.issues[0].severity == "problem"
    assert layer.servers["bad"] is None
    assert layer.servers["good"]


def test_names_are_made_to_fit(read: Read):
    layer = read({"mcpServers": {"My Server!": {"command": "x"}, "My/Server": {"command": "y"}, "é": {"command": "z"}}})
    assert list(layer.servers) == ["My-Server", "My-Server-2", "server"]


def test_ullage_itself_is_skipped(read: Read):
    layer = read({"mcpServers": {"ullage": {"command": "uvx", "args": ["ullage", "serve"]}}})
    assert (layer.servers, notes(layer)) == ({}, ["server `ullage` is Ullage itself and is skipped"])


@pytest.mark.parametrize(
    ("text", "why", "is_unread"),
    [
        ("{", "is not JSON: ", True),
        ("", "is not JSON: ", True),
        ("[" * 200_000, "is not JSON: nested too deep", True),
        ("{}", "has no `mcpServers`", False),
        ("[]", "has no `mcpServers`", False),
    ],
)
def test_a_file_without_servers_is_a_problem_and_no_error(read: Read, text: str, why: str, *, is_unread: bool):
    layer = read(text)
    assert [issue.severity for issue in layer.issues] == ["problem"]
    assert why in layer.issues[0].message
    assert layer.is_unread == is_unread


def test_a_table_of_servers_must_be_one(read: Read):
    layer = read({"mcpServers": [1], "servers": {"a": {"command": "x"}}})
    assert only(layer).name == "a"
    assert "`mcpServers` is a list, not a table of servers" in layer.issues[0].message


def test_no_value_is_in_any_message_or_repr(read: Read):
    layer = read(
        {
            "mcpServers": {
                "a": {"command": "x", "env": {"A": "s3cret"}, "args": [["s3cret"]], "novel": "s3cret"},
                "b": {"url": "https://h?s3cret", "headers": {"X": "s3cret\n"}},
                "c": {"url": "https://h?s3cret", "headers": {"X": "s3cret"}},
            }
        }
    )
    assert len(layer.issues) == 3
    assert "s3cret" not in repr(layer) + "".join(issue.sentence() for issue in layer.issues)


@pytest.mark.requirement("U:access")
def test_opencodes_servers_are_read_with_its_rules(read: Read):
    layer = read(
        {
            "$schema": "https://opencode.ai/config.json",
            "model": "anthropic/claude-sonnet-5",
            "mcp": {
                "fs": {
                    "type": "local",
                    "command": ["npx", "-y", "server-fs", "{env:ROOT}"],
                    "environment": {"KEY": "{env:KEY}"},
                    "timeout": 5000,
                },
                "hub": {"type": "remote", "url": "https://h/mcp", "enabled": False},
                "other": {"enabled": False},
            },
            "permission": {"fs_write*": "ask", "fs_delete": "deny", "edit": "ask"},
            "tools": {"fs_move": False, "fs_read": True, "bash": False},
        },
        {"KEY": "k"},
    )
    fs, hub = layer.servers["fs"], layer.servers["hub"]
    assert fs is not None
    assert hub is not None
    assert (fs.command, fs.arguments, fs.environment) == ("npx", ("-y", "server-fs", ""), {"KEY": "k"})
    assert (fs.start_timeout, fs.call_timeout) == (5.0, Server(name="x", transport="stdio").call_timeout)
    assert (hub.transport, hub.disabled) == ("http", True)
    assert list(layer.servers) == ["fs", "hub"]
    rules = layer.withheld.rules["fs"]
    said = {tool: rules.access(tool) for tool in ("write_file", "delete", "move", "read", "edit")}
    assert said == {"write_file": "ask", "delete": "deny", "move": "deny", "read": "allow", "edit": "allow"}


def test_one_word_of_opencode_holds_for_every_tool(read: Read):
    layer = read({"mcp": {"fs": {"type": "local", "command": ["x"]}}, "permission": "ask"})
    assert layer.withheld.rules["fs"].access("anything") == "ask"


@pytest.mark.requirement("U:access")
def test_zeds_servers_are_read_with_its_rules(read: Read):
    layer = read(
        {
            "context_servers": {
                "new": {"source": "custom", "command": "a", "args": ["b"], "env": {"C": "d"}},
                "old": {"command": {"path": "e", "args": ["f"], "env": {"G": "h"}}},
                "off": {"command": "x", "enabled": False},
            },
            "agent": {
                "default_profile": "write",
                "tool_permissions": {
                    "tools": {"mcp:new:drop": {"default": "deny"}, "mcp:new:put": {"default": "confirm"}}
                },
                "profiles": {"write": {"context_servers": {"old": {"tools": {"secret": False, "open": True}}}}},
            },
        }
    )
    new, old, off = (layer.servers[name] for name in ("new", "old", "off"))
    assert new is not None
    assert old is not None
    assert off is not None
    assert (new.command, new.arguments, new.environment) == ("a", ("b",), {"C": "d"})
    assert (old.command, old.arguments, old.environment) == ("e", ("f",), {"G": "h"})
    assert off.disabled
    rules = layer.withheld.rules
    assert [rules["new"].access(tool) for tool in ("drop", "put", "get")] == ["deny", "ask", "allow"]
    assert [rules["old"].access(tool) for tool in ("secret", "open")] == ["deny", "allow"]


@pytest.mark.requirement("U:access")
def test_tools_that_gemini_excludes_for_all_servers_stay_excluded(read: Read):
    layer = read(
        {"mcpServers": {"fs": {"command": "x"}}, "tools": {"exclude": ["mcp_fs_drop", "fs__wipe", "run_shell"]}}
    )
    assert [layer.withheld.rules["fs"].access(tool) for tool in ("drop", "wipe", "read")] == ["deny", "deny", "allow"]


@pytest.mark.parametrize("table", ["mcp", "context_servers"])
def test_odd_tables_of_servers_harm_nothing(read: Read, table: str):
    for odd in (None, 1, "x", [], {"a": None, "b": 1, "c": {"command": None}, "d": {"command": {"path": 3}}}):
        layer = read({table: odd, "mcpServers": {"good": {"command": "x"}}})
        assert layer.servers["good"] is not None
