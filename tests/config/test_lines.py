import pytest

from ullage.config.lines import json_line, toml_line

TOML = """include = ["x"]

[gateway]
mode = "auto"   # mode of all
[servers.github] # the first
command = "npx"
"args" = []
env = { TOKEN = "x" }
['servers'."my.server"]
url = "http://x"
[servers]
other.command = "y"
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("include",), 1),
        (("gateway",), 3),
        (("gateway", "mode"), 4),
        (("servers", "github"), 5),
        (("servers", "github", "command"), 6),
        (("servers", "github", "args"), 7),
        (("servers", "github", "env", "TOKEN"), 8),
        (("servers", "my.server", "url"), 10),
        (("servers", "other", "command"), 12),
        (("servers", "github", "nowhere"), 5),
        (("store", "url"), None),
    ],
)
def test_a_key_of_a_toml_file_is_found(path: tuple[str, ...], line: int | None):
    assert toml_line(TOML, path) == line


def test_a_key_of_a_json_file_is_found():
    text = '{\n "command": 1,\n "mcpServers": {\n  "a": {"command": "x"},\n  "b": {\n   "command" : "y"}}}'
    assert json_line(text, ("mcpServers", "a", "command")) == 4
    assert json_line(text, ("mcpServers", "b", "command")) == 6
    assert json_line(text, ("mcpServers", "b", "nowhere")) == 5
    assert json_line(text, ("nowhere",)) is None
