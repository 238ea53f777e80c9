from collections.abc import Callable

import pytest

from ullage.config.config_file import Page
from ullage.config.layers import Layer
from ullage.config.settings import ClientProfile, Token
from ullage.config.ullage_toml import read_ullage_toml
from ullage.gateway import Rules, Server

pytestmark = pytest.mark.requirement("S1:aggregate")

MakePage = Callable[..., Page]

WHOLE = """
include = ["~/.claude.json", ".vscode/mcp.json"]

[gateway]
mode = "search"
direct_below = 0.05
model = "gpt-4o"
window = 64000
join_calls = true
find_budget = 900
start_wait = 0
underscore_names = true

[servers.github]
command = "~/bin/github"
args = ["--stdio", "", "${MODE:-fast}"]
env = { TOKEN = "${env:TOKEN}" }
cwd = "work"
shared = true
prefix = "gh"
description = "Issues and code"
start_timeout = 5
call_timeout = 20.5
idle_timeout = 600
definition_changes = "accept"
allow = ["get_*"]
ask = ["create_*"]
deny = ["delete_*"]
read_only = ["get_me"]
writing = ["get_and_set"]
pinned = ["search"]
hidden = ["old_*"]

[servers.remote]
url = "https://${HOST:-example.org}/mcp"
headers = { Authorization = "Bearer ${TOKEN}" }
disabled = true

[servers.bare]
prefix = ""
type = "streamable-http"
url = "http://127.0.0.1:1/sse"

[servers.events]
url = "http://127.0.0.1:1/sse/"

[clients.codex]
model = "gpt-5"
window = 100
mode = "direct"
underscore_names = true

[search]
index = "words"
learn = false

[own]
pinned = ["count-tokens"]
deny = ["query"]

[store]
url = "postgresql://me:${TOKEN}@host/ullage"

[http.tokens.laptop]
env = "LAPTOP_TOKEN"
[http.tokens.phone]
file = "~/phone.token"
"""


def errors(layer: Layer) -> list[str]:
    return [issue.message for issue in layer.issues if issue.severity == "error"]


def test_every_key_reaches_the_settings(page: MakePage):
    layer = read_ullage_toml(page(WHOLE, {"TOKEN": "s3cret"}))
    assert layer.issues == ()
    assert layer.include == ("~/.claude.json", ".vscode/mcp.json")
    assert layer.values == {
        "gateway.mode": "search",
        "gateway.direct_below": 0.05,
        "gateway.model": "gpt-4o",
        "gateway.window": 64000,
        "gateway.join_calls": True,
        "gateway.find_budget": 900,
        "gateway.start_wait": 0.0,
        "gateway.underscore_names": True,
        "search.index": "words",
        "search.learn": False,
        "own.pinned": ("count-tokens",),
        "own.deny": ("query",),
        "store.url": "postgresql://me:s3cret@host/ullage",
    }
    assert layer.clients == {"codex": ClientProfile(model="gpt-5", window=100, mode="direct", underscore_names=True)}
    assert layer.tokens == {
        "laptop": Token(name="laptop", env="LAPTOP_TOKEN"),
        "phone": Token(name="phone", file="/home/me/phone.token"),
    }


def test_every_key_of_a_server_reaches_it(page: MakePage):
    servers = read_ullage_toml(page(WHOLE, {"TOKEN": "s3cret"})).servers
    assert servers["github"] == Server(
        name="github",
        transport="stdio",
        command="/home/me/bin/github",
        arguments=("--stdio", "", "fast"),
        environment={"TOKEN": "s3cret"},
        directory="/home/me/work",
        shared=True,
        prefix="gh",
        description="Issues and code",
        start_timeout=5.0,
        call_timeout=20.5,
        idle_timeout=600.0,
        definition_changes="accept",
        came_from="/home/me/ullage.toml [servers.github]",
        rules=Rules(
            allow=("get_*",),
            ask=("create_*",),
            deny=("delete_*",),
            read_only=("get_me",),
            writing=("get_and_set",),
            pinned=("search",),
            hidden=("old_*",),
        ),
    )
    remote, bare, events = servers["remote"], servers["bare"], servers["events"]
    assert remote
    assert bare
    assert events
    assert (remote.url, remote.transport, remote.disabled) == ("https://example.org/mcp", "http", True)
    assert remote.headers == {"Authorization": "Bearer s3cret"}
    assert (bare.spoken_prefix, bare.transport, events.transport) == ("", "http", "sse")


