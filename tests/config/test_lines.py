import pytest

from ullage.config.config_file import json_line, toml_line

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


def test_a_number_in_a_path_is_a_place_in_a_list():
    text = '{"routing": {\n"buckets": [\n{"max": 1, "of": [2, 3]},\n"plain",\n[1,\n2],\n{"max":\n4}]},\n"7": 1}'
    lines = [json_line(text, ("routing", "buckets", str(number))) for number in range(5)]
    assert lines == [3, 4, 5, 7, 2]
    assert json_line(text, ("routing", "buckets", "3", "max")) == 7
    assert json_line(text, ("7",)) == 9
    toml = "[a]\nb = 1\n[[a.list]]\nc = 1\n[[a.list]]\nc = 2\n[a.other]\nc = 3\n"
    assert [toml_line(toml, ("a", "list", str(number))) for number in range(3)] == [3, 5, 1]
    assert toml_line(toml, ("a", "list", "1", "c")) == 6
    assert toml_line(toml, ("a", "other", "c")) == 8
