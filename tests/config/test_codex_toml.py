from collections.abc import Callable

import pytest

from ullage.config.config_file import Page
from ullage.config.included_files import read_codex_toml
from ullage.gateway import Rules, Server

pytestmark = pytest.mark.requirement("S1:aggregate")

MakePage = Callable[..., Page]

WHOLE = """
model = "gpt-5"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]
env = { A = "b" }
env_vars = ["HOME"]
cwd = "/work"
startup_timeout_sec = 7
tool_timeout_sec = 8.5
enabled_tools = ["read", "list", "drop"]
disabled_tools = ["drop"]
required = true

[mcp_servers.remote]
url = "https://h/mcp"
http_headers = { X = "y" }
env_http_headers = { Z = "HEADER" }
bearer_token_env_var = "TOKEN"
startup_timeout_ms = 9000
enabled = false
"""

MOSTLY_ASKED = """
default_tools_approval_mode = "prompt"
disabled_tools = ["y"]
[mcp_servers.a.tools.x]
approval_mode = "approve"
[mcp_servers.a.tools.y]
approval_mode = "approve"
"""


def server(page: MakePage, entry: str) -> Server:
    layer = read_codex_toml(page(f"[mcp_servers.a]\ncommand = 'x'\n{entry}", file="/home/me/.codex/config.toml"))
    found = layer.servers["a"]
    assert found is not None, layer.issues
    return found


@pytest.mark.requirement("S1:aggregate")
def test_codexs_file_is_read_as_it_is(page: MakePage):
    made = page(WHOLE, {"TOKEN": "s3cret", "HEADER": "v"}, "/home/me/.codex/config.toml")
    layer = read_codex_toml(made)
    assert layer.servers["docs"] == Server(
        name="docs",
        transport="stdio",
        command="npx",
        arguments=("-y", "docs"),
        environment={"A": "b"},
        directory="/work",
        start_timeout=7.0,
        call_timeout=8.5,
        rules=Rules(only=("read", "list", "drop"), deny=("drop",)),
        came_from="/home/me/.codex/config.toml [mcp_servers.docs]",
    )
    remote = layer.servers["remote"]
    assert remote
    assert remote.headers == {"X": "y", "Z": "v", "Authorization": "Bearer s3cret"}
    assert (remote.disabled, remote.start_timeout) == (True, 9.0)
    assert [(issue.severity, issue.line) for issue in layer.issues] == [("note", 14)]
    assert "s3cret" not in repr(layer)


def test_an_unset_token_is_named(page: MakePage):
    layer = read_codex_toml(page("[mcp_servers.a]\nurl = 'https://h'\nbearer_token_env_var = 'NO_TOKEN'"))
    assert layer.servers == {"a": None}
    assert "`NO_TOKEN` not set" in layer.issues[0].message


@pytest.mark.requirement("U:access")
@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("disabled_tools = ['x']", "deny allow allow"),
        ("enabled_tools = ['x']", "allow deny deny"),
        ("enabled_tools = []", "deny deny deny"),
        ("[mcp_servers.a.tools.x]\napproval_mode = 'prompt'", "ask allow allow"),
        ("[mcp_servers.a.tools.x]\napproval_mode = 'writes'", "ask allow allow"),
        ("[mcp_servers.a.tools.x]\napproval_mode = 'novel'", "ask allow allow"),
        ("[mcp_servers.a.tools.x]\napproval_mode = 'approve'", "allow allow allow"),
        ("default_tools_approval_mode = 'prompt'", "ask ask ask"),
        ("default_tools_approval_mode = 'approve'", "allow allow allow"),
        (MOSTLY_ASKED, "allow deny ask"),
        ("enabled_tools = ['x', 'y']\n[mcp_servers.a.tools.x]\napproval_mode = 'prompt'", "ask allow deny"),
        ("enabled_tools = ['x', 'y']\ndefault_tools_approval_mode = 'prompt'", "ask ask deny"),
        ("enabled_tools = ['mcp__a__x']", "allow deny deny"),
        ("disabled_tools = ['mcp__a__x', 'y(*)']", "deny deny allow"),
        ("disabled_tools = ['*']", "deny deny deny"),
        ("[mcp_servers.a.tools.x]\nenabled = false", "deny allow allow"),
        ("[mcp_servers.a.tools.x]\nother = 1", "allow allow allow"),
    ],
)
def test_what_codex_leaves_out_or_asks_for_stays_so(page: MakePage, entry: str, expected: str):
    rules = server(page, entry).rules
    assert " ".join(rules.access(tool) for tool in ("x", "y", "z")) == expected


@pytest.mark.parametrize(
    "entry",
    [
        "tools = ['x']",
        "enabled_tools = 'x'",
        "env_http_headers = {A = 'no name'}",
        "env_http_headers = 1",
        "bearer_token_env_var = 'a b'",
    ],
)
def test_an_entry_nobody_understands_is_left_out(page: MakePage, entry: str):
    layer = read_codex_toml(page(f"[mcp_servers.a]\ncommand = 'x'\n{entry}"))
    assert layer.servers == {"a": None}
    assert [issue.severity for issue in layer.issues] == ["problem"]


@pytest.mark.parametrize(("text", "is_unread"), [("[", True), ("model = 'x'", False), ("a = " + "[" * 100_000, True)])
def test_a_file_without_servers_is_a_problem(page: MakePage, text: str, *, is_unread: bool):
    layer = read_codex_toml(page(text))
    assert [issue.severity for issue in layer.issues] == ["problem"]
    assert layer.is_unread == is_unread