@pytest.mark.requirement("U:pin")
def test_accepted_definitions_go_by_the_entry_as_it_is_written(page: MakePage):
    def launch(text: str, **variables: str) -> str:
        server = read_ullage_toml(page(f"[servers.a]\n{text}", variables)).servers["a"]
        assert server is not None
        return server.launch_key

    entry = "command = 'x'\nargs = ['--token', '${TOKEN}']\n"
    first = launch(entry, TOKEN="one")
    assert launch(entry, TOKEN="two") == first, "a renewed token makes no other server"
    assert launch(entry + "env = { A = 'b' }\nstart_timeout = 3\n", TOKEN="one") == first
    assert launch(entry.replace("--token", "--tokens"), TOKEN="one") != first
    assert launch(entry + "cwd = 'elsewhere'\n", TOKEN="one") != first
    assert launch("url = 'https://example.org/${TOKEN}'", TOKEN="one") != first


def test_an_empty_file_says_nothing(page: MakePage):
    assert read_ullage_toml(page("")) == Layer(source="/home/me/ullage.toml")


@pytest.mark.parametrize(
    ("text", "line", "key", "nearest"),
    [
        ("inclde = []", 1, "inclde", "include"),
        ("[gatway]\nmode = 'auto'", 1, "gatway", "gateway"),
        ("[gateway]\n\nmodle = 'x'", 3, "gateway.modle", "model"),
        ("[servers.a]\ncommand = 'x'\ndney = ['y']", 3, "servers.a.dney", "deny"),
        ("[servers.a]\ncommand = 'x'\nread-only = []", 3, "servers.a.read-only", "read_only"),
        ("[clients.a]\nmodel = 'gpt-4'\nmod = 'auto'", 3, "clients.a.mod", "mode"),
        ("[own]\npined = []", 2, "own.pined", "pinned"),
        ("[store]\nuri = 'x'", 2, "store.uri", "url"),
        ("[http.token.x]\nenv = 'X'", 1, "http.token", "tokens"),
        ("[http.tokens.x]\nenw = 'X'\nenv = 'X'", 2, "http.tokens.x.enw", "env"),
    ],
)
def test_an_unknown_key_is_an_error_that_names_the_nearest(
    page: MakePage, text: str, line: int, key: str, nearest: str
):
    (issue,) = read_ullage_toml(page(text)).issues
    assert (issue.severity, issue.file, issue.line, issue.key) == ("error", "/home/me/ullage.toml", line, key)
    assert f"unknown key `{key.rsplit('.', 1)[-1]}`" in issue.message
    assert nearest in issue.suggestion
    assert issue.options[0] == nearest


def test_an_unknown_key_that_is_near_to_none_is_answered_with_all(page: MakePage):
    (issue,) = read_ullage_toml(page("[store]\nzzz = 1")).issues
    assert issue.options == ("url",)
    assert "url" in issue.suggestion


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("include = 'x'", "`include` must be a list of names or patterns, and is a string"),
        ("gateway = 1", "`gateway` must be a table, and is a number"),
        ("servers = []", "`servers` must be a table, and is empty"),
        ("[servers]\na = 'x'", "`servers.a` must be a table, and is a string"),
        ("http = true", "`http` must be a table, and is true or false"),
        ("[http]\ntokens = 1", "`http.tokens` must be a table, and is a number"),
        ("[gateway]\nmode = 'quick'", "`gateway.mode` must be `auto`, `search` or `direct`"),
        ("[search]\nindex = 'magic'", "`search.index` must be `static`, `encoder` or `words`"),
        ("[gateway]\nwindow = -1", "`gateway.window` must be a whole number above 0"),
        ("[gateway]\nwindow = true", "`gateway.window` must be a whole number above 0, and is true or false"),
        ("[gateway]\nfind_budget = 1.5", "`gateway.find_budget` must be a whole number above 0"),
        ("[gateway]\ndirect_below = 2", "`gateway.direct_below` must be a number from 0 to 1"),
        ("[gateway]\ndirect_below = nan", "`gateway.direct_below` must be a number from 0 to 1"),
        ("[gateway]\nstart_wait = -1", "`gateway.start_wait` must be a number of seconds, 0 or more"),
        ("[gateway]\nmodel = ' '", "`gateway.model` must be a string, and is empty"),
        ("[gateway]\nmodel = 1979-05-27", "`gateway.model` must be a string, and is something else"),
        ("[gateway]\njoin_calls = 'yes'", "`gateway.join_calls` must be true or false, and is a string"),
        ("[store]\nurl = 'here'", "`store.url` must be a database's URL"),
        ("[servers.a]\ncommand = ''", "`servers.a.command` must be a string, and is empty"),
        ("[servers.a]\ncommand = 'x'\nargs = 'y'", "`servers.a.args` must be a list of strings, and is a string"),
        ("[servers.a]\ncommand = 'x'\nargs = [1]", "`servers.a.args` must be a list of strings"),
        ("[servers.a]\ncommand = 'x'\ndeny = ['']", "`servers.a.deny` must be a list of names or patterns"),
        ("[servers.a]\ncommand = 'x'\nenv = 1", "`servers.a.env` must be a table of strings, and is a number"),
        ("[servers.a]\ncommand = 'x'\nenv = {A = 1}", "`servers.a.env` must be a table of strings"),
        (
            "[servers.a]\ncommand = 'x'\nprefix = 'a b'",
            "`servers.a.prefix` must be letters, digits, `_` or `-`, or nothing",
        ),
        (
            "[servers.a]\ncommand = 'x'\ncall_timeout = -5",
            "`servers.a.call_timeout` must be a number of seconds above 0",
        ),
        (
            "[servers.a]\ncommand = 'x'\nidle_timeout = 0",
            "`servers.a.idle_timeout` must be a number of seconds above 0",
        ),
        ("[servers.a]\nurl = 'ftp://x'", "`servers.a.url` must be an address that begins with http:// or https://"),
        ("[servers.a]\ncommand = 'x'\nurl = 'http://x'", "server `a` has both `command` and `url`"),
        ("[servers.a]\nshared = true", "server `a` has neither `command` nor `url`"),
        ("[servers.a]\n", "server `a` has neither `command` nor `url`"),
        (
            "[servers.a]\ncommand = 'x'\ntransport = 'http'",
            "server `a` has a `command`, which does not go with transport `http`",
        ),
        (
            "[servers.a]\nurl = 'http://x'\ntransport = 'stdio'",
            "server `a` has a `url`, which does not go with transport `stdio`",
        ),
        ("[servers.a]\ncommand = 'x'\ntransport = 'ws'", "`servers.a.transport` must be `stdio`, `http` or `sse`"),
        (
            "[servers.a]\ncommand = 'x'\ntransport = 'stdio'\ntype = 'stdio'",
            "`type` says again what another key has said",
        ),
        ("[servers.a]\ncommand = 'x'\nheaders = {A = 'b'}", "`headers` means nothing beside `command`"),
        ("[servers.a]\nurl = 'http://x'\nargs = []", "`args` means nothing beside `url`"),
        ("[servers.'a b']\ncommand = 'x'", "`a b` cannot be a name in `[servers]`"),
        ("[servers.'']\ncommand = 'x'", "a name in `[servers]` is empty"),
        ("[clients.'a/b']\nmode = 'auto'", "`a/b` cannot be a name in `[clients]`"),
        ("[http.tokens.x]\n", "token `x` must have `env` or `file`, and one of them only"),
        ("[http.tokens.x]\nenv = 'X'\nfile = 'x'", "token `x` must have `env` or `file`, and one of them only"),
        ("[http.tokens.x]\nenv = 'X Y'", "`http.tokens.x.env` must be the name of a variable"),
        (
            "[store]\nurl = 'postgresql://${PASSWORD}@x/y'",
            "`store.url` needs `PASSWORD`, which is not set in the environment",
        ),
    ],
)
def test_what_cannot_be_meant_is_an_error(page: MakePage, text: str, message: str):
    assert errors(read_ullage_toml(page(text))) == [message]


def test_a_choice_offers_what_it_takes(page: MakePage):
    (issue,) = read_ullage_toml(page("[gateway]\nmode = 'quick'")).issues
    assert issue.options == ("auto", "search", "direct")


def test_a_number_among_texts_is_to_be_quoted(page: MakePage):
    (issue,) = read_ullage_toml(page("[servers.a]\ncommand = 'x'\nenv = {A = 1}")).issues
    assert (issue.suggestion, issue.server) == ("put it in quotes", "a")


def test_all_errors_of_a_file_are_told_together(page: MakePage):
    text = "[gateway]\nmode = 1\nwindw = 2\n[servers.a]\n[servers.b]\ncommand = 1\nurl = 2\n[own]\ndeny = 3\n"
    text += "[store]\nurl = 4"
    layer = read_ullage_toml(page(text))
    assert [issue.line for issue in layer.issues] == [2, 3, 9, 11, 4, 6, 7, 5]
    assert layer.servers == {}


def test_a_file_that_is_not_toml_says_where(page: MakePage):
    (issue,) = read_ullage_toml(page("[gateway\nmode = 'auto'")).issues
    assert issue.severity == "error"
    assert "is not TOML" in issue.message
    assert "line 1" in issue.message


def test_another_programs_file_is_to_be_included(page: MakePage):
    (issue,) = read_ullage_toml(page('{"mcpServers": {}}', file="/home/me/.mcp.json")).issues
    assert "`include`" in issue.suggestion


def test_a_file_nested_beyond_reason_is_refused(page: MakePage):
    (issue,) = read_ullage_toml(page("a = " + "[" * 100_000)).issues
    assert "is not TOML" in issue.message


def test_an_unset_variable_is_the_problem_of_one_server(page: MakePage):
    text = "[servers.a]\ncommand = 'x'\nargs = ['${NO_SUCH}', '${NOR_THIS}']\n[servers.b]\ncommand = 'y'"
    layer = read_ullage_toml(page(text, {"OTHER": "s3cret"}))
    (issue,) = layer.issues
    assert (issue.severity, issue.server, issue.line) == ("problem", "a", 1)
    assert "`NO_SUCH`, `NOR_THIS` not set" in issue.message
    assert layer.servers["a"] is None
    assert layer.servers["b"]


def test_a_disabled_server_needs_no_variables(page: MakePage):
    layer = read_ullage_toml(page("[servers.a]\ncommand = '${NO_SUCH}'\ndisabled = true"))
    assert layer.issues == ()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("url = '${HOST}/mcp'", "server `a` is left out: its `url` is no http:// or https:// address"),
        ("url = 'http://${HOST}:port/'", "server `a` is left out: its `url` is no http:// or https:// address"),
        ("url = 'http:///mcp'", "server `a` is left out: its `url` is no http:// or https:// address"),
        ("url = 'http://[x/'", "server `a` is left out: its `url` is no http:// or https:// address"),
        (
            "url = 'http://h'\nheaders = {X = '${LINES}'}",
            "server `a` is left out: its header `X` has a character that no header may have",
        ),
        (
            "url = 'http://h'\nheaders = {X = 'é', Y = 'e'}",
            "server `a` is left out: its header `X` has a character that no header may have",
        ),
    ],
)
def test_what_only_shows_after_replacing_is_the_problem_of_one_server(page: MakePage, values: str, message: str):
    layer = read_ullage_toml(page(f"[servers.a]\n{values}", {"HOST": "s3cret", "LINES": "s3cret\n"}))
    assert [issue.message for issue in layer.issues] == [message]
    assert layer.servers == {"a": None}


@pytest.mark.parametrize(
    "values",
    [
        "command = 'ullage'\nargs = ['serve']",
        "command = '/opt/bin/ullage.exe'\nargs = ['serve', '--client', 'x']",
        "command = 'uvx'\nargs = ['ullage', 'serve']",
        "command = 'uvx'\nargs = ['--from', 'ullage[postgresql]==1.0', 'ullage', 'serve']",
        "command = 'uvx'\nargs = ['ullage@latest', 'serve']",
        "command = 'uv'\nargs = ['tool', 'run', 'ullage', 'serve']",
        "command = 'C:\\Python\\python3.12.exe'\nargs = ['-m', 'ullage', 'serve']",
        "command = 'bash'\nargs = ['-lc', 'exec /opt/ullage serve']",
        "command = 'poetry'\nargs = ['run', 'ullage', 'serve']",
        "command = 'pdm'\nargs = ['run', 'ullage', 'serve']",
        "command = 'conda'\nargs = ['run', '-n', 'tools', 'ullage', 'serve']",
        "command = 'mise'\nargs = ['exec', '--', 'ullage', 'serve']",
        "command = 'pipx'\nargs = ['run', 'ullage', 'serve']",
        "command = 'uv'\nargs = ['run', '--with', 'x', 'ullage', 'serve']",
        "command = '/usr/bin/nice'\nargs = ['-n', '5', 'ullage', 'serve']",
        "command = 'timeout'\nargs = ['9', 'ullage', 'serve']",
        "command = 'stdbuf'\nargs = ['-oL', 'ullage', 'serve']",
        "command = 'sudo'\nargs = ['-E', '/opt/bin/ullage', 'serve']",
        "command = 'env'\nargs = ['A=b', 'ullage', 'serve']",
    ],
)
def test_a_server_that_is_ullage_itself_is_skipped(page: MakePage, values: str):
    layer = read_ullage_toml(page(f"[servers.me]\n{values}"))
    assert [(issue.severity, issue.server) for issue in layer.issues] == [("note", "me")]
    assert layer.servers == {}


@pytest.mark.parametrize(
    "values",
    [
        "command = 'ullage'\nargs = ['count']",
        "command = 'node'\nargs = ['/home/me/ullage', 'serve']",
        "command = 'python'\nargs = ['-m', 'ullage_like', 'serve']",
        "command = 'uvx'\nargs = ['serve', 'ullage']",
    ],
)
def test_a_server_that_only_looks_like_ullage_is_kept(page: MakePage, values: str):
    assert read_ullage_toml(page(f"[servers.me]\n{values}")).servers["me"]


def test_no_value_is_in_any_message_or_repr(page: MakePage):
    text = (
        "[gateway]\nmode = 's3cret'\n[store]\nurl = 's3cret'\n[servers.a]\ncommand = 'x'\nenv = {A = '${T:-s3cret}'}\n"
        "cwd = '${NO}'\n[servers.b]\nurl = 's3cret'\n"
        "[servers.c]\nurl = 'http://h?key=s3cret'\nheaders = {X = 's3cret'}\n"
        "[servers.d]\ncommand = ['s3cret']\n[http.tokens.x]\nenv = 's3cret '\n"
    )
    made = page(text, {"B": "s3cret"})
    layer = read_ullage_toml(made)
    assert len(layer.issues) == 6
    assert "s3cret" not in repr(layer) + repr(made) + "".join(issue.sentence() for issue in layer.issues)


@pytest.mark.parametrize("text", ['budgets = { "list_*" = "500" }', 'cache = { "get_*" = -1 }'])
def test_a_number_that_does_not_fit_is_not_to_be_quoted(page: MakePage, text: str):
    (issue,) = read_ullage_toml(page(f"[servers.a]\ncommand = 'x'\n{text}")).issues
    assert (issue.severity, issue.suggestion) == ("error", "")
